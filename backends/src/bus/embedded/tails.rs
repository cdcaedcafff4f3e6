//! The newest records of each partition in memory, so that a consumer that keeps up never reads the file.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Mutex,
};

use switchboard_schemas::topics::Topic;

use crate::bus::{IncomingRecord, PartitionId, lock::lock, placement};

/// Records kept in memory for one partition.
const TAIL_RECORDS_MAX: usize = 256;
/// Payload bytes kept in memory for one partition.
const TAIL_BYTES_MAX: usize = 256 * 1024;

/// All partitions; their set never changes while the file is open.
pub(super) struct Tails {
    partitions: BTreeMap<PartitionId, Mutex<Tail>>,
    counts: HashMap<Topic, u32>,
}

struct Tail {
    /// Older offsets are in the file only.
    first: u64,
    /// Offset of the next record.
    end: u64,
    records: VecDeque<IncomingRecord>,
    bytes: usize,
}

/// What lies at a position.
pub(super) enum Read {
    /// Nothing yet.
    End,
    /// These.
    Records(Vec<IncomingRecord>),
    /// Only the file knows what is below this offset.
    InFile {
        /// First offset in memory.
        below: u64,
    },
}

impl Tails {
    /// Empty tails that go on at these offsets.
    pub(super) fn new(next_offsets: &HashMap<PartitionId, u64>) -> Self {
        let mut counts = HashMap::new();
        next_offsets
            .keys()
            .for_each(|partition| *counts.entry(partition.topic).or_default() += 1);
        let partitions = next_offsets.iter().map(|(partition, next)| {
            let tail = Tail {
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

    /// The partition of a key.
    pub(super) fn place(&self, topic: Topic, key: &str) -> PartitionId {
        let count = self.counts.get(&topic).copied().unwrap_or(1);
        PartitionId {
            topic,
            number: placement::partition_of_key(key, count),
        }
    }

    /// All partitions, in order.
    pub(super) fn partitions(&self) -> impl Iterator<Item = PartitionId> {
        self.partitions.keys().copied()
    }

    /// Offset of the next record of a partition.
    pub(super) fn end(&self, partition: PartitionId) -> u64 {
        self.partitions
            .get(&partition)
            .map_or(0, |tail| lock(tail).end)
    }

    /// Adds a record that is in the file by now.
    pub(super) fn append(&self, record: IncomingRecord) {
        if let Some(tail) = self.partitions.get(&record.partition) {
            lock(tail).append(record);
        }
    }

    /// Records from a position on, at most `limit`.
    pub(super) fn read(&self, partition: PartitionId, position: u64, limit: usize) -> Read {
        self.partitions
            .get(&partition)
            .map_or(Read::End, |tail| lock(tail).read(position, limit))
    }
}

impl Tail {
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

    fn read(&self, position: u64, limit: usize) -> Read {
        if position >= self.end {
            return Read::End;
        }
        let Some(skip) = position.checked_sub(self.first) else {
            return Read::InFile { below: self.first };
        };
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        Read::Records(
            self.records
                .iter()
                .skip(skip)
                .take(limit)
                .cloned()
                .collect(),
        )
    }
}
