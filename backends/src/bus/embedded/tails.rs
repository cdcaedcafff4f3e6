//! The newest records of each partition in memory, so that a consumer that keeps up never reads the
//! file.

use std::collections::{BTreeMap, HashMap, VecDeque};

use parking_lot::Mutex;
use switchboard_schemas::topics::Topic;

use crate::bus::{IncomingRecord, PartitionId, placement};

/// Maximum number of records kept in memory per partition.
const TAIL_RECORDS_MAX: usize = 256;
/// Maximum size of the payloads kept in memory per partition, in bytes.
const TAIL_BYTES_MAX: usize = 256 * 1024;

/// The tails of all partitions; their set never changes while the file is open.
pub(super) struct RecordTails {
    partitions: BTreeMap<PartitionId, Mutex<PartitionTail>>,
    counts: HashMap<Topic, u32>,
}

struct PartitionTail {
    /// First offset in memory; older records are only in the file.
    first: u64,
    /// Offset of the next record.
    end: u64,
    records: VecDeque<IncomingRecord>,
    bytes: usize,
}

/// The result of reading at a position.
pub(super) enum TailRead {
    /// There is no record yet.
    End,
    /// The records from the position on.
    Records(Vec<IncomingRecord>),
    /// The records below this offset are only in the file.
    InFile {
        /// First offset in memory.
        below: u64,
    },
}

impl RecordTails {
    /// Creates empty tails that continue at these offsets.
    pub(super) fn new(next_offsets: &HashMap<PartitionId, u64>) -> Self {
        let mut counts = HashMap::new();
        next_offsets
            .keys()
            .for_each(|partition| *counts.entry(partition.topic).or_default() += 1);
        let partitions = next_offsets.iter().map(|(partition, next)| {
            let tail = PartitionTail {
                first: *next,
                end: *next,
                records: VecDeque::new(),
                bytes: 0,
            };
            (*partition, Mutex::new(tail))
        });
        Self {
            partitions: partitions.collect(),
            counts,
        }
    }

    /// Returns the partition of a key.
    pub(super) fn place(&self, topic: Topic, key: &str) -> PartitionId {
        let count = self.counts.get(&topic).copied().unwrap_or(1);
        PartitionId {
            topic,
            number: placement::partition_of_key(key, count),
        }
    }

    /// Returns all partitions in order.
    pub(super) fn partitions(&self) -> impl Iterator<Item = PartitionId> {
        self.partitions.keys().copied()
    }

    /// Returns the offset of the next record of a partition.
    pub(super) fn end(&self, partition: PartitionId) -> u64 {
        self.partitions
            .get(&partition)
            .map_or(0, |tail| tail.lock().end)
    }

    /// Appends a record that is already in the file.
    pub(super) fn append(&self, record: IncomingRecord) {
        if let Some(tail) = self.partitions.get(&record.partition) {
            tail.lock().append(record);
        }
    }

    /// Forgets the records of a partition, of which some are no longer in the file.
    pub(super) fn forget(&self, partition: PartitionId) {
        if let Some(tail) = self.partitions.get(&partition) {
            tail.lock().forget();
        }
    }

    /// Returns at most `limit` records from a position on.
    pub(super) fn read(&self, partition: PartitionId, position: u64, limit: usize) -> TailRead {
        self.partitions
            .get(&partition)
            .map_or(TailRead::End, |tail| tail.lock().read(position, limit))
    }
}

impl PartitionTail {
    fn append(&mut self, record: IncomingRecord) {
        self.end = record.offset + 1;
        self.bytes += record.payload.len();
        self.records.push_back(record);
        while self.records.len() > TAIL_RECORDS_MAX || self.bytes > TAIL_BYTES_MAX {
            let Some(oldest) = self.records.pop_front() else {
                break;
            };
            self.bytes -= oldest.payload.len();
            self.first = oldest.offset + 1;
        }
    }

    fn forget(&mut self) {
        (self.first, self.bytes) = (self.end, 0);
        self.records.clear();
    }

    fn read(&self, position: u64, limit: usize) -> TailRead {
        if position >= self.end {
            return TailRead::End;
        }
        let Some(skip) = position.checked_sub(self.first) else {
            return TailRead::InFile { below: self.first };
        };
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        TailRead::Records(
            self.records
                .iter()
                .skip(skip)
                .take(limit)
                .cloned()
                .collect(),
        )
    }
}
