//! Entries of the catalog in the admin API: lookup within an organization, paths, lists and errors.

use axum::Json;
use switchboard_backends::catalog::{CatalogEntry, EntryKind, VersionedEntry};
use switchboard_schemas::ids::OrgId;

use super::pages::{Page, PageQuery};
use crate::{
    auth::id_hints,
    http::{ApiError, ApiResult, ErrorCode},
    state::AppState,
};

/// An entry before and after it was written.
pub(super) struct WrittenEntry {
    /// The entry that was stored before, if any.
    pub(super) before: Option<CatalogEntry>,
    /// The entry that is stored now.
    pub(super) after: CatalogEntry,
}

/// Finds the entry of this kind and id in an organization.
///
/// # Errors
/// 404 also for an entry of another organization.
pub(super) async fn find(
    state: &AppState,
    org: &OrgId,
    kind: EntryKind,
    id: &str,
) -> ApiResult<VersionedEntry> {
    let found = state.apply.catalog.versioned(kind, id).await?;
    let found = found.filter(|found| found.entry.org_id() == org);
    found.ok_or_else(|| not_found(kind.name(), id))
}

/// Returns a page of a list whose entries `show` converts.
pub(super) async fn list_entries<T>(
    state: &AppState,
    kind: EntryKind,
    org: Option<&OrgId>,
    page: &PageQuery,
    show: impl Fn(&CatalogEntry) -> ApiResult<T>,
) -> ApiResult<Json<Page<T>>> {
    let (offset, limit) = page.range();
    let found = state.apply.catalog.page(kind, org, offset, limit).await?;
    let shown = found.entries.iter().map(show);
    let shown = shown.collect::<ApiResult<_>>()?;
    Ok(Json(page.page(shown, found.total)))
}

/// Returns the path of a resource of this collection.
pub(super) fn path_of(entry: &CatalogEntry, collection: &str) -> String {
    let organization = format!("/api/admin/organizations/{}", entry.org_id());
    match entry {
        CatalogEntry::Organization(_) => organization,
        _ => format!("{organization}/{collection}/{}", entry.id()),
    }
}

/// Creates the error for a resource that does not exist or belongs to another organization.
pub(super) fn not_found(kind: &str, id: &str) -> ApiError {
    ApiError::new(ErrorCode::NotFound, id_hints::describe(kind, id))
}

/// Creates the error for a stored entry whose kind does not match its id.
pub(super) fn other_kind(kind: EntryKind) -> ApiError {
    let kind = kind.name();
    ApiError::internal(&format_args!(
        "an entry of another kind has the id of a {kind}"
    ))
}
