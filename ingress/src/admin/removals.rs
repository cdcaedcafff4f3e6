//! Receipts of removed organizations. They outlive the organization, so that only the operator
//! reads them.

use axum::{Json, extract::Query};
use serde::Serialize;
use switchboard_backends::catalog::{CatalogEntry, EntryKind};
use switchboard_schemas::{
    ids::{OrgId, RequestId},
    removal::OrganizationRemoval,
    time::Timestamp,
};
use utoipa::ToSchema;

use super::{
    authorization::{Admin, InstallationSubject, ResourceId},
    entries::{list_entries, not_found, other_kind},
    pages::{Page, PageQuery},
    permissions::ManageOrganizations,
};
use crate::http::ApiResult;

/// The receipt of a removed organization. It contains nothing by which people recognize it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RemovalView {
    /// The id of the removed organization, which no other one gets.
    organization_id: OrgId,
    /// The state of the removal.
    state: RemovalState,
    /// The time of the request.
    began_at: Timestamp,
    /// The time at which everything was erased.
    #[schema(required)]
    finished_at: Option<Timestamp>,
    /// The number of its conversations, as far as they are counted.
    conversations: u64,
    /// The number of their messages.
    messages: u64,
    /// The request of the removal; `null` for an organization that an older version deleted.
    #[schema(required)]
    request_id: Option<RequestId>,
}

/// The state of a removal.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum RemovalState {
    /// Replies that were running are awaited.
    Waiting,
    Counting,
    Erasing,
    Finished,
}

/// Lists a page of the removals, by id.
pub(super) async fn list(
    admin: Admin<ManageOrganizations, InstallationSubject>,
    Query(page): Query<PageQuery>,
) -> ApiResult<Json<Page<RemovalView>>> {
    let kind = EntryKind::Removal;
    let show = |entry: &_| RemovalView::of(entry).ok_or_else(|| other_kind(kind));
    list_entries(&admin.state, kind, None, &page, show).await
}

/// Reads the receipt of one organization.
pub(super) async fn read(
    admin: Admin<ManageOrganizations, InstallationSubject>,
    ResourceId(id): ResourceId,
) -> ApiResult<Json<RemovalView>> {
    let entry = admin.state.apply.catalog.get(EntryKind::Removal, &id);
    let shown = entry.await?.as_ref().and_then(RemovalView::of);
    shown.map(Json).ok_or_else(|| not_found("removal", &id))
}

impl RemovalView {
    fn of(entry: &CatalogEntry) -> Option<Self> {
        let CatalogEntry::Removal(removal) = entry else {
            return None;
        };
        Some(Self {
            organization_id: removal.org_id.clone(),
            state: RemovalState::of(removal),
            began_at: removal.began_at,
            finished_at: removal.finished_at,
            conversations: removal.conversations,
            messages: removal.messages,
            request_id: removal.request_id.clone(),
        })
    }
}

impl RemovalState {
    const fn of(removal: &OrganizationRemoval) -> Self {
        if removal.finished_at.is_some() {
            Self::Finished
        } else if removal.is_counted {
            Self::Erasing
        } else if removal.place.is_some() {
            Self::Counting
        } else {
            Self::Waiting
        }
    }
}
