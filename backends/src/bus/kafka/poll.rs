//! The poll thread of a Kafka consumer.
//!
//! It does nothing but poll and never waits for the handle: a consumer that is not polled leaves
//! its group, and rebalances are served only by polling.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use rdkafka::{
    consumer::{BaseConsumer, Consumer as _},
    error::KafkaError,
};
use tokio::sync::oneshot;

use super::{
    committer::OffsetCommitter,
    context::{MemberContext, report},
    outbox::EventOutbox,
    partitions,
    watchdog::ReadWatchdog,
};
use crate::bus::{BusError, BusEvent, IncomingRecord, PartitionId};

/// Poll timeout, and so the maximum delay until a pause, a resume or a close takes effect.
const POLL_INTERVAL: Duration = Duration::from_millis(25);
/// Poll timeout while the handle is behind; short, so that the handle does not run dry.
const STALLED_POLL_INTERVAL: Duration = Duration::from_millis(2);
const COMMIT_INTERVAL: Duration = Duration::from_millis(500);

/// The state of the poll thread.
pub(super) struct PollThread {
    consumer: Arc<BaseConsumer<MemberContext>>,
    outbox: EventOutbox,
    watchdog: ReadWatchdog,
    last_commit: Instant,
    /// Completed once the consumer has left its group, or will do so when its last commit ends.
    closed: oneshot::Sender<()>,
}

impl PollThread {
    /// Starts the thread. It ends when the receiver of the outbox is dropped.
    pub(super) fn start(
        consumer: Arc<BaseConsumer<MemberContext>>,
        outbox: EventOutbox,
        closed: oneshot::Sender<()>,
    ) -> Result<(), BusError> {
        let poller = Self {
            consumer,
            outbox,
            watchdog: ReadWatchdog::new(),
            last_commit: Instant::now(),
            closed,
        };
        let thread = std::thread::Builder::new()
            .name("bus-poll".to_owned())
            .spawn(move || poller.run());
        thread
            .map(drop)
            .map_err(|error| BusError::Fatal(format!("poll thread: {error}")))
    }

    fn run(mut self) {
        while !self.outbox.is_closed() {
            let polled = self.poll();
            // A rebalance served by this poll precedes the record that it returned.
            self.consumer
                .context()
                .take_events()
                .into_iter()
                .for_each(|event| self.outbox.push(event));
            let polled = match self.consumer.context().take_failure() {
                Some(failure) => Err(failure),
                None => polled,
            };
            match polled {
                Ok(Some(record)) => self.deliver(record),
                Ok(None) => {}
                Err(error) => {
                    self.outbox.fail(error);
                    break;
                }
            }
            self.control_flow();
            self.apply_pauses();
            self.commit_due();
            if let Some(partition) = self.unread_partition() {
                self.outbox.fail(BusError::PartitionUnread(partition));
                break;
            }
        }
        self.close();
    }

    fn poll(&self) -> Result<Option<IncomingRecord>, BusError> {
        let interval = if self.is_stalled() {
            STALLED_POLL_INTERVAL
        } else {
            POLL_INTERVAL
        };
        match self.consumer.poll(interval) {
            None => Ok(None),
            Some(Ok(message)) => Ok(partitions::copy(&self.consumer.context().names, &message)),
            Some(Err(KafkaError::MessageConsumptionFatal(code))) => {
                Err(BusError::Fatal(code.to_string()))
            }
            Some(Err(error)) => {
                tracing::debug!(%error, "kafka poll; the client goes on by itself");
                Ok(None)
            }
        }
    }

    fn deliver(&mut self, record: IncomingRecord) {
        // A record without an epoch is left over from a revoked partition.
        let ownership = &self.consumer.context().ownership;
        if let Some(record) = ownership.deliver(record) {
            self.outbox.push(BusEvent::Record(record));
        }
    }

    /// Pauses fetching while the handle is behind, and resumes when half of the backlog is taken.
    /// Each pause discards what librdkafka has fetched, so that pauses must be rare.
    fn control_flow(&mut self) {
        self.outbox.flush();
        let ownership = &self.consumer.context().ownership;
        if !self.is_stalled() && self.outbox.is_full() {
            self.set_stalled(true);
            self.steer(&ownership.partitions(), true);
        } else if self.is_stalled() && self.outbox.has_room() {
            self.set_stalled(false);
            ownership.restart_idle_time();
            self.steer(&ownership.running(), false);
        }
    }

    fn unread_partition(&mut self) -> Option<PartitionId> {
        // Nothing is fetched during a stall.
        if self.is_stalled() {
            return None;
        }
        self.watchdog.check(&self.consumer)
    }

    fn apply_pauses(&self) {
        for (partition, paused) in self.consumer.context().ownership.take_pause_changes() {
            // During a stall all partitions are paused; requested changes take effect at its end.
            if !self.is_stalled() {
                self.steer(&[partition], paused);
            }
        }
    }

    fn steer(&self, partitions: &[PartitionId], pause: bool) {
        let list = partitions::list(&self.consumer.context().names, partitions);
        let result = if pause {
            self.consumer.pause(&list)
        } else {
            self.consumer.resume(&list)
        };
        report(result, "pause or resume");
    }

    fn commit_due(&mut self) {
        if self.last_commit.elapsed() < COMMIT_INTERVAL {
            return;
        }
        self.last_commit = Instant::now();
        let context = self.consumer.context();
        let idle = |committer: &&OffsetCommitter| !committer.is_busy();
        let Some(committer) = context.committer().filter(idle) else {
            return;
        };
        let marks = context.ownership.take_unwritten();
        if !marks.is_empty() && !committer.commit(marks) {
            let reason = "the commit thread has ended".to_owned();
            self.outbox.fail(BusError::Unavailable(reason));
        }
    }

    fn close(self) {
        let context = self.consumer.context();
        let owned = context.ownership.partitions();
        let marks: Vec<_> = owned
            .into_iter()
            .filter_map(|partition| context.ownership.revoke(partition))
            .collect();
        if let Some(committer) = context.committer() {
            committer.commit_last(marks);
        }
        self.watchdog.finish();
        // Leave the group, which blocks until the broker has answered or the session has expired. A
        // commit that is still running does so when it ends.
        drop(self.consumer);
        // Nobody waits if the handle was dropped without being closed.
        _ = self.closed.send(());
    }

    fn is_stalled(&self) -> bool {
        self.consumer.context().stalled.load(Ordering::Relaxed)
    }

    fn set_stalled(&self, stalled: bool) {
        self.consumer
            .context()
            .stalled
            .store(stalled, Ordering::Relaxed);
    }
}
