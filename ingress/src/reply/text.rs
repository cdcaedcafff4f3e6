//! A reply as `text/plain`: headers with the first byte, a clean end only where everything was sent, and a broken
//! transfer wherever something is missing.

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures::stream;
use switchboard_schemas::conversation::ReplyStatus;
use tokio::time::Instant;

use super::{
    failure,
    follower::{Follower, Next},
    headers::{self, HeaderFacts, RoutedFacts},
};
use crate::error::ApiResult;

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

/// Answers with the reply, once it begins. `arrived` is when the request came.
pub(crate) async fn respond(mut follower: Follower, arrived: Instant) -> ApiResult<Response> {
    let error = match follower.next().await {
        Next::Text(first) => {
            follower.state().metrics.first_byte_seconds.observe(arrived.elapsed().as_secs_f64());
            let head = response(&follower);
            return Ok(head(streamed(first, follower)));
        }
        Next::Ended(end) if end.status == ReplyStatus::Completed => {
            count(&follower, "completed");
            return Ok(response(&follower)(Body::empty()));
        }
        Next::Ended(end) => failure::of_end(&end),
        Next::Lost(loss) => failure::of_loss(loss),
    };
    count(&follower, "refused");
    Err(error)
}

fn response(follower: &Follower) -> impl FnOnce(Body) -> Response + use<> {
    let assembly = follower.assembly();
    let turn = follower.turn();
    let head = assembly.head();
    let headers = headers::of_reply(&HeaderFacts {
        conversation_id: &turn.conversation_id,
        reply_id: &turn.reply_id(),
        generation: assembly.generation(),
        model: head.map(|head| head.model.as_str()),
        routed: head.and_then(RoutedFacts::of),
        ui_spec: assembly.ui_spec(),
    });
    move |body| {
        let mut response = Response::new(body);
        *response.headers_mut() = headers;
        response
    }
}

fn streamed(first: Bytes, follower: Follower) -> Body {
    Body::from_stream(stream::unfold(Rest::First(first, follower), |rest| async move {
        match rest {
            Rest::First(bytes, follower) => Some((Ok(bytes), Rest::More(follower))),
            Rest::More(follower) => more(follower).await,
            Rest::Over => None,
        }
    }))
}

async fn more(mut follower: Follower) -> Option<(Result<Bytes, BrokenOff>, Rest)> {
    match follower.next().await {
        Next::Text(bytes) => Some((Ok(bytes), Rest::More(follower))),
        Next::Ended(end) if end.status == ReplyStatus::Completed => {
            count(&follower, "completed");
            None
        }
        Next::Ended(_) | Next::Lost(_) => {
            count(&follower, "broken");
            tracing::info!(message.id = %follower.turn().reply_id(), "reply broken off");
            // Hyper flushes when a body has nothing to give; an error right behind bytes would take them back.
            tokio::task::yield_now().await;
            Some((Err(BrokenOff), Rest::Over))
        }
    }
}

fn count(follower: &Follower, outcome: &str) {
    follower.state().metrics.replies.with_label_values(&[outcome]).inc();
}
