//! A reply as one JSON document, sent when it has its final state.

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use bytes::BytesMut;
use switchboard_schemas::{conversation::ReplyStatus, time::Timestamp};

use super::{
    Asked, count, failure,
    follower::{Follower, Next},
    headers::{self, HeaderFacts},
    view::ReplyView,
};
use crate::error::ApiResult;

const CONTENT_TYPE: &str = "application/json";

/// Waits for the whole reply. Cancelled is an answer here: who reads JSON sees its status.
pub(super) async fn respond(mut follower: Follower, asked: &Asked) -> ApiResult<Response> {
    let mut text = BytesMut::new();
    let end = loop {
        match follower.next().await {
            Next::Text(bytes) => {
                if text.is_empty() {
                    follower
                        .state()
                        .metrics
                        .first_byte_seconds
                        .observe(asked.arrived.elapsed().as_secs_f64());
                }
                text.extend_from_slice(&bytes);
            }
            Next::Note(_) => {}
            Next::Ended(end) => break end,
            Next::Lost(loss) => {
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
    // The body has the structured data whole.
    let facts = HeaderFacts {
        ui_spec: None,
        ..HeaderFacts::of(follower.reply(), assembly)
    };
    Ok((headers::of_reply(&facts, CONTENT_TYPE), Json(view)).into_response())
}
