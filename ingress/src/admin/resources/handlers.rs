//! Generic handlers of resources. A change is parsed, validated and planned by the same code as an
//! applied document.

use axum::{Json, extract::Query};
use switchboard_backends::catalog::VersionedEntry;
use switchboard_schemas::{audit::AuditAction, ids::OrgId};

use super::{
    references::{ResourceReferences, refers_to, refuse_if_referenced},
    resource::{Resource, parse_valid},
};
use crate::{
    admin::{
        authorization::{Admin, PermissionSubject, ResourceId},
        bodies::{JsonBody, JsonObject, MergePatch},
        edits::{ResourceEdit, edit_entry},
        entries::{find, list_entries, path_of},
        pages::{Page, PageQuery},
        permissions::{Permission, ReadConfiguration},
        planner::EntryPlanner,
        preconditions::VersionPrecondition,
        responses::{JsonResponse, NoContent},
    },
    http::{ApiError, ApiResult, ErrorCode},
    state::AppState,
};

/// Lists a page of the resources, by slug or name.
pub(in crate::admin) async fn list<R: Resource>(
    admin: Admin<ReadConfiguration>,
    Query(page): Query<PageQuery>,
) -> ApiResult<Json<Page<R::View>>> {
    let context = &admin.state.apply;
    let entries = context.catalog.list(R::KIND, Some(admin.org())).await?;
    let references = ResourceReferences::load(context, admin.org(), R::KIND).await?;
    list_entries(entries, &page, |entry| R::show(entry, None, &references))
}

pub(in crate::admin) async fn read<R: Resource>(
    admin: Admin<ReadConfiguration>,
    ResourceId(id): ResourceId,
) -> ApiResult<JsonResponse<200, R::View>> {
    let found = find(&admin.state, admin.org(), R::KIND, &id).await?;
    resource_response::<R, 200>(&admin.state, &found).await
}

pub(in crate::admin) async fn create<R: Resource>(
    admin: Admin<R::Change>,
    body: JsonBody<R::Fields>,
) -> ApiResult<JsonResponse<201, R::View>> {
    let fields = parse_valid::<R>(body.fields(&admin.state).await?)?;
    create_in::<R, _>(&admin, admin.org(), &fields).await
}

/// Writes a new entry of an organization and returns its view.
///
/// # Errors
/// 409 if an entry of this id exists.
pub(in crate::admin) async fn create_in<R: Resource, S: PermissionSubject>(
    admin: &Admin<impl Permission, S>,
    org: &OrgId,
    fields: &R::Fields,
) -> ApiResult<JsonResponse<201, R::View>> {
    let state = &admin.state;
    let write_lock = state.apply.write_lock.lock().await;
    let entry = R::plan(&EntryPlanner::of_one(&state.apply, org), fields, None).await?;
    if state
        .apply
        .catalog
        .get(R::KIND, entry.id())
        .await?
        .is_some()
    {
        let detail = "a resource with this slug exists already";
        let details = serde_json::json!({ "id": entry.id() });
        let error = ApiError::new(ErrorCode::Conflict, detail).param("slug");
        return Err(error.details(details));
    }
    state.apply.catalog.put(&entry).await?;
    admin
        .record_change(AuditAction::Create, None, Some(&entry))
        .await;
    drop(write_lock);
    let found = find(state, org, R::KIND, entry.id()).await?;
    let response = resource_response::<R, 201>(state, &found).await?;
    Ok(response.location(path_of(&entry, R::COLLECTION)))
}

/// Replaces all fields of a resource: omitted ones get their defaults, except a provider's key.
pub(in crate::admin) async fn replace<R: Resource>(
    admin: Admin<R::Change>,
    id: ResourceId,
    precondition: VersionPrecondition,
    body: JsonBody<R::Fields>,
) -> ApiResult<JsonResponse<200, R::View>> {
    change::<R, _>(admin, id, precondition, body, ResourceEdit::Replace).await
}

/// Merges fields into those of a resource (RFC 7396).
pub(in crate::admin) async fn patch<R: Resource>(
    admin: Admin<R::Change>,
    id: ResourceId,
    precondition: VersionPrecondition,
    body: JsonBody<MergePatch<R::Fields>>,
) -> ApiResult<JsonResponse<200, R::View>> {
    change::<R, _>(admin, id, precondition, body, ResourceEdit::Merge).await
}

async fn change<R: Resource, T>(
    admin: Admin<R::Change>,
    ResourceId(id): ResourceId,
    precondition: VersionPrecondition,
    body: JsonBody<T>,
    edit: fn(JsonObject) -> ResourceEdit,
) -> ApiResult<JsonResponse<200, R::View>> {
    // A missing resource is reported before the body is read, as in all routes.
    find(&admin.state, admin.org(), R::KIND, &id).await?;
    let mut fields = body.fields(&admin.state).await?;
    let precondition = precondition.with_body(&mut fields)?;
    let changed = edit_entry::<R>(&admin, &id, &precondition, &edit(fields)).await?;
    resource_response::<R, 200>(&admin.state, &changed).await
}

/// Deletes a resource that no other one refers to.
pub(in crate::admin) async fn delete<R: Resource>(
    admin: Admin<R::Delete>,
    ResourceId(id): ResourceId,
    precondition: VersionPrecondition,
) -> ApiResult<NoContent> {
    let (catalog, org) = (&admin.state.apply.catalog, admin.org());
    let _write_lock = admin.state.apply.write_lock.lock().await;
    let found = find(&admin.state, org, R::KIND, &id).await?;
    precondition.check(found.version)?;
    let mut references = Vec::new();
    for kind in R::REFERENCED_BY {
        let others = catalog.list(*kind, Some(org)).await?;
        references.extend(others.into_iter().filter(|other| refers_to(other, &id)));
    }
    refuse_if_referenced(&references)?;
    catalog.remove(R::KIND, org, &id).await?;
    for dependent in R::clean_up(&admin, &found.entry).await? {
        catalog
            .remove(dependent.kind(), org, dependent.id())
            .await?;
        let action = AuditAction::Delete;
        admin.record_entry(action, Some(&dependent), None).await;
    }
    admin
        .record_change(AuditAction::Delete, Some(&found.entry), None)
        .await;
    Ok(NoContent)
}

pub(in crate::admin) async fn resource_response<R: Resource, const STATUS: u16>(
    state: &AppState,
    found: &VersionedEntry,
) -> ApiResult<JsonResponse<STATUS, R::View>> {
    let references = ResourceReferences::load(&state.apply, found.entry.org_id(), R::KIND).await?;
    let view = R::show(&found.entry, Some(found.version), &references)?;
    Ok(JsonResponse::new(view).version(found.version))
}
