//! Agents of an organization.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_backends::catalog::{CatalogEntry, EntryKind};
use switchboard_schemas::{agent::AgentSettings, ids::ProviderId};
use utoipa::ToSchema;

use super::{Identity, References, Resource};
use crate::{
    admin::{
        apply::EntryPlanner,
        bodies::parse_value,
        errors::{Validate, ValidationError},
        permissions::Configure,
        unknown_fields::unknown_field,
        validation::{check_name, check_settings, check_slug},
    },
    http::ApiResult,
};

/// The resource "agent".
pub(in crate::admin) struct Agents;

/// An agent as it is configured.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::admin) struct AgentFields {
    #[serde(flatten)]
    pub(in crate::admin) names: AgentNames,
    #[serde(flatten)]
    pub(in crate::admin) settings: AgentSettings,
}

/// The names of an agent and of the providers that it refers to.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::admin) struct AgentNames {
    /// The name in references; never changes.
    pub(in crate::admin) slug: String,
    /// The name that visitors see.
    pub(in crate::admin) name: String,
    /// The slug of its provider.
    #[serde(default)]
    pub(in crate::admin) provider: Option<String>,
    /// The slug of the provider that is asked when the first one fails.
    #[serde(default)]
    pub(in crate::admin) fallback_provider: Option<String>,
}

/// An agent as it is shown.
#[derive(Serialize, ToSchema)]
pub(in crate::admin) struct AgentView {
    #[serde(flatten)]
    identity: Identity,
    #[serde(flatten)]
    fields: AgentFields,
}

impl AgentFields {
    /// Parses an agent. Names and settings are parsed one after the other, because errors of
    /// flattened fields have no path.
    pub(in crate::admin) fn parse(value: Value) -> Result<Self, ValidationError> {
        let agent = Self {
            names: parse_value(value.clone())?,
            settings: parse_value(value.clone())?,
        };
        let known: Vec<Value> = serde_json::to_value(&agent).into_iter().collect();
        match unknown_field(&value, &known) {
            Some(field) => Err(ValidationError::new(field, "unknown field")),
            None => Ok(agent),
        }
    }
}

impl Validate for AgentFields {
    fn validate(&self) -> Result<(), ValidationError> {
        check_slug(&self.names.slug)?;
        check_name(&self.names.name)?;
        check_settings(&self.settings)
    }
}

impl Resource for Agents {
    const KIND: EntryKind = EntryKind::Agent;
    const NAME: &'static str = "Agent";
    const COLLECTION: &'static str = "agents";
    const REFERENCED_BY: &'static [EntryKind] = &[EntryKind::Team];
    type Change = Configure;
    type Fields = AgentFields;
    type View = AgentView;

    fn parse(value: Value) -> Result<AgentFields, ValidationError> {
        AgentFields::parse(value)
    }

    fn fields(entry: &CatalogEntry, references: &References) -> Option<AgentFields> {
        let CatalogEntry::Agent(agent) = entry else {
            return None;
        };
        let slug_of = |provider: &Option<_>| {
            provider
                .as_ref()
                .and_then(|id: &ProviderId| references.slug(id.as_str()))
        };
        Some(AgentFields {
            names: AgentNames {
                slug: agent.slug.clone(),
                name: agent.name.clone(),
                provider: slug_of(&agent.provider),
                fallback_provider: slug_of(&agent.fallback_provider),
            },
            settings: agent.settings.clone(),
        })
    }

    fn view(
        entry: &CatalogEntry,
        version: Option<i64>,
        references: &References,
    ) -> Option<AgentView> {
        Some(AgentView {
            identity: Identity::new(entry, version),
            fields: Self::fields(entry, references)?,
        })
    }

    async fn plan(
        planner: &EntryPlanner<'_>,
        fields: AgentFields,
        _: Option<&CatalogEntry>,
    ) -> ApiResult<CatalogEntry> {
        Ok(planner.agent(&fields).await?)
    }
}
