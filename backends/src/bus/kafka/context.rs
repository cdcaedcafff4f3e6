//! Callbacks of librdkafka: rebalances and statistics, on the poll thread while it runs.
//!
//! When a partition is assigned, its mark and its end are fetched here, before fetching can begin,
//! so that the mark is reported before the first record. When a partition is revoked, no further
//! mark is accepted, and the last one is committed before the next owner can ask for it. Both waits
//! are bounded; heartbeats continue meanwhile on a thread of their own.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rdkafka::{
    ClientContext, Offset, Statistics, TopicPartitionList,
    consumer::{BaseConsumer, Consumer as _, ConsumerContext, RebalanceProtocol},
    error::{KafkaError, KafkaResult, RDKafkaErrorCode},
    types::RDKafkaRespErr,
};

use super::{
    committer::OffsetCommitter,
    names::ClusterNames,
    ownership::{PartitionMark, PartitionOwnership},
    partitions,
};
use crate::bus::{BusError, BusEvent, PartitionId};

/// Timeout of one request for marks or ends.
const FETCH_MARKS_TIMEOUT: Duration = Duration::from_secs(2);
/// Time for which a request for marks is repeated; a coordinator that has just started refuses the
/// first ones. Without marks the consumer leaves its group and is joined again.
const FETCH_MARKS_MAX: Duration = Duration::from_secs(6);
const FETCH_MARKS_PAUSE: Duration = Duration::from_millis(200);

/// The context of one consumer, called by librdkafka.
pub(super) struct MemberContext {
    pub(super) names: ClusterNames,
    pub(super) ownership: Arc<PartitionOwnership>,
    /// `true` while all partitions are paused because the handle is not polled.
    pub(super) stalled: AtomicBool,
    events: Mutex<Vec<BusEvent>>,
    /// Set when an assignment could not be started: the consumer has to be replaced.
    failure: Mutex<Option<BusError>>,
    committer: OnceLock<OffsetCommitter>,
}

impl MemberContext {
    /// Creates a context; [`Self::start_committer`] completes it.
    pub(super) fn new(names: ClusterNames, ownership: Arc<PartitionOwnership>) -> Self {
        Self {
            names,
            ownership,
            stalled: AtomicBool::new(false),
            events: Mutex::default(),
            failure: Mutex::default(),
            committer: OnceLock::new(),
        }
    }

    /// Starts the thread that commits offsets of this context's consumer.
    pub(super) fn start_committer(
        &self,
        consumer: &Arc<BaseConsumer<Self>>,
    ) -> Result<(), BusError> {
        let committer = OffsetCommitter::start(Arc::downgrade(consumer))?;
        // A context has one consumer for life, so that this is called once.
        drop(self.committer.set(committer));
        Ok(())
    }

    pub(super) fn committer(&self) -> Option<&OffsetCommitter> {
        self.committer.get()
    }

    /// Returns the events since the last call.
    pub(super) fn take_events(&self) -> Vec<BusEvent> {
        std::mem::take(&mut self.events.lock())
    }

    /// Returns the failure of an assignment.
    pub(super) fn take_failure(&self) -> Option<BusError> {
        self.failure.lock().take()
    }

