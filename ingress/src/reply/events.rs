//! Streams a reply as server-sent events. The response starts at acceptance, so that later failures
//! are events; the stream always ends with `done` or `error`.

use std::{convert::Infallible, pin::Pin, time::Duration};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures::stream;
use serde_json::{Value, json};
use switchboard_schemas::{
    conversation::ReplyStatus,
    reply_event::{ReplyEnd, ReplyHead},
};
use tokio::time::timeout;

use super::{
    ResponseContext,
    assembly::ReplyUpdate,
    count, failure, headers,
    stream::{ReplyStream, StreamEvent, StreamFailure},
};
use crate::http::{ApiError, ErrorCode, problem::problem_json};

const CONTENT_TYPE: &str = "text/event-stream";
/// Interval of keep-alive comments; proxies usually close idle connections after 60 s.
const COMMENT_INTERVAL: Duration = Duration::from_secs(10);
const COMMENT: Bytes = Bytes::from_static(b": waiting\n\n");

/// Returns a streaming response at once.
pub(super) fn respond(follower: ReplyStream, asked: ResponseContext) -> Response {
    let headers = headers::of_acceptance(follower.reply(), CONTENT_TYPE);
    let writer = EventWriter {
        offset: follower.begins_at(),
        first: true,
        asked,
        waiting: Some(wait(follower)),
    };
    let mut response = Response::new(Body::from_stream(stream::unfold(writer, EventWriter::step)));
    *response.headers_mut() = headers;
    response
}

/// Kept while comments are sent: dropping the future would lose frames that it has read.
type PendingEvent = Pin<Box<dyn Future<Output = (ReplyStream, StreamEvent)> + Send>>;

struct EventWriter {
    /// Byte offset of the next text in the reply.
    offset: u64,
    first: bool,
    asked: ResponseContext,
    /// `None` after the final event.
    waiting: Option<PendingEvent>,
}

fn wait(mut follower: ReplyStream) -> PendingEvent {
    Box::pin(async move {
        let next = follower.next().await;
        (follower, next)
    })
}

impl EventWriter {
    async fn step(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        let mut waiting = self.waiting.take()?;
        if std::mem::take(&mut self.first) {
            // Send a comment at once, so that proxies do not delay the headers.
            self.waiting = Some(waiting);
            return Some((Ok(COMMENT), self));
        }
        let Ok((follower, next)) = timeout(COMMENT_INTERVAL, &mut waiting).await else {
            self.waiting = Some(waiting);
            return Some((Ok(COMMENT), self));
        };
        let is_last = matches!(next, StreamEvent::Ended(_) | StreamEvent::Lost(_));
        let events = self.events(&follower, next);
        if !is_last {
            self.waiting = Some(wait(follower));
        }
        Some((Ok(events.into()), self))
    }

    fn events(&mut self, follower: &ReplyStream, next: StreamEvent) -> String {
        match next {
            StreamEvent::ReplyUpdate(note) => self.note(follower, note),
            StreamEvent::Text(text) => self.delta(follower, &text),
            StreamEvent::Ended(end) => match end.status {
                ReplyStatus::Completed | ReplyStatus::Cancelled => self.done(follower, &end),
                _ => self.error(follower, failure::of_end(&end, follower.reply())),
            },
            StreamEvent::Lost(StreamFailure::TextConflict(_)) => {
                let detail = "the reply was begun anew; read it from byte 0";
                self.error(follower, ApiError::new(ErrorCode::ReplyRestarted, detail))
            }
            StreamEvent::Lost(loss) => {
                self.error(follower, failure::of_loss(loss, follower.reply()))
            }
        }
    }

    fn note(&self, follower: &ReplyStream, note: ReplyUpdate) -> String {
        let assembly = follower.assembly();
        let ui = || {
            assembly
                .ui_spec()
                .map(|spec| self.event(follower, "ui", spec))
                .unwrap_or_default()
        };
        match (note, assembly.head()) {
            (ReplyUpdate::Began, Some(head)) => {
                self.event(follower, "start", &start(follower, head)) + &ui()
            }
            (ReplyUpdate::Began, None) => String::new(),
            (ReplyUpdate::Ui, _) => ui(),
            (ReplyUpdate::Tool(progress), _) => self.event(follower, "tool", &json!(progress)),
        }
    }

    fn delta(&mut self, follower: &ReplyStream, text: &Bytes) -> String {
        if self.offset == follower.begins_at() {
            follower
                .state()
                .metrics
                .first_byte_seconds
                .observe(self.asked.arrived.elapsed().as_secs_f64());
        }
        let data = json!({ "text": String::from_utf8_lossy(text), "offset": self.offset });
        self.offset += text.len() as u64;
        self.event(follower, "delta", &data)
    }

    fn done(&self, follower: &ReplyStream, end: &ReplyEnd) -> String {
        count(follower, "completed");
        let data = json!({
            "status": end.status, "finishReason": end.finish_reason, "usage": end.usage, "length": end.length,
            "responseTime": end.response_time_ms,
        });
        self.event(follower, "done", &data)
    }

    fn error(&self, follower: &ReplyStream, error: ApiError) -> String {
        count(follower, "refused");
        let problem = problem_json(
            &(self.asked.told)(error).into_parts(),
            &self.asked.request_id,
        );
        format!(
            "event: error\ndata: {}\n\n",
            String::from_utf8_lossy(&problem)
        )
    }

    /// Formats one event. JSON has no raw line breaks, so that one `data` line is enough.
    fn event(&self, follower: &ReplyStream, name: &str, data: &Value) -> String {
        format!(
            "event: {name}\nid: {}.{}\ndata: {data}\n\n",
            follower.assembly().generation(),
            self.offset
        )
    }
}

fn start(follower: &ReplyStream, head: &ReplyHead) -> Value {
    let mut start = json!({
        "messageId": follower.reply(),
        "conversationId": head.conversation_id,
        "agentId": head.agent_id,
        "agentName": head.agent_name,
        "model": head.model,
        "generation": follower.assembly().generation(),
    });
    if let Some(reason) = &head.routing_reason {
        start["routingReason"] = json!(reason);
    }
    start
}
