//! `/api/admin/organizations/{org}/agents|teams|providers|keys`: what all kinds of configured things have in common.
//! A change is read, checked and written by the same code as a document that is applied.

use axum::{
    Json,
    extract::{Path, Query, Request, State},
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use switchboard_backends::catalog::{CatalogEntry, EntryKind, VersionedEntry};
use switchboard_schemas::{audit::AuditAction, ids::OrgId, organization::Organization};

use super::{
    administrator::{Action, Administrator},
    audit_fields::record_entry,
    change::{Edit, change},
    one_thing::{
        Fields, Slugs, document_fields, label, list_of, names, plan_one, read_one, set_by_service,
    },
    page::Page,
    precondition::{Precondition, etag},
    publish_changes::publish_changes,
};
use crate::{
    http::{
        ApiError, ApiResult, ErrorCode,
        body::{self, BodyLimits},
    },
    state::AppState,
};

/// When a key was last used, which goes on while it is looked at.
pub(super) const LAST_USED_AT: &str = "lastUsedAt";
/// Things that are told with a refusal to remove what they name.
const TOLD_MAX: usize = 20;

/// A kind of things, as a type, so that each route says which it serves.
pub(super) trait Kind: Send + Sync + 'static {
    /// Its entries.
    const KIND: EntryKind;
    /// What changing one is.
    const CHANGE: Action = Action::Configure;
    /// Kinds whose entries can name one.
    const NAMED_BY: &'static [EntryKind] = &[];
}

/// Agents.
pub(super) struct Agents;
/// Teams.
pub(super) struct Teams;
/// Model providers.
pub(super) struct Providers;
/// API keys.
pub(super) struct Keys;

impl Kind for Agents {
    const KIND: EntryKind = EntryKind::Agent;
    const NAMED_BY: &'static [EntryKind] = &[EntryKind::Team];
}

impl Kind for Teams {
    const KIND: EntryKind = EntryKind::Team;
}

impl Kind for Providers {
    const KIND: EntryKind = EntryKind::Provider;
    const NAMED_BY: &'static [EntryKind] = &[EntryKind::Agent];
}

impl Kind for Keys {
    const KIND: EntryKind = EntryKind::Key;
    const CHANGE: Action = Action::ManageKeys;
}

/// The organization that a path names and in which this administrator may do this.
pub(super) async fn organization(
    state: &AppState,
    administrator: &Administrator,
    id: &str,
    action: Action,
) -> ApiResult<Organization> {
    let id: OrgId = id.parse().map_err(|_| not_found("organization"))?;
    administrator.may_in(&id, action)?;
    match state
        .apply
        .catalog
        .get(EntryKind::Organization, id.as_str())
        .await?
    {
        Some(CatalogEntry::Organization(organization)) => Ok(organization),
        _ => Err(not_found("organization")),
    }
}

/// The thing of this kind and id, if it is this organization's.
pub(super) async fn find(
    state: &AppState,
    org: &OrgId,
    kind: EntryKind,
    id: &str,
) -> ApiResult<VersionedEntry> {
    let found = state.apply.catalog.versioned(kind, id).await?;
    found
        .filter(|found| found.entry.org_id() == org)
        .ok_or_else(|| not_found(kind.name()))
}

/// All of a kind, a page of them, by slug or name.
pub(super) async fn list<K: Kind>(
    State(state): State<AppState>,
    administrator: Administrator,
    Path(org): Path<String>,
    Query(page): Query<Page>,
) -> ApiResult<Response> {
    let organization =
        organization(&state, &administrator, &org, Action::ReadConfiguration).await?;
    let entries = state
        .apply
        .catalog
        .list(K::KIND, Some(&organization.id))
        .await?;
    let slugs = Slugs::named_by(&state.apply, &organization, K::KIND).await?;
    listed(entries, &page, |entry| view(entry, None, &slugs))
}

