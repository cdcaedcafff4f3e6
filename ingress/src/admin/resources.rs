//! Generic handlers of organizations, agents, teams, providers and keys. A change is parsed, validated and planned by the
//! same code as an applied document.

pub(super) mod agents;
pub(super) mod keys;
pub(super) mod organizations;
pub(super) mod providers;
pub(super) mod references;
pub(super) mod teams;

use axum::{
    Json,
    extract::{FromRequestParts, Query},
};
use http::request::Parts;
use serde::Serialize;
use serde_json::Value;
use switchboard_backends::catalog::{CatalogEntry, EntryKind, VersionedEntry};
use switchboard_schemas::{audit::AuditAction, ids::OrgId};
use utoipa::ToSchema;

use self::references::{ResourceReferences, label, refers_to, refuse_if_referenced};
use super::{
    apply::{ApplyError, EntryPlanner},
    authorization::{Admin, PathIds, PermissionSubject},
    bodies::{JsonBody, JsonObject, MergePatch},
    edits::{ResourceEdit, edit_entry},
    errors::{ValidateFields, ValidationError},
    pages::{Page, PageQuery},
    permissions::{Permission, ReadConfiguration},
    preconditions::VersionPrecondition,
    responses::{JsonResponse, NoContent},
};
use crate::{
    http::{ApiError, ApiResult, ErrorCode},
    state::AppState,
};

/// A kind of resource that is stored in the catalog.
pub(super) trait Resource: Send + Sync + 'static {
    /// The kind of its entries in the catalog.
    const KIND: EntryKind;
    /// The name in operation ids, for instance `Agent` in `readAgent`.
    const NAME: &'static str;
    /// The segment of its path, which is also the name of its list in a document.
    const COLLECTION: &'static str;
    /// The kinds whose entries can refer to one.
    const REFERENCED_BY: &'static [EntryKind] = &[];
    /// Fields of the view that change by themselves and can be sent back with any value.
    const VOLATILE_FIELDS: &'static [&'static str] = &[];
    type Change: Permission;
    type Delete: Permission;
    /// The fields that a client sends.
    type Fields: Serialize + ToSchema + ValidateFields + Send + Sync + 'static;
    /// The fields of a response.
    type View: Serialize + ToSchema + Send + Sync + 'static;

    /// Parses the fields of one, without validating their values.
    fn parse(fields: Value) -> Result<Self::Fields, ValidationError>;

    /// Returns the fields of an entry in the form of a request; `None` for another kind.
    fn fields(entry: &CatalogEntry, references: &ResourceReferences) -> Option<Self::Fields>;

    /// Returns an entry with these fields in the form of a response; `None` for another kind.
    fn view(
        identity: ResourceIdentity,
        fields: Self::Fields,
        entry: &CatalogEntry,
        references: &ResourceReferences,
    ) -> Option<Self::View>;

    /// Changes a merge patch before it is applied.
    fn prepare_patch(_patch: &mut JsonObject) {}

    /// Returns the entry that valid `fields` describe, in place of `current` if there is one.
    /// Reads the catalog and writes nothing.
    fn plan(
        planner: &EntryPlanner<'_>,
        fields: &Self::Fields,
        current: Option<&CatalogEntry>,
    ) -> impl Future<Output = Result<CatalogEntry, ApplyError>> + Send;

    /// Removes what is stored elsewhere for an entry that was deleted.
    fn clean_up(
        _admin: &Admin<Self::Delete>,
        _deleted: &CatalogEntry,
    ) -> impl Future<Output = ApiResult<()>> + Send {
        async { Ok(()) }
    }

    /// Returns the view of an entry, or an error for another kind.
    fn show(
        entry: &CatalogEntry,
        version: Option<i64>,
        references: &ResourceReferences,
    ) -> ApiResult<Self::View> {
        let identity = ResourceIdentity::new(entry, version);
        Self::fields(entry, references)
            .and_then(|fields| Self::view(identity, fields, entry, references))
            .ok_or_else(|| other_kind(Self::KIND))
    }

    fn parse_valid(fields: JsonObject) -> Result<Self::Fields, ValidationError> {
        let parsed = Self::parse(fields.into());
        let parsed = parsed.map_err(ValidationError::naming_missing_field)?;
        parsed.validate()?;
        Ok(parsed)
    }
}

