//! Teams of an organization.

use serde::{Deserialize, Serialize};
use switchboard_backends::catalog::{CatalogEntry, EntryKind};
use switchboard_schemas::{
    agent::{ActivationStatus, AgentSettings},
    ids::{AgentId, TeamId},
    team::{RoutingStrategy, Team, TeamMember},
};
use utoipa::ToSchema;

use super::{
    references::ResourceReferences,
    resource::{Resource, ResourceIdentity},
};
use crate::{
    admin::{
        bounds::{DESCRIPTION_CHARS_MAX, MEMBERS_MAX, SPECIALIZATION_CHARS_MAX},
        entries::other_kind,
        errors::{ValidateFields, ValidationError},
        permissions::Configure,
        planner::{ApplyError, EntryPlanner},
        validation::{
            check_at_most, check_chars, check_name, check_reference, check_slug, check_unique,
        },
    },
    http::ApiResult,
};

pub(in crate::admin) struct TeamResource;

/// The configuration of a team.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::admin) struct TeamFields {
    /// The name in references, from which the id is derived; never changes.
    #[schema(min_length = 1, max_length = 63, pattern = "^[a-z0-9][a-z0-9-]*$")]
    pub(in crate::admin) slug: String,
    /// The name that users see.
    #[schema(min_length = 1, max_length = 200)]
    pub(in crate::admin) name: String,
    /// The purpose of the team; not shown to visitors.
    #[serde(default)]
    #[schema(max_length = 2_000)]
    pub(in crate::admin) description: String,
    /// The strategy by which a member is chosen.
    #[serde(default = "default_routing")]
    pub(in crate::admin) routing: RoutingStrategy,
    /// The slug of the agent that replies when no member matches.
    #[serde(default)]
    #[schema(max_length = 63)]
    pub(in crate::admin) default_agent: Option<String>,
    /// The members, at most 100.
    #[serde(default)]
    #[schema(max_items = 100)]
    pub(in crate::admin) members: Vec<MemberFields>,
    /// `true` if API keys may chat with it.
    #[serde(default = "default_public")]
    pub(in crate::admin) public: bool,
    /// Only active teams reply. By default, a team is active if one of its agents can reply, and
    /// otherwise a draft, unless it is active with the same agents already.
    #[serde(default)]
    #[schema(value_type = ActivationStatus, required = false)]
    pub(in crate::admin) status: Option<ActivationStatus>,
}

/// A member of a team.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::admin) struct MemberFields {
    /// The slug of the agent.
    #[schema(max_length = 63)]
    pub(in crate::admin) agent: String,
    /// The subjects of the agent, in a few words.
    #[serde(default)]
    #[schema(max_length = 1_000)]
    pub(in crate::admin) specialization: String,
}

/// A team in a response.
#[derive(Serialize, ToSchema)]
pub(in crate::admin) struct TeamView {
    #[serde(flatten)]
    identity: ResourceIdentity,
    #[serde(flatten)]
    fields: TeamFields,
    /// `true` if an agent can reply: an active and public member, or an active default agent.
    /// Messages to an active team without one fail.
    answerable: bool,
}

/// A team in a list, without the specializations of its members: a read of the team has them.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::admin) struct TeamItem {
    #[serde(flatten)]
    identity: ResourceIdentity,
    /// The name in references.
    slug: String,
    /// The name that users see.
    name: String,
    /// The purpose of the team.
    description: String,
    /// The strategy by which a member is chosen.
    routing: RoutingStrategy,
    /// The slug of the agent that replies when no member matches.
    #[schema(required)]
    default_agent: Option<String>,
    /// The members.
    members: Vec<MemberName>,
    /// `true` if API keys may chat with it.
    public: bool,
    /// Only active teams reply.
    status: ActivationStatus,
    /// `true` if an agent can reply: an active and public member, or an active default agent.
    answerable: bool,
}

/// A member of a team in a list.
#[derive(Serialize, ToSchema)]
pub(in crate::admin) struct MemberName {
    /// The slug of the agent.
    agent: String,
}

const fn default_routing() -> RoutingStrategy {
    RoutingStrategy::Intent
}

const fn default_public() -> bool {
    true
}

impl ValidateFields for TeamFields {
    fn validate(&self) -> Result<(), ValidationError> {
        check_slug(&self.slug)?;
        check_name(&self.name)?;
        check_chars(&self.description, DESCRIPTION_CHARS_MAX, "description")?;
        check_reference(self.default_agent.as_deref(), "defaultAgent")?;
        check_at_most(self.members.len(), MEMBERS_MAX, "members")?;
        for (index, member) in self.members.iter().enumerate() {
            let below = |error: ValidationError| error.below(&format!("members[{index}]"));
            let text = &member.specialization;
            check_reference(Some(&member.agent), "agent").map_err(below)?;
            check_chars(text, SPECIALIZATION_CHARS_MAX, "specialization").map_err(below)?;
        }
        check_unique(
            self.members.iter().map(|member| member.agent.as_str()),
            "members",
            "agent",
        )
    }
}

