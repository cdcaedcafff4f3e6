//! The partitions that are ours: which assignment, and how far each is done.

use std::collections::HashMap;

use switchboard_backends::bus::{
    CommitMark, IncomingRecord, PartitionId,
    ledger::{OffsetLedger, OffsetState},
};

/// Where a record lies, and under which assignment it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    /// Partition.
    pub(crate) partition: PartitionId,
    /// Assignment.
    pub(crate) epoch: u64,
    /// Offset.
    pub(crate) offset: u64,
}

/// What is to be told to the consumer after a step.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// How far the partition is done, if that moved.
    pub(crate) mark: Option<CommitMark>,
    /// Delivery is to stop (`true`) or to go on (`false`).
    pub(crate) pause: Option<bool>,
}

/// All owned partitions.
#[derive(Default)]
pub(crate) struct Partitions {
    owned: HashMap<PartitionId, Owned>,
}

struct Owned {
    epoch: u64,
    ledger: OffsetLedger,
    paused: bool,
}

impl Partitions {
    /// A partition became ours.
    pub(crate) fn assign(
        &mut self,
        partition: PartitionId,
        epoch: u64,
        committed: Option<&CommitMark>,
    ) {
        self.owned.insert(
            partition,
            Owned {
                epoch,
                ledger: OffsetLedger::resume(committed),
                paused: false,
            },
        );
    }

    /// A partition is another's.
    pub(crate) fn revoke(&mut self, partition: PartitionId) {
        self.owned.remove(&partition);
    }

    /// Whether what came with this ticket may still be settled by us.
    pub(crate) fn owns(&self, ticket: &Ticket) -> bool {
        self.owned
            .get(&ticket.partition)
            .is_some_and(|owned| owned.epoch == ticket.epoch)
    }

    /// Notes a delivered record; the ticket is none where there is nothing to do for it.
    pub(crate) fn take(&mut self, record: &IncomingRecord) -> (Option<Ticket>, Told) {
        let Some(owned) = self
            .owned
            .get_mut(&record.partition)
            .filter(|owned| owned.epoch == record.epoch)
        else {
            return (None, Told::default());
        };
        let ticket = Ticket {
            partition: record.partition,
            epoch: record.epoch,
            offset: record.offset,
        };
        let ticket = matches!(owned.ledger.take(record.offset), OffsetState::Run).then_some(ticket);
        (ticket, owned.tell())
    }

    /// A record is done.
    pub(crate) fn finish(&mut self, ticket: &Ticket) -> Told {
        let Some(owned) = self
            .owned
            .get_mut(&ticket.partition)
            .filter(|owned| owned.epoch == ticket.epoch)
        else {
            return Told::default();
        };
        owned.ledger.finish(ticket.offset);
        owned.tell()
    }

    /// Offsets that were taken and are not finished.
    pub(crate) fn open(&self) -> impl Iterator<Item = (PartitionId, usize)> {
        self.owned
            .iter()
            .map(|(partition, owned)| (*partition, owned.ledger.open()))
    }
}

impl Owned {
    fn tell(&mut self) -> Told {
        let full = self.ledger.is_full();
        let pause = (full != self.paused).then_some(full);
        self.paused = full;
        Told {
            mark: self.ledger.mark(),
            pause,
        }
    }
}

#[cfg(test)]
mod tests {
    use switchboard_schemas::{time::Timestamp, topics::Topic};

    use super::*;

    const PARTITION: PartitionId = PartitionId {
        topic: Topic::Jobs,
        number: 0,
    };

    fn record(epoch: u64, offset: u64) -> IncomingRecord {
        IncomingRecord {
            partition: PARTITION,
            epoch,
            offset,
            key: String::new(),
            payload: Vec::new().into(),
            headers: Vec::new(),
            published_at: Timestamp::from_micros(0),
        }
    }

    #[test]
    fn a_record_of_an_older_assignment_is_dropped() {
        let mut partitions = Partitions::default();
        partitions.assign(PARTITION, 2, None);
        assert_eq!(partitions.take(&record(1, 0)).0, None);
        assert!(partitions.take(&record(2, 0)).0.is_some());
    }

    #[test]
    fn a_job_that_outlived_its_assignment_settles_nothing() {
        let mut partitions = Partitions::default();
        partitions.assign(PARTITION, 1, None);
        let ticket = partitions.take(&record(1, 0)).0.unwrap();
        partitions.revoke(PARTITION);
        partitions.assign(PARTITION, 2, None);
        assert!(!partitions.owns(&ticket));
        assert_eq!(partitions.finish(&ticket), Told::default());
    }

    #[test]
    fn only_the_contiguous_prefix_is_marked() {
        let mut partitions = Partitions::default();
        partitions.assign(PARTITION, 1, None);
        let tickets: Vec<_> = (0..3)
            .map(|offset| partitions.take(&record(1, offset)).0.unwrap())
            .collect();
        assert!(
            partitions
                .finish(&tickets[2])
                .mark
                .is_none_or(|mark| mark.next_offset == 0)
        );
        partitions.finish(&tickets[0]);
        assert_eq!(partitions.finish(&tickets[1]).mark.unwrap().next_offset, 3);
    }
}
