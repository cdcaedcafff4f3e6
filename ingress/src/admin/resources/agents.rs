//! Agents of an organization.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_backends::catalog::{CatalogEntry, EntryKind};
use switchboard_schemas::{
    agent::{
        ActivationStatus, Agent, AgentFeatures, AgentLimits, AgentSettings, OnDisconnect,
        ReasoningEffort, WidgetTheme,
    },
    ids::{AgentId, ProviderId},
    lead::LeadField,
};
use utoipa::ToSchema;

use super::{
    references::ResourceReferences,
    resource::{Resource, ResourceIdentity},
};
use crate::{
    admin::{
        authorization::Admin,
        bodies::{JsonObject, RequestBody, parse_value},
        entries::other_kind,
        errors::{ValidateFields, ValidationError},
        permissions::Configure,
        planner::{ApplyError, ChangeAuthor, EntryPlanner},
        unknown_fields::unknown_field,
        validation::{check_name, check_reference, check_settings, check_slug},
    },
    http::ApiResult,
    state::AddressUsage,
};

pub(in crate::admin) struct AgentResource;

/// The configuration of an agent.
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
    /// The name in references, from which the id is derived; never changes.
    #[schema(min_length = 1, max_length = 63, pattern = "^[a-z0-9][a-z0-9-]*$")]
    pub(in crate::admin) slug: String,
    /// The name that visitors see.
    #[schema(min_length = 1, max_length = 200)]
    pub(in crate::admin) name: String,
    /// The slug of its provider.
    #[serde(default)]
    #[schema(max_length = 63)]
    pub(in crate::admin) provider: Option<String>,
    /// The slug of the provider that is used when the first one fails.
    #[serde(default)]
    #[schema(max_length = 63)]
    pub(in crate::admin) fallback_provider: Option<String>,
}

/// An agent in a response.
#[derive(Serialize, ToSchema)]
pub(in crate::admin) struct AgentView {
    #[serde(flatten)]
    identity: ResourceIdentity,
    #[serde(flatten)]
    fields: AgentFields,
}

/// An agent in a list, without its long texts: a read of the agent has them.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::admin) struct AgentItem {
    #[serde(flatten)]
    identity: ResourceIdentity,
    #[serde(flatten)]
    names: AgentNames,
    /// The purpose of the agent.
    description: String,
    /// The model; that of the provider if absent.
    #[schema(required)]
    model: Option<String>,
    /// The sampling temperature; that of the provider if absent.
    #[schema(required)]
    temperature: Option<f32>,
    /// The thoroughness of the model's thoughts; that of the provider if absent.
    #[schema(required)]
    reasoning_effort: Option<ReasoningEffort>,
    /// The maximum length of a reply, in tokens.
    max_output_tokens: u32,
    /// Only active agents reply.
    status: ActivationStatus,
    /// `true` if the public API can reach the agent.
    public: bool,
    /// The first three origins that may use the widget; empty means any.
    allowed_domains: Vec<String>,
    /// Colors and shapes of the widget.
    theme: WidgetTheme,
    /// Features that are switched on or off in the widget.
    features: AgentFeatures,
    /// Limits of messages.
    limits: AgentLimits,
    /// The treatment of a running reply whose client disconnects.
    on_disconnect: OnDisconnect,
    /// The fields of the lead form, if there is one.
    lead_fields: Vec<LeadFieldName>,
}

/// A field of a lead form in a list.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::admin) struct LeadFieldName {
    /// The key of the value in a lead.
    name: String,
    /// The text beside the field.
    label: String,
}

impl AgentItem {
    fn new(agent: &Agent, names: AgentNames, identity: ResourceIdentity) -> Self {
        let settings = agent.settings.summary();
        let fields = settings.lead_form.map(|form| form.fields);
        let fields = fields.unwrap_or_default().into_iter();
        let lead_field = |field: LeadField| LeadFieldName {
            name: field.name,
            label: field.label,
        };
        Self {
            identity,
            names,
            description: settings.description,
            model: settings.model,
            temperature: settings.temperature,
            reasoning_effort: settings.reasoning_effort,
            max_output_tokens: settings.max_output_tokens,
            status: settings.status,
            public: settings.public,
            allowed_domains: settings.allowed_domains,
            theme: settings.theme,
            features: settings.features,
            limits: settings.limits,
            on_disconnect: settings.on_disconnect,
            lead_fields: fields.map(lead_field).collect(),
        }
    }
}

impl AgentNames {
    fn new(agent: &Agent, references: &ResourceReferences) -> Self {
        let slug_of = |provider: &Option<ProviderId>| references.slug(provider.as_ref()?.as_str());
        Self {
            slug: agent.slug.clone(),
            name: agent.name.clone(),
            provider: slug_of(&agent.provider),
            fallback_provider: slug_of(&agent.fallback_provider),
        }
    }
}

impl AgentFields {
    /// Parses an agent. Names and settings are parsed one after the other, because errors of
    /// flattened fields have no path.
    pub(in crate::admin) fn parse(value: Value) -> Result<Self, ValidationError> {
        let agent = Self {
            names: parse_value(value.clone())?,
            settings: parse_value(value.clone())?,
        };
        let known = serde_json::to_value(&agent).unwrap_or_default();
        match unknown_field(&value, &known) {
            Some(field) => Err(ValidationError::new(field, "unknown field")),
            None => Ok(agent),
        }
    }
}

impl RequestBody for AgentFields {
    fn from_fields(fields: JsonObject) -> ApiResult<Self> {
        let agent = Self::parse(fields.into()).map_err(ValidationError::naming_missing_field)?;
        agent.validate()?;
        Ok(agent)
    }
}

