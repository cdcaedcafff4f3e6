//! Organizations, the tenants of an installation.

use serde::{Deserialize, Serialize};
use switchboard_backends::catalog::{CatalogEntry, EntryKind};
use switchboard_schemas::{ids::OrgId, removal::OrganizationRemoval};
use utoipa::ToSchema;

use super::{
    references::ResourceReferences,
    resource::{Resource, ResourceIdentity},
};
use crate::{
    admin::{
        authorization::Admin,
        errors::{ValidateFields, ValidationError},
        permissions::{Configure, ManageOrganizations},
        planner::{ApplyError, EntryPlanner},
        validation::{check_name, check_slug},
    },
    http::ApiResult,
};

pub(in crate::admin) struct OrganizationResource;

/// The configuration of an organization.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::admin) struct OrganizationFields {
    /// The name from which its id follows; never changes.
    #[schema(min_length = 1, max_length = 63, pattern = "^[a-z0-9][a-z0-9-]*$")]
    pub(in crate::admin) slug: String,
    /// The name that users see.
    #[schema(min_length = 1, max_length = 200)]
    pub(in crate::admin) name: String,
}

/// An organization in a response.
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

impl ValidateFields for OrganizationFields {
    fn validate(&self) -> Result<(), ValidationError> {
        check_slug(&self.slug)?;
        check_name(&self.name)
    }
}

impl Resource for OrganizationResource {
    const KIND: EntryKind = EntryKind::Organization;
    const NAME: &'static str = "Organization";
    const COLLECTION: &'static str = "organizations";
    const REFERENCED_BY: &'static [EntryKind] = &[
        EntryKind::Agent,
        EntryKind::Team,
        EntryKind::Provider,
        EntryKind::Key,
    ];
    type Change = Configure;
    type Delete = ManageOrganizations;
    type Fields = OrganizationFields;
    type View = OrganizationView;
    type Item = OrganizationView;

    fn fields(entry: &CatalogEntry, _: &ResourceReferences) -> Option<OrganizationFields> {
        let CatalogEntry::Organization(organization) = entry else {
            return None;
        };
        Some(OrganizationFields {
            slug: organization.slug.clone(),
            name: organization.name.clone(),
        })
    }

    fn item(entry: &CatalogEntry, references: &ResourceReferences) -> ApiResult<OrganizationView> {
        Self::show(entry, None, references)
    }

    fn view(
        identity: ResourceIdentity,
        fields: OrganizationFields,
        _: &CatalogEntry,
        _: &ResourceReferences,
    ) -> Option<OrganizationView> {
        Some(OrganizationView {
            id: identity.organization_id,
            fields,
            version: identity.version,
        })
    }

    async fn plan(
        planner: &EntryPlanner<'_>,
        fields: &OrganizationFields,
        _: Option<&CatalogEntry>,
    ) -> Result<CatalogEntry, ApplyError> {
        Ok(planner.organization(&fields.slug, &fields.name).await?)
    }

    /// Stores the removal, which a worker completes: it erases everything of the organization.
    async fn announce_deletion(admin: &Admin<ManageOrganizations>) -> ApiResult<Option<String>> {
        let (catalog, org) = (&admin.state.apply.catalog, admin.org());
        // A request that is repeated after a crash finds the removal that it began.
        if catalog
            .get(EntryKind::Removal, org.as_str())
            .await?
            .is_none()
        {
            let request = admin.administrator.request_id();
            let removal = OrganizationRemoval::begin(org.clone(), request);
            catalog.put(&CatalogEntry::Removal(removal)).await?;
        }
        Ok(Some(format!("/api/admin/removals/{org}")))
    }

    async fn clean_up(
        admin: &Admin<ManageOrganizations>,
        _: &CatalogEntry,
    ) -> ApiResult<Vec<CatalogEntry>> {
        let (catalog, org) = (&admin.state.apply.catalog, admin.org());
        Ok(catalog.list(EntryKind::User, Some(org)).await?)
    }
}
