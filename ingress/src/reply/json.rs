//! Sends a reply as one JSON document once it is final.

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use bytes::BytesMut;
use switchboard_schemas::{conversation::ReplyStatus, time::Timestamp};

use super::{
    ResponseContext, failure,
    headers::{self, ReplyFacts},
    record_outcome,
    stream::{ReplyStream, StreamEvent},
    view::ReplyView,
};
use crate::http::ApiResult;

const CONTENT_TYPE: &str = "application/json";

/// Waits for the whole reply. A canceled reply is a success, because the JSON contains its status.
pub(super) async fn respond_as_json(
    mut reply_stream: ReplyStream,
    context: &ResponseContext,
) -> ApiResult<Response> {
    let mut text = BytesMut::new();
    let end = loop {
        match reply_stream.next().await {
            StreamEvent::Text(bytes) => {
                if text.is_empty() {
                    reply_stream
                        .state()
                        .metrics
                        .first_byte_seconds
                        .observe(context.arrived.elapsed().as_secs_f64());
                }
                text.extend_from_slice(&bytes);
            }
            StreamEvent::ReplyUpdate(_) => {}
            StreamEvent::Ended(end) => break end,
            StreamEvent::Lost(loss) => {
                record_outcome(&reply_stream, "refused");
                return Err(failure::error_of_loss(loss, reply_stream.reply()));
            }
        }
    };
    if !matches!(end.status, ReplyStatus::Completed | ReplyStatus::Cancelled) {
        record_outcome(&reply_stream, "refused");
        return Err(failure::error_of_end(&end, reply_stream.reply()));
    }
    record_outcome(&reply_stream, "completed");
    let assembly = reply_stream.assembly();
    let mut view = ReplyView::new(reply_stream.reply().clone(), end.status, Timestamp::now());
    view.content = String::from_utf8_lossy(&text).into_owned();
    view.attachments.clone_from(&context.attachments);
    view.take_assembly(assembly);
    view.take_end(&end);
    view.name_agent(reply_stream.state(), reply_stream.addressed_agent())
        .await;
    // The body contains the structured data, so that the header is not needed.
    let facts = ReplyFacts {
        ui_spec: None,
        ..ReplyFacts::from_assembly(reply_stream.reply(), assembly)
    };
    Ok((headers::reply_headers(&facts, CONTENT_TYPE), Json(view)).into_response())
}
