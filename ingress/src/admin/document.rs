//! The declarative document of `POST /api/admin/apply`: organizations with their resources, which
//! refer to each other by slug.

use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    bodies::parse_value,
    bounds::{AGENTS_MAX, KEYS_MAX, ORGANIZATIONS_MAX, PROVIDERS_MAX, TEAMS_MAX},
    errors::{ValidateFields, ValidationError},
    planner::{DeclaredAgent, DeclaredSlugs},
    resources::{
        agents::AgentFields, keys::KeyFields, providers::ProviderFields, teams::TeamFields,
    },
    validation::{check_at_most, check_name, check_slug, check_unique},
};

/// The desired configuration of organizations. Resources that are not in the document stay
/// unchanged.
#[derive(Debug, ToSchema)]
pub struct ApplyDocument {
    /// The organizations to create or update.
    #[schema(max_items = 1_000)]
    pub(super) organizations: Vec<OrganizationDocument>,
}

/// An organization with its resources. `A` is the type of its agents, which are parsed after
/// everything else.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OrganizationDocument<A = AgentFields> {
    /// The name from which its id is derived.
    #[schema(min_length = 1, max_length = 63, pattern = "^[a-z0-9][a-z0-9-]*$")]
    pub(super) slug: String,
    /// The name that users see.
    #[schema(min_length = 1, max_length = 200)]
    pub(super) name: String,
    /// Model providers to create or update.
    #[serde(default = "Vec::new")]
    #[schema(max_items = 100)]
    pub(super) providers: Vec<ProviderFields>,
    /// Agents to create or update.
    #[serde(default = "Vec::new")]
    #[schema(max_items = 1_000)]
    pub(super) agents: Vec<A>,
    /// Teams to create or update.
    #[serde(default = "Vec::new")]
    #[schema(max_items = 200)]
    pub(super) teams: Vec<TeamFields>,
    /// API keys to create or update.
    #[serde(default = "Vec::new")]
    #[schema(max_items = 1_000)]
    pub(super) keys: Vec<KeyFields>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDocument {
    organizations: Vec<OrganizationDocument<Value>>,
}

impl ApplyDocument {
    /// Parses a document.
    ///
    /// # Errors
    /// The path of the first field that is missing, unknown or of another type. Unknown fields are
    /// refused because a misspelled limit would have no effect.
    pub fn from_json(value: Value) -> Result<Self, ValidationError> {
        let raw: RawDocument = parse_value(value)?;
        let organizations = raw.organizations.into_iter().enumerate();
        let organizations = organizations.map(|(index, raw)| raw.parse_agents(index));
        Ok(Self {
            organizations: organizations.collect::<Result<_, _>>()?,
        })
    }
}

impl OrganizationDocument<Value> {
    fn parse_agents(self, index: usize) -> Result<OrganizationDocument, ValidationError> {
        let agents = self.agents.into_iter().enumerate().map(|(number, agent)| {
            let path = format!("organizations[{index}].agents[{number}]");
            AgentFields::parse(agent).map_err(|error| error.below(&path))
        });
        Ok(OrganizationDocument {
            agents: agents.collect::<Result<_, _>>()?,
            slug: self.slug,
            name: self.name,
            providers: self.providers,
            teams: self.teams,
            keys: self.keys,
        })
    }
}

impl ValidateFields for ApplyDocument {
    fn validate(&self) -> Result<(), ValidationError> {
        let count = self.organizations.len();
        check_at_most(count, ORGANIZATIONS_MAX, "organizations")?;
        let slugs = self.organizations.iter().map(|it| it.slug.as_str());
        check_unique(slugs, "organizations", "slug")?;
        validate_each(&self.organizations, "organizations")
    }
}

