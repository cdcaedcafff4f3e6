//! Sends a reply as one JSON document once it is final.

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use bytes::BytesMut;
use switchboard_schemas::{conversation::ReplyStatus, time::Timestamp};

use super::{
    ResponseContext, count, failure,
    headers::{self, ReplyFacts},
    stream::{ReplyStream, StreamEvent},
    view::ReplyView,
};
use crate::http::ApiResult;

const CONTENT_TYPE: &str = "application/json";

/// Waits for the whole reply. A canceled reply is a success, because the JSON contains its status.
pub(super) async fn respond(
    mut follower: ReplyStream,
    asked: &ResponseContext,
) -> ApiResult<Response> {
    let mut text = BytesMut::new();
    let end = loop {
        match follower.next().await {
            StreamEvent::Text(bytes) => {
                if text.is_empty() {
                    follower
                        .state()
                        .metrics
                        .first_byte_seconds
                        .observe(asked.arrived.elapsed().as_secs_f64());
                }
                text.extend_from_slice(&bytes);
            }
            StreamEvent::ReplyUpdate(_) => {}
            StreamEvent::Ended(end) => break end,
            StreamEvent::Lost(loss) => {
                count(&follower, "refused");
                return Err(failure::of_loss(loss, follower.reply()));
            }
        }
    };
    if !matches!(end.status, ReplyStatus::Completed | ReplyStatus::Cancelled) {
        count(&follower, "refused");
        return Err(failure::of_end(&end, follower.reply()));
    }
    count(&follower, "completed");
    let assembly = follower.assembly();
    let mut view = ReplyView::new(follower.reply().clone(), end.status, Timestamp::now());
    view.content = String::from_utf8_lossy(&text).into_owned();
    view.take_assembly(assembly);
    view.take_end(&end);
    view.name_agent(follower.state(), follower.addressed())
        .await;
    // The body contains the structured data, so that the header is not needed.
    let facts = ReplyFacts {
        ui_spec: None,
        ..ReplyFacts::of(follower.reply(), assembly)
    };
    Ok((headers::of_reply(&facts, CONTENT_TYPE), Json(view)).into_response())
}
