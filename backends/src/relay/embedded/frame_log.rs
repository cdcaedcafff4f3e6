//! The log of one reply in memory, the counterpart of a Redis stream.

use switchboard_schemas::{reply_event::Frame, time::whole_millis};

use crate::relay::{DONE_LOG_TTL, LOG_TTL};

/// Milliseconds on the clock of the relay.
pub(super) type RelayMillis = u64;

/// Frames of one generation, in the order of their `seq`.
#[derive(Debug, Default)]
pub(super) struct FrameLog {
    frames: Vec<LogEntry>,
    /// Generation of the last frame, also when it has expired.
    generation: Option<u32>,
    /// `true` after a restore, when one gap is accepted because the holder may have merged frames.
    loose: bool,
    expires_at: RelayMillis,
}

/// A frame and its position, which is its `seq`. Only an end frame may carry a number that is
/// taken.
#[derive(Debug)]
struct LogEntry {
    position: u64,
    frame: Frame,
}

/// The result of appending a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AppendOutcome {
    /// The frame is the newest one.
    Added,
    /// The frame was already in the log.
    Repeated,
    /// Frames before this one are missing.
    Gap,
}

impl FrameLog {
    /// Appends the next frame. A frame of another generation starts the log anew, because texts of
    /// two generations are never concatenated. Generations are random and have no order; the newer
    /// one is that of the claim holder.
    pub(super) fn append(&mut self, now: RelayMillis, frame: &Frame) -> AppendOutcome {
        self.expire(now);
        let outcome = self.outcome_of(frame);
        if outcome == AppendOutcome::Added {
            self.push(now, frame.clone());
            self.loose = false;
        }
        outcome
    }

    /// Returns the result that appending `frame` would have.
    pub(super) fn outcome_of(&self, frame: &Frame) -> AppendOutcome {
        let same = self.generation == Some(frame.generation);
        let last = if same { self.last_seq() } else { 0 };
        if frame.seq <= last {
            AppendOutcome::Repeated
        } else if frame.seq > last + 1 && !(same && self.loose) {
            AppendOutcome::Gap
        } else {
            AppendOutcome::Added
        }
    }

    /// Appends the end frame, regardless of gaps.
    pub(super) fn close(&mut self, now: RelayMillis, end: &Frame) {
        self.expire(now);
        self.push(now, end.clone());
    }

    /// Shortens the lifetime of the log of a reply that is done.
    pub(super) fn expire_soon(&mut self, now: RelayMillis) {
        self.expire(now);
        self.expires_at = now + whole_millis(DONE_LOG_TTL);
    }

    /// Replaces the log by `frames`.
    pub(super) fn restore(&mut self, now: RelayMillis, frames: &[Frame]) {
        *self = Self {
            loose: true,
            ..Self::default()
        };
        for frame in frames {
            if self.generation != Some(frame.generation) || frame.seq > self.last_seq() {
                self.push(now, frame.clone());
            }
        }
    }

    /// Returns the frames after `after_seq`.
    pub(super) fn read(&mut self, now: RelayMillis, after_seq: u64) -> Vec<Frame> {
        self.expire(now);
        let start = self
            .frames
            .partition_point(|entry| entry.position <= after_seq);
        self.frames[start..]
            .iter()
            .map(|entry| entry.frame.clone())
            .collect()
    }

    /// Deletes the frames if the log has expired.
    pub(super) fn expire(&mut self, now: RelayMillis) {
        if now >= self.expires_at {
            self.frames = Vec::new();
        }
    }

    fn push(&mut self, now: RelayMillis, frame: Frame) {
        if self.generation != Some(frame.generation) {
            self.frames.clear();
            self.generation = Some(frame.generation);
        }
        let position = frame.seq.max(self.last_seq() + 1);
        self.frames.push(LogEntry { position, frame });
        self.expires_at = now + whole_millis(LOG_TTL);
    }

    fn last_seq(&self) -> u64 {
        self.frames.last().map_or(0, |entry| entry.position)
    }
}
