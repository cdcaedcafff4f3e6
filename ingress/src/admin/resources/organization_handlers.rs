//! Handlers of the list of organizations, which no organization contains.

use axum::{Json, extract::Query};
use switchboard_backends::catalog::EntryKind;

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
    let show = |entry: &_| OrganizationResource::item(entry, &ResourceReferences::default());
    let (kind, only) = (EntryKind::Organization, admin.subject.only());
    list_entries(&admin.state, kind, only, &page, show).await
}

pub(in crate::admin) async fn create(
    admin: Admin<ManageOrganizations, InstallationSubject>,
    body: JsonBody<OrganizationFields>,
) -> ApiResult<JsonResponse<201, OrganizationView>> {
    let fields = body.parse(&admin.state).await?;
    let context = &admin.state.apply;
    context.retire_remains(&fields.slug).await?;
    let id = context.organization_id(&fields.slug).await?;
    create_in::<OrganizationResource, _>(&admin, &id, &fields).await
}
