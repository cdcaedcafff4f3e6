//! Conversions between partitions or marks and the lists of librdkafka.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use rdkafka::{
    Message, Offset, TopicPartitionList,
    message::{BorrowedMessage, Headers as _},
    topic_partition_list::TopicPartitionListElem,
};
use switchboard_schemas::time::Timestamp;

use super::{names::ClusterNames, ownership::PartitionMark};
use crate::bus::{CommitMark, IncomingRecord, PartitionId, RecordHeaders};

/// Returns the partition of a list entry, if its topic belongs to this installation.
pub(super) fn partition(
    names: &ClusterNames,
    entry: &TopicPartitionListElem<'_>,
) -> Option<PartitionId> {
    partition_id(names, entry.topic(), entry.partition())
}

/// Returns the partition of a topic name and number, if the topic belongs to this installation.
pub(super) fn partition_id(names: &ClusterNames, topic: &str, number: i32) -> Option<PartitionId> {
    Some(PartitionId {
        topic: names.parse(topic)?,
        number: u32::try_from(number).ok()?,
    })
}

/// Creates a list without offsets.
pub(super) fn list(names: &ClusterNames, partitions: &[PartitionId]) -> TopicPartitionList {
    let mut list = TopicPartitionList::with_capacity(partitions.len());
    for partition in partitions {
        list.add_partition(&names.topic(partition.topic), number(*partition));
    }
    list
}

/// Creates a list of offsets to commit, with their metadata.
pub(super) fn commit_list(names: &ClusterNames, marks: &[PartitionMark]) -> TopicPartitionList {
    let mut list = TopicPartitionList::with_capacity(marks.len());
    for (partition, mark) in marks {
        let mut entry = list.add_partition(&names.topic(partition.topic), number(*partition));
        let offset = Offset::Offset(i64::try_from(mark.next_offset).unwrap_or(i64::MAX));
        // Fails only for offsets without a number, which this one has.
        if entry.set_offset(offset).is_ok() {
            entry.set_metadata(&mark.finished);
        }
    }
    list
}

/// Returns the committed mark, if there is one.
pub(super) fn committed(entry: &TopicPartitionListElem<'_>) -> Option<CommitMark> {
    let Offset::Offset(offset) = entry.offset() else {
        return None;
    };
    entry.error().ok()?;
    let finished = guarded(|| entry.metadata().to_owned()).unwrap_or_default();
    Some(CommitMark {
        next_offset: u64::try_from(offset).ok()?,
        finished,
    })
}

/// Copies a record from the client's buffer. What depends on its assignment is set later.
pub(super) fn copy(names: &ClusterNames, message: &BorrowedMessage<'_>) -> Option<IncomingRecord> {
    let published_at = message
        .timestamp()
        .to_millis()
        .unwrap_or(0)
        .saturating_mul(1000);
    Some(IncomingRecord {
        partition: partition_id(names, message.topic(), message.partition())?,
        epoch: 0,
        offset: u64::try_from(message.offset()).ok()?,
        key: message
            .key()
            .and_then(|key| std::str::from_utf8(key).ok())
            .unwrap_or_default()
            .to_owned(),
        payload: Bytes::copy_from_slice(message.payload().unwrap_or_default()),
        headers: guarded(|| headers(message)).unwrap_or_default(),
        published_at: Timestamp::from_micros(published_at),
        maybe_repeated: false,
    })
}

fn headers(message: &BorrowedMessage<'_>) -> RecordHeaders {
    let utf8 = |header: rdkafka::message::Header<'_, &[u8]>| {
        let value = std::str::from_utf8(header.value?).ok()?;
        Some((header.key.to_owned(), value.to_owned()))
    };
    message
        .headers()
        .map(|headers| headers.iter().filter_map(utf8).collect())
        .unwrap_or_default()
}

/// Runs `read` and returns `None` if it panics: the crate panics on metadata or header names that
/// are not UTF-8, which any producer may have written.
fn guarded<T>(read: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(read)).ok()
}

fn number(partition: PartitionId) -> i32 {
    i32::try_from(partition.number).unwrap_or(i32::MAX)
}
