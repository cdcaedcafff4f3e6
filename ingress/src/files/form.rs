//! The form of an upload, read part by part as it arrives.

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use bytes::Bytes;
use futures::stream::{self, Stream};
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use multer::{Constraints, Multipart, SizeLimit};
use tokio::{sync::Mutex, time::Instant};

use super::claims::refused;
use crate::http::{ApiError, ApiResult, ErrorCode, body};

/// Longest time without a byte of a body.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// Bytes of a form beyond its file: boundaries, headers of parts and the session.
pub(super) const FORM_BYTES_MAX: u64 = 64 << 10;
/// Time and bytes for which a refused body is still read, so that its sender reads the refusal
/// before the connection is closed.
const DRAIN_TIME: Duration = Duration::from_secs(5);
const DRAIN_BYTES_MAX: usize = 32 << 20;

/// The body of an upload, of which a rest can be read after the form is given up.
#[derive(Clone)]
pub(super) struct UploadBody(Arc<Mutex<Body>>);

/// The reason why a body ended early.
#[derive(Clone, Copy, Debug, thiserror::Error)]
enum BodyFault {
    #[error("no bytes arrived for too long")]
    Silent,
    #[error("the connection broke off")]
    Cut,
}

impl UploadBody {
    pub(super) fn new(body: Body) -> Self {
        Self(Arc::new(Mutex::new(body)))
    }

    /// Returns the form in the body, whose parts other than the file are small.
    ///
    /// # Errors
    /// 415 if the body is no form.
    pub(super) fn form(
        &self,
        headers: &HeaderMap,
        bytes_max: u64,
    ) -> ApiResult<Multipart<'static>> {
        body::media_type(headers)?;
        let given = headers.get(header::CONTENT_TYPE);
        let given = given
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let boundary = multer::parse_boundary(given)
            .map_err(|_| refused("the body must be multipart/form-data"))?;
        let limits = SizeLimit::new().whole_stream(bytes_max + FORM_BYTES_MAX);
        let constraints = Constraints::new().size_limit(limits);
        Ok(Multipart::with_constraints(
            self.bytes(),
            boundary,
            constraints,
        ))
    }

    /// Reads and drops the rest of the body, within bounds.
    pub(super) async fn drain(self) {
        let end = Instant::now() + DRAIN_TIME;
        let mut body = self.0.lock().await;
        let mut bytes = 0;
        while bytes < DRAIN_BYTES_MAX
            && let Ok(Some(Ok(frame))) = tokio::time::timeout_at(end, body.frame()).await
        {
            bytes += frame.data_ref().map_or(0, Bytes::len);
        }
    }

    fn bytes(&self) -> impl Stream<Item = Result<Bytes, BodyFault>> + Send + 'static {
        stream::try_unfold(self.0.clone(), |body| async {
            let frame = {
                let mut body = body.lock().await;
                let next = tokio::time::timeout(SILENCE_MAX, body.frame());
                next.await.map_err(|_| BodyFault::Silent)?
            };
            match frame {
                Some(Ok(frame)) => Ok(Some((frame.into_data().unwrap_or_default(), body))),
                Some(Err(_)) => Err(BodyFault::Cut),
                None => Ok(None),
            }
        })
    }
}

/// Returns the error of a form that cannot be read.
pub(super) fn form_error(error: &multer::Error, bytes_max: u64) -> ApiError {
    match error {
        multer::Error::StreamSizeExceeded { .. } => too_large(bytes_max),
        multer::Error::StreamReadFailed(cause) => match cause.downcast_ref() {
            Some(BodyFault::Silent) => {
                let detail = "the body did not arrive: nothing came for 30 seconds";
                ApiError::uncoded(StatusCode::REQUEST_TIMEOUT, detail)
            }
            _ => ApiError::new(ErrorCode::InvalidRequestData, "the body was cut off"),
        },
        multer::Error::IncompleteFieldData { .. }
        | multer::Error::IncompleteHeaders
        | multer::Error::IncompleteStream => {
            ApiError::new(ErrorCode::InvalidRequestData, "the form was cut off")
        }
        _ => ApiError::new(ErrorCode::InvalidRequestData, "the body is no valid form"),
    }
}

/// Returns the error of a file that is larger than its limit.
pub(super) fn too_large(bytes_max: u64) -> ApiError {
    let detail = format!("the file is larger than {bytes_max} bytes");
    let details = serde_json::json!({ "max": bytes_max });
    ApiError::new(ErrorCode::PayloadTooLarge, detail)
        .param("file")
        .details(details)
}
