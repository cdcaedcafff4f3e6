//! Sink through which a model and its tools fill the text of a reply writer.

use serde_json::Value;
use switchboard_schemas::reply_event::{FrameBody, ReplyHead, ToolProgress};

use super::reply_writer::ReplyWriter;
use crate::{
    model::generation::{PushResult, TextSink},
    tools::buffering_sink::ReplySink,
};

/// Sink for the text of one model call.
pub(crate) struct WriterSink<'a> {
    writer: &'a ReplyWriter,
    head: ReplyHead,
}

impl ReplyWriter {
    /// Creates a sink for the model's text. The model that produces the first text is added to
    /// `head`.
    pub(crate) fn open_sink(&self, head: ReplyHead) -> WriterSink<'_> {
        let mut reply = self.text();
        if reply.text.is_empty()
            && let Some(started) = &mut reply.head
        {
            // An earlier attempt got no further: its tools run again.
            started.ui_spec = None;
        }
        drop(reply);
        WriterSink { writer: self, head }
    }
}

impl WriterSink<'_> {
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
