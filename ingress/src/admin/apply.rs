//! Applying a document: all of it is validated, then all of it is written. Ids are derived from slugs, so that a document
//! that is applied twice, or on two processes at once, creates each resource once.

use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use switchboard_backends::{
    catalog::{CatalogEntry, EntryKind},
    store::StoreError,
    vault::UnsealError,
};
use switchboard_schemas::{
    agent::Agent,
    ids::{AgentId, OrgId, ProviderId, TeamId},
    organization::Organization,
    provider::Provider,
    team::{Team, TeamMember},
};
use utoipa::ToSchema;

use super::{
    announcements::publish_changes,
    applied_keys::{AppliedKey, apply_keys},
    audit_entries::WrittenEntry,
    document::{Document, OrganizationDocument},
    errors::{Validate, ValidationError},
    resources::{agents::AgentFields, providers::ProviderFields, teams::TeamFields},
};
use crate::http::ApiError;
pub use crate::state::apply_context::ApplyContext;

/// An error for which a document was not applied. Only [`ApplyError::Store`] can leave a part of it written; applying
/// the document again completes it.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// A field of the document is wrong; nothing was written.
    #[error(transparent)]
    Invalid(#[from] ValidationError),
    /// The catalog failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A provider's key could not be sealed.
    #[error(transparent)]
    Seal(#[from] UnsealError),
}

/// An applied document with the ids of its resources. It holds the texts of new keys and must not be logged.
#[derive(Serialize, ToSchema)]
pub struct Applied {
    /// The organizations, in the order of the document.
    pub organizations: Vec<AppliedOrganization>,
    /// The entries that were written.
    #[serde(skip)]
    pub(super) written: Vec<WrittenEntry>,
}

/// An organization of an applied document.
#[derive(Serialize, ToSchema)]
pub struct AppliedOrganization {
    /// The slug in the document.
    pub slug: String,
    /// The id of the organization.
    pub id: OrgId,
    /// The model providers that the document names.
    pub providers: Vec<AppliedEntry<ProviderId>>,
    /// The agents that the document names.
    pub agents: Vec<AppliedEntry<AgentId>>,
    /// The teams that the document names.
    pub teams: Vec<AppliedEntry<TeamId>>,
    /// The API keys that the document names.
    pub keys: Vec<AppliedKey>,
}

/// A resource of an applied document.
#[derive(Serialize, ToSchema)]
pub struct AppliedEntry<Id> {
    /// The slug in the document.
    pub slug: String,
    /// The id of the resource.
    pub id: Id,
}

impl ApplyError {
    fn below(self, path: &str) -> Self {
        match self {
            Self::Invalid(error) => Self::Invalid(error.below(path)),
            other => other,
        }
    }
}

impl From<ApplyError> for ApiError {
    fn from(error: ApplyError) -> Self {
        match error {
            ApplyError::Invalid(error) => error.into(),
            ApplyError::Store(error) => error.into(),
            ApplyError::Seal(error) => Self::internal(&error),
        }
    }
}

/// Creates and updates the resources that `document` names.
pub async fn apply(context: &ApplyContext, document: Document) -> Result<Applied, ApplyError> {
    let _write_lock = context.write_lock.lock().await;
    document.validate()?;
    let mut entries = Vec::new();
    for (index, organization) in document.organizations.iter().enumerate() {
        let planned = plan_organization(context, organization).await;
        entries.extend(planned.map_err(|error| error.below(&format!("organizations[{index}]")))?);
    }
    let mut written = Vec::new();
    for entry in entries {
        written.extend(write_if_changed(context, entry).await?);
    }
    let mut organizations = Vec::new();
    for organization in document.organizations {
        let id = OrgId::derive(&context.secret, &organization.slug);
        let (keys, written_keys) = apply_keys(context, &id, &organization.keys).await?;
        organizations.push(AppliedOrganization::new(context, id, organization, keys));
        written.extend(written_keys);
    }
    let changed: Vec<_> = written.iter().map(|written| &written.after).collect();
    publish_changes(context, &changed).await;
    Ok(Applied {
        organizations,
        written,
    })
}

/// Plans all entries of an organization except keys, each before those that refer to it. Writes nothing.
async fn plan_organization(
    context: &ApplyContext,
    document: &OrganizationDocument,
) -> Result<Vec<CatalogEntry>, ApplyError> {
    let org = OrgId::derive(&context.secret, &document.slug);
    let planner = EntryPlanner {
        context,
        org: &org,
        document: Some(document),
    };
    let OrganizationDocument { slug, name, .. } = document;
    let mut entries = vec![planner.organization(slug, name)];
    for (index, provider) in document.providers.iter().enumerate() {
        let planned = planner.provider(provider).await;
        entries.push(planned.map_err(|error| error.below(&format!("providers[{index}]")))?);
    }
    for (index, agent) in document.agents.iter().enumerate() {
        let planned = planner.agent(agent).await;
        entries.push(planned.map_err(|error| error.below(&format!("agents[{index}]")))?);
    }
    for (index, team) in document.teams.iter().enumerate() {
        let planned = planner.team(team).await;
        entries.push(planned.map_err(|error| error.below(&format!("teams[{index}]")))?);
    }
    Ok(entries)
}

/// Writes an entry unless it is stored already: a document that is applied again only reads and announces nothing.
async fn write_if_changed(
    context: &ApplyContext,
    after: CatalogEntry,
) -> Result<Option<WrittenEntry>, StoreError> {
    let before = context.catalog.get(after.kind(), after.id()).await?;
    if before.as_ref() == Some(&after) {
        return Ok(None);
    }
    context.catalog.put(&after).await?;
    Ok(Some(WrittenEntry { before, after }))
}

impl AppliedOrganization {
    fn new(
        context: &ApplyContext,
        id: OrgId,
        document: OrganizationDocument,
        keys: Vec<AppliedKey>,
    ) -> Self {
        fn applied<Id>(
            slugs: impl Iterator<Item = String>,
            derive_id: impl Fn(&str) -> Id,
        ) -> Vec<AppliedEntry<Id>> {
            slugs
                .map(|slug| AppliedEntry {
                    id: derive_id(&slug),
                    slug,
                })
                .collect()
        }
        let secret = &context.secret;
        Self {
            providers: applied(document.providers.into_iter().map(|it| it.slug), |slug| {
                ProviderId::derive(secret, &id, slug)
            }),
            agents: applied(
                document.agents.into_iter().map(|it| it.names.slug),
                |slug| AgentId::derive(secret, &id, slug),
            ),
            teams: applied(document.teams.into_iter().map(|it| it.slug), |slug| {
                TeamId::derive(secret, &id, slug)
            }),
            slug: document.slug,
            id,
            keys,
        }
    }
}

/// Turns the fields of resources into the entries that they describe. It reads the catalog and writes nothing.
pub(super) struct EntryPlanner<'a> {
    context: &'a ApplyContext,
    org: &'a OrgId,
    /// The document whose resources can be referred to before they are written.
    document: Option<&'a OrganizationDocument>,
}

