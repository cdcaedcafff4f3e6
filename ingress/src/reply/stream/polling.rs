//! Polls of one reply: reads of its log and its record in the store, and takeovers.

use std::time::Duration;

use tokio::time::Instant;

use super::{ReplyStream, StreamFailure};
use crate::{
    jobs::takeover::publish_takeover,
    reply::{recovery, timeouts::TimeoutDecision},
};

/// Interval between attempts to close a gap; the missing bytes may still be in transit.
const GAP_RETRY: Duration = Duration::from_millis(200);
/// Every so many empty polls, the whole log is read: in a new generation the sequence numbers begin
/// at 1 again, and frames after the last one read would miss them.
const FULL_READ_EVERY: u32 = 2;
/// Same as [`FULL_READ_EVERY`] for readers, which poll more often.
const READER_FULL_READ_EVERY: u32 = 10;

impl ReplyStream {
    /// Reads from the log after the push queue of a slow client overflowed.
    pub(super) async fn pull_from_log(&mut self) {
        self.state.metrics.replies_pulled.inc();
        self.timeouts.record_sign_of_life(Instant::now());
        self.read_log(self.assembly.logged_seq()).await;
    }

    /// Reads missing frames from the log, from its start if nothing follows, or from the store if
    /// the log is gone.
    pub(super) async fn repair_gap(&mut self) {
        let in_log = self.read_log(self.assembly.logged_seq()).await;
        if !in_log && !self.read_log(0).await {
            self.read_store().await;
        }
        self.next_poll = Instant::now() + GAP_RETRY;
    }

    /// Polls log and store after a silence, and decides whether to wait, to publish the
    /// job again, or to give up.
    pub(super) async fn poll_sources(&mut self) -> Option<StreamFailure> {
        let every = if self.only_follows() {
            READER_FULL_READ_EVERY
        } else {
            FULL_READ_EVERY
        };
        let from_start = self.empty_polls % every == every - 1;
        let after_seq = if from_start {
            0
        } else {
            self.assembly.logged_seq()
        };
        self.empty_polls += 1;
        self.read_log(after_seq).await;
        if self.backlog_is_known() {
            self.backlog.clear();
        }
        // Silence from the beginning may mean that the relay rejects the writes of workers,
        // although it answers our reads.
        let nothing_heard = from_start && self.timeouts.has_not_started();
        let store_may_know = if self.only_follows() {
            from_start
        } else {
            nothing_heard || self.timeouts.has_no_takeover_left()
        };
        if self.gap_open || self.timeouts.is_relay_unavailable() || store_may_know {
            self.read_store().await;
        }
        self.next_poll = self.next_poll_after(Instant::now());
        if !self.backlog.is_empty() {
            return None;
        }
        match self.timeouts.decide(Instant::now()) {
            TimeoutDecision::Wait => None,
            TimeoutDecision::NeverStarted => Some(StreamFailure::NeverStarted),
            TimeoutDecision::WentSilent => Some(StreamFailure::WentSilent),
            TimeoutDecision::RequestTakeover => {
                self.request_takeover().await;
                self.next_poll = self.next_poll_after(Instant::now());
                None
            }
        }
    }

    /// Returns true if every frame of the backlog was applied before, so that it is no sign of
    /// life.
    fn backlog_is_known(&self) -> bool {
        let (generation, seq) = (self.assembly.generation(), self.assembly.logged_seq());
        self.backlog
            .iter()
            .all(|frame| generation == Some(frame.generation) && frame.seq <= seq)
    }

    pub(super) async fn read_log(&mut self, after_seq: u64) -> bool {
        let relay = &self.state.backends.relay;
        let read = relay.read_frames(&self.reply, after_seq).await;
        self.timeouts.record_relay(read.is_ok(), Instant::now());
        match read {
            Ok(frames) => {
                self.backlog.extend(frames);
                !self.backlog.is_empty()
            }
            Err(error) => {
                tracing::debug!(%error, message.id = %self.reply, "reply log not readable");
                false
            }
        }
    }

    pub(super) async fn read_store(&mut self) {
        let read = recovery::read_store(&self.state, &self.org, &self.reply).await;
        self.timeouts.record_store(read.is_ok(), Instant::now());
        match read {
            Ok(frames) => self.backlog.extend(frames),
            Err(error) => {
                tracing::debug!(%error, message.id = %self.reply, "stored reply not readable")
            }
        }
    }

    /// Hands the reply to another worker, unless the claim of its worker is valid.
    async fn request_takeover(&mut self) {
        let lease = self.state.backends.relay.remaining_lease(&self.reply).await;
        let now = Instant::now();
        match lease {
            Ok(None) => {}
            // Its heartbeats did not arrive here, or have not been read yet.
            Ok(Some(left)) => return self.timeouts.record_lease(left, now),
            Err(_) => return self.timeouts.record_relay(false, now),
        }
        let Some(job) = &self.job else { return };
        let attempt_min = self.assembly.highest_attempt() + 1;
        if publish_takeover(&self.state, job, attempt_min).await {
            self.timeouts.record_takeover(Instant::now());
        }
    }

    /// Returns true for readers and duplicates, which never publish the job again.
    pub(super) const fn only_follows(&self) -> bool {
        self.job.is_none()
    }

    /// Returns the time of the next poll: the end of an interval, or earlier if a takeover is due.
    pub(super) fn next_poll_after(&self, now: Instant) -> Instant {
        let regular = now + self.poll_interval();
        let takeover = self.timeouts.takeover_due().filter(|due| *due > now);
        takeover.map_or(regular, |due| due.min(regular))
    }

    fn poll_interval(&self) -> Duration {
        if self.gap_open {
            GAP_RETRY
        } else if self.timeouts.is_relay_unavailable() {
            Duration::from_millis(self.state.config.store_poll_ms)
        } else if self.only_follows() {
            Duration::from_millis(self.state.config.reader_poll_ms)
        } else {
            Duration::from_millis(self.state.config.log_poll_ms)
        }
    }
}
