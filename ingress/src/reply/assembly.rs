//! Which bytes of a reply may follow the bytes that were sent: a pure machine, frames in, decisions out.
//!
//! It relies on offsets and generations alone. Frames may be lost, repeated, reordered or read again from the log; what
//! comes out is a prefix of one generation, and a clean end is one whose length and hash are those of what was sent.
//! The attempt of a text frame does not matter: a log may begin with one worker's frames and go on with another's.

use bytes::Bytes;
use serde_json::Value;
use sha2::{Digest, Sha256};
use switchboard_schemas::reply_event::{Frame, FrameBody, ReplyEnd, ReplyHead, ToolProgress};

/// Where a frame came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameSource {
    /// Pushed, and so possibly behind a lost one.
    Push,
    /// Read from the log or the store, without holes.
    Log,
}

/// What a frame means for the client.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    /// Nothing.
    Nothing,
    /// Something beside the text, which a client may be told.
    Note(Note),
    /// These bytes come next; they count as sent.
    Text(Bytes),
    /// Something before this frame is missing.
    Gap,
    /// The whole text was sent; this is how it ended.
    Ended(Box<ReplyEnd>),
    /// Nothing that could still come may be sent behind what was sent.
    Broken(Breach),
}

/// What is known beside the text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Note {
    /// The head is there.
    Began,
    /// There is structured data.
    Ui,
    /// A tool call went on.
    Tool(ToolProgress),
}

/// Why a transfer cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breach {
    /// The text was lost and is made anew.
    Restarted,
    /// What was sent is not the beginning of what is kept.
    Mismatch,
}

/// A reply as far as its client has it.
#[derive(Default)]
pub(crate) struct ReplyAssembly {
    attempt_heard: u32,
    /// The highest attempt that wrote the text which is followed. Generations are names without an order, attempts rise.
    attempt_taken: u32,
    generation: Option<u32>,
    head: Option<Box<ReplyHead>>,
    late_ui_spec: Option<Value>,
    logged_seq: u64,
    sent_bytes: u64,
    sent_hash: Sha256,
}

impl ReplyAssembly {
    /// Takes one frame.
    pub(crate) fn accept(&mut self, frame: Frame, source: FrameSource) -> Step {
        self.attempt_heard = self.attempt_heard.max(frame.attempt);
        if frame.body == FrameBody::Heartbeat {
            return Step::Nothing;
        }
        match self.generation {
            Some(current) if frame.generation == current => {}
            // A fenced worker's last frames, which were on their way.
            Some(_) if frame.attempt < self.attempt_taken => return Step::Nothing,
            Some(_) if self.sent_bytes > 0 => return Step::Broken(Breach::Restarted),
            _ => self.begin(frame.generation),
        }
        self.attempt_taken = self.attempt_taken.max(frame.attempt);
        let follows = source == FrameSource::Log || frame.seq <= self.logged_seq.saturating_add(1);
        let is_new = frame.seq > self.logged_seq;
        let step = self.apply(frame.body, follows, is_new);
        if follows && step != Step::Gap {
            self.logged_seq = self.logged_seq.max(frame.seq);
        }
        step
    }

    /// The highest attempt that gave a sign.
    pub(crate) const fn attempt_heard(&self) -> u32 {
        self.attempt_heard
    }

    /// The generation of what was sent; 0 before anything is known.
    pub(crate) fn generation(&self) -> u32 {
        self.generation.unwrap_or_default()
    }

    /// The generation, once anything of it is known.
    pub(crate) const fn known_generation(&self) -> Option<u32> {
        self.generation
    }

    /// The head, once it was seen.
    pub(crate) fn head(&self) -> Option<&ReplyHead> {
        self.head.as_deref()
    }

    /// The structured data known so far.
    pub(crate) fn ui_spec(&self) -> Option<&Value> {
        self.late_ui_spec
            .as_ref()
            .or_else(|| self.head.as_ref().and_then(|head| head.ui_spec.as_ref()))
    }

    /// The last frame of the log before which none is missing.
    pub(crate) const fn logged_seq(&self) -> u64 {
        self.logged_seq
    }

    /// Bytes of text that were sent.
    #[cfg(test)]
    pub(crate) const fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// A value that differs from an earlier one if anything new was learned meanwhile.
    pub(crate) const fn progress(&self) -> (u32, Option<u32>, u64, u64) {
        (
            self.attempt_heard,
            self.generation,
            self.logged_seq,
            self.sent_bytes,
        )
    }

    fn begin(&mut self, generation: u32) {
        *self = Self {
            attempt_heard: self.attempt_heard,
            generation: Some(generation),
            ..Self::default()
        };
    }

    fn apply(&mut self, body: FrameBody, follows: bool, is_new: bool) -> Step {
        match body {
            FrameBody::Head(head) if self.head.is_none() => {
                self.head = Some(head);
                Step::Note(Note::Began)
            }
            // It is told anew while it may still change: headers go out with the first byte.
            FrameBody::Head(head) if self.sent_bytes == 0 && follows && is_new => {
                (self.head, self.late_ui_spec) = (Some(head), None);
                Step::Nothing
            }
            FrameBody::Ui(spec) if self.ui_spec() != Some(&spec) => {
                self.late_ui_spec = Some(spec);
                Step::Note(Note::Ui)
            }
            FrameBody::Tool(progress) if follows && is_new => Step::Note(Note::Tool(progress)),
            FrameBody::Heartbeat | FrameBody::Head(_) | FrameBody::Ui(_) | FrameBody::Tool(_) => {
                Step::Nothing
            }
            FrameBody::Text { offset, text } => self.text(offset, text, follows),
            FrameBody::End(end) => self.end(end),
        }
    }

    fn text(&mut self, offset: u64, text: Bytes, follows: bool) -> Step {
        // The response's headers go out with the first byte: nothing that belongs into them may be missing then.
        let headers_incomplete = self.sent_bytes == 0 && (self.head.is_none() || !follows);
        if offset > self.sent_bytes || headers_incomplete {
            return Step::Gap;
        }
        let Ok(overlap) = usize::try_from(self.sent_bytes - offset) else {
            return Step::Nothing;
        };
        if overlap >= text.len() {
            return Step::Nothing;
        }
        if overlap > 0 && !self.continues(offset, &text, overlap) {
            return Step::Broken(Breach::Mismatch);
        }
        let rest = text.slice(overlap..);
        self.sent_bytes += rest.len() as u64;
        self.sent_hash.update(&rest);
        Step::Text(rest)
    }

    /// Whether `text` holds, before `overlap`, what was sent; provable where it begins at the reply's first byte. For any
    /// other frame the end's hash decides, and here only that no character is torn.
    fn continues(&self, offset: u64, text: &Bytes, overlap: usize) -> bool {
        let torn = text.get(overlap).is_some_and(|byte| byte & 0xC0 == 0x80);
        let differs =
            offset == 0 && Sha256::digest(&text[..overlap]) != self.sent_hash.clone().finalize();
        !torn && !differs
    }

    fn end(&self, end: Box<ReplyEnd>) -> Step {
        if end.length > self.sent_bytes {
            Step::Gap
        } else if end.length < self.sent_bytes
            || (end.length > 0 && end.sha256 != self.sent_hash_hex())
        {
            Step::Broken(Breach::Mismatch)
        } else {
            Step::Ended(end)
        }
    }

    fn sent_hash_hex(&self) -> String {
        self.sent_hash
            .clone()
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

#[cfg(test)]
#[path = "assembly_tests.rs"]
mod tests;