/// A page of `entries`, each as `show` has it.
pub(super) fn listed(
    mut entries: Vec<CatalogEntry>,
    page: &Page,
    show: impl Fn(&CatalogEntry) -> ApiResult<Value>,
) -> ApiResult<Response> {
    entries.sort_by(|left, right| (label(left), left.id()).cmp(&(label(right), right.id())));
    let shown = page
        .of(&entries)
        .iter()
        .map(show)
        .collect::<ApiResult<Vec<_>>>()?;
    Ok(Json(page.answer(shown, entries.len())).into_response())
}

/// One of them.
pub(super) async fn get<K: Kind>(
    State(state): State<AppState>,
    administrator: Administrator,
    Path((org, id)): Path<(String, String)>,
) -> ApiResult<Response> {
    let organization =
        organization(&state, &administrator, &org, Action::ReadConfiguration).await?;
    let found = find(&state, &organization.id, K::KIND, &id).await?;
    let slugs = Slugs::named_by(&state.apply, &organization, K::KIND).await?;
    answer(StatusCode::OK, &found, &slugs)
}

/// Makes one that is not there yet.
pub(super) async fn create<K: Kind>(
    State(state): State<AppState>,
    administrator: Administrator,
    Path(org): Path<String>,
    request: Request,
) -> ApiResult<Response> {
    let organization = organization(&state, &administrator, &org, K::CHANGE).await?;
    let (_, fields) = read_fields(&state, request).await?;
    let document = read_one(&organization, K::KIND, fields).map_err(ApiError::from)?;
    let entry = {
        let _guard = state.apply.write_lock.lock().await;
        let entry = plan_one(&state.apply, K::KIND, &document).await?;
        make(&state, &administrator, entry).await?
    };
    let path = format!(
        "/api/admin/organizations/{org}/{}/{}",
        list_of(K::KIND),
        entry.id()
    );
    let found = find(&state, &organization.id, K::KIND, entry.id()).await?;
    let slugs = Slugs::named_by(&state.apply, &organization, K::KIND).await?;
    Ok(created(answer(StatusCode::CREATED, &found, &slugs)?, &path))
}

/// Writes an entry whose id nothing has.
pub(super) async fn make(
    state: &AppState,
    administrator: &Administrator,
    entry: CatalogEntry,
) -> ApiResult<CatalogEntry> {
    if state
        .apply
        .catalog
        .get(entry.kind(), entry.id())
        .await?
        .is_some()
    {
        let detail = "there is one of this slug already";
        return Err(ApiError::new(ErrorCode::Conflict, detail)
            .param("slug")
            .details(json!({ "id": entry.id() })));
    }
    state.apply.catalog.put(&entry).await?;
    publish_changes(&state.apply, &[&entry]).await;
    record_entry(
        administrator,
        state,
        AuditAction::Create,
        None,
        Some(&entry),
    )
    .await;
    Ok(entry)
}

/// Replaces all fields: what is left out has its default again, but for a provider's key.
pub(super) async fn replace<K: Kind>(
    State(state): State<AppState>,
    administrator: Administrator,
    Path((org, id)): Path<(String, String)>,
    request: Request,
) -> ApiResult<Response> {
    edit::<K>(&state, &administrator, (&org, &id), request, Edit::Replace).await
}

/// Merges fields into those that are there (RFC 7396).
pub(super) async fn patch<K: Kind>(
    State(state): State<AppState>,
    administrator: Administrator,
    Path((org, id)): Path<(String, String)>,
    request: Request,
) -> ApiResult<Response> {
    edit::<K>(&state, &administrator, (&org, &id), request, Edit::Merge).await
}

