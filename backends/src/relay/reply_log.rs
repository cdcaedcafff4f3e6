//! The log of one reply in memory: what the embedded relay keeps where the production twin keeps a Redis stream.

use switchboard_schemas::reply_event::Frame;

use super::LOG_TTL;

/// Milliseconds on the relay's own clock.
pub(super) type Millis = u64;

/// Frames of one generation, in the order of their `seq`.
#[derive(Debug, Default)]
pub(super) struct ReplyLog {
    frames: Vec<Placed>,
    generation: u32,
    /// After a restore one gap is accepted: the holder may have written its reply so far as fewer frames.
    loose: bool,
    expires_at: Millis,
}

/// A frame and its place, which is its `seq`; only an end may carry a number that is taken.
#[derive(Debug)]
struct Placed {
    place: u64,
    frame: Frame,
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Logged {
    /// It is the newest frame now.
    Added,
    /// Known already.
    Repeated,
    /// Frames before it are missing.
    Gap,
}

impl ReplyLog {
    /// Adds the next frame; another generation begins anew, because bytes of two generations are never joined. A
    /// generation is a random name without an order; that its writer holds the claim is what makes it the newer one.
    pub(super) fn add(&mut self, now: Millis, frame: &Frame) -> Logged {
        self.expire(now);
        let logged = self.place(frame);
        if logged == Logged::Added {
            self.push(now, frame.clone());
            self.loose = false;
        }
        logged
    }

    /// What would become of `frame`.
    pub(super) fn place(&self, frame: &Frame) -> Logged {
        let same = frame.generation == self.generation;
        let last = if same { self.last_seq() } else { 0 };
        if frame.seq <= last {
            Logged::Repeated
        } else if frame.seq > last + 1 && !(same && self.loose) {
            Logged::Gap
        } else {
            Logged::Added
        }
    }

    /// Adds the end, whatever stands before it.
    pub(super) fn close(&mut self, now: Millis, end: &Frame) {
        self.expire(now);
        self.push(now, end.clone());
    }

    /// Forgets all and begins with `frames`.
    pub(super) fn restore(&mut self, now: Millis, frames: &[Frame]) {
        *self = Self {
            loose: true,
            ..Self::default()
        };
        for frame in frames {
            if frame.generation != self.generation || frame.seq > self.last_seq() {
                self.push(now, frame.clone());
            }
        }
    }

    /// Frames after `after_seq`.
    pub(super) fn read(&mut self, now: Millis, after_seq: u64) -> Vec<Frame> {
        self.expire(now);
        let start = self
            .frames
            .partition_point(|placed| placed.place <= after_seq);
        self.frames[start..]
            .iter()
            .map(|placed| placed.frame.clone())
            .collect()
    }

    /// Forgets the frames when their time is over.
    pub(super) fn expire(&mut self, now: Millis) {
        if now >= self.expires_at {
            self.frames = Vec::new();
        }
    }

    fn push(&mut self, now: Millis, frame: Frame) {
        if frame.generation != self.generation {
            self.frames.clear();
            self.generation = frame.generation;
        }
        let place = frame.seq.max(self.last_seq() + 1);
        self.frames.push(Placed { place, frame });
        self.expires_at = now + super::millis(LOG_TTL);
    }

    fn last_seq(&self) -> u64 {
        self.frames.last().map_or(0, |placed| placed.place)
    }
}
