//! The test of a provider from the dashboard. This process calls the provider itself.

use axum::Json;
use switchboard_backends::catalog::{CatalogEntry, EntryKind};
use switchboard_schemas::provider::ProviderTestReport;
use tokio::sync::Semaphore;

use super::{
    authorization::{Admin, ResourceId},
    entries::{find, other_kind},
    permissions::Configure,
};
use crate::http::{ApiError, ApiResult, ErrorCode, RETRY_AFTER_OUTAGE};

/// Tests that run at once in this process. Each may take a minute of a provider's time.
const TESTS_MAX: usize = 8;

static RUNNING_TESTS: Semaphore = Semaphore::const_new(TESTS_MAX);

/// Tests a saved provider.
pub(super) async fn test_provider(
    admin: Admin<Configure>,
    ResourceId(id): ResourceId,
) -> ApiResult<Json<ProviderTestReport>> {
    let person = admin.administrator.rate_limit_subject();
    admin.state.limits.admit_playground_run(person).await?;
    let Ok(_permit) = RUNNING_TESTS.try_acquire() else {
        let detail = "too many providers are being tested";
        return Err(ApiError::new(ErrorCode::RateLimited, detail).retry_after(RETRY_AFTER_OUTAGE));
    };
    let (state, org) = (&admin.state, admin.org());
    let found = find(state, org, EntryKind::Provider, &id).await?;
    let CatalogEntry::Provider {
        provider,
        sealed_key,
    } = found.entry
    else {
        return Err(other_kind(EntryKind::Provider));
    };
    let key = if sealed_key.is_empty() {
        None
    } else {
        let opened = state.apply.vault.open(org, &sealed_key);
        Some(opened.map_err(|error| ApiError::internal(&error))?)
    };
    let Some(test) = state.provider_test.get() else {
        return Err(ApiError::unavailable("this process cannot call providers"));
    };
    Ok(Json(test(provider, key).await))
}