    /// Reports the partitions with their marks, and sets the offsets from which they are fetched.
    ///
    /// Without offsets librdkafka asks for them itself, and a partition whose request meets a
    /// coordinator that has moved or restarted is never fetched:
    /// <https://github.com/confluentinc/librdkafka/issues/5586>
    fn assigned(&self, consumer: &BaseConsumer<Self>, list: &mut TopicPartitionList) {
        if list.count() == 0 {
            return;
        }
        let fetched = fetch_again(|| consumer.committed_offsets(list.clone(), FETCH_MARKS_TIMEOUT));
        let fetched =
            fetched.and_then(|marks| Ok((marks, fetch_again(|| fetch_ends(consumer, list))?)));
        let (marks, ends) = match fetched {
            Ok(fetched) => fetched,
            Err(error) => {
                let reason = format!("marks of new partitions not fetched: {error}");
                *self.failure.lock() = Some(BusError::Unavailable(reason));
                return;
            }
        };
        for entry in marks.elements() {
            let offset = match entry.offset() {
                Offset::Offset(offset) => Offset::Offset(offset),
                _ => Offset::Beginning,
            };
            let set = list.set_partition_offset(entry.topic(), entry.partition(), offset);
            report(set, "offset of a new partition");
            if let Some(partition) = partitions::partition(&self.names, &entry) {
                let committed = partitions::committed(&entry);
                let end = ends.find_partition(entry.topic(), entry.partition());
                let end = end.and_then(|end| end.offset().to_raw());
                let end = end.and_then(|end| u64::try_from(end).ok());
                // Without an end every record may be a repeated one.
                let fresh_from = end.unwrap_or(u64::MAX);
                let epoch = self
                    .ownership
                    .assign(partition, committed.clone(), fresh_from);
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
        if !consumer.assignment_lost()
            && let Some(committer) = self.committer()
        {
            committer.commit_last(marks);
        }
        self.events.lock().extend(
            lost.into_iter()
                .map(|partition| BusEvent::Revoked { partition }),
        );
    }

    /// Starts or stops fetching the partitions of a rebalance.
    fn apply_rebalance(
        &self,
        consumer: &BaseConsumer<Self>,
        list: &TopicPartitionList,
        is_assignment: bool,
    ) {
        let is_cooperative = matches!(
            consumer.rebalance_protocol(),
            RebalanceProtocol::Cooperative
        );
        let result = match (is_assignment, is_cooperative) {
            (true, true) => consumer.incremental_assign(list),
            (true, false) => consumer.assign(list),
            (false, true) => consumer.incremental_unassign(list),
            (false, false) => consumer.unassign(),
        };
        report(result, "rebalance");
    }

    fn reset_pauses(&self, consumer: &BaseConsumer<Self>, list: &TopicPartitionList) {
        // A pause in librdkafka survives revocation and reassignment.
        let stalled = self.stalled.load(Ordering::Relaxed);
        let result = if stalled {
            consumer.pause(list)
        } else {
            consumer.resume(list)
        };
        report(result, "pause state of new partitions");
    }
}

/// Returns the offset after the newest record of each partition.
fn fetch_ends(
    consumer: &BaseConsumer<MemberContext>,
    list: &TopicPartitionList,
) -> KafkaResult<TopicPartitionList> {
    let mut ends = list.clone();
    ends.set_all_offsets(Offset::End)?;
    consumer.offsets_for_times(ends, FETCH_MARKS_TIMEOUT)
}

/// Fetches offsets of partitions, again while one of them is refused. Fails if that takes too long.
fn fetch_again(
    fetch: impl Fn() -> KafkaResult<TopicPartitionList>,
) -> KafkaResult<TopicPartitionList> {
    let deadline = Instant::now() + FETCH_MARKS_MAX;
    loop {
        let known = fetch().and_then(|marks| {
            let refused = marks.elements().iter().try_for_each(|entry| entry.error());
            refused.map(|()| marks)
        });
        match known {
            Err(error) if Instant::now() < deadline => {
                tracing::warn!(%error, "marks of new partitions not fetched, trying again");
                thread::sleep(FETCH_MARKS_PAUSE);
            }
            known => return known,
        }
    }
}

/// Logs a call that librdkafka refused; `what` names the call.
pub(super) fn report(result: KafkaResult<()>, what: &str) {
    if let Err(error) = result {
        tracing::warn!(%error, what, "kafka consumer");
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
    fn rebalance(
        &self,
        consumer: &BaseConsumer<Self>,
        event: RDKafkaRespErr,
        list: &mut TopicPartitionList,
    ) {
        match event {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS => {
                self.assigned(consumer, list);
                self.apply_rebalance(consumer, list, true);
                if list.count() > 0 {
                    self.reset_pauses(consumer, list);
                }
            }
            RDKafkaRespErr::RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS => {
                self.revoked(consumer, list);
                self.apply_rebalance(consumer, list, false);
            }
            error => {
                tracing::warn!(error = ?RDKafkaErrorCode::from(error), "kafka rebalance");
                self.apply_rebalance(consumer, list, false);
            }
        }
    }
}
