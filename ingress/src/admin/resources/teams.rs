//! Teams of an organization.

use serde::{Deserialize, Serialize};
use switchboard_backends::catalog::{CatalogEntry, EntryKind};
use switchboard_schemas::{
    agent::ActivationStatus,
    ids::TeamId,
    team::{RoutingStrategy, Team, TeamMember},
};
use utoipa::ToSchema;

use super::{
    references::ResourceReferences,
    resource::{Resource, ResourceIdentity},
};
use crate::admin::{
    errors::{ValidateFields, ValidationError},
    permissions::Configure,
    planner::{ApplyError, EntryPlanner},
    validation::{MEMBERS_MAX, check_at_most, check_name, check_slug, check_unique},
};

pub(in crate::admin) struct TeamResource;

/// The configuration of a team.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::admin) struct TeamFields {
    /// The name in references, from which the id is derived; never changes.
    pub(in crate::admin) slug: String,
    /// The name that users see.
    pub(in crate::admin) name: String,
    /// The purpose of the team; not shown to visitors.
    #[serde(default)]
    pub(in crate::admin) description: String,
    /// The strategy by which a member is chosen.
    #[serde(default = "default_routing")]
    pub(in crate::admin) routing: RoutingStrategy,
    /// The slug of the agent that replies when no member matches.
    #[serde(default)]
    pub(in crate::admin) default_agent: Option<String>,
    /// The members, at most 100.
    #[serde(default)]
    pub(in crate::admin) members: Vec<MemberFields>,
    /// `true` if API keys may chat with it.
    #[serde(default = "default_public")]
    pub(in crate::admin) public: bool,
    /// Only active teams reply.
    #[serde(default = "default_status")]
    pub(in crate::admin) status: ActivationStatus,
}

/// A member of a team.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::admin) struct MemberFields {
    /// The slug of the agent.
    pub(in crate::admin) agent: String,
    /// The subjects of the agent, in a few words.
    #[serde(default)]
    pub(in crate::admin) specialization: String,
}

/// A team in a response.
#[derive(Serialize, ToSchema)]
pub(in crate::admin) struct TeamView {
    #[serde(flatten)]
    identity: ResourceIdentity,
    #[serde(flatten)]
    fields: TeamFields,
}

const fn default_routing() -> RoutingStrategy {
    RoutingStrategy::Intent
}

const fn default_public() -> bool {
    true
}

const fn default_status() -> ActivationStatus {
    ActivationStatus::Active
}

impl ValidateFields for TeamFields {
    fn validate(&self) -> Result<(), ValidationError> {
        check_slug(&self.slug)?;
        check_name(&self.name)?;
        check_at_most(self.members.len(), MEMBERS_MAX, "members")?;
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
    type Change = Configure;
    type Delete = Configure;
    type Fields = TeamFields;
    type View = TeamView;

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
            status: team.status,
        })
    }

    fn view(
        identity: ResourceIdentity,
        fields: TeamFields,
        _: &CatalogEntry,
        _: &ResourceReferences,
    ) -> Option<TeamView> {
        Some(TeamView { identity, fields })
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
        Ok(CatalogEntry::Team(Team {
            id: TeamId::derive(&planner.context.secret, planner.org, &fields.slug),
            org_id: planner.org.clone(),
            slug: fields.slug.clone(),
            name: fields.name.clone(),
            description: fields.description.clone(),
            routing: fields.routing,
            default_agent,
            members,
            public: fields.public,
            status: fields.status,
        }))
    }
}
