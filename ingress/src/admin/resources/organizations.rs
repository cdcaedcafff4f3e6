//! Organizations, the tenants of an installation.

use axum::{Json, extract::Query};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_backends::catalog::{CatalogEntry, EntryKind};
use switchboard_schemas::{audit::AuditAction, ids::OrgId, organization::Organization};
use utoipa::ToSchema;

use super::{References, Resource, answer, find, list_entries, put_new, refuse_if_referenced};
use crate::{
    admin::{
        announcements::publish_changes,
        answers::{Answer, NoContent},
        apply::EntryPlanner,
        audit_entries::record_entry,
        authorization::{Admin, Installation, VisibleOrganizations},
        bodies::{Body, Fields, MergePatch, parse_value},
        edits::{Edit, edit_entry},
        errors::{Validate, ValidationError},
        pages::{Page, PageQuery},
        permissions::{Configure, ManageOrganizations, ReadConfiguration},
        preconditions::Precondition,
        users,
        validation::{check_name, check_slug},
    },
    http::ApiResult,
};

/// Kinds of entries that keep an organization from being deleted.
const HELD: [EntryKind; 4] = [
    EntryKind::Agent,
    EntryKind::Team,
    EntryKind::Provider,
    EntryKind::Key,
];

/// The resource "organization".
pub(in crate::admin) struct Organizations;

/// An organization as it is configured.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::admin) struct OrganizationFields {
    /// The name from which its id is derived; never changes.
    pub(in crate::admin) slug: String,
    /// The name that people see.
    pub(in crate::admin) name: String,
}

/// An organization as it is shown.
#[derive(Serialize, ToSchema)]
pub(in crate::admin) struct OrganizationView {
    /// The id of the organization.
    id: OrgId,
    #[serde(flatten)]
    fields: OrganizationFields,
    /// The version of the resource, also in `ETag`; absent in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    version: Option<String>,
}

impl Validate for OrganizationFields {
    fn validate(&self) -> Result<(), ValidationError> {
        check_slug(&self.slug)?;
        check_name(&self.name)
    }
}

impl Resource for Organizations {
    const KIND: EntryKind = EntryKind::Organization;
    const NAME: &'static str = "Organization";
    const COLLECTION: &'static str = "organizations";
    type Change = Configure;
    type Fields = OrganizationFields;
    type View = OrganizationView;

    fn parse(fields: Value) -> Result<OrganizationFields, ValidationError> {
        parse_value(fields)
    }

    fn fields(entry: &CatalogEntry, _: &References) -> Option<OrganizationFields> {
        let CatalogEntry::Organization(organization) = entry else {
            return None;
        };
        Some(OrganizationFields {
            slug: organization.slug.clone(),
            name: organization.name.clone(),
        })
    }

    fn view(
        entry: &CatalogEntry,
        version: Option<i64>,
        references: &References,
    ) -> Option<OrganizationView> {
        Some(OrganizationView {
            id: entry.org_id().clone(),
            fields: Self::fields(entry, references)?,
            version: version.map(|version| version.to_string()),
        })
    }

    async fn plan(
        planner: &EntryPlanner<'_>,
        fields: OrganizationFields,
        _: Option<&CatalogEntry>,
    ) -> ApiResult<CatalogEntry> {
        Ok(planner.organization(&fields.slug, &fields.name))
    }
}

/// Lists a page of the organizations that the caller can see, by slug.
pub(in crate::admin) async fn list(
    admin: Admin<ReadConfiguration, VisibleOrganizations>,
    Query(page): Query<PageQuery>,
) -> ApiResult<Json<Page<OrganizationView>>> {
    let mut entries = admin
        .state
        .apply
        .catalog
        .list(EntryKind::Organization, None)
        .await?;
    entries.retain(|entry| admin.administrator.can_see(entry.org_id()));
    let references = References::default();
    list_entries(entries, &page, |entry| {
        Organizations::show(entry, None, &references)
    })
    .map(Json)
}

/// Creates an organization.
pub(in crate::admin) async fn create(
    admin: Admin<ManageOrganizations, Installation>,
    body: Body<OrganizationFields>,
) -> ApiResult<Answer<201, OrganizationView>> {
    let Admin {
        state,
        administrator,
        ..
    } = admin;
    let fields = Organizations::parse_valid(body.fields(&state).await?)?;
    let id = OrgId::derive(&state.secret, &fields.slug);
    let entry = {
        let _write_lock = state.apply.write_lock.lock().await;
        let planner = EntryPlanner::of_one(&state.apply, &id);
        let entry = planner.organization(&fields.slug, &fields.name);
        put_new(&state, &administrator, entry).await?
    };
    let found = find(&state, &id, EntryKind::Organization, entry.id()).await?;
    let answer = answer::<Organizations, 201>(&state, &found).await?;
    Ok(answer.location(format!("/api/admin/organizations/{id}")))
}

/// Reads one organization.
pub(in crate::admin) async fn read(
    admin: Admin<ReadConfiguration>,
) -> ApiResult<Answer<200, OrganizationView>> {
    let (state, org) = (&admin.state, admin.org());
    let found = find(state, org, EntryKind::Organization, org.as_str()).await?;
    answer::<Organizations, 200>(state, &found).await
}

/// Replaces all fields of an organization.
pub(in crate::admin) async fn replace(
    admin: Admin<Configure>,
    precondition: Precondition,
    body: Body<OrganizationFields>,
) -> ApiResult<Answer<200, OrganizationView>> {
    change(admin, precondition, body, Edit::Replace).await
}

/// Merges fields into those of an organization (RFC 7396).
pub(in crate::admin) async fn patch(
    admin: Admin<Configure>,
    precondition: Precondition,
    body: Body<MergePatch<OrganizationFields>>,
) -> ApiResult<Answer<200, OrganizationView>> {
    change(admin, precondition, body, Edit::Merge).await
}

async fn change<T>(
    Admin {
        state,
        administrator,
        subject: organization,
        ..
    }: Admin<Configure>,
    precondition: Precondition,
    body: Body<T>,
    edit: fn(Fields) -> Edit,
) -> ApiResult<Answer<200, OrganizationView>> {
    let mut fields = body.fields(&state).await?;
    let precondition = precondition.with_body(&mut fields)?;
    let (id, editor) = (organization.id.as_str(), (&administrator, &organization));
    let changed =
        edit_entry::<Organizations>(&state, editor, id, &precondition, &edit(fields)).await?;
    answer::<Organizations, 200>(&state, &changed).await
}

/// Deletes an organization that holds nothing but people, who go with it. Its conversations stay in
/// the store, where nobody reaches them.
pub(in crate::admin) async fn delete(
    admin: Admin<ManageOrganizations>,
    precondition: Precondition,
) -> ApiResult<NoContent> {
    let Admin {
        state,
        administrator,
        subject: Organization { id: org, .. },
        ..
    } = admin;
    let _write_lock = state.apply.write_lock.lock().await;
    let found = find(&state, &org, EntryKind::Organization, org.as_str()).await?;
    precondition.check(found.version)?;
    let catalog = &state.apply.catalog;
    let mut held = Vec::new();
    for kind in HELD {
        held.extend(catalog.list(kind, Some(&org)).await?);
    }
    refuse_if_referenced(&held)?;
    catalog
        .remove(EntryKind::Organization, &org, org.as_str())
        .await?;
    users::delete_all(&administrator, &state, &org).await?;
    publish_changes(&state.apply, &[&found.entry]).await;
    record_entry(
        &administrator,
        &state,
        AuditAction::Delete,
        Some(&found.entry),
        None,
    )
    .await;
    Ok(NoContent)
}