impl<'a> EntryPlanner<'a> {
    /// Creates a planner of one resource, which refers to stored resources only.
    pub(super) const fn of_one(context: &'a ApplyContext, org: &'a OrgId) -> Self {
        Self {
            context,
            org,
            document: None,
        }
    }

    /// Returns all stored entries of this kind in the organization.
    pub(super) async fn list(&self, kind: EntryKind) -> Result<Vec<CatalogEntry>, StoreError> {
        self.context.catalog.list(kind, Some(self.org)).await
    }

    /// Plans the organization itself, whose id is derived from its slug.
    pub(super) fn organization(&self, slug: &str, name: &str) -> CatalogEntry {
        CatalogEntry::Organization(Organization {
            id: OrgId::derive(&self.context.secret, slug),
            slug: slug.to_owned(),
            name: name.to_owned(),
        })
    }

    /// Plans a model provider.
    pub(super) async fn provider(
        &self,
        fields: &ProviderFields,
    ) -> Result<CatalogEntry, ApplyError> {
        let id = ProviderId::derive(&self.context.secret, self.org, &fields.slug);
        let stored = self
            .context
            .catalog
            .get(EntryKind::Provider, id.as_str())
            .await?;
        let stored_key = match stored {
            Some(CatalogEntry::Provider { sealed_key, .. }) => sealed_key,
            _ => Vec::new(),
        };
        let provider = Provider {
            id,
            org_id: self.org.clone(),
            slug: fields.slug.clone(),
            base_url: fields.base_url.trim_end_matches('/').to_owned(),
            model: fields.model.clone(),
            embedding_model: fields.embedding_model.clone(),
            continues_prefix: fields.continues_prefix,
        };
        Ok(CatalogEntry::Provider {
            provider,
            sealed_key: self.seal_key(fields.api_key.as_ref(), stored_key)?,
        })
    }

