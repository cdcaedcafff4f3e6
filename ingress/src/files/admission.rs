//! Admission of uploads, before their bodies are read.

use std::time::Duration;

use serde_json::json;
use switchboard_schemas::ids::OrgId;

use crate::{
    http::{ApiError, ApiResult, ErrorCode, RETRY_AFTER_OUTAGE},
    state::{
        AppState,
        upload_bounds::{OPEN_UPLOADS_PER_ORG_MAX, TooManyUploads, UploadPlace},
    },
};

/// Name of the limit of uploads of an organization at the same time.
const OPEN_UPLOADS: &str = "open_uploads";

/// Admits an upload of an organization.
///
/// # Errors
/// Returns `RATE_LIMITED` if the organization has too many open uploads, and `UNAVAILABLE` if the
/// process has.
pub(super) fn admit_upload<'a>(state: &'a AppState, org: &OrgId) -> ApiResult<UploadPlace<'a>> {
    state.uploads.open(org).map_err(|bound| match bound {
        TooManyUploads::OfProcess => ApiError::unavailable("too many uploads at once"),
        TooManyUploads::OfOrganization => {
            let detail =
                format!("the organization has {OPEN_UPLOADS_PER_ORG_MAX} uploads at once already");
            too_many(state, OPEN_UPLOADS, detail, RETRY_AFTER_OUTAGE)
        }
    })
}

fn too_many(state: &AppState, bucket: &str, detail: String, after: Duration) -> ApiError {
    let refused = &state.metrics.rate_limited;
    refused.with_label_values(&[bucket]).inc();
    ApiError::new(ErrorCode::RateLimited, detail)
        .details(json!({ "bucket": bucket }))
        .retry_after(after)
}
