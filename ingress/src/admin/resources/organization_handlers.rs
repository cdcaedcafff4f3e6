//! Handlers of the list of organizations, which no organization contains.

use axum::{Json, extract::Query};
use switchboard_backends::catalog::EntryKind;
use switchboard_schemas::ids::OrgId;

use super::{
    handlers::create_in,
    organizations::{OrganizationFields, OrganizationResource, OrganizationView},
    references::ResourceReferences,
    resource::Resource,
};
use crate::{
    admin::{
        authorization::{Admin, InstallationSubject, PermittedOrganizations},
        bodies::JsonBody,
        entries::list_entries,
        pages::{Page, PageQuery},
        permissions::{ManageOrganizations, ReadConfiguration},
        responses::JsonResponse,
    },
    http::ApiResult,
};

/// Lists a page of the organizations that the caller may read, by slug.
pub(in crate::admin) async fn list(
    admin: Admin<ReadConfiguration, PermittedOrganizations>,
    Query(page): Query<PageQuery>,
) -> ApiResult<Json<Page<OrganizationView>>> {
    let catalog = &admin.state.apply.catalog;
    let mut entries = catalog.list(EntryKind::Organization, None).await?;
    entries.retain(|entry| admin.subject.contains(entry.org_id()));
    let show = |entry: &_| OrganizationResource::show(entry, None, &ResourceReferences::default());
    list_entries(entries, &page, show)
}

pub(in crate::admin) async fn create(
    admin: Admin<ManageOrganizations, InstallationSubject>,
    body: JsonBody<OrganizationFields>,
) -> ApiResult<JsonResponse<201, OrganizationView>> {
    let fields = body.parse(&admin.state).await?;
    let id = OrgId::derive(&admin.state.secret, &fields.slug);
    create_in::<OrganizationResource, _>(&admin, &id, &fields).await
}
