//! Step 10 of the path: frames of a reply become what its client reads.
//!
//! [`assembly`] decides, as a pure machine, which bytes may follow; [`registry`] brings frames to whoever waits for
//! them; [`follower`] waits, reads what was lost, and gives a silent reply to another worker; [`resume`] says where a
//! reader goes on. [`respond`] is the one place in which a [`shape`] becomes an HTTP response: [`text`], [`json`],
//! [`events`], or [`acceptance`] for those who do not wait.

pub(crate) mod assembly;
pub(crate) mod registry;

mod disconnect;
pub(crate) mod follower;
mod patience;
pub(crate) mod recovery;
pub(crate) mod resume;

pub(crate) mod acceptance;
mod events;
mod failure;
pub(crate) mod headers;
mod json;
pub(crate) mod shape;
mod text;
pub(crate) mod view;

use axum::response::Response;
use switchboard_schemas::ids::RequestId;
use tokio::time::Instant;

use self::{follower::Follower, shape::ReplyShape};
use crate::error::{ApiError, ApiResult};

/// What a response takes from its request.
pub(crate) struct Asked {
    /// The request's id.
    pub(crate) request_id: RequestId,
    /// When it came.
    pub(crate) arrived: Instant,
    /// An error as its route tells it; [`std::convert::identity`] where all have their codes. What is returned as an error,
    /// the route bends itself; this is for those that come as an event.
    pub(crate) told: fn(ApiError) -> ApiError,
}

/// Answers with the reply in the shape that was asked for.
pub(crate) async fn respond(
    follower: Follower,
    shape: ReplyShape,
    asked: Asked,
) -> ApiResult<Response> {
    match shape {
        ReplyShape::Text => text::respond(follower, &asked).await,
        ReplyShape::Json => json::respond(follower, &asked).await,
        ReplyShape::Events => Ok(events::respond(follower, asked)),
        ReplyShape::Later => Ok(acceptance::later(follower.reply())),
    }
}

/// Counts how a transfer ended, and says so: what began with 200 may still have been broken.
fn count(follower: &Follower, outcome: &str) {
    follower
        .state()
        .metrics
        .replies
        .with_label_values(&[outcome])
        .inc();
    let (message, conversation) = (follower.reply(), follower.reply().conversation());
    tracing::info!(message.id = %message, conversation.id = %conversation, outcome, "reply ends");
}
