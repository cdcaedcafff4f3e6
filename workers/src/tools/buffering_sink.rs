//! Buffers the first words of an answer for a moment, because a tool call may follow them.
//!
//! Response headers are sent with the first byte, so they can contain only what a tool found
//! earlier. Many models write a sentence before they call a tool ("Let me look …"). Buffering a
//! whole answer would end streaming for every shop; buffering nothing would lose the header with
//! such models. So one sentence is buffered: a few words, or a fraction of a second. No text is
//! dropped: buffered text is displayed before later text.

use std::time::Duration;

use serde_json::Value;
use switchboard_schemas::reply_event::ToolProgress;
use tokio::time::Instant;

use crate::model::generation::{PushResult, TextSink};

/// Text between two answers of one reply.
const SEPARATOR: &str = "\n\n";

/// White space that is kept while nothing follows it, in bytes.
const BLANK_BYTES_MAX: usize = 1_024;

/// Receives a reply: its text, tool progress and UI.
pub(crate) trait ReplySink: TextSink {
    fn report_tool(&mut self, model: &str, progress: ToolProgress);
    /// Displays this UI with the reply, replacing any earlier one.
    fn show_ui(&mut self, model: &str, ui: Value);
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferLimits {
    /// Most bytes that are buffered.
    pub(crate) bytes_max: usize,
    /// Longest time since the first word; checked whenever text arrives.
    pub(crate) time: Duration,
}

/// Sink that buffers the beginning of each answer before another sink.
pub(crate) struct BufferingSink<'a> {
    inner: &'a mut dyn ReplySink,
    limits: BufferLimits,
    buffer: String,
    since: Option<Instant>,
    /// Bytes of the buffer that belong to earlier answers.
    kept: usize,
    /// True while text is buffered.
    buffers: bool,
    /// True if a separator must precede the next word.
    separates: bool,
    /// Byte at which this answer begins, after all text before it.
    from: usize,
}

impl<'a> BufferingSink<'a> {
    /// Creates a sink that displays everything at once unless it `buffers`.
    pub(crate) fn new(inner: &'a mut dyn ReplySink, limits: BufferLimits, buffers: bool) -> Self {
        Self {
            inner,
            limits,
            buffer: String::new(),
            since: None,
            kept: 0,
            buffers,
            separates: false,
            from: 0,
        }
    }

    /// Returns the inner sink, for progress and UI that must not wait.
    pub(crate) fn inner_sink(&mut self) -> &mut dyn ReplySink {
        self.inner
    }

    /// Starts another answer and returns the byte at which it begins.
    pub(crate) fn begin_answer(&mut self) -> usize {
        if self.buffer.trim().is_empty() {
            self.buffer.clear();
        }
        self.kept = self.buffer.len();
        self.since = None;
        self.from = self.len();
        self.separates = self.from > 0;
        self.from
    }

    /// Returns the text of this answer so far.
    pub(crate) fn answer_text(&self) -> String {
        let whole = self.inner.text() + &self.buffer;
        whole.get(self.from..).unwrap_or_default().trim().to_owned()
    }

    /// Returns true if the reply has no text yet; white space does not count.
    pub(crate) fn is_silent(&self) -> bool {
        self.inner.len() == 0 && self.buffer.trim().is_empty()
    }

    /// Returns true if the reply is nothing but a lot of white space.
    fn is_silent_for_long(&self) -> bool {
        self.buffer.len() > BLANK_BYTES_MAX && self.is_silent()
    }

    /// Stops buffering, because the reply has something to display.
    pub(crate) fn stop_buffering(&mut self) {
        self.buffers = false;
    }

    /// Displays the buffered text.
    pub(crate) fn release_buffer(&mut self, model: &str) -> PushResult {
        self.buffers = false;
        let buffer = std::mem::take(&mut self.buffer);
        self.kept = 0;
        if buffer.is_empty() {
            PushResult::Buffered
        } else {
            self.inner.push(model, &buffer)
        }
    }

    fn is_due(&self) -> bool {
        let late = self
            .since
            .is_some_and(|since| since.elapsed() >= self.limits.time);
        late || self.buffer.len() - self.kept > self.limits.bytes_max
    }
}

impl TextSink for BufferingSink<'_> {
    fn push(&mut self, model: &str, text: &str) -> PushResult {
        let is_blank = text.trim().is_empty();
        if self.separates && !is_blank {
            self.separates = false;
            self.buffer.push_str(SEPARATOR);
            self.buffer.push_str(text.trim_start());
        } else if !(self.separates || is_blank && self.is_silent_for_long()) {
            self.buffer.push_str(text);
        }
        if !is_blank {
            self.since.get_or_insert_with(Instant::now);
        }
        // The first byte sends the headers, and must not be white space.
        if (self.buffers && !self.is_due()) || self.is_silent() {
            return PushResult::Buffered;
        }
        self.release_buffer(model)
    }

    fn text(&self) -> String {
        self.inner.text()
    }

    fn len(&self) -> usize {
        self.inner.len() + self.buffer.len()
    }

    fn discard_undisplayed(&mut self) {
        self.buffer.truncate(self.kept);
        self.since = None;
        self.separates = self.from > 0 && self.inner.len() <= self.from;
    }
}
