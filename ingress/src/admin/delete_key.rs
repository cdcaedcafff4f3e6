//! `DELETE /api/admin/organizations/{org}/keys/{key}`: takes a key away for good. A document can only end a key, because
//! what it does not name stays.

use axum::extract::{Path, State};
use http::StatusCode;
use switchboard_backends::catalog::EntryKind;
use switchboard_schemas::ids::{KeyId, OrgId};

use super::{Administrator, publish_changes::publish_changes};
use crate::{
    error::{ApiError, ApiResult, ErrorCode},
    state::AppState,
};

/// Serves the route. Every process refuses the key once its cached entry is too old, which is within 2 s.
pub(crate) async fn delete_key(
    State(state): State<AppState>,
    _: Administrator,
    Path((org, key)): Path<(String, String)>,
) -> ApiResult<StatusCode> {
    let not_found = || ApiError::new(ErrorCode::NotFound, "no key of this organization has this id");
    let org: OrgId = org.parse().map_err(|_| not_found())?;
    let key: KeyId = key.parse().map_err(|_| not_found())?;
    let catalog = &state.apply.catalog;
    let entry = catalog.get(EntryKind::Key, key.as_str()).await?.filter(|entry| *entry.org_id() == org);
    let entry = entry.ok_or_else(not_found)?;
    catalog.remove(EntryKind::Key, &org, key.as_str()).await?;
    publish_changes(&state.apply, &[entry]).await;
    Ok(StatusCode::NO_CONTENT)
}