    /// Seals a provider's key. An equal stored key is kept, because sealing it again gives other bytes.
    fn seal_key(
        &self,
        key: Option<&SecretString>,
        stored: Vec<u8>,
    ) -> Result<Vec<u8>, UnsealError> {
        let Some(key) = key else {
            return Ok(stored);
        };
        if key.expose_secret().is_empty() {
            return Ok(Vec::new());
        }
        let opened = self.context.vault.open(self.org, &stored).ok();
        if opened.is_some_and(|opened| opened.expose_secret() == key.expose_secret()) {
            return Ok(stored);
        }
        self.context.vault.seal(self.org, key)
    }

    /// Plans an agent.
    pub(super) async fn agent(&self, fields: &AgentFields) -> Result<CatalogEntry, ApplyError> {
        let AgentFields { names, settings } = fields;
        let provider = self
            .find_provider(names.provider.as_deref(), "provider")
            .await?;
        let fallback = names.fallback_provider.as_deref();
        Ok(CatalogEntry::Agent(Box::new(Agent {
            id: AgentId::derive(&self.context.secret, self.org, &names.slug),
            org_id: self.org.clone(),
            slug: names.slug.clone(),
            name: names.name.clone(),
            provider,
            fallback_provider: self.find_provider(fallback, "fallbackProvider").await?,
            settings: settings.clone(),
        })))
    }

    /// Plans a team.
    pub(super) async fn team(&self, fields: &TeamFields) -> Result<CatalogEntry, ApplyError> {
        let mut members = Vec::with_capacity(fields.members.len());
        for (index, member) in fields.members.iter().enumerate() {
            let path = format!("members[{index}].agent");
            members.push(TeamMember {
                agent: self.find_agent(&member.agent, &path).await?,
                specialization: member.specialization.clone(),
            });
        }
        let default_agent = match &fields.default_agent {
            Some(slug) => Some(self.find_agent(slug, "defaultAgent").await?),
            None => None,
        };
        Ok(CatalogEntry::Team(Team {
            id: TeamId::derive(&self.context.secret, self.org, &fields.slug),
            org_id: self.org.clone(),
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

    async fn find_provider(
        &self,
        slug: Option<&str>,
        path: &str,
    ) -> Result<Option<ProviderId>, ApplyError> {
        let Some(slug) = slug else { return Ok(None) };
        let id = ProviderId::derive(&self.context.secret, self.org, slug);
        let mut declared = self
            .document
            .iter()
            .flat_map(|document| &document.providers);
        let is_declared = declared.any(|provider| provider.slug == slug);
        self.check_exists(is_declared, EntryKind::Provider, id.as_str(), path)
            .await?;
        Ok(Some(id))
    }

    async fn find_agent(&self, slug: &str, path: &str) -> Result<AgentId, ApplyError> {
        let id = AgentId::derive(&self.context.secret, self.org, slug);
        let mut declared = self.document.iter().flat_map(|document| &document.agents);
        let is_declared = declared.any(|agent| agent.names.slug == slug);
        self.check_exists(is_declared, EntryKind::Agent, id.as_str(), path)
            .await?;
        Ok(id)
    }

    async fn check_exists(
        &self,
        is_declared: bool,
        kind: EntryKind,
        id: &str,
        path: &str,
    ) -> Result<(), ApplyError> {
        if is_declared || self.context.catalog.get(kind, id).await?.is_some() {
            return Ok(());
        }
        let reason = format!("names no {} of this organization", kind.name());
        Err(ValidationError::new(path, reason).into())
    }
}
