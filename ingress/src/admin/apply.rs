//! Application of documents. A document is validated as a whole before anything is written. Ids are
//! derived from slugs, so that applying a document twice, or on two processes at once, creates each
//! resource once.

use axum::Json;
use serde::Serialize;
use serde_json::Value;
use switchboard_backends::{
    StoreError,
    catalog::{CatalogEntry, EntryKind},
};
use switchboard_schemas::{audit::AuditAction, ids::OrgId};
use utoipa::ToSchema;

pub use super::planner::ApplyError;
use super::{
    announcements::publish_changes,
    applied_keys::{AppliedKey, apply_keys},
    authorization::{Admin, InstallationSubject},
    bodies::JsonBody,
    document::{ApplyDocument, OrganizationDocument},
    entries::WrittenEntry,
    errors::ValidateFields,
    mistakes::{all_mistakes, mistakes_error},
    permissions::ManageOrganizations,
    planner::{ChangeAuthor, EntryPlanner, ReferenceChecks},
    resources::{
        agents::AgentResource, providers::ProviderResource, resource::Resource, teams::TeamResource,
    },
};
pub use crate::state::apply_context::ApplyContext;
use crate::{http::ApiResult, state::AppState};

/// The ids of the resources of an applied document. Contains the texts of new keys and must not be
/// logged.
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

/// Applies a document, which can name any organization.
pub(super) async fn apply_document(
    admin: Admin<ManageOrganizations, InstallationSubject>,
    body: JsonBody<ApplyDocument>,
) -> ApiResult<Json<AppliedDocument>> {
    let context = &admin.state.apply;
    let applied = {
        let _write_lock = context.write_lock.lock().await;
        let planned = parse_document(&admin.state, body).await?;
        write_document(context, planned).await?
    };
    for WrittenEntry { before, after } in &applied.written {
        let is_new = before.is_none();
        let action = if is_new {
            AuditAction::Create
        } else {
            AuditAction::Update
        };
        admin
            .record_entry(action, before.as_ref(), Some(after))
            .await;
    }
    Ok(Json(applied))
}

/// Creates and updates the resources that `document` contains.
pub async fn apply(
    context: &ApplyContext,
    document: ApplyDocument,
) -> Result<AppliedDocument, ApplyError> {
    let _write_lock = context.write_lock.lock().await;
    let planned = plan(context, document, ReferenceChecks::All).await?;
    write_document(context, planned).await
}

/// A valid document with the entries of each of its organizations, which are not written yet.
pub(super) struct PlannedDocument {
    pub(super) document: ApplyDocument,
    pub(super) entries: Vec<Vec<CatalogEntry>>,
}

/// Parses and plans the document of a request.
///
/// # Errors
/// 400 with all mistakes of the document.
pub(super) async fn parse_document(
    state: &AppState,
    body: JsonBody<ApplyDocument>,
) -> ApiResult<PlannedDocument> {
    let document = Value::from(body.document(state).await?);
    match check_document(&state.apply, document.clone(), ReferenceChecks::All).await {
        Err(ApplyError::Invalid(_)) => {
            Err(mistakes_error(&all_mistakes(&state.apply, document).await))
        }
        planned => Ok(planned?),
    }
}

/// Parses and plans a document.
///
/// # Errors
/// Its first mistake.
pub(super) async fn check_document(
    context: &ApplyContext,
    document: Value,
    references: ReferenceChecks,
) -> Result<PlannedDocument, ApplyError> {
    plan(context, ApplyDocument::from_json(document)?, references).await
}

async fn plan(
    context: &ApplyContext,
    document: ApplyDocument,
    references: ReferenceChecks,
) -> Result<PlannedDocument, ApplyError> {
    document.validate()?;
    let mut entries = Vec::new();
    if references == ReferenceChecks::All {
        for (index, organization) in document.organizations.iter().enumerate() {
            let planned = plan_organization(context, organization).await;
            entries.push(planned.map_err(|error| error.below(&format!("organizations[{index}]")))?);
        }
    }
    Ok(PlannedDocument { document, entries })
}

async fn write_document(
    context: &ApplyContext,
    PlannedDocument { document, entries }: PlannedDocument,
) -> Result<AppliedDocument, ApplyError> {
    for organization in &document.organizations {
        context.retire_remains(&organization.slug).await?;
    }
    let mut written = Vec::new();
    for entry in entries.iter().flatten() {
        written.extend(write_if_changed(context, entry).await?);
    }
    let mut organizations = Vec::new();
    for (organization, entries) in document.organizations.into_iter().zip(entries) {
        let Some(id) = entries.first().map(|entry| entry.org_id().clone()) else {
            continue;
        };
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

/// Returns all entries of an organization except keys, each before those that refer to it, the
/// organization first. Writes nothing.
async fn plan_organization(
    context: &ApplyContext,
    document: &OrganizationDocument,
) -> Result<Vec<CatalogEntry>, ApplyError> {
    let org = context.organization_id(&document.slug).await?;
    let planner = EntryPlanner {
        context,
        org: &org,
        author: ChangeAuthor::Operator,
        declared: document.declared_slugs(),
        is_draft: false,
    };
    let mut entries = vec![planner.organization(&document.slug, &document.name).await?];
    entries.extend(plan_all::<ProviderResource>(&planner, &document.providers).await?);
    entries.extend(plan_all::<AgentResource>(&planner, &document.agents).await?);
    entries.extend(plan_all::<TeamResource>(&planner, &document.teams).await?);
    Ok(entries)
}

async fn plan_all<R: Resource>(
    planner: &EntryPlanner<'_>,
    resources: &[R::Fields],
) -> Result<Vec<CatalogEntry>, ApplyError> {
    let mut entries = Vec::new();
    for (index, fields) in resources.iter().enumerate() {
        let planned = R::plan(planner, fields, None).await;
        let path = format!("{}[{index}]", R::COLLECTION);
        entries.push(planned.map_err(|error| error.below(&path))?);
    }
    Ok(entries)
}

/// Writes an entry unless it is stored already, so that applying a document again writes and
/// announces nothing.
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
        slug: entry.label().to_owned(),
        id: entry.id().to_owned(),
    });
    applied.collect()
}
