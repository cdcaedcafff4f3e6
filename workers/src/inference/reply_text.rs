//! Text of a reply in memory: filled by the model through a sink, read by the reply writer.

use serde_json::Value;
use switchboard_schemas::reply_event::{FrameBody, ReplyHead, ToolProgress};

use super::reply_writer::ReplyWriter;
use crate::{
    model::generation::{PushResult, TextSink},
    tools::buffering_sink::ReplySink,
};

/// Everything that the model and its tools produced so far.
#[derive(Default)]
pub(super) struct ReplyText {
    pub(super) text: String,
    /// Head of the reply, once it started.
    pub(super) head: Option<ReplyHead>,
    /// Tool progress and UI that no frame contains yet.
    pub(super) side_frames: Vec<FrameBody>,
    /// Nothing is displayed before the user message is stored.
    pub(super) user_message_stored: bool,
}

impl ReplyText {
    /// Starts the reply if it has not started. Until its first text, the head names the model that
    /// was called last.
    fn start(&mut self, new_head: &ReplyHead, model: &str) {
        let is_empty = self.text.is_empty();
        let head = self.head.get_or_insert_with(|| new_head.clone());
        if is_empty && head.model != model {
            model.clone_into(&mut head.model);
        }
    }
}

/// Sink for the text of one model call.
pub(crate) struct WriterSink<'a> {
    writer: &'a ReplyWriter,
    head: ReplyHead,
}

impl<'a> WriterSink<'a> {
    pub(super) const fn new(writer: &'a ReplyWriter, head: ReplyHead) -> Self {
        Self { writer, head }
    }

    fn push_side_frame(&self, model: &str, body: FrameBody) {
        let mut reply = self.writer.text();
        reply.start(&self.head, model);
        if let (FrameBody::Ui(spec), Some(head)) = (&body, &mut reply.head) {
            head.ui_spec = Some(spec.clone());
        }
        reply.side_frames.push(body);
        drop(reply);
        self.writer.wake();
    }
}

impl TextSink for WriterSink<'_> {
    fn push(&mut self, model: &str, text: &str) -> PushResult {
        let mut reply = self.writer.text();
        reply.start(&self.head, model);
        let room = self.writer.bytes_max().saturating_sub(reply.text.len());
        let accepted = text.floor_char_boundary(room);
        reply.text.push_str(&text[..accepted]);
        drop(reply);
        self.writer.wake();
        if accepted == text.len() && accepted < room {
            PushResult::Displayed
        } else {
            PushResult::Full
        }
    }

    fn text(&self) -> String {
        self.writer.whole_text()
    }

    fn len(&self) -> usize {
        self.writer.text().text.len()
    }
}

impl ReplySink for WriterSink<'_> {
    fn report_tool(&mut self, model: &str, progress: ToolProgress) {
        self.push_side_frame(model, FrameBody::Tool(progress));
    }

    fn show_ui(&mut self, model: &str, ui: Value) {
        self.push_side_frame(model, FrameBody::Ui(ui));
    }
}
