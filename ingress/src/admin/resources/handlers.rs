//! Generic handlers of resources. A change is parsed, validated and planned by the same code as an
//! applied document.

use axum::{Json, extract::Query};
use switchboard_backends::catalog::{EntryKind, VersionedEntry};
use switchboard_schemas::{audit::AuditAction, ids::OrgId, time::Timestamp};

use super::{
    references::{ResourceReferences, refers_to, refuse_if_referenced},
    resource::Resource,
};
use crate::{
    admin::{
        authorization::{Admin, PermissionSubject, ResourceId},
        bodies::{ChangeBody, JsonBody, MergePatch, VersionedFields},
        edits::{ResourceEdit, edit_entry},
        entries::{find, list_entries, path_of},
        pages::{Page, PageQuery},
        permissions::{Permission, ReadConfiguration},
        planner::{ChangeAuthor, EntryPlanner},
        preconditions::VersionPrecondition,
        responses::{DeletedResource, JsonResponse},
    },
    http::{ApiError, ApiResult, ErrorCode},
    state::{
        AppState,
        advisory_lock::{LOCK_POLL_INTERVAL, LockAttempt, try_acquire_lock},
    },
};

/// Lists a page of the resources, by slug or name.
pub(in crate::admin) async fn list<R: Resource>(
    admin: Admin<ReadConfiguration>,
    Query(page): Query<PageQuery>,
) -> ApiResult<Json<Page<R::Item>>> {
    let (state, org) = (&admin.state, admin.org());
    let references = ResourceReferences::load(&state.apply, org, R::KIND).await?;
    let show = |entry: &_| R::item(entry, &references);
    list_entries(state, R::KIND, Some(org), &page, show).await
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
    let fields = body.parse(&admin.state).await?;
    create_in::<R, _>(&admin, admin.org(), &fields).await
}

/// Fails with 409 if a member would exceed the number of resources that the operator allows. Two
/// processes at once can exceed it by one.
pub(super) async fn refuse_further(planner: &EntryPlanner<'_>, kind: EntryKind) -> ApiResult<()> {
    let ceilings = &planner.context.ceilings;
    let max = match kind {
        EntryKind::Agent => ceilings.agents_max,
        EntryKind::Team => ceilings.teams_max,
        EntryKind::Provider => ceilings.providers_max,
        EntryKind::Key => ceilings.keys_max,
        _ => return Ok(()),
    };
    if planner.author == ChangeAuthor::Operator {
        return Ok(());
    }
    let catalog = &planner.context.catalog;
    let page = catalog.page(kind, Some(planner.org), 0, 0).await?;
    if page.total < max {
        return Ok(());
    }
    let detail = format!(
        "the organization has {} {}s, and may have at most {max}",
        page.total,
        kind.name()
    );
    let details = serde_json::json!({ "max": max });
    Err(ApiError::new(ErrorCode::Conflict, detail).details(details))
}

const MINUTE_MICROS: i64 = 60_000_000;

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
    let entry = loop {
        {
            let _write_lock = state.apply.write_lock.lock().await;
            let planner = EntryPlanner::of_one(&state.apply, org, admin.administrator.author());
            refuse_further(&planner, R::KIND).await?;
            let entry = R::plan(&planner, fields, None).await?;
            if let Some(taken) = state.apply.catalog.get(R::KIND, entry.id()).await? {
                let detail = "a resource with this slug exists already";
                let details = serde_json::json!({ "id": taken.id() });
                let error = ApiError::new(ErrorCode::Conflict, detail).param("slug");
                return Err(error.details(details));
            }
            // The minute makes the name usable again after a deletion. The process owns the lock,
            // because the write lock orders its own requests: who deletes and creates again does
            // not wait for the first lock.
            let minute = Timestamp::now().micros() / MINUTE_MICROS;
            let lock_name = format!("admin-create:{}:{minute}", entry.id());
            if try_acquire_lock(state, &lock_name, state.ingress_id.as_str()).await
                != LockAttempt::HeldByOther
            {
                state.apply.catalog.put(&entry).await?;
                admin
                    .record_change(AuditAction::Create, None, Some(&entry))
                    .await;
                break entry;
            }
        }
        // Another process creates it: the next look finds it, or the lock ends.
        tokio::time::sleep(LOCK_POLL_INTERVAL).await;
    };
    let found = find(state, org, R::KIND, entry.id()).await?;
    let response = resource_response::<R, 201>(state, &found).await?;
    Ok(response.location(path_of(&entry, R::COLLECTION)))
}

