//! Owned partitions with their assignment epochs and offset ledgers.

use std::collections::HashMap;

use switchboard_backends::bus::{
    CommitMark, IncomingRecord, PartitionId,
    ledger::{OffsetLedger, OffsetState},
};

/// Position of a record, and the assignment under which it was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordTicket {
    pub(crate) partition: PartitionId,
    pub(crate) epoch: u64,
    pub(crate) offset: u64,
}

/// Instructions for the consumer after a record was taken or finished.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ConsumerUpdate {
    /// Commit mark to write, if the contiguous finished prefix grew.
    pub(crate) mark: Option<CommitMark>,
    /// `true` pauses delivery of the partition, `false` resumes it.
    pub(crate) pause: Option<bool>,
}

#[derive(Default)]
pub(crate) struct OwnedPartitions {
    owned: HashMap<PartitionId, OwnedPartition>,
}

struct OwnedPartition {
    epoch: u64,
    ledger: OffsetLedger,
    paused: bool,
}

impl OwnedPartitions {
    /// Adds an assigned partition, resuming at its committed mark.
    pub(crate) fn add_partition(
        &mut self,
        partition: PartitionId,
        epoch: u64,
        committed: Option<&CommitMark>,
    ) {
        self.owned.insert(
            partition,
            OwnedPartition {
                epoch,
                ledger: OffsetLedger::resume(committed),
                paused: false,
            },
        );
    }

    /// Removes a partition that was revoked.
    pub(crate) fn remove_partition(&mut self, partition: PartitionId) {
        self.owned.remove(&partition);
    }

    /// Returns true while the assignment of this ticket is still current.
    pub(crate) fn is_owned(&self, ticket: &RecordTicket) -> bool {
        self.owned
            .get(&ticket.partition)
            .is_some_and(|owned| owned.epoch == ticket.epoch)
    }

    /// Takes a delivered record. Returns no ticket if the record needs no work.
    pub(crate) fn take_record(
        &mut self,
        record: &IncomingRecord,
    ) -> (Option<RecordTicket>, ConsumerUpdate) {
        let Some(owned) = self
            .owned
            .get_mut(&record.partition)
            .filter(|owned| owned.epoch == record.epoch)
        else {
            return (None, ConsumerUpdate::default());
        };
        let ticket = RecordTicket {
            partition: record.partition,
            epoch: record.epoch,
            offset: record.offset,
        };
        let ticket = matches!(owned.ledger.take(record.offset), OffsetState::Run).then_some(ticket);
        (ticket, owned.consumer_update())
    }

    /// Finishes a record, so that its offset may be committed.
    pub(crate) fn finish_record(&mut self, ticket: &RecordTicket) -> ConsumerUpdate {
        let Some(owned) = self
            .owned
            .get_mut(&ticket.partition)
            .filter(|owned| owned.epoch == ticket.epoch)
        else {
            return ConsumerUpdate::default();
        };
        owned.ledger.finish(ticket.offset);
        owned.consumer_update()
    }

    /// Returns the number of open offsets of each partition: taken and not finished.
    pub(crate) fn open_offsets(&self) -> impl Iterator<Item = (PartitionId, usize)> {
        self.owned
            .iter()
            .map(|(partition, owned)| (*partition, owned.ledger.open()))
    }
}

impl OwnedPartition {
    fn consumer_update(&mut self) -> ConsumerUpdate {
        let full = self.ledger.is_full();
        let pause = (full != self.paused).then_some(full);
        self.paused = full;
        ConsumerUpdate {
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
            maybe_repeated: false,
        }
    }

    #[test]
    fn record_of_an_older_assignment_is_dropped() {
        let mut partitions = OwnedPartitions::default();
        partitions.add_partition(PARTITION, 2, None);
        assert_eq!(partitions.take_record(&record(1, 0)).0, None);
        assert!(partitions.take_record(&record(2, 0)).0.is_some());
    }

    #[test]
    fn job_of_a_lost_assignment_finishes_nothing() {
        let mut partitions = OwnedPartitions::default();
        partitions.add_partition(PARTITION, 1, None);
        let ticket = partitions.take_record(&record(1, 0)).0.unwrap();
        partitions.remove_partition(PARTITION);
        partitions.add_partition(PARTITION, 2, None);
        assert!(!partitions.is_owned(&ticket));
        assert_eq!(partitions.finish_record(&ticket), ConsumerUpdate::default());
    }

    #[test]
    fn mark_covers_only_the_contiguous_prefix() {
        let mut partitions = OwnedPartitions::default();
        partitions.add_partition(PARTITION, 1, None);
        let tickets: Vec<_> = (0..3)
            .map(|offset| partitions.take_record(&record(1, offset)).0.unwrap())
            .collect();
        assert!(
            partitions
                .finish_record(&tickets[2])
                .mark
                .is_none_or(|mark| mark.next_offset == 0)
        );
        partitions.finish_record(&tickets[0]);
        assert_eq!(
            partitions
                .finish_record(&tickets[1])
                .mark
                .unwrap()
                .next_offset,
            3
        );
    }
}
