//! Callbacks of librdkafka: rebalances, results of commits and statistics, all on the poll thread.
//!
//! When a partition is assigned, its mark is fetched here, before fetching can begin, so that the
//! mark is reported before the first record. When a partition is revoked, no further mark is
//! accepted, and the last one is committed before the next owner can ask for it. Both waits are
//! bounded; heartbeats continue meanwhile on a thread of their own.

use std::{
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, Ordering},
        mpsc::sync_channel,
    },
    time::Duration,
};

use parking_lot::Mutex;
use rdkafka::{
    ClientContext, Statistics, TopicPartitionList,
    consumer::{BaseConsumer, CommitMode, Consumer as _, ConsumerContext, Rebalance},
    error::{KafkaError, KafkaResult},
};

use super::{
    names::ClusterNames,
    ownership::{PartitionMark, PartitionOwnership},
    partitions,
};
use crate::bus::{BusEvent, PartitionId};

/// Timeout of fetching a mark. Without it the partition starts anyway, and records finished above
/// its offset run again.
const FETCH_MARK_TIMEOUT: Duration = Duration::from_secs(2);
const LAST_COMMIT_TIMEOUT: Duration = Duration::from_secs(1);

/// The context of one consumer, called by librdkafka.
pub(super) struct MemberContext {
    pub(super) names: ClusterNames,
    pub(super) ownership: Arc<PartitionOwnership>,
    /// `true` while all partitions are paused because the handle is not polled.
    pub(super) stalled: AtomicBool,
    events: Mutex<Vec<BusEvent>>,
    consumer: OnceLock<Weak<BaseConsumer<MemberContext>>>,
}

impl MemberContext {
    /// Creates a context without a consumer; see [`Self::attach`].
    pub(super) fn new(names: ClusterNames, ownership: Arc<PartitionOwnership>) -> Self {
        let (stalled, events, consumer) =
            (AtomicBool::new(false), Mutex::default(), OnceLock::new());
        Self {
            names,
            ownership,
            stalled,
            events,
            consumer,
        }
    }

    /// Attaches the consumer, so that callbacks can commit on another thread.
    pub(super) fn attach(&self, consumer: &Arc<BaseConsumer<Self>>) {
        // A context has one consumer for life, so that it is attached once.
        drop(self.consumer.set(Arc::downgrade(consumer)));
    }

    /// Returns the events since the last call.
    pub(super) fn take_events(&self) -> Vec<BusEvent> {
        std::mem::take(&mut self.events.lock())
    }

    /// Commits marks and waits briefly for the result.
    pub(super) fn commit_last(&self, marks: &[PartitionMark]) {
        let consumer = self
            .consumer
            .get()
            .and_then(Weak::upgrade)
            .filter(|_| !marks.is_empty());
        let Some(consumer) = consumer else { return };
        let list = partitions::commit_list(&self.names, marks);
        let (sender, answer) = sync_channel(1);
        // The call has no timeout of its own: without a coordinator it blocks for too long.
        std::thread::spawn(move || {
            let result = consumer.commit(&list, CommitMode::Sync);
            drop(consumer);
            sender.send(result)
        });
        match answer.recv_timeout(LAST_COMMIT_TIMEOUT) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "last marks not written; their records will be delivered again")
            }
            Err(_) => tracing::warn!(
                "last marks not written in time; their records may be delivered again"
            ),
        }
    }

    fn assigned(&self, consumer: &BaseConsumer<Self>, list: &TopicPartitionList) {
        if list.count() == 0 {
            return;
        }
        let fetched = consumer.committed_offsets(list.clone(), FETCH_MARK_TIMEOUT);
        let fetched = fetched.inspect_err(
            |error| tracing::warn!(%error, "marks not fetched; finished jobs may repeat"),
        );
        let list = fetched.as_ref().unwrap_or(list);
        for entry in list.elements() {
            if let Some(partition) = partitions::partition(&self.names, &entry) {
                let committed = partitions::committed(&entry);
                let epoch = self.ownership.assign(partition, committed.clone());
                self.events.lock().push(BusEvent::Assigned {
                    partition,
                    epoch,
                    committed,
                });
            }
        }
    }

    fn revoked(&self, consumer: &BaseConsumer<Self>, list: &TopicPartitionList) {
        let lost: Vec<PartitionId> = list
            .elements()
            .iter()
            .filter_map(|entry| partitions::partition(&self.names, entry))
            .collect();
        let marks: Vec<PartitionMark> = lost
            .iter()
            .filter_map(|partition| self.ownership.revoke(*partition))
            .collect();
        // Partitions that are already lost belong to another member: the broker would reject the
        // commit.
        if !consumer.assignment_lost() {
            self.commit_last(&marks);
        }
        self.events.lock().extend(
            lost.into_iter()
                .map(|partition| BusEvent::Revoked { partition }),
        );
    }

    fn reset_pauses(&self, consumer: &BaseConsumer<Self>, list: &TopicPartitionList) {
        // A pause in librdkafka survives revocation and reassignment.
        let stalled = self.stalled.load(Ordering::Relaxed);
        let result = if stalled {
            consumer.pause(list)
        } else {
            consumer.resume(list)
        };
        if let Err(error) = result {
            tracing::warn!(%error, "pause state of new partitions not set");
        }
    }
}

impl ClientContext for MemberContext {
    fn stats(&self, statistics: Statistics) {
        for (name, topic) in &statistics.topics {
            for (number, partition) in &topic.partitions {
                let id = partitions::partition_id(&self.names, name, *number);
                if let Some((id, end)) = id.zip(u64::try_from(partition.hi_offset).ok()) {
                    self.ownership.set_end(id, end);
                }
            }
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        // The client recovers by itself; fatal errors are returned by the poll.
        tracing::debug!(%error, reason, "kafka client");
    }
}

impl ConsumerContext for MemberContext {
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        match rebalance {
            Rebalance::Assign(list) => self.assigned(consumer, list),
            Rebalance::Revoke(list) => self.revoked(consumer, list),
            Rebalance::Error(error) => tracing::warn!(%error, "kafka rebalance"),
        }
    }

    fn post_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Assign(list) = rebalance
            && list.count() > 0
        {
            self.reset_pauses(consumer, list);
        }
    }

    fn commit_callback(&self, result: KafkaResult<()>, offsets: &TopicPartitionList) {
        for entry in offsets.elements() {
            if let Some(partition) = partitions::partition(&self.names, &entry)
                && (result.is_err() || entry.error().is_err())
            {
                tracing::debug!(%partition, "mark not written, trying again");
                self.ownership.write_again(partition);
            }
        }
    }
}
