//! `/api/admin/organizations`: the tenants themselves.

use axum::{
    extract::{Path, Query, Request, State},
    response::Response,
};
use http::{HeaderMap, StatusCode};
use switchboard_backends::catalog::{CatalogEntry, EntryKind};
use switchboard_schemas::{audit::AuditAction, ids::OrgId, organization::Organization};

use super::{
    administrator::{Action, Administrator, Ground},
    audit_fields::record_entry,
    change::{Edit, change},
    one_thing::{Slugs, plan_one, read_one},
    page::Page,
    precondition::Precondition,
    publish_changes::publish_changes,
    things::{
        answer, created, find, listed, make, organization, read_fields, refuse_if_used, view,
    },
    users,
};
use crate::{http::ApiResult, state::AppState};

/// What an organization can hold.
const HELD: [EntryKind; 4] = [
    EntryKind::Agent,
    EntryKind::Team,
    EntryKind::Provider,
    EntryKind::Key,
];

/// Those that this administrator may read, a page of them, by slug.
pub(super) async fn list(
    State(state): State<AppState>,
    administrator: Administrator,
    Query(page): Query<Page>,
) -> ApiResult<Response> {
    let mut entries = state
        .apply
        .catalog
        .list(EntryKind::Organization, None)
        .await?;
    entries.retain(|entry| {
        administrator
            .may_in(entry.org_id(), Action::ReadConfiguration)
            .is_ok()
    });
    listed(entries, &page, |entry| view(entry, None, &Slugs::default()))
}

/// Makes one.
pub(super) async fn create(
    State(state): State<AppState>,
    administrator: Administrator,
    request: Request,
) -> ApiResult<Response> {
    administrator.may(Ground::Installation, Action::ManageOrganizations)?;
    let (_, fields) = read_fields(&state, request).await?;
    let document = read_one(&nobody(&state), EntryKind::Organization, fields)?;
    let entry = {
        let _guard = state.apply.write_lock.lock().await;
        let entry = plan_one(&state.apply, EntryKind::Organization, &document).await?;
        make(&state, &administrator, entry).await?
    };
    let found = find(&state, entry.org_id(), EntryKind::Organization, entry.id()).await?;
    let path = format!("/api/admin/organizations/{}", entry.id());
    Ok(created(
        answer(StatusCode::CREATED, &found, &Slugs::default())?,
        &path,
    ))
}

/// One of them.
pub(super) async fn get(
    State(state): State<AppState>,
    administrator: Administrator,
    Path(org): Path<String>,
) -> ApiResult<Response> {
    let organization =
        organization(&state, &administrator, &org, Action::ReadConfiguration).await?;
    let found = find(&state, &organization.id, EntryKind::Organization, &org).await?;
    answer(StatusCode::OK, &found, &Slugs::default())
}

/// Gives it all fields anew.
pub(super) async fn replace(
    State(state): State<AppState>,
    administrator: Administrator,
    Path(org): Path<String>,
    request: Request,
) -> ApiResult<Response> {
    edit(&state, &administrator, &org, request, Edit::Replace).await
}

/// Changes some fields.
pub(super) async fn patch(
    State(state): State<AppState>,
    administrator: Administrator,
    Path(org): Path<String>,
    request: Request,
) -> ApiResult<Response> {
    edit(&state, &administrator, &org, request, Edit::Merge).await
}

async fn edit(
    state: &AppState,
    administrator: &Administrator,
    org: &str,
    request: Request,
    edit: Edit,
) -> ApiResult<Response> {
    let organization = organization(state, administrator, org, Action::Configure).await?;
    let (headers, mut fields) = read_fields(state, request).await?;
    let precondition = Precondition::take(&headers, &mut fields)?;
    let thing = (EntryKind::Organization, organization.id.as_str());
    let changed = change(
        state,
        administrator,
        &organization,
        thing,
        &precondition,
        edit.with(fields),
    )
    .await?;
    answer(StatusCode::OK, &changed, &Slugs::default())
}

/// Removes one that holds nothing any more but its people, who go with it. Its conversations stay where they are, and
/// nobody reaches them.
pub(super) async fn remove(
    State(state): State<AppState>,
    administrator: Administrator,
    Path(org): Path<String>,
    headers: HeaderMap,
) -> ApiResult<StatusCode> {
    administrator.may(Ground::Installation, Action::ManageOrganizations)?;
    let organization =
        organization(&state, &administrator, &org, Action::ManageOrganizations).await?;
    let _guard = state.apply.write_lock.lock().await;
    let found = find(&state, &organization.id, EntryKind::Organization, &org).await?;
    Precondition::of_headers(&headers).check(found.version)?;
    refuse_if_used(&held(&state, &organization.id).await?)?;
    state
        .apply
        .catalog
        .remove(EntryKind::Organization, &organization.id, &org)
        .await?;
    users::remove_all(&administrator, &state, &organization.id).await?;
    publish_changes(&state.apply, &[&found.entry]).await;
    record_entry(
        &administrator,
        &state,
        AuditAction::Delete,
        Some(&found.entry),
        None,
    )
    .await;
    Ok(StatusCode::NO_CONTENT)
}

async fn held(state: &AppState, org: &OrgId) -> ApiResult<Vec<CatalogEntry>> {
    let mut held = Vec::new();
    for kind in HELD {
        held.extend(state.apply.catalog.list(kind, Some(org)).await?);
    }
    Ok(held)
}

/// Stands where a document's reader wants to know whose thing it reads, and it is nobody's.
fn nobody(state: &AppState) -> Organization {
    Organization {
        id: OrgId::derive(&state.secret, ""),
        slug: String::new(),
        name: String::new(),
    }
}