impl Resource for TeamResource {
    const KIND: EntryKind = EntryKind::Team;
    const NAME: &'static str = "Team";
    const COLLECTION: &'static str = "teams";
    const VOLATILE_FIELDS: &'static [&'static str] = &["answerable"];
    type Change = Configure;
    type Delete = Configure;
    type Fields = TeamFields;
    type View = TeamView;
    type Item = TeamItem;

    fn fields(entry: &CatalogEntry, references: &ResourceReferences) -> Option<TeamFields> {
        let CatalogEntry::Team(team) = entry else {
            return None;
        };
        let members = team.members.iter().filter_map(|member| {
            Some(MemberFields {
                agent: references.slug(member.agent.as_str())?,
                specialization: member.specialization.clone(),
            })
        });
        let default_agent = team.default_agent.as_ref();
        Some(TeamFields {
            slug: team.slug.clone(),
            name: team.name.clone(),
            description: team.description.clone(),
            routing: team.routing,
            default_agent: default_agent.and_then(|agent| references.slug(agent.as_str())),
            members: members.collect(),
            public: team.public,
            status: Some(team.status),
        })
    }

    fn view(
        identity: ResourceIdentity,
        fields: TeamFields,
        entry: &CatalogEntry,
        references: &ResourceReferences,
    ) -> Option<TeamView> {
        let CatalogEntry::Team(team) = entry else {
            return None;
        };
        Some(TeamView {
            identity,
            fields,
            answerable: can_reply(team, references),
        })
    }

    fn item(entry: &CatalogEntry, references: &ResourceReferences) -> ApiResult<TeamItem> {
        let CatalogEntry::Team(team) = entry else {
            return Err(other_kind(Self::KIND));
        };
        let slug_of = |agent: &AgentId| references.slug(agent.as_str());
        let members = team.members.iter().filter_map(|member| {
            let agent = slug_of(&member.agent)?;
            Some(MemberName { agent })
        });
        Ok(TeamItem {
            identity: ResourceIdentity::new(entry, None),
            slug: team.slug.clone(),
            name: team.name.clone(),
            description: team.description.clone(),
            routing: team.routing,
            default_agent: team.default_agent.as_ref().and_then(slug_of),
            members: members.collect(),
            public: team.public,
            status: team.status,
            answerable: can_reply(team, references),
        })
    }

    async fn plan(
        planner: &EntryPlanner<'_>,
        fields: &TeamFields,
        _: Option<&CatalogEntry>,
    ) -> Result<CatalogEntry, ApplyError> {
        let mut members = Vec::with_capacity(fields.members.len());
        for (index, member) in fields.members.iter().enumerate() {
            let path = format!("members[{index}].agent");
            members.push(TeamMember {
                agent: planner.find_agent(&member.agent, &path).await?,
                specialization: member.specialization.clone(),
            });
        }
        let default_agent = match &fields.default_agent {
            Some(slug) => Some(planner.find_agent(slug, "defaultAgent").await?),
            None => None,
        };
        let mut team = Team {
            id: TeamId::derive(&planner.context.secret, planner.org, &fields.slug),
            org_id: planner.org.clone(),
            slug: fields.slug.clone(),
            name: fields.name.clone(),
            description: fields.description.clone(),
            routing: fields.routing,
            default_agent,
            members,
            public: fields.public,
            status: fields.status.unwrap_or(ActivationStatus::Active),
        };
        if team.status == ActivationStatus::Active
            && !is_answerable(planner, fields).await?
            && !was_accepted(planner, &team).await?
        {
            if fields.status.is_none() {
                team.status = ActivationStatus::Draft;
            } else if !planner.is_draft {
                let reason = "an active team needs an active, public member or an active default agent: \
                              nobody could reply";
                return Err(ValidationError::new("members", reason).into());
            }
        }
        Ok(CatalogEntry::Team(team))
    }
}

/// Returns true if an agent of the team can reply.
fn can_reply(team: &Team, references: &ResourceReferences) -> bool {
    let settings = |id: &AgentId| references.agent(id);
    let mut members = team.members.iter();
    let default_agent = team.default_agent.as_ref().and_then(settings);
    default_agent.is_some_and(can_reply_by_default)
        || members.any(|member| settings(&member.agent).is_some_and(can_reply_as_member))
}

/// Members are skipped by the routing unless they are public as well.
fn can_reply_as_member(agent: &AgentSettings) -> bool {
    agent.status == ActivationStatus::Active && agent.public
}

/// The default agent need not be public, because the team is.
fn can_reply_by_default(agent: &AgentSettings) -> bool {
    agent.status == ActivationStatus::Active
}

async fn is_answerable(
    planner: &EntryPlanner<'_>,
    fields: &TeamFields,
) -> Result<bool, ApplyError> {
    if let Some(slug) = &fields.default_agent
        && planner.agent_is(slug, can_reply_by_default).await?
    {
        return Ok(true);
    }
    for member in &fields.members {
        if planner.agent_is(&member.agent, can_reply_as_member).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns true if the stored team is active with the same agents, which have become inactive since
/// then: other changes of it are accepted.
async fn was_accepted(planner: &EntryPlanner<'_>, team: &Team) -> Result<bool, ApplyError> {
    let stored = planner
        .context
        .catalog
        .get(EntryKind::Team, team.id.as_str());
    let Some(CatalogEntry::Team(stored)) = stored.await? else {
        return Ok(false);
    };
    let agents = |team: &Team| -> Vec<AgentId> {
        let members = team.members.iter().map(|member| &member.agent);
        members.chain(&team.default_agent).cloned().collect()
    };
    Ok(stored.status == ActivationStatus::Active && agents(&stored) == agents(team))
}