impl ValidateFields for OrganizationDocument {
    fn validate(&self) -> Result<(), ValidationError> {
        check_slug(&self.slug)?;
        check_name(&self.name)?;
        let Self {
            providers,
            agents,
            teams,
            keys,
            ..
        } = self;
        check_at_most(providers.len(), PROVIDERS_MAX, "providers")?;
        check_at_most(agents.len(), AGENTS_MAX, "agents")?;
        check_at_most(teams.len(), TEAMS_MAX, "teams")?;
        check_at_most(keys.len(), KEYS_MAX, "keys")?;
        let declared = self.declared_slugs();
        check_unique(declared.providers.into_iter(), "providers", "slug")?;
        check_unique(
            declared.agents.iter().map(|agent| agent.slug),
            "agents",
            "slug",
        )?;
        check_unique(teams.iter().map(|it| it.slug.as_str()), "teams", "slug")?;
        check_unique(keys.iter().map(|it| it.name.as_str()), "keys", "name")?;
        validate_each(providers, "providers")?;
        validate_each(agents, "agents")?;
        validate_each(teams, "teams")?;
        validate_each(keys, "keys")
    }
}

fn validate_each<T: ValidateFields>(items: &[T], list: &str) -> Result<(), ValidationError> {
    items.iter().enumerate().try_for_each(|(index, item)| {
        item.validate()
            .map_err(|error| error.below(&format!("{list}[{index}]")))
    })
}

impl OrganizationDocument {
    /// Returns the slugs of the resources that others can refer to.
    pub(super) fn declared_slugs(&self) -> DeclaredSlugs<'_> {
        DeclaredSlugs {
            providers: self.providers.iter().map(|it| it.slug.as_str()).collect(),
            agents: self
                .agents
                .iter()
                .map(|it| DeclaredAgent {
                    slug: &it.names.slug,
                    settings: &it.settings,
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use switchboard_schemas::agent::AgentSettings;

    use super::*;

    fn path_of_error(organization: &Value) -> String {
        ApplyDocument::from_json(json!({ "organizations": [organization] }))
            .unwrap_err()
            .path
    }

    #[test]
    fn fields_other_than_slug_and_name_have_defaults() {
        let document = json!({ "organizations": [{
            "slug": "acme", "name": "Acme",
            "providers": [{ "slug": "main" }],
            "agents": [{ "slug": "shop", "name": "Shop" }],
            "teams": [{ "slug": "front", "name": "Front" }],
            "keys": [{ "name": "site" }],
        }]});
        let document = ApplyDocument::from_json(document).unwrap();
        assert_eq!(
            document.organizations[0].agents[0].settings,
            AgentSettings::default()
        );
    }

    #[test]
    fn error_has_the_path_of_its_field() {
        let agent = |agent: Value| json!({ "slug": "a", "name": "A", "agents": [{ "slug": "x", "name": "X" }, agent] });
        for (organization, path) in [
            (json!({ "slug": "a" }), "organizations[0]"),
            (
                json!({ "slug": "a", "name": "A", "agent": [] }),
                "organizations[0].agent",
            ),
            (agent(json!({ "slug": "b" })), "organizations[0].agents[1]"),
            (json!(["a", "A"]), "organizations[0]"),
            (agent(json!(["b", "B"])), "organizations[0].agents[1]"),
            (
                agent(json!({ "slug": "b", "name": "B", "limits": [7, 9] })),
                "organizations[0].agents[1].limits",
            ),
            (
                agent(json!({ "slug": "b", "name": "B", "statos": 1 })),
                "organizations[0].agents[1].statos",
            ),
            (
                agent(json!({ "slug": "b", "name": "B", "status": "on" })),
                "organizations[0].agents[1].status",
            ),
            (
                agent(json!({ "slug": "b", "name": "B", "theme": { "color": "" } })),
                "organizations[0].agents[1].theme.color",
            ),
            (
                agent(json!({ "slug": "b", "name": "B", "limits": { "maxMessageLength": -1 } })),
                "organizations[0].agents[1].limits.maxMessageLength",
            ),
        ] {
            assert_eq!(path_of_error(&organization), path);
        }
    }

    #[test]
    fn error_does_not_quote_the_document() {
        let keys =
            json!({ "slug": "a", "name": "A", "keys": [{ "name": "k", "scopes": "sk-secret" }] });
        let error = ApplyDocument::from_json(json!({ "organizations": [keys] })).unwrap_err();
        assert!(!error.to_string().contains("sk-secret"), "{error}");
    }
}
