//! Admission of uploads, before their bodies are read.

use std::time::Duration;

use serde_json::json;
use switchboard_schemas::ids::OrgId;

use super::upload::unavailable;
use crate::{
    http::{ApiError, ApiResult, ErrorCode, RETRY_AFTER_OUTAGE},
    state::{
        AppState,
        upload_bounds::{OPEN_UPLOADS_PER_ORG_MAX, TooManyUploads, UploadPlace},
    },
};

/// Name of the limit of uploads of an organization at the same time.
const OPEN_UPLOADS: &str = "open_uploads";

/// Name of the limit of bytes of uploads that no message has named.
const WAITING_UPLOADS: &str = "waiting_uploads";
/// `Retry-After` while there are too many, which is the time after which they are listed again.
const RETRY_AFTER_FULL: Duration = Duration::from_secs(10);

/// Admits an upload of an organization.
///
/// # Errors
/// Returns `RATE_LIMITED` if the organization has too many open uploads, or too many bytes of
/// uploads that no message has named, and `UNAVAILABLE` if the process has too many uploads.
pub(super) async fn admit_upload<'a>(
    state: &'a AppState,
    org: &OrgId,
) -> ApiResult<UploadPlace<'a>> {
    let place = state.uploads.open(org).map_err(|bound| match bound {
        TooManyUploads::OfProcess => ApiError::unavailable("too many uploads at once"),
        TooManyUploads::OfOrganization => {
            let detail =
                format!("the organization has {OPEN_UPLOADS_PER_ORG_MAX} uploads at once already");
            too_many(state, OPEN_UPLOADS, detail, RETRY_AFTER_OUTAGE)
        }
    })?;
    let has_room = state.backends.files.has_room(org).await;
    if has_room.map_err(|error| unavailable(&error))? {
        return Ok(place);
    }
    let detail = "uploads that no message of the organization has named take too much space; they \
                  are deleted when they expire";
    Err(too_many(
        state,
        WAITING_UPLOADS,
        detail.into(),
        RETRY_AFTER_FULL,
    ))
}

fn too_many(state: &AppState, bucket: &str, detail: String, after: Duration) -> ApiError {
    let refused = &state.metrics.rate_limited;
    refused.with_label_values(&[bucket]).inc();
    ApiError::new(ErrorCode::RateLimited, detail)
        .details(json!({ "bucket": bucket }))
        .retry_after(after)
}
