//! Pure state machine that decides which bytes of a reply may be sent next.
//!
//! It relies on offsets and generations only. Frames may be lost, duplicated, reordered or read
//! again from the log. The output is always a prefix of one generation, and a clean end requires
//! that length and hash match the sent bytes. The attempt of a text frame does not matter: a log
//! may start with one worker's frames and continue with another's.

use bytes::Bytes;
use data_encoding::HEXLOWER;
use serde_json::Value;
use sha2::{Digest, Sha256};
use switchboard_schemas::reply_event::{Frame, FrameBody, ReplyEnd, ReplyHead, ToolProgress};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameSource {
    /// Pushed by the worker; earlier frames may be missing.
    Push,
    /// Read from the log or the store, without gaps.
    Log,
}

/// Effect of one frame on the client's stream.
#[derive(Debug, PartialEq)]
pub(crate) enum AssemblyStep {
    /// The frame changes nothing for the client.
    Nothing,
    /// Metadata changed; event clients are notified.
    ReplyUpdate(ReplyUpdate),
    /// The next bytes of the text; they count as sent.
    Text(Bytes),
    /// An earlier frame is missing.
    Gap,
    /// The whole text was sent; holds the final state.
    Ended(Box<ReplyEnd>),
    /// The remaining text cannot continue the sent text.
    Broken(TextConflict),
}

/// Changes of a reply other than its text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ReplyUpdate {
    /// The head of the reply arrived.
    Began,
    /// Structured data arrived.
    Ui,
    Tool(ToolProgress),
}

/// Reason for aborting a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextConflict {
    /// The text was lost, and a new generation started.
    Restarted,
    /// The sent bytes are not a prefix of the stored text.
    Mismatch,
}

/// State of one client's copy of a reply.
#[derive(Default)]
pub(crate) struct ReplyAssembly {
    highest_attempt: u32,
    /// Highest attempt that wrote the followed text. Generations are names without an order;
    /// attempts increase.
    attempt_taken: u32,
    generation: Option<u32>,
    head: Option<Box<ReplyHead>>,
    late_ui_spec: Option<Value>,
    logged_seq: u64,
    sent_bytes: u64,
    sent_hash: Sha256,
}

impl ReplyAssembly {
    /// Applies one frame and returns its effect.
    pub(crate) fn apply_frame(&mut self, frame: Frame, source: FrameSource) -> AssemblyStep {
        self.record_attempt(frame.attempt);
        match self.generation {
            Some(current) if frame.generation == current => {}
            // Late frames of a fenced worker.
            Some(_) if frame.attempt < self.attempt_taken => return AssemblyStep::Nothing,
            Some(_) if self.sent_bytes > 0 => return AssemblyStep::Broken(TextConflict::Restarted),
            _ => self.begin_generation(frame.generation),
        }
        self.attempt_taken = self.attempt_taken.max(frame.attempt);
        let follows = source == FrameSource::Log || frame.seq <= self.logged_seq.saturating_add(1);
        let is_new = frame.seq > self.logged_seq;
        let step = self.apply_body(frame.body, follows, is_new);
        if follows && step != AssemblyStep::Gap {
            self.logged_seq = self.logged_seq.max(frame.seq);
        }
        step
    }

    /// Records that `attempt` runs.
    pub(crate) fn record_attempt(&mut self, attempt: u32) {
        self.highest_attempt = self.highest_attempt.max(attempt);
    }

    /// Returns the highest attempt of all frames and heartbeats.
    pub(crate) const fn highest_attempt(&self) -> u32 {
        self.highest_attempt
    }

    /// Returns the generation of the sent text, or `None` before the first frame.
    pub(crate) const fn generation(&self) -> Option<u32> {
        self.generation
    }

    /// Returns the head, or `None` before it arrived.
    pub(crate) fn head(&self) -> Option<&ReplyHead> {
        self.head.as_deref()
    }

    /// Returns the structured data received so far.
    pub(crate) fn ui_spec(&self) -> Option<&Value> {
        self.late_ui_spec
            .as_ref()
            .or_else(|| self.head.as_ref().and_then(|head| head.ui_spec.as_ref()))
    }

