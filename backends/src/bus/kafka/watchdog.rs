//! Finds assigned partitions that have records but deliver none: the last line of defense against
//! positions that a client loses in a rebalance. An idle partition has delivered nothing for an
//! interval, a lagging one is idle although records wait, and an unread one lags in three checks.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rdkafka::{
    Offset,
    consumer::{BaseConsumer, Consumer as _},
    error::KafkaResult,
};

use super::{context::MemberContext, ownership::IdlePartition, partitions};
use crate::bus::PartitionId;

/// Interval of the checks. Only partitions that delivered nothing meanwhile are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Consecutive checks in which an unread partition lags; about 15 seconds after its last record.
/// Checks are counted instead of time, which also passes while the process is suspended.
const LAGGING_CHECKS_MIN: u32 = 3;
/// Timeout of a request for offsets. A broker that does not answer says nothing about a partition.
const OFFSETS_TIMEOUT: Duration = Duration::from_secs(1);

type LagQuery = JoinHandle<KafkaResult<BTreeSet<IdlePartition>>>;

/// The watchdog of one consumer, called by its poll thread.
pub(super) struct ReadWatchdog {
    checked_at: Instant,
    /// The query of a check. It waits for the broker, which the poll thread must not do.
    query: Option<LagQuery>,
    /// Number of consecutive checks that found undelivered records.
    lagging_checks: BTreeMap<IdlePartition, u32>,
}

impl ReadWatchdog {
    pub(super) fn new() -> Self {
        Self {
            checked_at: Instant::now(),
            query: None,
            lagging_checks: BTreeMap::new(),
        }
    }

    /// Begins or ends a check when it is due. Returns a partition that has delivered none of its
    /// records in three consecutive checks.
    pub(super) fn check(
        &mut self,
        consumer: &Arc<BaseConsumer<MemberContext>>,
    ) -> Option<PartitionId> {
        let idle = || consumer.context().ownership.idle_partitions(CHECK_INTERVAL);
        if let Some(query) = self.query.take_if(|query| query.is_finished()) {
            // Another interval follows, also if the process was suspended during the query.
            self.checked_at = Instant::now();
            let lagging = query.join().ok()?.ok()?;
            return self.count(&lagging, &idle());
        }
        if self.query.is_none() && self.checked_at.elapsed() >= CHECK_INTERVAL {
            self.checked_at = Instant::now();
            let idle = idle();
            self.lagging_checks
                .retain(|partition, _| idle.contains(partition));
            if !idle.is_empty() {
                let consumer = consumer.clone();
                self.query = Some(thread::spawn(move || find_lagging(&consumer, idle)));
            }
        }
        None
    }

    /// Waits for a running query. It holds the consumer, which could not leave its group otherwise.
    pub(super) fn finish(self) {
        // A query that panicked holds nothing any more.
        drop(self.query.map(JoinHandle::join));
    }

    fn count(
        &mut self,
        lagging: &BTreeSet<IdlePartition>,
        idle: &BTreeSet<IdlePartition>,
    ) -> Option<PartitionId> {
        let counted = std::mem::take(&mut self.lagging_checks);
        // A partition that has delivered a record since the query began does not lag.
        self.lagging_checks = lagging
            .intersection(idle)
            .map(|partition| (*partition, counted.get(partition).unwrap_or(&0) + 1))
            .collect();
        let unread = self
            .lagging_checks
            .iter()
            .find(|(_, checks)| **checks >= LAGGING_CHECKS_MIN);
        unread.map(|(partition, _)| partition.partition)
    }
}

/// Returns the partitions that have records behind their position.
fn find_lagging(
    consumer: &BaseConsumer<MemberContext>,
    mut idle: BTreeSet<IdlePartition>,
) -> KafkaResult<BTreeSet<IdlePartition>> {
    let ends = offsets(consumer, &idle, Offset::End)?;
    idle.retain(|it| ends.get(&it.partition) > Some(&it.position));
    if !idle.is_empty() {
        // Records may have expired before they were delivered.
        let starts = offsets(consumer, &idle, Offset::Beginning)?;
        idle.retain(|it| {
            let start = starts.get(&it.partition);
            start.is_some() && ends.get(&it.partition) > start
        });
    }
    Ok(idle)
}

/// Asks the brokers for the first or last offsets of partitions, with one request per broker.
fn offsets(
    consumer: &BaseConsumer<MemberContext>,
    idle: &BTreeSet<IdlePartition>,
    which: Offset,
) -> KafkaResult<BTreeMap<PartitionId, u64>> {
    let names = &consumer.context().names;
    let partitions: Vec<PartitionId> = idle.iter().map(|idle| idle.partition).collect();
    let mut list = partitions::list(names, &partitions);
    list.set_all_offsets(which)?;
    let found = consumer.offsets_for_times(list, OFFSETS_TIMEOUT)?;
    let known = found.elements().into_iter().filter_map(|entry| {
        entry.error().ok()?;
        let Offset::Offset(offset) = entry.offset() else {
            return None;
        };
        let partition = partitions::partition(names, &entry)?;
        Some((partition, u64::try_from(offset).ok()?))
    });
    Ok(known.collect())
}

#[cfg(test)]
mod tests {
    use switchboard_schemas::topics::Topic;

    use super::*;

    fn idle(position: u64) -> IdlePartition {
        IdlePartition {
            partition: PartitionId {
                topic: Topic::Jobs,
                number: 3,
            },
            epoch: 1,
            position,
        }
    }

    #[test]
    fn partition_is_unread_after_consecutive_checks_at_one_position() {
        let mut watchdog = ReadWatchdog::new();
        let check = |position| {
            let lagging = BTreeSet::from([idle(position)]);
            watchdog.count(&lagging, &lagging)
        };
        let unread = Some(idle(8).partition);
        assert_eq!([7, 7, 8, 8, 8].map(check), [None, None, None, None, unread]);
    }

    #[test]
    fn record_delivered_during_a_check_ends_the_count() {
        let mut watchdog = ReadWatchdog::new();
        let lagging = BTreeSet::from([idle(7)]);
        let no_longer_idle = BTreeSet::new();
        let found = [&lagging, &lagging, &no_longer_idle, &lagging, &lagging]
            .map(|idle| watchdog.count(&lagging, idle));
        assert_eq!(found, [None; 5]);
    }
}
