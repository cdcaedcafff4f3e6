//! Consumers of the embedded bus, which read from their partitions in turn.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;

use super::{SharedLog, file, groups::MemberSeat, tails::TailRead};
use crate::bus::{BusConsumer, BusError, BusEvent, CommitMark, IncomingRecord, PartitionId};

/// Number of records fetched at once, and the maximum held for one partition.
const PREFETCH_RECORDS_MAX: usize = 32;
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A consumer of the embedded bus.
pub(super) struct EmbeddedConsumer {
    membership: GroupMembership,
    owned: BTreeMap<PartitionId, OwnedPartition>,
    /// Partition that delivered last; the others come first.
    last: Option<PartitionId>,
}

/// The membership in a group, ended on drop whether or not the consumer was closed.
struct GroupMembership {
    shared: Arc<SharedLog>,
    seat: MemberSeat,
}

/// A partition whose assignment the member has received.
struct OwnedPartition {
    epoch: u64,
    position: u64,
    /// Offset after the newest record when the assignment arrived.
    fresh_from: u64,
    paused: bool,
    fetched: VecDeque<IncomingRecord>,
}

impl EmbeddedConsumer {
    /// Creates a consumer for a group member.
    pub(super) fn new(shared: Arc<SharedLog>, seat: MemberSeat) -> Self {
        Self {
            membership: GroupMembership { shared, seat },
            owned: BTreeMap::new(),
            last: None,
        }
    }

    fn apply(&mut self, event: &BusEvent) {
        match event {
            BusEvent::Assigned {
                partition,
                epoch,
                committed,
            } => {
                let position = committed.as_ref().map_or(0, |mark| mark.next_offset);
                let owned = OwnedPartition {
                    epoch: *epoch,
                    position,
                    fresh_from: self.membership.shared.tails.end(*partition),
                    paused: false,
                    fetched: VecDeque::new(),
                };
                self.owned.insert(*partition, owned);
            }
            BusEvent::Revoked { partition } => drop(self.owned.remove(partition)),
            BusEvent::Record(_) => {}
        }
    }

    /// Returns the next record in memory, or the partition whose records must be read from the file
    /// first.
    fn take(&mut self) -> Option<NextRecord> {
        let after = self.last.map_or(Bound::Unbounded, Bound::Excluded);
        let behind = self.last.map_or(Bound::Unbounded, Bound::Included);
        let turn = self
            .owned
            .range((after, Bound::Unbounded))
            .chain(self.owned.range((Bound::Unbounded, behind)));
        let turn: Vec<PartitionId> = turn
            .filter(|(_, owned)| !owned.paused)
            .map(|(partition, _)| *partition)
            .collect();
        turn.into_iter()
            .find_map(|partition| self.take_from(partition))
    }

    fn take_from(&mut self, partition: PartitionId) -> Option<NextRecord> {
        let owned = self.owned.get_mut(&partition)?;
        if owned.fetched.is_empty() {
            match self
                .membership
                .shared
                .tails
                .read(partition, owned.position, PREFETCH_RECORDS_MAX)
            {
                TailRead::End => return None,
                TailRead::InFile { below } => {
                    return Some(NextRecord::InFile {
                        partition,
                        from: owned.position,
                        below,
                    });
                }
                TailRead::Records(records) => owned.fetch(records),
            }
        }
        let record = owned.fetched.pop_front()?;
        self.last = Some(partition);
        Some(NextRecord::Record(record))
    }

    async fn read_file(
        &mut self,
        partition: PartitionId,
        from: u64,
        below: u64,
    ) -> Result<(), BusError> {
        let query = move |file: &rusqlite::Connection| {
            file::read(file, partition, from, below, PREFETCH_RECORDS_MAX)
        };
        let records = self.membership.shared.read(query).await?;
        if let Some(owned) = self.owned.get_mut(&partition) {
            // A short page means that the missing records below the tail have expired or were
            // compacted.
            let exhausted = records.len() < PREFETCH_RECORDS_MAX;
            owned.fetch(records);
            if exhausted {
                owned.position = below;
            }
        }
        Ok(())
    }
}

enum NextRecord {
    Record(IncomingRecord),
    InFile {
        partition: PartitionId,
        from: u64,
        below: u64,
    },
}

impl OwnedPartition {
    fn fetch(&mut self, records: Vec<IncomingRecord>) {
        self.position = records
            .last()
            .map_or(self.position, |newest| newest.offset + 1);
        self.fetched
            .extend(records.into_iter().map(|record| IncomingRecord {
                epoch: self.epoch,
                maybe_repeated: record.offset < self.fresh_from,
                ..record
            }));
    }

    /// Returns the offset of the next record to deliver.
    fn next_delivered(&self) -> u64 {
        self.fetched
            .front()
            .map_or(self.position, |record| record.offset)
    }
}

#[async_trait]
impl BusConsumer for EmbeddedConsumer {
    async fn next(&mut self) -> Result<BusEvent, BusError> {
        loop {
            // Deliver events before records: after a revocation no record of the partition may
            // follow.
            if let Some(event) = self.membership.seat.mailbox.pop() {
                self.apply(&event);
                return Ok(event);
            }
            match self.take() {
                Some(NextRecord::Record(record)) => return Ok(BusEvent::Record(record)),
                Some(NextRecord::InFile {
                    partition,
                    from,
                    below,
                }) => self.read_file(partition, from, below).await?,
                None => self.membership.seat.mailbox.bell.notified().await,
            }
        }
    }

    fn commit(&mut self, partition: PartitionId, mark: CommitMark) {
        if let Some(owned) = self.owned.get(&partition) {
            self.membership.shared.groups.commit(
                &self.membership.seat,
                partition,
                owned.epoch,
                mark,
            );
        }
    }

    fn pause(&mut self, partition: PartitionId) {
        self.owned
            .entry(partition)
            .and_modify(|owned| owned.paused = true);
    }

    fn resume(&mut self, partition: PartitionId) {
        self.owned
            .entry(partition)
            .and_modify(|owned| owned.paused = false);
    }

    fn lag(&self) -> Vec<(PartitionId, u64)> {
        let GroupMembership { shared, seat } = &self.membership;
        let behind = |(partition, owned): (&PartitionId, &OwnedPartition)| {
            let done = shared
                .groups
                .mark(&seat.group, *partition)
                .map_or(owned.next_delivered(), |mark| mark.next_offset);
            (
                *partition,
                shared.tails.end(*partition).saturating_sub(done),
            )
        };
        self.owned.iter().map(behind).collect()
    }

    async fn close(self: Box<Self>) -> Result<(), BusError> {
        let shared = self.membership.shared.clone();
        drop(self);
        shared.writer.flush(CLOSE_TIMEOUT).await
    }
}

impl Drop for GroupMembership {
    fn drop(&mut self) {
        self.shared
            .groups
            .leave(&self.seat, &self.shared.partitions());
    }
}
