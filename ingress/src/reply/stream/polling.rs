//! Polls of one reply: reads of its log and its record in the store, and takeovers.

use std::{fmt::Display, sync::Arc, time::Duration};

use switchboard_schemas::reply_event::Frame;
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
        let every = if self.polls_often {
            READER_FULL_READ_EVERY
        } else {
            FULL_READ_EVERY
        };
        let from_start = self.empty_polls % every == every - 1;
        self.empty_polls += 1;
        let read_at = self.poll_log(from_start).await;
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
            self.poll_store().await;
        }
        let now = Instant::now();
        self.next_poll = self.next_poll_after(read_at.unwrap_or(now)).max(now);
        if !self.backlog.is_empty() {
            return None;
        }
        match self.timeouts.decide(Instant::now()) {
            TimeoutDecision::Wait => None,
            TimeoutDecision::NeverStarted if self.is_claimed().await => None,
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

    /// Reads new frames, or all of them. Streams that poll often share their reads, and wake up
    /// together a poll interval after the returned time.
    async fn poll_log(&mut self, from_start: bool) -> Option<Instant> {
        let after_seq = if from_start {
            0
        } else {
            self.assembly.logged_seq()
        };
        if !self.polls_often {
            self.read_log(after_seq).await;
            return None;
        }
        let (reads, interval) = (self.subscription.reads(), self.poll_interval());
        let (shared, max_age) = if from_start {
            (&reads.whole_log, interval * READER_FULL_READ_EVERY)
        } else {
            (&reads.log_end, interval)
        };
        let (relay, reply) = (Arc::clone(&self.state.backends.relay), self.reply.clone());
        let read = async move { relay.read_frames(&reply, after_seq).await };
        let read = shared.frames_after(after_seq, max_age, read).await;
        self.record_log(read.frames);
        Some(read.at)
    }

    async fn poll_store(&mut self) {
        if !self.polls_often {
            return self.read_store().await;
        }
        let interval = if self.timeouts.is_relay_unavailable() {
            self.poll_interval()
        } else {
            self.poll_interval() * READER_FULL_READ_EVERY
        };
        let shared = &self.subscription.reads().store;
        let (state, org, reply) = (self.state.clone(), self.org.clone(), self.reply.clone());
        let read = async move { recovery::read_store(&state, &org, &reply).await };
        let read = shared.frames_after(0, interval, read).await;
        self.record_stored(read.frames);
    }

    pub(super) async fn read_log(&mut self, after_seq: u64) -> bool {
        let relay = &self.state.backends.relay;
        let read = relay.read_frames(&self.reply, after_seq).await;
        self.record_log(read)
    }

    /// Records the result of reading the log. Returns true if frames wait to be applied.
    fn record_log(&mut self, read: Result<Vec<Frame>, impl Display>) -> bool {
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
        self.record_stored(read);
    }

    fn record_stored(&mut self, read: Result<Vec<Frame>, impl Display>) {
        self.timeouts.record_store(read.is_ok(), Instant::now());
        match read {
            Ok(frames) => self.backlog.extend(frames),
            Err(error) => {
                tracing::debug!(%error, message.id = %self.reply, "stored reply not readable")
            }
        }
    }

    /// Hands the reply to another worker, unless its worker is alive.
    async fn request_takeover(&mut self) {
        if self.is_claimed().await || self.timeouts.is_relay_unavailable() {
            return;
        }
        let Some(job) = &self.job else { return };
        let attempt_min = self.assembly.highest_attempt() + 1;
        if publish_takeover(&self.state, job, attempt_min).await {
            self.timeouts.record_takeover(Instant::now());
        }
    }

    /// Returns true if a worker has a valid claim, although its heartbeats did not arrive here or
    /// have not been read yet. Records its sign of life, or that the relay is unavailable.
    async fn is_claimed(&mut self) -> bool {
        let lease = self.state.backends.relay.remaining_lease(&self.reply).await;
        let now = Instant::now();
        match lease {
            Ok(Some(left)) => self.timeouts.record_lease(left, now),
            Ok(None) => {}
            Err(_) => self.timeouts.record_relay(false, now),
        }
        matches!(lease, Ok(Some(_)))
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
        } else if self.polls_often {
            Duration::from_millis(self.state.config.reader_poll_ms)
        } else {
            Duration::from_millis(self.state.config.log_poll_ms)
        }
    }
}
