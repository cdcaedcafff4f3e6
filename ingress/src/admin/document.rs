//! The declarative document: what an installation should hold, named by slugs. Every mistake is told with its path.

use secrecy::SecretString;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use switchboard_schemas::{
    agent::{ActivationStatus, AgentSettings},
    api_key::{KeyLimits, KeyScope},
    team::RoutingStrategy,
    time::Timestamp,
};

use super::known_fields::unknown_field;

/// A mistake in a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {reason}")]
pub struct Invalid {
    /// Where, for instance `organizations[0].agents[1].provider`.
    pub path: String,
    /// What is wrong there.
    pub reason: String,
}

impl Invalid {
    pub(super) fn new(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            reason: reason.into(),
        }
    }
}

/// What should be so. What is not named stays as it is.
#[derive(Debug)]
pub struct Document {
    pub(super) organizations: Vec<OrganizationDocument>,
}

#[derive(Debug)]
pub(super) struct OrganizationDocument {
    pub(super) slug: String,
    pub(super) name: String,
    pub(super) providers: Vec<ProviderDocument>,
    pub(super) agents: Vec<AgentDocument>,
    pub(super) teams: Vec<TeamDocument>,
    pub(super) keys: Vec<KeyDocument>,
}

#[derive(Debug)]
pub(super) struct AgentDocument {
    pub(super) names: AgentNames,
    pub(super) settings: AgentSettings,
}

/// The fields of an agent that name other things.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentNames {
    pub(super) slug: String,
    pub(super) name: String,
    #[serde(default)]
    pub(super) provider: Option<String>,
    #[serde(default)]
    pub(super) fallback_provider: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ProviderDocument {
    pub(super) slug: String,
    #[serde(default = "default_base_url")]
    pub(super) base_url: String,
    /// Absent: the key that is kept stays, so that a document need not hold it for ever.
    #[serde(default)]
    pub(super) api_key: Option<SecretString>,
    #[serde(default = "default_model")]
    pub(super) model: String,
    #[serde(default)]
    pub(super) embedding_model: Option<String>,
    #[serde(default)]
    pub(super) continues_prefix: bool,
}

fn default_base_url() -> String {
    "https://api.openai.com/v1".to_owned()
}

fn default_model() -> String {
    "gpt-4o-mini".to_owned()
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TeamDocument {
    pub(super) slug: String,
    pub(super) name: String,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default = "default_routing")]
    pub(super) routing: RoutingStrategy,
    #[serde(default)]
    pub(super) default_agent: Option<String>,
    #[serde(default)]
    pub(super) members: Vec<MemberDocument>,
    #[serde(default = "default_public")]
    pub(super) public: bool,
    #[serde(default = "default_status")]
    pub(super) status: ActivationStatus,
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

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct MemberDocument {
    pub(super) agent: String,
    #[serde(default)]
    pub(super) specialization: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct KeyDocument {
    pub(super) name: String,
    #[serde(default)]
    pub(super) scopes: Vec<KeyScope>,
    #[serde(default)]
    pub(super) expires_at: Option<Timestamp>,
    #[serde(default)]
    pub(super) limits: Option<KeyLimits>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDocument {
    organizations: Vec<RawOrganization>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawOrganization {
    slug: String,
    name: String,
    #[serde(default)]
    providers: Vec<ProviderDocument>,
    #[serde(default)]
    agents: Vec<Value>,
    #[serde(default)]
    teams: Vec<TeamDocument>,
    #[serde(default)]
    keys: Vec<KeyDocument>,
}

impl Document {
    /// Reads a document; fields that it does not know are mistakes, because a misspelt limit would limit nothing.
    pub fn from_json(value: Value) -> Result<Self, Invalid> {
        let raw: RawDocument = read_at(value, "")?;
        let organizations = raw.organizations.into_iter().enumerate();
        let organizations =
            organizations.map(|(index, raw)| OrganizationDocument::read(raw, index));
        Ok(Self {
            organizations: organizations.collect::<Result<_, _>>()?,
        })
    }
}

impl OrganizationDocument {
    fn read(raw: RawOrganization, index: usize) -> Result<Self, Invalid> {
        let read_agent = |(number, value)| {
            AgentDocument::read(value, &format!("organizations[{index}].agents[{number}]"))
        };
        Ok(Self {
            agents: raw
                .agents
                .into_iter()
                .enumerate()
                .map(read_agent)
                .collect::<Result<_, _>>()?,
            slug: raw.slug,
            name: raw.name,
            providers: raw.providers,
            teams: raw.teams,
            keys: raw.keys,
        })
    }
}

impl AgentDocument {
    /// Names and settings stand side by side; they are read apart, because flattening them would lose the path of a
    /// mistake.
    fn read(value: Value, path: &str) -> Result<Self, Invalid> {
        let names: AgentNames = read_at(value.clone(), path)?;
        let settings: AgentSettings = read_at(value.clone(), path)?;
        let known = [
            serde_json::to_value(&names),
            serde_json::to_value(&settings),
        ];
        let known: Vec<Value> = known.into_iter().filter_map(Result::ok).collect();
        match unknown_field(&value, &known) {
            Some(field) => Err(Invalid::new(format!("{path}.{field}"), "unknown field")),
            None => Ok(Self { names, settings }),
        }
    }
}

fn read_at<T: DeserializeOwned>(value: Value, path: &str) -> Result<T, Invalid> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let inner = error.path().to_string();
        let path = match (path, inner.as_str()) {
            (path, "." | "") => path.to_owned(),
            ("", inner) => inner.to_owned(),
            (path, inner) => format!("{path}.{inner}"),
        };
        Invalid::new(path, without_values(&error.into_inner().to_string()))
    })
}

/// Serde's texts quote what they refuse, and what is refused may be a key.
fn without_values(text: &str) -> String {
    let mut quoted = false;
    let mut kept = String::with_capacity(text.len());
    for character in text.chars() {
        if character == '"' {
            quoted = !quoted;
            kept.push_str(if quoted { "\"…" } else { "\"" });
        } else if !quoted {
            kept.push(character);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mistake(organization: &Value) -> String {
        Document::from_json(json!({ "organizations": [organization] }))
            .unwrap_err()
            .path
    }

    #[test]
    fn every_field_but_slug_and_name_has_a_default() {
        let document = json!({ "organizations": [{
            "slug": "acme", "name": "Acme",
            "providers": [{ "slug": "main" }],
            "agents": [{ "slug": "shop", "name": "Shop" }],
            "teams": [{ "slug": "front", "name": "Front" }],
            "keys": [{ "name": "site" }],
        }]});
        assert_eq!(
            Document::from_json(document).unwrap().organizations[0].agents[0].settings,
            AgentSettings::default()
        );
    }

    #[test]
    fn a_mistake_is_told_with_its_path() {
        let agent = |agent: Value| json!({ "slug": "a", "name": "A", "agents": [{ "slug": "x", "name": "X" }, agent] });
        for (organization, path) in [
            (json!({ "slug": "a" }), "organizations[0]"),
            (
                json!({ "slug": "a", "name": "A", "agent": [] }),
                "organizations[0].agent",
            ),
            (agent(json!({ "slug": "b" })), "organizations[0].agents[1]"),
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
            assert_eq!(mistake(&organization), path);
        }
    }

    #[test]
    fn a_mistake_does_not_quote_the_document() {
        let keys =
            json!({ "slug": "a", "name": "A", "keys": [{ "name": "k", "scopes": "sk-secret" }] });
        let error = Document::from_json(json!({ "organizations": [keys] })).unwrap_err();
        assert!(!error.to_string().contains("sk-secret"), "{error}");
    }
}