/// Replaces all fields of a resource: omitted ones get their defaults, except a provider's key.
pub(in crate::admin) async fn replace<R: Resource>(
    admin: Admin<R::Change>,
    id: ResourceId,
    precondition: VersionPrecondition,
    body: JsonBody<VersionedFields<R::Fields>>,
) -> ApiResult<JsonResponse<200, R::View>> {
    change::<R, false>(admin, id, precondition, body).await
}

/// Merges fields into those of a resource (RFC 7396).
pub(in crate::admin) async fn patch<R: Resource>(
    admin: Admin<R::Change>,
    id: ResourceId,
    precondition: VersionPrecondition,
    body: JsonBody<MergePatch<R::Fields>>,
) -> ApiResult<JsonResponse<200, R::View>> {
    change::<R, true>(admin, id, precondition, body).await
}

async fn change<R: Resource, const IS_PATCH: bool>(
    admin: Admin<R::Change>,
    ResourceId(id): ResourceId,
    precondition: VersionPrecondition,
    body: JsonBody<ChangeBody<R::Fields, IS_PATCH>>,
) -> ApiResult<JsonResponse<200, R::View>> {
    // A missing resource is reported before the body is read, as in all routes.
    find(&admin.state, admin.org(), R::KIND, &id).await?;
    let (fields, precondition) = body.read_change(&admin.state, precondition).await?;
    let edit = if IS_PATCH {
        ResourceEdit::Merge(fields)
    } else {
        ResourceEdit::Replace(fields)
    };
    let changed = edit_entry::<R>(&admin, &id, &precondition, &edit).await?;
    resource_response::<R, 200>(&admin.state, &changed).await
}

/// Deletes a resource that no other one refers to.
pub(in crate::admin) async fn delete<R: Resource>(
    admin: Admin<R::Delete>,
    ResourceId(id): ResourceId,
    precondition: VersionPrecondition,
) -> ApiResult<DeletedResource> {
    let (catalog, org) = (&admin.state.apply.catalog, admin.org());
    let _write_lock = admin.state.apply.write_lock.lock().await;
    let found = match find(&admin.state, org, R::KIND, &id).await {
        Ok(found) => found,
        Err(missing) => {
            // A process that died while it wrote the entry can have left it in the list.
            let listed = catalog.list(R::KIND, Some(org)).await?;
            if listed.iter().any(|entry| entry.id() == id) {
                catalog.remove(R::KIND, org, &id).await?;
            }
            return Err(missing);
        }
    };
    precondition.check(found.version)?;
    let mut references = Vec::new();
    for kind in R::REFERENCED_BY {
        let others = catalog.list(*kind, Some(org)).await?;
        references.extend(others.into_iter().filter(|other| refers_to(other, &id)));
    }
    refuse_if_referenced(&references)?;
    let receipt = R::announce_deletion(&admin).await?;
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
    Ok(DeletedResource { receipt })
}

pub(in crate::admin) async fn resource_response<R: Resource, const STATUS: u16>(
    state: &AppState,
    found: &VersionedEntry,
) -> ApiResult<JsonResponse<STATUS, R::View>> {
    let references = ResourceReferences::load(&state.apply, found.entry.org_id(), R::KIND).await?;
    let view = R::show(&found.entry, Some(found.version), &references)?;
    Ok(JsonResponse::new(view).version(found.version))
}
