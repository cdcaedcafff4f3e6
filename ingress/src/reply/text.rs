//! A reply as `text/plain`: headers with the first byte, a clean end only where everything was sent, and a broken
//! transfer wherever something is missing.

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures::stream;
use switchboard_schemas::conversation::ReplyStatus;

use super::{
    Asked, count, failure,
    follower::{Follower, Next},
    headers::{self, HeaderFacts},
};
use crate::error::{ApiError, ApiResult};

const CONTENT_TYPE: &str = "text/plain; charset=utf-8";

/// Makes the server abort the response without its final chunk.
#[derive(Debug, thiserror::Error)]
#[error("reply broken off")]
struct BrokenOff;

/// What is left to send.
enum Rest {
    First(Bytes, Follower),
    More(Follower),
    Over,
}

/// Answers with the reply, once it begins.
pub(super) async fn respond(mut follower: Follower, asked: &Asked) -> ApiResult<Response> {
    let error = match next_of_text(&mut follower).await {
        Next::Text(first) => {
            follower
                .state()
                .metrics
                .first_byte_seconds
                .observe(asked.arrived.elapsed().as_secs_f64());
            let head = response(&follower);
            return Ok(head(streamed(first, follower)));
        }
        Next::Ended(end) if end.status == ReplyStatus::Completed => {
            count(&follower, "completed");
            return Ok(response(&follower)(Body::empty()));
        }
        Next::Ended(end) => failure::of_end(&end, follower.reply()),
        Next::Lost(loss) => failure::of_loss(loss, follower.reply()),
        Next::Note(_) => return Err(ApiError::internal(&"a note is no text")),
    };
    count(&follower, "refused");
    Err(error)
}

/// What this shape shows: the text and how it ends.
async fn next_of_text(follower: &mut Follower) -> Next {
    loop {
        let next = follower.next().await;
        if !matches!(next, Next::Note(_)) {
            return next;
        }
    }
}

fn response(follower: &Follower) -> impl FnOnce(Body) -> Response + use<> {
    let facts = HeaderFacts::of(follower.reply(), follower.assembly());
    let headers = headers::of_reply(&facts, CONTENT_TYPE);
    move |body| {
        let mut response = Response::new(body);
        *response.headers_mut() = headers;
        response
    }
}

fn streamed(first: Bytes, follower: Follower) -> Body {
    Body::from_stream(stream::unfold(
        Rest::First(first, follower),
        |rest| async move {
            match rest {
                Rest::First(bytes, follower) => Some((Ok(bytes), Rest::More(follower))),
                Rest::More(follower) => more(follower).await,
                Rest::Over => None,
            }
        },
    ))
}

async fn more(mut follower: Follower) -> Option<(Result<Bytes, BrokenOff>, Rest)> {
    match next_of_text(&mut follower).await {
        Next::Text(bytes) => Some((Ok(bytes), Rest::More(follower))),
        Next::Ended(end) if end.status == ReplyStatus::Completed => {
            count(&follower, "completed");
            None
        }
        Next::Ended(_) | Next::Lost(_) | Next::Note(_) => {
            count(&follower, "broken");
            // Hyper flushes when a body has nothing to give; an error right behind bytes would take them back.
            tokio::task::yield_now().await;
            Some((Err(BrokenOff), Rest::Over))
        }
    }
}