async fn edit<K: Kind>(
    state: &AppState,
    administrator: &Administrator,
    (org, id): (&str, &str),
    request: Request,
    edit: Edit,
) -> ApiResult<Response> {
    let organization = organization(state, administrator, org, K::CHANGE).await?;
    // Told before the body is looked at, as everywhere.
    find(state, &organization.id, K::KIND, id).await?;
    let (headers, mut fields) = read_fields(state, request).await?;
    let precondition = Precondition::take(&headers, &mut fields)?;
    let changed = change(
        state,
        administrator,
        &organization,
        (K::KIND, id),
        &precondition,
        edit.with(fields),
    )
    .await?;
    let slugs = Slugs::named_by(&state.apply, &organization, K::KIND).await?;
    answer(StatusCode::OK, &changed, &slugs)
}

/// Removes one that nothing names.
pub(super) async fn remove<K: Kind>(
    State(state): State<AppState>,
    administrator: Administrator,
    Path((org, id)): Path<(String, String)>,
    headers: HeaderMap,
) -> ApiResult<StatusCode> {
    let organization = organization(&state, &administrator, &org, K::CHANGE).await?;
    let _guard = state.apply.write_lock.lock().await;
    let found = find(&state, &organization.id, K::KIND, &id).await?;
    Precondition::of_headers(&headers).check(found.version)?;
    let mut users = Vec::new();
    for kind in K::NAMED_BY {
        let others = state
            .apply
            .catalog
            .list(*kind, Some(&organization.id))
            .await?;
        users.extend(others.into_iter().filter(|other| names(other, &id)));
    }
    refuse_if_used(&users)?;
    state
        .apply
        .catalog
        .remove(K::KIND, &organization.id, &id)
        .await?;
    if let CatalogEntry::Agent(agent) = &found.entry {
        // An agent of the same slug would have the same id, and find them.
        state
            .backends
            .products
            .remove(&organization.id, &agent.id)
            .await?;
    }
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

/// Says who still needs a thing.
pub(super) fn refuse_if_used(users: &[CatalogEntry]) -> ApiResult<()> {
    if users.is_empty() {
        return Ok(());
    }
    let told = users.iter().take(TOLD_MAX);
    let told = told
        .map(|user| json!({ "kind": user.kind().name(), "id": user.id(), "slug": label(user) }));
    let details = json!({ "usedBy": told.collect::<Vec<_>>(), "total": users.len() });
    Err(ApiError::new(ErrorCode::Conflict, "other things need this one").details(details))
}

/// The body, with the headers that may say more of the change.
pub(super) async fn read_fields(
    state: &AppState,
    request: Request,
) -> ApiResult<(HeaderMap, Fields)> {
    let (parts, body) = request.into_parts();
    let body = body::read(&parts.headers, body, BodyLimits::admin(&state.config)).await?;
    Ok((parts.headers, body::parse_object(&body)?))
}

/// The answer that shows one thing.
pub(super) fn answer(
    status: StatusCode,
    found: &VersionedEntry,
    slugs: &Slugs,
) -> ApiResult<Response> {
    let mut response = (
        status,
        Json(view(&found.entry, Some(found.version), slugs)?),
    )
        .into_response();
    if let Some(etag) = etag(found.version) {
        response.headers_mut().insert(header::ETAG, etag);
    }
    Ok(response)
}

/// Says where what was made is.
pub(super) fn created(mut response: Response, path: &str) -> Response {
    if let Ok(path) = HeaderValue::from_str(path) {
        response.headers_mut().insert(header::LOCATION, path);
    }
    response
}

/// A thing as it is shown.
pub(super) fn view(entry: &CatalogEntry, version: Option<i64>, slugs: &Slugs) -> ApiResult<Value> {
    let mut fields = set_by_service(entry, version);
    if entry.kind() == EntryKind::Key {
        fields.insert(LAST_USED_AT.into(), json!(slugs.last_use(entry.id())));
    }
    fields.extend(document_fields(entry, slugs)?);
    Ok(fields.into())
}

/// Nothing of this kind lies there, or it is another organization's.
pub(super) fn not_found(kind: &str) -> ApiError {
    ApiError::new(ErrorCode::NotFound, format!("there is no such {kind}"))
}
