//! Streams a reply as `text/plain`: headers are sent with the first byte, and the transfer is
//! aborted unless the reply is complete.

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures::stream;
use switchboard_schemas::conversation::ReplyStatus;

use super::{
    ResponseContext, count, failure,
    headers::{self, ReplyFacts},
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
pub(super) async fn respond(
    mut follower: ReplyStream,
    asked: &ResponseContext,
) -> ApiResult<Response> {
    let error = match next_of_text(&mut follower).await {
        StreamEvent::Text(first) => {
            follower
                .state()
                .metrics
                .first_byte_seconds
                .observe(asked.arrived.elapsed().as_secs_f64());
            let head = response(&follower);
            return Ok(head(streamed(first, follower)));
        }
        StreamEvent::Ended(end) if end.status == ReplyStatus::Completed => {
            count(&follower, "completed");
            return Ok(response(&follower)(Body::empty()));
        }
        StreamEvent::Ended(end) => failure::of_end(&end, follower.reply()),
        StreamEvent::Lost(loss) => failure::of_loss(loss, follower.reply()),
        StreamEvent::ReplyUpdate(_) => return Err(ApiError::internal(&"a note is no text")),
    };
    count(&follower, "refused");
    Err(error)
}

/// Returns the next text or final event; other events have no place in plain text.
async fn next_of_text(follower: &mut ReplyStream) -> StreamEvent {
    loop {
        let next = follower.next().await;
        if !matches!(next, StreamEvent::ReplyUpdate(_)) {
            return next;
        }
    }
}

fn response(follower: &ReplyStream) -> impl FnOnce(Body) -> Response + use<> {
    let facts = ReplyFacts::of(follower.reply(), follower.assembly());
    let headers = headers::of_reply(&facts, CONTENT_TYPE);
    move |body| {
        let mut response = Response::new(body);
        *response.headers_mut() = headers;
        response
    }
}

fn streamed(first: Bytes, follower: ReplyStream) -> Body {
    Body::from_stream(stream::unfold(
        TextBody::First(first, follower),
        |rest| async move {
            match rest {
                TextBody::First(bytes, follower) => Some((Ok(bytes), TextBody::More(follower))),
                TextBody::More(follower) => more(follower).await,
                TextBody::Over => None,
            }
        },
    ))
}

async fn more(mut follower: ReplyStream) -> Option<(Result<Bytes, TransferAborted>, TextBody)> {
    match next_of_text(&mut follower).await {
        StreamEvent::Text(bytes) => Some((Ok(bytes), TextBody::More(follower))),
        StreamEvent::Ended(end) if end.status == ReplyStatus::Completed => {
            count(&follower, "completed");
            None
        }
        StreamEvent::Ended(_) | StreamEvent::Lost(_) | StreamEvent::ReplyUpdate(_) => {
            count(&follower, "broken");
            // Yield first: Hyper flushes when a body is pending, and an error right after bytes
            // would discard them.
            tokio::task::yield_now().await;
            Some((Err(TransferAborted), TextBody::Over))
        }
    }
}
