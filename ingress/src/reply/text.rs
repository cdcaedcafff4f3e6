//! Streams a reply as `text/plain`: headers are sent with the first byte, and the transfer is
//! aborted unless the reply is complete.

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures::stream;
use switchboard_schemas::conversation::ReplyStatus;

use super::{
    ResponseContext, failure,
    headers::{self, ReplyFacts},
    record_outcome,
    stream::{ReplyStream, StreamEvent},
};
use crate::http::{ApiError, ApiResult};

const CONTENT_TYPE: &str = "text/plain; charset=utf-8";

/// Error that makes the server abort the response without its final chunk.
#[derive(Debug, thiserror::Error)]
#[error("reply broken off")]
struct TransferAborted;

/// Remaining part of the response body.
enum TextBody {
    First(Bytes, ReplyStream),
    More(ReplyStream),
    Over,
}

/// Waits for the first byte and returns a streaming response.
pub(super) async fn respond_as_text(
    mut reply_stream: ReplyStream,
    context: &ResponseContext,
) -> ApiResult<Response> {
    let error = match next_text_event(&mut reply_stream).await {
        StreamEvent::Text(first) => {
            reply_stream
                .state()
                .metrics
                .first_byte_seconds
                .observe(context.arrived.elapsed().as_secs_f64());
            let head = response_builder(&reply_stream);
            return Ok(head(streaming_body(first, reply_stream)));
        }
        StreamEvent::Ended(end) if end.status == ReplyStatus::Completed => {
            record_outcome(&reply_stream, "completed");
            return Ok(response_builder(&reply_stream)(Body::empty()));
        }
        StreamEvent::Ended(end) => failure::error_of_end(&end, reply_stream.reply()),
        StreamEvent::Lost(loss) => failure::error_of_loss(loss, reply_stream.reply()),
        StreamEvent::ReplyUpdate(_) => {
            return Err(ApiError::internal(&"unexpected update in a text reply"));
        }
    };
    record_outcome(&reply_stream, "refused");
    Err(error)
}

/// Returns the next text or final event; other events have no place in plain text.
async fn next_text_event(reply_stream: &mut ReplyStream) -> StreamEvent {
    loop {
        let next = reply_stream.next().await;
        if !matches!(next, StreamEvent::ReplyUpdate(_)) {
            return next;
        }
    }
}

fn response_builder(reply_stream: &ReplyStream) -> impl FnOnce(Body) -> Response + use<> {
    let facts = ReplyFacts::from_assembly(reply_stream.reply(), reply_stream.assembly());
    let headers = headers::reply_headers(&facts, CONTENT_TYPE);
    move |body| {
        let mut response = Response::new(body);
        *response.headers_mut() = headers;
        response
    }
}

fn streaming_body(first: Bytes, reply_stream: ReplyStream) -> Body {
    Body::from_stream(stream::unfold(
        TextBody::First(first, reply_stream),
        |rest| async move {
            match rest {
                TextBody::First(bytes, reply_stream) => {
                    Some((Ok(bytes), TextBody::More(reply_stream)))
                }
                TextBody::More(reply_stream) => next_chunk(reply_stream).await,
                TextBody::Over => None,
            }
        },
    ))
}

async fn next_chunk(
    mut reply_stream: ReplyStream,
) -> Option<(Result<Bytes, TransferAborted>, TextBody)> {
    match next_text_event(&mut reply_stream).await {
        StreamEvent::Text(bytes) => Some((Ok(bytes), TextBody::More(reply_stream))),
        StreamEvent::Ended(end) if end.status == ReplyStatus::Completed => {
            record_outcome(&reply_stream, "completed");
            None
        }
        StreamEvent::Ended(_) | StreamEvent::Lost(_) | StreamEvent::ReplyUpdate(_) => {
            record_outcome(&reply_stream, "broken");
            // Yield first: Hyper flushes when a body is pending, and an error right after bytes
            // would discard them.
            tokio::task::yield_now().await;
            Some((Err(TransferAborted), TextBody::Over))
        }
    }
}
