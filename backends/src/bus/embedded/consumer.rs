//! A member of a group of the embedded bus: pulls from the partitions it owns, in turn.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;

use super::{Shared, file, groups::Seat, tails::Read};
use crate::bus::{BusConsumer, BusError, BusEvent, CommitMark, IncomingRecord, PartitionId};

/// Records fetched at once, and the most that are held for one partition.
const PREFETCH_RECORDS_MAX: usize = 32;
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// See [`crate::bus::BusConsumer`].
pub(super) struct EmbeddedConsumer {
    membership: Membership,
    owned: BTreeMap<PartitionId, Owned>,
    /// The partition that delivered last; the others come first.
    last: Option<PartitionId>,
}

/// Leaves the group when it is dropped, closed or not.
struct Membership {
    shared: Arc<Shared>,
    seat: Seat,
}

/// A partition that this member was told it owns.
struct Owned {
    epoch: u64,
    position: u64,
    paused: bool,
    fetched: VecDeque<IncomingRecord>,
}

impl EmbeddedConsumer {
    /// A consumer of this seat.
    pub(super) fn new(shared: Arc<Shared>, seat: Seat) -> Self {
        Self {
            membership: Membership { shared, seat },
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
                let owned = Owned {
                    epoch: *epoch,
                    position,
                    paused: false,
                    fetched: VecDeque::new(),
                };
                self.owned.insert(*partition, owned);
            }
            BusEvent::Revoked { partition } => drop(self.owned.remove(partition)),
            BusEvent::Record(_) => {}
        }
    }

    /// The next record of what is fetched or in memory, or where the file must be read first.
    fn take(&mut self) -> Option<Taken> {
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

    fn take_from(&mut self, partition: PartitionId) -> Option<Taken> {
        let owned = self.owned.get_mut(&partition)?;
        if owned.fetched.is_empty() {
            match self
                .membership
                .shared
                .tails
                .read(partition, owned.position, PREFETCH_RECORDS_MAX)
            {
                Read::End => return None,
                Read::InFile { below } => {
                    return Some(Taken::InFile {
                        partition,
                        from: owned.position,
                        below,
                    });
                }
                Read::Records(records) => owned.fetch(records),
            }
        }
        let record = owned.fetched.pop_front()?;
        self.last = Some(partition);
        Some(Taken::Record(record))
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
            // Fewer than asked for: what is missing below the tail has expired or was compacted.
            let exhausted = records.len() < PREFETCH_RECORDS_MAX;
            owned.fetch(records);
            if exhausted {
                owned.position = below;
            }
        }
        Ok(())
    }
}

enum Taken {
    Record(IncomingRecord),
    InFile {
        partition: PartitionId,
        from: u64,
        below: u64,
    },
}

impl Owned {
    fn fetch(&mut self, records: Vec<IncomingRecord>) {
        self.position = records
            .last()
            .map_or(self.position, |newest| newest.offset + 1);
        self.fetched
            .extend(records.into_iter().map(|record| IncomingRecord {
                epoch: self.epoch,
                ..record
            }));
    }

    /// Offset of the next record that is delivered.
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
            // Events come before records: after a revoke nothing of that partition is delivered any more.
            if let Some(event) = self.membership.seat.mailbox.pop() {
                self.apply(&event);
                return Ok(event);
            }
            match self.take() {
                Some(Taken::Record(record)) => return Ok(BusEvent::Record(record)),
                Some(Taken::InFile {
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
        let Membership { shared, seat } = &self.membership;
        let behind = |(partition, owned): (&PartitionId, &Owned)| {
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

impl Drop for Membership {
    fn drop(&mut self) {
        self.shared
            .groups
            .leave(&self.seat, &self.shared.partitions());
    }
}
