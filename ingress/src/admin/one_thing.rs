//! One configured thing as the admin API reads and shows it: the fields that a document has for it, so that what was read
//! can be written back, and the facts that only the service sets. Reading goes through the document's own reader and
//! checks, so that there is one answer to the question what is valid.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use switchboard_backends::catalog::{CatalogEntry, EntryKind};
use switchboard_schemas::{
    agent::Agent, api_key::ApiKey, organization::Organization, provider::Provider, team::Team,
    time::Timestamp, user::User,
};

use super::{
    apply::{ApplyContext, ApplyError, planned_entry},
    check::check,
    document::{Document, Invalid, OrganizationDocument},
};
use crate::http::{ApiError, ApiResult};

/// A JSON object.
pub(super) type Fields = Map<String, Value>;

/// What is told of things beside what lies in their own entries, by id.
#[derive(Default)]
pub(super) struct Slugs {
    /// Slugs of the things that others name.
    slugs: HashMap<String, String>,
    /// When keys were last used.
    uses: HashMap<String, Timestamp>,
}

impl Slugs {
    /// Of what entries of `kind` in `organization` can name, or when they were used.
    pub(super) async fn named_by(
        context: &ApplyContext,
        organization: &Organization,
        kind: EntryKind,
    ) -> ApiResult<Self> {
        let named = match kind {
            EntryKind::Agent => EntryKind::Provider,
            EntryKind::Team => EntryKind::Agent,
            EntryKind::Key => return Self::uses_of(context, organization).await,
            EntryKind::Organization | EntryKind::Provider | EntryKind::User => {
                return Ok(Self::default());
            }
        };
        let entries = context.catalog.list(named, Some(&organization.id)).await?;
        let slugs = entries
            .iter()
            .map(|entry| (entry.id().to_owned(), label(entry).to_owned()))
            .collect();
        Ok(Self {
            slugs,
            ..Self::default()
        })
    }

    async fn uses_of(context: &ApplyContext, organization: &Organization) -> ApiResult<Self> {
        let uses = context.catalog.uses(&organization.id).await?;
        let uses = uses
            .into_iter()
            .map(|used| (used.key_id.as_str().to_owned(), used.at))
            .collect();
        Ok(Self {
            uses,
            ..Self::default()
        })
    }

    fn of(&self, id: &str) -> Option<&str> {
        self.slugs.get(id).map(String::as_str)
    }

    /// When the key with this id was last used, as far as that was noted.
    pub(super) fn last_use(&self, id: &str) -> Option<Timestamp> {
        self.uses.get(id).copied()
    }
}

/// The list of a document that holds things of this kind.
pub(super) const fn list_of(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Organization => "organizations",
        EntryKind::Provider => "providers",
        EntryKind::Agent => "agents",
        EntryKind::Team => "teams",
        EntryKind::Key => "keys",
        EntryKind::User => "users",
    }
}

/// What people call it: its slug, or a key's name.
pub(super) fn label(entry: &CatalogEntry) -> &str {
    match entry {
        CatalogEntry::Organization(organization) => &organization.slug,
        CatalogEntry::Provider { provider, .. } => &provider.slug,
        CatalogEntry::Agent(agent) => &agent.slug,
        CatalogEntry::Team(team) => &team.slug,
        CatalogEntry::Key { key, .. } => &key.name,
        CatalogEntry::User(account) => account.user.email.as_str(),
    }
}

/// Its fields as a document has them; no key of a provider and no text of an API key is among them.
pub(super) fn document_fields(entry: &CatalogEntry, slugs: &Slugs) -> ApiResult<Fields> {
    let fields = match entry {
        CatalogEntry::Organization(organization) => {
            json!({ "slug": organization.slug, "name": organization.name })
        }
        CatalogEntry::Provider { provider, .. } => provider_fields(provider),
        CatalogEntry::Agent(agent) => return agent_fields(agent, slugs),
        CatalogEntry::Team(team) => team_fields(team, slugs),
        CatalogEntry::Key { key, .. } => key_fields(key),
        CatalogEntry::User(account) => user_fields(&account.user),
    };
    object(fields)
}

/// What only the service sets.
pub(super) fn set_by_service(entry: &CatalogEntry, version: Option<i64>) -> Fields {
    let mut facts = Fields::from_iter([("id".to_owned(), entry.id().into())]);
    if entry.kind() != EntryKind::Organization {
        facts.insert("organizationId".into(), entry.org_id().as_str().into());
    }
    match entry {
        CatalogEntry::Provider { sealed_key, .. } => {
            facts.insert("hasApiKey".into(), (!sealed_key.is_empty()).into());
        }
        CatalogEntry::Key { key, .. } => {
            facts.insert("lastFour".into(), key.last_four.clone().into());
            facts.insert("createdAt".into(), key.created_at.to_string().into());
        }
        CatalogEntry::Organization(_)
        | CatalogEntry::Agent(_)
        | CatalogEntry::Team(_)
        | CatalogEntry::User(_) => {}
    }
    if let Some(version) = version {
        facts.insert("version".into(), version.to_string().into());
    }
    facts
}

