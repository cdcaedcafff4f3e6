//! A reply as server-sent events. The response begins at acceptance, so that what goes wrong afterwards is an event; it
//! always ends cleanly, with `done` or `error`.

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
    Asked,
    assembly::Note,
    count, failure,
    follower::{Follower, Loss, Next},
    headers,
};
use crate::{
    error::{ApiError, ErrorCode},
    problem::problem_json,
};

const CONTENT_TYPE: &str = "text/event-stream";
/// Proxies drop a connection on which nothing happens; the usual limit is 60 s.
const COMMENT_INTERVAL: Duration = Duration::from_secs(10);
const COMMENT: Bytes = Bytes::from_static(b": waiting\n\n");

/// Answers at once; the reply comes as it is made.
pub(super) fn respond(follower: Follower, asked: Asked) -> Response {
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

/// Kept over a comment: a wait that was dropped would lose what it had already read.
type Waiting = Pin<Box<dyn Future<Output = (Follower, Next)> + Send>>;

struct EventWriter {
    /// Byte of the reply at which the next text begins.
    offset: u64,
    first: bool,
    asked: Asked,
    /// None when all was said.
    waiting: Option<Waiting>,
}

fn wait(mut follower: Follower) -> Waiting {
    Box::pin(async move {
        let next = follower.next().await;
        (follower, next)
    })
}

impl EventWriter {
    async fn step(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        let mut waiting = self.waiting.take()?;
        if std::mem::take(&mut self.first) {
            // Something goes out at once, so that no proxy holds the headers back.
            self.waiting = Some(waiting);
            return Some((Ok(COMMENT), self));
        }
        let Ok((follower, next)) = timeout(COMMENT_INTERVAL, &mut waiting).await else {
            self.waiting = Some(waiting);
            return Some((Ok(COMMENT), self));
        };
        let is_last = matches!(next, Next::Ended(_) | Next::Lost(_));
        let events = self.events(&follower, next);
        if !is_last {
            self.waiting = Some(wait(follower));
        }
        Some((Ok(events.into()), self))
    }

    fn events(&mut self, follower: &Follower, next: Next) -> String {
        match next {
            Next::Note(note) => self.note(follower, note),
            Next::Text(text) => self.delta(follower, &text),
            Next::Ended(end) => match end.status {
                ReplyStatus::Completed | ReplyStatus::Cancelled => self.done(follower, &end),
                _ => self.error(follower, failure::of_end(&end, follower.reply())),
            },
            Next::Lost(Loss::Breach(_)) => {
                let detail = "the reply was begun anew; read it from byte 0";
                self.error(follower, ApiError::new(ErrorCode::ReplyRestarted, detail))
            }
            Next::Lost(loss) => self.error(follower, failure::of_loss(loss, follower.reply())),
        }
    }

    fn note(&self, follower: &Follower, note: Note) -> String {
        let assembly = follower.assembly();
        let ui = || {
            assembly
                .ui_spec()
                .map(|spec| self.event(follower, "ui", spec))
                .unwrap_or_default()
        };
        match (note, assembly.head()) {
            (Note::Began, Some(head)) => {
                self.event(follower, "start", &start(follower, head)) + &ui()
            }
            (Note::Began, None) => String::new(),
            (Note::Ui, _) => ui(),
            (Note::Tool(progress), _) => self.event(follower, "tool", &json!(progress)),
        }
    }

    fn delta(&mut self, follower: &Follower, text: &Bytes) -> String {
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

    fn done(&self, follower: &Follower, end: &ReplyEnd) -> String {
        count(follower, "completed");
        let data = json!({
            "status": end.status, "finishReason": end.finish_reason, "usage": end.usage, "length": end.length,
            "responseTime": end.response_time_ms,
        });
        self.event(follower, "done", &data)
    }

    fn error(&self, follower: &Follower, error: ApiError) -> String {
        count(follower, "refused");
        let problem = problem_json(
            &(self.asked.told)(error).into_facts(),
            &self.asked.request_id,
        );
        format!(
            "event: error\ndata: {}\n\n",
            String::from_utf8_lossy(&problem)
        )
    }

    /// JSON has no raw line breaks, so that one `data` line holds all of it.
    fn event(&self, follower: &Follower, name: &str, data: &Value) -> String {
        format!(
            "event: {name}\nid: {}.{}\ndata: {data}\n\n",
            follower.assembly().generation(),
            self.offset
        )
    }
}

fn start(follower: &Follower, head: &ReplyHead) -> Value {
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
