//! Step 10 of the path: turns the frames of a reply into an HTTP response.
//!
//! [`assembly`] decides which bytes may be sent next. [`crate::state::pending_replies`] delivers
//! pushed frames. [`stream`] follows the reply, reads lost frames and hands a silent reply to
//! another worker. [`resume`] finds the offset at which a reader continues. [`respond`] writes the
//! response in the requested [`shape`]: [`text`], [`json`], [`events`], or [`acceptance`] for
//! asynchronous requests.

pub(crate) mod assembly;
pub(crate) mod cancellation;

pub(crate) mod recovery;
pub(crate) mod resume;
pub(crate) mod stream;
mod timeouts;

pub(crate) mod acceptance;
mod events;
mod failure;
pub(crate) mod headers;
mod json;
pub(crate) mod shape;
mod text;
pub(crate) mod view;

use axum::response::Response;
use switchboard_schemas::{file::Attachment, ids::RequestId};
use tokio::time::Instant;

use self::{shape::ReplyShape, stream::ReplyStream};
use crate::http::{ApiError, ApiResult};

/// Request data that the response needs.
pub(crate) struct ResponseContext {
    /// Id of the request, for error events.
    pub(crate) request_id: RequestId,
    /// Arrival time of the request.
    pub(crate) arrived: Instant,
    /// Adapts errors that are sent as events to the route, for example by removing their codes.
    /// [`std::convert::identity`] where no change is needed.
    pub(crate) map_error: fn(ApiError) -> ApiError,
    /// Files of the message of this request.
    pub(crate) attachments: Vec<Attachment>,
}

/// Returns the response in the requested shape.
pub(crate) async fn respond(
    reply_stream: ReplyStream,
    shape: ReplyShape,
    context: ResponseContext,
) -> ApiResult<Response> {
    match shape {
        ReplyShape::Text => text::respond_as_text(reply_stream, &context).await,
        ReplyShape::Json => json::respond_as_json(reply_stream, &context).await,
        ReplyShape::Events => Ok(events::respond_as_events(reply_stream, context)),
        ReplyShape::Later => Ok(acceptance::accepted_response(reply_stream.reply())),
    }
}

/// Counts the outcome of a transfer, and logs one that was not completed: with status 200 the line
/// of the response does not show it.
fn record_outcome(reply_stream: &ReplyStream, outcome: &str) {
    reply_stream
        .state()
        .metrics
        .replies
        .with_label_values(&[outcome])
        .inc();
    let (message, conversation) = (reply_stream.reply(), reply_stream.reply().conversation());
    if outcome == "completed" {
        tracing::debug!(message.id = %message, conversation.id = %conversation, outcome, "reply transfer ended");
    } else {
        tracing::info!(message.id = %message, conversation.id = %conversation, outcome, "reply transfer ended");
    }
}
