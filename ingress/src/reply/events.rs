//! Streams a reply as server-sent events. The response starts at acceptance, so that later failures
//! are events; the stream always ends with `done` or `error`.

use std::{convert::Infallible, pin::Pin, time::Duration};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures::stream;
use serde::Serialize;
use switchboard_schemas::{
    conversation::ReplyStatus,
    reply_event::{ReplyEnd, ReplyHead},
};
use tokio::time::timeout;

use super::{
    ResponseContext,
    assembly::ReplyUpdate,
    failure, headers, record_outcome,
    stream::{ReplyStream, StreamEvent, StreamFailure},
};
use crate::{
    http::{ApiError, ErrorCode, problem::problem_json},
    openapi::event_stream::{DeltaEvent, DoneEvent, StartEvent},
};

const CONTENT_TYPE: &str = "text/event-stream";
/// Interval of keep-alive comments; proxies usually close idle connections after 60 s.
const COMMENT_INTERVAL: Duration = Duration::from_secs(10);
const COMMENT: Bytes = Bytes::from_static(b": waiting\n\n");

/// Returns a streaming response at once.
pub(super) fn respond_as_events(reply_stream: ReplyStream, context: ResponseContext) -> Response {
    let mut headers = headers::accepted_headers(reply_stream.reply(), CONTENT_TYPE);
    headers::mark_generated(&mut headers);
    let writer = EventWriter {
        offset: reply_stream.start_offset(),
        first: true,
        context,
        waiting: Some(wait_for_event(reply_stream)),
    };
    let mut response = Response::new(Body::from_stream(stream::unfold(
        writer,
        EventWriter::next_chunk,
    )));
    *response.headers_mut() = headers;
    response
}

/// Kept while comments are sent: dropping the future would lose frames that it has read.
type PendingEvent = Pin<Box<dyn Future<Output = (ReplyStream, StreamEvent)> + Send>>;

struct EventWriter {
    /// Byte offset of the next text in the reply.
    offset: u64,
    first: bool,
    context: ResponseContext,
    /// `None` after the final event.
    waiting: Option<PendingEvent>,
}

fn wait_for_event(mut reply_stream: ReplyStream) -> PendingEvent {
    Box::pin(async move {
        let next = reply_stream.next().await;
        (reply_stream, next)
    })
}

impl EventWriter {
    async fn next_chunk(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        let mut waiting = self.waiting.take()?;
        if std::mem::take(&mut self.first) {
            // Send a comment at once, so that proxies do not delay the headers.
            self.waiting = Some(waiting);
            return Some((Ok(COMMENT), self));
        }
        let Ok((reply_stream, next)) = timeout(COMMENT_INTERVAL, &mut waiting).await else {
            self.waiting = Some(waiting);
            return Some((Ok(COMMENT), self));
        };
        let is_last = matches!(next, StreamEvent::Ended(_) | StreamEvent::Lost(_));
        let events = self.format_events(&reply_stream, next);
        if !is_last {
            self.waiting = Some(wait_for_event(reply_stream));
        }
        Some((Ok(events.into()), self))
    }

    fn format_events(&mut self, reply_stream: &ReplyStream, next: StreamEvent) -> String {
        match next {
            StreamEvent::ReplyUpdate(update) => self.format_update(reply_stream, update),
            StreamEvent::Text(text) => self.format_delta(reply_stream, &text),
            StreamEvent::Ended(end) => match end.status {
                ReplyStatus::Completed | ReplyStatus::Cancelled => {
                    self.format_done(reply_stream, &end)
                }
                _ => self.format_error(
                    reply_stream,
                    failure::error_of_end(&end, reply_stream.reply()),
                ),
            },
            StreamEvent::Lost(StreamFailure::TextConflict(_)) => {
                let detail = "the reply was restarted; read it from byte 0";
                self.format_error(
                    reply_stream,
                    ApiError::new(ErrorCode::ReplyRestarted, detail),
                )
            }
            StreamEvent::Lost(loss) => self.format_error(
                reply_stream,
                failure::error_of_loss(loss, reply_stream.reply()),
            ),
        }
    }

    fn format_update(&self, reply_stream: &ReplyStream, update: ReplyUpdate) -> String {
        let assembly = reply_stream.assembly();
        let ui = || {
            assembly
                .ui_spec()
                .map(|spec| self.format_event(reply_stream, "ui", spec))
                .unwrap_or_default()
        };
        match (update, assembly.head()) {
            (ReplyUpdate::Began, Some(head)) => {
                self.format_event(reply_stream, "start", &start_event(reply_stream, head)) + &ui()
            }
            (ReplyUpdate::Began, None) => String::new(),
            (ReplyUpdate::Ui, _) => ui(),
            (ReplyUpdate::Tool(progress), _) => self.format_event(reply_stream, "tool", &progress),
        }
    }

    fn format_delta(&mut self, reply_stream: &ReplyStream, text: &Bytes) -> String {
        if self.offset == reply_stream.start_offset() {
            reply_stream
                .state()
                .metrics
                .first_byte_seconds
                .observe(self.context.arrived.elapsed().as_secs_f64());
        }
        let delta = DeltaEvent {
            text: String::from_utf8_lossy(text),
            offset: self.offset,
        };
        self.offset += text.len() as u64;
        self.format_event(reply_stream, "delta", &delta)
    }

    fn format_done(&self, reply_stream: &ReplyStream, end: &ReplyEnd) -> String {
        record_outcome(reply_stream, "completed");
        let done = DoneEvent {
            status: end.status,
            finish_reason: end.finish_reason,
            usage: &end.usage,
            length: end.length,
            response_time: end.response_time_ms,
        };
        self.format_event(reply_stream, "done", &done)
    }

    fn format_error(&self, reply_stream: &ReplyStream, error: ApiError) -> String {
        record_outcome(reply_stream, "refused");
        let problem = problem_json(
            &(self.context.map_error)(error).into_parts(),
            &self.context.request_id,
        );
        format!(
            "event: error\ndata: {}\n\n",
            String::from_utf8_lossy(&problem)
        )
    }

    /// Formats one event, with the fields of its data in alphabetical order. JSON has no raw line
    /// breaks, so that one `data` line is enough.
    fn format_event(&self, stream: &ReplyStream, name: &str, data: &impl Serialize) -> String {
        let data = serde_json::to_value(data).unwrap_or_default();
        format!(
            "event: {name}\nid: {}.{}\ndata: {data}\n\n",
            generation_of(stream),
            self.offset
        )
    }
}

/// Returns the generation in the form of the events, which all come after the first frame.
fn generation_of(reply_stream: &ReplyStream) -> u32 {
    reply_stream.assembly().generation().unwrap_or_default()
}

fn start_event<'a>(reply_stream: &'a ReplyStream, head: &'a ReplyHead) -> StartEvent<'a> {
    StartEvent {
        message_id: reply_stream.reply(),
        conversation_id: &head.conversation_id,
        agent_id: &head.agent_id,
        agent_name: &head.agent_name,
        routing_reason: head.routing_reason.as_deref(),
        model: &head.model,
        generation: generation_of(reply_stream).into(),
    }
}