/// The fields that the service sets on every resource.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceIdentity {
    /// The id of the resource.
    id: String,
    /// The id of the organization that it belongs to.
    organization_id: OrgId,
    /// The version of the resource, also in `ETag`; absent in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    version: Option<String>,
}

/// The id of the resource in a path; the id of the organization if the path names nothing below it.
pub(super) struct ResourceId(pub(super) String);

impl ResourceIdentity {
    pub(super) fn new(entry: &CatalogEntry, version: Option<i64>) -> Self {
        Self {
            id: entry.id().to_owned(),
            organization_id: entry.org_id().clone(),
            version: version.map(|version| version.to_string()),
        }
    }
}

impl FromRequestParts<AppState> for ResourceId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> ApiResult<Self> {
        let path = PathIds::from_request_parts(parts, state).await?;
        let id = Some(path.get("id")).filter(|id| !id.is_empty());
        Ok(Self(id.unwrap_or(path.get("org")).to_owned()))
    }
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
    found.ok_or_else(|| not_found(kind.name()))
}

/// Lists a page of the resources, by slug or name.
pub(super) async fn list<R: Resource>(
    admin: Admin<ReadConfiguration>,
    Query(page): Query<PageQuery>,
) -> ApiResult<Json<Page<R::View>>> {
    let context = &admin.state.apply;
    let entries = context.catalog.list(R::KIND, Some(admin.org())).await?;
    let references = ResourceReferences::load(context, admin.org(), R::KIND).await?;
    list_entries(entries, &page, |entry| R::show(entry, None, &references))
}

/// Returns a page of `entries`, sorted by label and converted by `show`.
pub(super) fn list_entries<T>(
    mut entries: Vec<CatalogEntry>,
    page: &PageQuery,
    show: impl Fn(&CatalogEntry) -> ApiResult<T>,
) -> ApiResult<Json<Page<T>>> {
    entries.sort_by(|left, right| (label(left), left.id()).cmp(&(label(right), right.id())));
    let shown = page.slice(&entries).iter().map(show);
    let shown = shown.collect::<ApiResult<_>>()?;
    Ok(Json(page.page(shown, entries.len())))
}

pub(super) async fn read<R: Resource>(
    admin: Admin<ReadConfiguration>,
    ResourceId(id): ResourceId,
) -> ApiResult<JsonResponse<200, R::View>> {
    let found = find(&admin.state, admin.org(), R::KIND, &id).await?;
    resource_response::<R, 200>(&admin.state, &found).await
}

pub(super) async fn create<R: Resource>(
    admin: Admin<R::Change>,
    body: JsonBody<R::Fields>,
) -> ApiResult<JsonResponse<201, R::View>> {
    let fields = R::parse_valid(body.fields(&admin.state).await?)?;
    create_in::<R, _>(&admin, admin.org(), &fields).await
}

/// Writes a new entry of an organization and returns its view.
///
/// # Errors
/// 409 if an entry of this id exists.
pub(super) async fn create_in<R: Resource, S: PermissionSubject>(
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
pub(super) async fn replace<R: Resource>(
    admin: Admin<R::Change>,
    id: ResourceId,
    precondition: VersionPrecondition,
    body: JsonBody<R::Fields>,
) -> ApiResult<JsonResponse<200, R::View>> {
    change::<R, _>(admin, id, precondition, body, ResourceEdit::Replace).await
}

/// Merges fields into those of a resource (RFC 7396).
pub(super) async fn patch<R: Resource>(
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
pub(super) async fn delete<R: Resource>(
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
    R::clean_up(&admin, &found.entry).await?;
    admin
        .record_change(AuditAction::Delete, Some(&found.entry), None)
        .await;
    Ok(NoContent)
}

pub(super) async fn resource_response<R: Resource, const STATUS: u16>(
    state: &AppState,
    found: &VersionedEntry,
) -> ApiResult<JsonResponse<STATUS, R::View>> {
    let references = ResourceReferences::load(&state.apply, found.entry.org_id(), R::KIND).await?;
    let view = R::show(&found.entry, Some(found.version), &references)?;
    Ok(JsonResponse::new(view).version(found.version))
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
pub(super) fn not_found(kind: &str) -> ApiError {
    ApiError::new(ErrorCode::NotFound, format!("there is no such {kind}"))
}

/// Creates the error for a stored entry whose kind does not match its id.
pub(super) fn other_kind(kind: EntryKind) -> ApiError {
    let kind = kind.name();
    ApiError::internal(&format_args!(
        "an entry of another kind has the id of a {kind}"
    ))
}
