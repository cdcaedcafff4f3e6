//! Application of documents. A document is validated as a whole before anything is written. Ids are derived from slugs, so
//! that applying a document twice, or on two processes at once, creates each resource once.

use serde::Serialize;
use switchboard_backends::{
    catalog::{CatalogEntry, EntryKind},
    store::StoreError,
    vault::UnsealError,
};
use switchboard_schemas::{
    ids::{AgentId, OrgId, ProviderId},
    organization::Organization,
};
use utoipa::ToSchema;

use super::{
    announcements::publish_changes,
    applied_keys::{AppliedKey, apply_keys},
    audit_entries::WrittenEntry,
    document::{ApplyDocument, OrganizationDocument},
    errors::{ValidateFields, ValidationError},
    resources::{
        Resource, agents::AgentResource, providers::ProviderResource, references::label,
        teams::TeamResource,
    },
};
use crate::http::{ApiError, ErrorCode};
pub use crate::state::apply_context::ApplyContext;

/// A failure to apply a document or to change a resource. Only [`ApplyError::Store`] can leave a document partly written;
/// applying it again completes it.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// A field is invalid; nothing was written.
    #[error(transparent)]
    Invalid(#[from] ValidationError),
    /// The catalog failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A provider's key could not be sealed.
    #[error(transparent)]
    Seal(#[from] UnsealError),
    /// Another key, with this id, has the same name.
    #[error("a key with this name exists already")]
    NameTaken(String),
}

/// The ids of the resources of an applied document. Contains the texts of new keys and must not be logged.
#[derive(Serialize, ToSchema)]
pub struct AppliedDocument {
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
    pub providers: Vec<AppliedEntry>,
    /// The agents that the document names.
    pub agents: Vec<AppliedEntry>,
    /// The teams that the document names.
    pub teams: Vec<AppliedEntry>,
    /// The API keys that the document names.
    pub keys: Vec<AppliedKey>,
}

/// A resource of an applied document.
#[derive(Serialize, ToSchema)]
pub struct AppliedEntry {
    /// The slug in the document.
    pub slug: String,
    /// The id of the resource.
    pub id: String,
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
            ApplyError::NameTaken(ref id) => Self::new(ErrorCode::Conflict, error.to_string())
                .param("name")
                .details(serde_json::json!({ "id": id })),
        }
    }
}

/// Creates and updates the resources that `document` contains.
pub async fn apply(
    context: &ApplyContext,
    document: ApplyDocument,
) -> Result<AppliedDocument, ApplyError> {
    let _write_lock = context.write_lock.lock().await;
    document.validate()?;
    let mut planned = Vec::new();
    for (index, organization) in document.organizations.iter().enumerate() {
        let entries = plan_organization(context, organization).await;
        planned.push(entries.map_err(|error| error.below(&format!("organizations[{index}]")))?);
    }
    let mut written = Vec::new();
    for entry in planned.iter().flatten() {
        written.extend(write_if_changed(context, entry).await?);
    }
    let mut organizations = Vec::new();
    for (organization, entries) in document.organizations.into_iter().zip(planned) {
        let id = OrgId::derive(&context.secret, &organization.slug);
        let (keys, written_keys) = apply_keys(context, &id, &organization.keys).await?;
        written.extend(written_keys);
        organizations.push(AppliedOrganization {
            slug: organization.slug,
            id,
            providers: applied_entries(&entries, EntryKind::Provider),
            agents: applied_entries(&entries, EntryKind::Agent),
            teams: applied_entries(&entries, EntryKind::Team),
            keys,
        });
    }
    let changed: Vec<_> = written.iter().map(|written| &written.after).collect();
    publish_changes(context, &changed).await;
    Ok(AppliedDocument {
        organizations,
        written,
    })
}

/// Returns all entries of an organization except keys, each before those that refer to it. Writes nothing.
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
    let mut entries = vec![planner.organization(&document.slug, &document.name)];
    entries.extend(
        planner
            .plan_all::<ProviderResource>(&document.providers)
            .await?,
    );
    entries.extend(planner.plan_all::<AgentResource>(&document.agents).await?);
    entries.extend(planner.plan_all::<TeamResource>(&document.teams).await?);
    Ok(entries)
}

/// Writes an entry unless it is stored already, so that applying a document again writes and announces nothing.
async fn write_if_changed(
    context: &ApplyContext,
    after: &CatalogEntry,
) -> Result<Option<WrittenEntry>, StoreError> {
    let before = context.catalog.get(after.kind(), after.id()).await?;
    if before.as_ref() == Some(after) {
        return Ok(None);
    }
    context.catalog.put(after).await?;
    let after = after.clone();
    Ok(Some(WrittenEntry { before, after }))
}

fn applied_entries(entries: &[CatalogEntry], kind: EntryKind) -> Vec<AppliedEntry> {
    let of_kind = entries.iter().filter(|entry| entry.kind() == kind);
    let applied = of_kind.map(|entry| AppliedEntry {
        slug: label(entry).to_owned(),
        id: entry.id().to_owned(),
    });
    applied.collect()
}

/// A planner of catalog entries of one organization.
pub(super) struct EntryPlanner<'a> {
    /// The catalog and the secrets.
    pub(super) context: &'a ApplyContext,
    /// The organization of the entries.
    pub(super) org: &'a OrgId,
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

    async fn plan_all<R: Resource>(
        &self,
        resources: &[R::Fields],
    ) -> Result<Vec<CatalogEntry>, ApplyError> {
        let mut entries = Vec::new();
        for (index, fields) in resources.iter().enumerate() {
            let planned = R::plan(self, fields, None).await;
            let path = format!("{}[{index}]", R::COLLECTION);
            entries.push(planned.map_err(|error| error.below(&path))?);
        }
        Ok(entries)
    }

    pub(super) fn organization(&self, slug: &str, name: &str) -> CatalogEntry {
        CatalogEntry::Organization(Organization {
            id: OrgId::derive(&self.context.secret, slug),
            slug: slug.to_owned(),
            name: name.to_owned(),
        })
    }

    /// Returns the id of the provider with this slug; `path` is the field that refers to it.
    pub(super) async fn find_provider(
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

    /// Returns the id of the agent with this slug; `path` is the field that refers to it.
    pub(super) async fn find_agent(&self, slug: &str, path: &str) -> Result<AgentId, ApplyError> {
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
