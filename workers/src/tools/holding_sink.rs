//! Holds the first words of an answer back for a moment, because a tool call may follow them.
//!
//! Headers go out with the first byte, so that what a tool finds can stand in them only if it was found before. Many
//! models say a sentence before they call ("Let me look …"). Holding all text until the answer ends would take the
//! streaming from every answer of a shop; holding none would take the header from such models. So a sentence is held: a
//! few words, or a fraction of a second. Nothing that was said is thrown away: what is held is shown before what follows.

use std::time::Duration;

use serde_json::Value;
use switchboard_schemas::reply_event::ToolProgress;
use tokio::time::Instant;

use crate::model::generation::{Pushed, TextSink};

/// Between two answers of one reply.
const SEPARATOR: &str = "\n\n";

/// Takes a reply: its text, and what stands beside it.
pub(crate) trait ReplySink: TextSink {
    /// A tool call went on.
    fn tool(&mut self, model: &str, progress: ToolProgress);
    /// This is to be shown with the reply, in place of what was to be shown before.
    fn show(&mut self, model: &str, ui: Value);
}

/// How much is held, and how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HoldLimits {
    /// Bytes of text.
    pub(crate) bytes_max: usize,
    /// Since the first word. Looked at whenever text comes.
    pub(crate) time: Duration,
}

/// A sink before a sink.
pub(crate) struct HoldingSink<'a> {
    inner: &'a mut dyn ReplySink,
    limits: HoldLimits,
    held: String,
    since: Option<Instant>,
    /// Bytes of what is held that earlier answers said.
    kept: usize,
    /// Whether a call may come at all.
    may_call: bool,
    /// Whether text is still held back.
    holds: bool,
    /// Whether a separator comes before the next word.
    separates: bool,
    /// Byte at which this answer begins, behind all text before it.
    from: usize,
}

impl<'a> HoldingSink<'a> {
    /// `may_call`: whether a call may come at all; without it nothing is held.
    pub(crate) fn new(inner: &'a mut dyn ReplySink, limits: HoldLimits, may_call: bool) -> Self {
        let (held, holds) = (String::new(), may_call);
        Self {
            inner,
            limits,
            held,
            since: None,
            kept: 0,
            may_call,
            holds,
            separates: false,
            from: 0,
        }
    }

    /// What stands beside the text goes on at once.
    pub(crate) fn inner(&mut self) -> &mut dyn ReplySink {
        self.inner
    }

    /// Another answer begins; gives the byte at which it does.
    pub(crate) fn begin_answer(&mut self) -> usize {
        if self.held.trim().is_empty() {
            self.held.clear();
        }
        self.kept = self.held.len();
        self.since = None;
        self.from = self.len();
        self.separates = self.from > 0;
        self.from
    }

    /// What this answer said so far.
    pub(crate) fn answer(&self) -> String {
        let whole = self.inner.text() + &self.held;
        whole.get(self.from..).unwrap_or_default().trim().to_owned()
    }

    /// Whether nothing was said so far; white space alone is no word.
    pub(crate) fn is_silent(&self) -> bool {
        self.inner.len() == 0 && self.held.trim().is_empty()
    }

    /// There is something to show by now: what is said goes out as it comes.
    pub(crate) fn hold_no_longer(&mut self) {
        self.holds = false;
    }

    /// Shows what is held.
    pub(crate) fn release(&mut self, model: &str) -> Pushed {
        self.holds = false;
        let held = std::mem::take(&mut self.held);
        self.kept = 0;
        if held.is_empty() {
            Pushed::Held
        } else {
            self.inner.push(model, &held)
        }
    }

    fn is_due(&self) -> bool {
        let late = self
            .since
            .is_some_and(|since| since.elapsed() >= self.limits.time);
        late || self.held.len() - self.kept > self.limits.bytes_max
    }
}

impl TextSink for HoldingSink<'_> {
    fn push(&mut self, model: &str, text: &str) -> Pushed {
        let is_blank = text.trim().is_empty();
        if self.separates && !is_blank {
            self.separates = false;
            self.held.push_str(SEPARATOR);
            self.held.push_str(text.trim_start());
        } else if !self.separates {
            self.held.push_str(text);
        }
        if !is_blank {
            self.since.get_or_insert_with(Instant::now);
        }
        // The first byte sends the headers, and must not be white space.
        if (self.holds && !self.is_due()) || (self.may_call && self.is_silent()) {
            return Pushed::Held;
        }
        self.release(model)
    }

    fn text(&self) -> String {
        self.inner.text()
    }

    fn len(&self) -> usize {
        self.inner.len() + self.held.len()
    }

    fn forget_unshown(&mut self) {
        self.held.truncate(self.kept);
        self.since = None;
        self.separates = self.from > 0 && self.inner.len() <= self.from;
    }
}
