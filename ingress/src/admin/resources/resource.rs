//! The trait of resources that are stored in the catalog, and the fields that the service sets on
//! each.

use serde::Serialize;
use switchboard_backends::catalog::{CatalogEntry, EntryKind};
use switchboard_schemas::ids::OrgId;
use utoipa::ToSchema;

use super::references::ResourceReferences;
use crate::{
    admin::{
        authorization::Admin,
        bodies::{JsonObject, RequestBody},
        entries::other_kind,
        permissions::Permission,
        planner::{ApplyError, EntryPlanner},
    },
    http::ApiResult,
};

/// A kind of resource that is stored in the catalog.
pub(in crate::admin) trait Resource: Send + Sync + 'static {
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
    type Fields: RequestBody + Serialize + ToSchema + Send + Sync + 'static;
    /// The fields of a response.
    type View: Serialize + ToSchema + Send + Sync + 'static;
    /// The fields of an item of a list: those of the view without long texts.
    type Item: Serialize + ToSchema + Send + Sync + 'static;

    /// Returns the fields of an entry in the form of a request; `None` for another kind.
    fn fields(entry: &CatalogEntry, references: &ResourceReferences) -> Option<Self::Fields>;

    /// Returns an entry with these fields in the form of a response; `None` for another kind.
    fn view(
        identity: ResourceIdentity,
        fields: Self::Fields,
        entry: &CatalogEntry,
        references: &ResourceReferences,
    ) -> Option<Self::View>;

    /// Returns the item of a list that shows the summary of an entry.
    fn item(entry: &CatalogEntry, references: &ResourceReferences) -> ApiResult<Self::Item>;

    /// Changes a merge patch before it is applied.
    fn prepare_patch(_patch: &mut JsonObject) {}

    /// Returns the entry that valid `fields` describe, in place of `current` if there is one.
    /// Reads the catalog and writes nothing.
    fn plan(
        planner: &EntryPlanner<'_>,
        fields: &Self::Fields,
        current: Option<&CatalogEntry>,
    ) -> impl Future<Output = Result<CatalogEntry, ApplyError>> + Send;

    /// Begins what a deletion causes elsewhere, before the entry is deleted. Returns the path of
    /// the receipt, if there is one.
    fn announce_deletion(
        _admin: &Admin<Self::Delete>,
    ) -> impl Future<Output = ApiResult<Option<String>>> + Send {
        async { Ok(None) }
    }

    /// Removes what is stored elsewhere for an entry that was deleted. Returns the entries of the
    /// catalog that have to be deleted with it.
    fn clean_up(
        _admin: &Admin<Self::Delete>,
        _deleted: &CatalogEntry,
    ) -> impl Future<Output = ApiResult<Vec<CatalogEntry>>> + Send {
        async { Ok(Vec::new()) }
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
}

/// The fields that the service sets on every resource.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::admin) struct ResourceIdentity {
    /// The id of the resource.
    pub(super) id: String,
    /// The id of the organization that it belongs to.
    pub(super) organization_id: OrgId,
    /// The version of the resource, also in `ETag`; absent in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) version: Option<String>,
}

impl ResourceIdentity {
    pub(in crate::admin) fn new(entry: &CatalogEntry, version: Option<i64>) -> Self {
        Self {
            id: entry.id().to_owned(),
            organization_id: entry.org_id().clone(),
            version: version.map(|version| version.to_string()),
        }
    }
}
