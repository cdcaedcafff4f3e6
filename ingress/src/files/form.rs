//! The form of an upload, read part by part as it arrives.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use futures::{
    StreamExt,
    stream::{self, BoxStream, Stream},
};
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use multer::{Constraints, Field, Multipart, SizeLimit};
use tokio::{sync::Mutex, time::Instant};

use super::claims::refused;
use crate::http::{ApiError, ApiResult, ErrorCode, body};

/// Longest time without a byte of a body.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// Bytes of a form beyond its file: boundaries, headers of parts and the session.
pub(super) const FORM_BYTES_MAX: u64 = 64 << 10;
/// Time and bytes for which a refused body is still read. Many clients read nothing before they
/// have sent all, and see a broken connection instead of the refusal otherwise. The largest file of
/// any agent is ten times smaller.
const DRAIN_TIME: Duration = Duration::from_secs(10);
const DRAIN_BYTES_MAX: usize = 256 << 20;

/// Bytes that may arrive without a part or a piece of the file: headers of parts that never end
/// would be kept otherwise.
const UNREAD_BYTES_MAX: usize = 1 << 20;

/// The body of an upload, of which a rest can be read after the form is given up.
#[derive(Clone)]
pub(super) struct UploadBody(Arc<Mutex<Body>>);

/// The parts of an upload, as they arrive.
pub(super) struct UploadParts {
    parts: Multipart<'static>,
    /// Bytes that arrived since the last part or piece.
    unread: Arc<AtomicUsize>,
    bytes_max: u64,
}

/// The reason why a body ended early.
#[derive(Clone, Copy, Debug, thiserror::Error)]
enum BodyFault {
    #[error("no bytes arrived for too long")]
    Silent,
    #[error("the connection broke off")]
    Cut,
    #[error("the headers of a part do not end")]
    Endless,
}

impl UploadBody {
    pub(super) fn new(body: Body) -> Self {
        Self(Arc::new(Mutex::new(body)))
    }

    /// Returns the parts of the form in the body, whose file may have `bytes_max` bytes.
    ///
    /// # Errors
    /// 415 if the body is no form.
    pub(super) fn parts(&self, headers: &HeaderMap, bytes_max: u64) -> ApiResult<UploadParts> {
        body::media_type(headers)?;
        let given = headers.get(header::CONTENT_TYPE);
        let given = given
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let boundary = multer::parse_boundary(given)
            .map_err(|_| refused("the body must be multipart/form-data"))?;
        let limits = SizeLimit::new().whole_stream(bytes_max + FORM_BYTES_MAX);
        let constraints = Constraints::new().size_limit(limits);
        let unread = Arc::new(AtomicUsize::new(0));
        let bytes = OneByOne::new(self.bytes(unread.clone()));
        Ok(UploadParts {
            parts: Multipart::with_constraints(bytes, boundary, constraints),
            unread,
            bytes_max,
        })
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

    fn bytes(
        &self,
        unread: Arc<AtomicUsize>,
    ) -> impl Stream<Item = Result<Bytes, BodyFault>> + Send + 'static {
        let state = (self.0.clone(), unread);
        stream::try_unfold(state, |(body, unread)| async {
            let frame = {
                let mut body = body.lock().await;
                let next = tokio::time::timeout(SILENCE_MAX, body.frame());
                next.await.map_err(|_| BodyFault::Silent)?
            };
            let bytes = match frame {
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
                Some(Err(_)) => return Err(BodyFault::Cut),
                None => return Ok(None),
            };
            let before = unread.fetch_add(bytes.len(), Ordering::Relaxed);
            if before > UNREAD_BYTES_MAX {
                return Err(BodyFault::Endless);
            }
            Ok(Some((bytes, (body, unread))))
        })
    }
}

impl UploadParts {
    pub(super) async fn next_part(&mut self) -> ApiResult<Option<Field<'static>>> {
        let part = self.parts.next_field().await;
        self.read(part)
    }

    /// Returns the next piece of a part.
    pub(super) async fn next_piece(&self, part: &mut Field<'static>) -> ApiResult<Option<Bytes>> {
        self.read(part.chunk().await)
    }

    /// Returns the text of a part.
    ///
    /// # Errors
    /// 400 if it is no text, or longer than `bytes_max`.
    pub(super) async fn text(
        &self,
        mut part: Field<'static>,
        name: &'static str,
        bytes_max: usize,
    ) -> ApiResult<String> {
        let mut text = Vec::new();
        while let Some(piece) = self.next_piece(&mut part).await? {
            text.extend_from_slice(&piece);
            if text.len() > bytes_max {
                return Err(ApiError::field(name, "is too long"));
            }
        }
        String::from_utf8(text).map_err(|_| ApiError::field(name, "is no text in UTF-8"))
    }

    fn read<T>(&self, read: multer::Result<T>) -> ApiResult<T> {
        self.unread.store(0, Ordering::Relaxed);
        read.map_err(|error| form_error(&error, self.bytes_max))
    }
}

/// A stream that pauses after each item. The library takes all that is ready into memory, also what
/// the disk has no time for.
struct OneByOne<T> {
    items: BoxStream<'static, T>,
    is_pausing: bool,
}

impl<T> OneByOne<T> {
    fn new(items: impl Stream<Item = T> + Send + 'static) -> Self {
        Self {
            items: items.boxed(),
            is_pausing: false,
        }
    }
}

impl<T> Stream for OneByOne<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        if std::mem::take(&mut self.is_pausing) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let next = self.items.poll_next_unpin(context);
        self.is_pausing = matches!(next, Poll::Ready(Some(_)));
        next
    }
}

/// Returns the error of a form that cannot be read.
fn form_error(error: &multer::Error, bytes_max: u64) -> ApiError {
    match error {
        multer::Error::StreamSizeExceeded { .. } => too_large(bytes_max),
        multer::Error::StreamReadFailed(cause) => match cause.downcast_ref() {
            Some(BodyFault::Silent) => {
                let detail = "the body did not arrive: nothing came for 30 seconds";
                ApiError::uncoded(StatusCode::REQUEST_TIMEOUT, detail)
            }
            Some(BodyFault::Endless) => ApiError::new(
                ErrorCode::InvalidRequestData,
                "the form has too long headers",
            ),
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn refused_body_is_read_within_bounds() {
        let (start, read) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
        let pieces = |count| {
            let read = read.clone();
            let pieces = stream::repeat(Bytes::from_static(&[b'x'; 1 << 20])).take(count);
            let counted = pieces.map(move |piece| {
                read.fetch_add(1, Ordering::SeqCst);
                Ok::<_, Infallible>(piece)
            });
            UploadBody::new(Body::from_stream(counted.chain(stream::pending())))
        };
        pieces(300).drain().await;
        let seen = (read.load(Ordering::SeqCst), start.elapsed().as_secs());
        assert_eq!(seen, (256, 0));
        pieces(1).drain().await;
        let seen = (read.load(Ordering::SeqCst), start.elapsed().as_secs());
        assert_eq!(seen, (257, 10));
    }
}