/// Whether `entry` names the thing with this id, so that the thing cannot go.
pub(super) fn names(entry: &CatalogEntry, id: &str) -> bool {
    match entry {
        CatalogEntry::Agent(agent) => [&agent.provider, &agent.fallback_provider]
            .into_iter()
            .flatten()
            .any(|provider| provider.as_str() == id),
        CatalogEntry::Team(team) => {
            let members = team.members.iter().map(|member| &member.agent);
            members
                .chain(&team.default_agent)
                .any(|agent| agent.as_str() == id)
        }
        CatalogEntry::Organization(_)
        | CatalogEntry::Provider { .. }
        | CatalogEntry::Key { .. }
        | CatalogEntry::User(_) => false,
    }
}

/// Reads `fields` as the one thing of `kind` that a document names in this organization, and checks it like one.
pub(super) fn read_one(
    organization: &Organization,
    kind: EntryKind,
    fields: Fields,
) -> Result<OrganizationDocument, Invalid> {
    let mut document = Fields::from_iter([
        ("slug".to_owned(), organization.slug.clone().into()),
        ("name".to_owned(), organization.name.clone().into()),
    ]);
    if kind == EntryKind::Organization {
        document = fields;
        if let Some(unknown) = document
            .keys()
            .find(|field| !["slug", "name"].contains(&field.as_str()))
        {
            return Err(Invalid::new(unknown, "unknown field"));
        }
    } else {
        document.insert(list_of(kind).into(), json!([fields]));
    }
    let read = || {
        let document = Document::from_json(json!({ "organizations": [document] }))?;
        check(&document)?;
        Ok(document)
    };
    let document: Document = read().map_err(|invalid| shortened(invalid, &path_of(kind)))?;
    document
        .organizations
        .into_iter()
        .next()
        .ok_or_else(|| Invalid::new("", "nothing is described"))
}

/// The entry that such a document stands for; a key has none before it is made.
pub(super) async fn plan_one(
    context: &ApplyContext,
    kind: EntryKind,
    document: &OrganizationDocument,
) -> ApiResult<CatalogEntry> {
    let planned = planned_entry(context, document, "organizations[0]").await;
    let planned = planned.map_err(|error| match error {
        ApplyError::Invalid(invalid) => ApplyError::Invalid(shortened(invalid, &path_of(kind))),
        other => other,
    })?;
    planned.ok_or_else(|| ApiError::internal(&"a document of one thing planned nothing"))
}

fn path_of(kind: EntryKind) -> String {
    match kind {
        EntryKind::Organization => "organizations[0]".to_owned(),
        kind => format!("organizations[0].{}[0]", list_of(kind)),
    }
}

/// The mistake as one who sent the thing alone knows its place.
fn shortened(invalid: Invalid, prefix: &str) -> Invalid {
    let path = invalid
        .path
        .strip_prefix(prefix)
        .unwrap_or(&invalid.path)
        .trim_start_matches('.')
        .to_owned();
    let missing = invalid
        .reason
        .strip_prefix("missing field `")
        .and_then(|rest| rest.strip_suffix('`'));
    match missing {
        Some(field) if path.is_empty() => Invalid::new(field, "is missing"),
        Some(field) => Invalid::new(format!("{path}.{field}"), "is missing"),
        None => Invalid::new(path, invalid.reason),
    }
}

fn provider_fields(provider: &Provider) -> Value {
    json!({
        "slug": provider.slug,
        "baseUrl": provider.base_url,
        "model": provider.model,
        "embeddingModel": provider.embedding_model,
        "continuesPrefix": provider.continues_prefix,
    })
}

fn agent_fields(agent: &Agent, slugs: &Slugs) -> ApiResult<Fields> {
    let settings =
        serde_json::to_value(&agent.settings).map_err(|error| ApiError::internal(&error))?;
    let mut fields = object(settings)?;
    let slug_of = |id: &Option<_>| {
        id.as_ref()
            .and_then(|id: &switchboard_schemas::ids::ProviderId| slugs.of(id.as_str()))
    };
    fields.extend([
        ("slug".to_owned(), agent.slug.clone().into()),
        ("name".to_owned(), agent.name.clone().into()),
        ("provider".to_owned(), slug_of(&agent.provider).into()),
        (
            "fallbackProvider".to_owned(),
            slug_of(&agent.fallback_provider).into(),
        ),
    ]);
    Ok(fields)
}

fn team_fields(team: &Team, slugs: &Slugs) -> Value {
    let members = team.members.iter().filter_map(|member| {
        let agent = slugs.of(member.agent.as_str())?;
        Some(json!({ "agent": agent, "specialization": member.specialization }))
    });
    json!({
        "slug": team.slug,
        "name": team.name,
        "description": team.description,
        "routing": team.routing,
        "defaultAgent": team.default_agent.as_ref().and_then(|agent| slugs.of(agent.as_str())),
        "members": members.collect::<Vec<_>>(),
        "public": team.public,
        "status": team.status,
    })
}

fn key_fields(key: &ApiKey) -> Value {
    json!({ "name": key.name, "scopes": key.scopes, "expiresAt": key.expires_at, "limits": key.limits })
}

fn user_fields(user: &User) -> Value {
    json!({ "email": user.email, "name": user.name, "role": user.role, "state": user.state })
}

fn object(value: Value) -> ApiResult<Fields> {
    match value {
        Value::Object(fields) => Ok(fields),
        _ => Err(ApiError::internal(&"a configured thing is no object")),
    }
}