    /// Returns the sequence number up to which the log has no gaps.
    pub(crate) const fn logged_seq(&self) -> u64 {
        self.logged_seq
    }

    /// Returns the number of sent text bytes.
    #[cfg(test)]
    pub(crate) const fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// Returns a fingerprint that changes whenever a frame adds information.
    pub(crate) const fn progress(&self) -> (u32, Option<u32>, u64, u64) {
        (
            self.highest_attempt,
            self.generation,
            self.logged_seq,
            self.sent_bytes,
        )
    }

    fn begin_generation(&mut self, generation: u32) {
        *self = Self {
            highest_attempt: self.highest_attempt,
            generation: Some(generation),
            ..Self::default()
        };
    }

    fn apply_body(&mut self, body: FrameBody, follows: bool, is_new: bool) -> AssemblyStep {
        match body {
            FrameBody::Head(head) if self.head.is_none() => {
                self.head = Some(head);
                AssemblyStep::ReplyUpdate(ReplyUpdate::Began)
            }
            // The head may be replaced until the first byte, because headers are sent with it.
            FrameBody::Head(head) if self.sent_bytes == 0 && follows && is_new => {
                (self.head, self.late_ui_spec) = (Some(head), None);
                AssemblyStep::Nothing
            }
            FrameBody::Ui(spec) if self.ui_spec() != Some(&spec) => {
                self.late_ui_spec = Some(spec);
                AssemblyStep::ReplyUpdate(ReplyUpdate::Ui)
            }
            FrameBody::Tool(progress) if follows && is_new => {
                AssemblyStep::ReplyUpdate(ReplyUpdate::Tool(progress))
            }
            FrameBody::Head(_) | FrameBody::Ui(_) | FrameBody::Tool(_) => AssemblyStep::Nothing,
            FrameBody::Text { offset, text } => self.append_text(offset, text, follows),
            FrameBody::End(end) => self.check_end(end),
        }
    }

    fn append_text(&mut self, offset: u64, text: Bytes, follows: bool) -> AssemblyStep {
        // Headers are sent with the first byte, so that everything they contain must have arrived.
        let headers_incomplete = self.sent_bytes == 0 && (self.head.is_none() || !follows);
        if offset > self.sent_bytes || headers_incomplete {
            return AssemblyStep::Gap;
        }
        let Ok(overlap) = usize::try_from(self.sent_bytes - offset) else {
            return AssemblyStep::Nothing;
        };
        if overlap >= text.len() {
            return AssemblyStep::Nothing;
        }
        if overlap > 0 && !self.is_continuation(offset, &text, overlap) {
            return AssemblyStep::Broken(TextConflict::Mismatch);
        }
        let rest = text.slice(overlap..);
        self.sent_bytes += rest.len() as u64;
        self.sent_hash.update(&rest);
        AssemblyStep::Text(rest)
    }

    /// Returns false if the first `overlap` bytes of `text` contradict the sent bytes. They can be
    /// compared only if `text` starts at byte 0; otherwise the hash at the end decides, and only
    /// split characters are detected here.
    fn is_continuation(&self, offset: u64, text: &Bytes, overlap: usize) -> bool {
        let torn = text.get(overlap).is_some_and(|byte| byte & 0xC0 == 0x80);
        let differs =
            offset == 0 && Sha256::digest(&text[..overlap]) != self.sent_hash.clone().finalize();
        !torn && !differs
    }

    fn check_end(&self, end: Box<ReplyEnd>) -> AssemblyStep {
        if end.length > self.sent_bytes {
            AssemblyStep::Gap
        } else if end.length < self.sent_bytes
            || (end.length > 0 && end.sha256 != self.sent_hash_hex())
        {
            AssemblyStep::Broken(TextConflict::Mismatch)
        } else {
            AssemblyStep::Ended(end)
        }
    }

    fn sent_hash_hex(&self) -> String {
        HEXLOWER.encode(&self.sent_hash.clone().finalize())
    }
}

#[cfg(test)]
#[path = "assembly_tests.rs"]
mod tests;