impl ValidateFields for AgentFields {
    fn validate(&self) -> Result<(), ValidationError> {
        let names = &self.names;
        check_slug(&names.slug)?;
        check_name(&names.name)?;
        check_reference(names.provider.as_deref(), "provider")?;
        check_reference(names.fallback_provider.as_deref(), "fallbackProvider")?;
        check_settings(&self.settings)
    }
}

impl Resource for AgentResource {
    const KIND: EntryKind = EntryKind::Agent;
    const NAME: &'static str = "Agent";
    const COLLECTION: &'static str = "agents";
    const REFERENCED_BY: &'static [EntryKind] = &[EntryKind::Team];
    type Change = Configure;
    type Delete = Configure;
    type Fields = AgentFields;
    type View = AgentView;
    type Item = AgentItem;

    fn fields(entry: &CatalogEntry, references: &ResourceReferences) -> Option<AgentFields> {
        let CatalogEntry::Agent(agent) = entry else {
            return None;
        };
        Some(AgentFields {
            names: AgentNames::new(agent, references),
            settings: agent.settings.clone(),
        })
    }

    fn item(entry: &CatalogEntry, references: &ResourceReferences) -> ApiResult<AgentItem> {
        let CatalogEntry::Agent(agent) = entry else {
            return Err(other_kind(Self::KIND));
        };
        let (names, identity) = (
            AgentNames::new(agent, references),
            ResourceIdentity::new(entry, None),
        );
        Ok(AgentItem::new(agent, names, identity))
    }

    fn view(
        identity: ResourceIdentity,
        fields: AgentFields,
        _: &CatalogEntry,
        _: &ResourceReferences,
    ) -> Option<AgentView> {
        Some(AgentView { identity, fields })
    }

    async fn plan(
        planner: &EntryPlanner<'_>,
        AgentFields { names, settings }: &AgentFields,
        current: Option<&CatalogEntry>,
    ) -> Result<CatalogEntry, ApplyError> {
        let current = match current {
            Some(CatalogEntry::Agent(agent)) => Some(&**agent),
            _ => None,
        };
        check_ceilings(planner, names, settings, current)?;
        let id = AgentId::derive(&planner.context.secret, planner.org, &names.slug);
        if let Some(feed) = &settings.ecommerce.feed
            && !has_feed(planner, &id, &feed.url).await?
        {
            let path = "ecommerce.feed.url";
            planner
                .check_address(AddressUsage::Feed, &feed.url, path)
                .await?;
        }
        let (provider, fallback) = (&names.provider, &names.fallback_provider);
        let provider = planner.find_provider(provider.as_deref(), "provider");
        let fallback = planner.find_provider(fallback.as_deref(), "fallbackProvider");
        Ok(CatalogEntry::Agent(Box::new(Agent {
            id,
            org_id: planner.org.clone(),
            slug: names.slug.clone(),
            name: names.name.clone(),
            provider: provider.await?,
            fallback_provider: fallback.await?,
            settings: settings.clone(),
        })))
    }

    /// Removes the products of the agent, which a new agent of the same slug, and so of the same
    /// id, would find.
    async fn clean_up(
        admin: &Admin<Configure>,
        deleted: &CatalogEntry,
    ) -> ApiResult<Vec<CatalogEntry>> {
        let products = &admin.state.backends.products;
        if let CatalogEntry::Agent(agent) = deleted {
            products.remove_products(&agent.org_id, &agent.id).await?;
        }
        Ok(Vec::new())
    }
}

/// Fails if a member sets a value above a ceiling of the operator.
fn check_ceilings(
    planner: &EntryPlanner<'_>,
    names: &AgentNames,
    settings: &AgentSettings,
    current: Option<&Agent>,
) -> Result<(), ValidationError> {
    let (ceilings, stored) = (
        &planner.context.ceilings,
        current.map(|agent| &agent.settings),
    );
    planner.check_ceiling(
        settings.max_output_tokens,
        stored.map(|stored| stored.max_output_tokens),
        ceilings.output_tokens_max,
        "maxOutputTokens",
    )?;
    planner.check_ceiling(
        settings.limits.rate_limit_per_minute,
        stored.map(|stored| stored.limits.rate_limit_per_minute),
        ceilings.requests_per_minute_max,
        "limits.rateLimitPerMinute",
    )?;
    let (Some(model), None) = (&settings.model, &names.provider) else {
        return Ok(());
    };
    let models = &ceilings.installation_models;
    let is_stored = current.is_some_and(|agent| {
        agent.provider.is_none() && agent.settings.model.as_ref() == Some(model)
    });
    if planner.author == ChangeAuthor::Operator
        || is_stored
        || models.is_empty()
        || models.contains(model)
    {
        return Ok(());
    }
    let reason = format!(
        "must be one of {}, which the operator of this installation has set, or needs a provider",
        models.join(", ")
    );
    Err(ValidationError::new("model", reason))
}

/// Returns true if the stored agent has this feed already: the networks that may be reached can
/// change, and other changes must not fail because of that.
async fn has_feed(planner: &EntryPlanner<'_>, id: &AgentId, url: &str) -> Result<bool, ApplyError> {
    let stored = planner.context.catalog.get(EntryKind::Agent, id.as_str());
    let Some(CatalogEntry::Agent(stored)) = stored.await? else {
        return Ok(false);
    };
    let feed = stored.settings.ecommerce.feed.as_ref();
    Ok(feed.is_some_and(|feed| feed.url == url))
}
