//! The bus: jobs and events in partitions, ordered by key.
//!
//! # Contract
//! - **Order**: records of one key are delivered in the order in which their publishes were
//!   acknowledged.
//! - **Delivery**: at least once. [`MessageBus::publish`] returns once the record survives a crash
//!   of this process (on Kafka, also the loss of brokers within the replication). A record is
//!   delivered to one consumer of a group at a time, and again to the next owner of its partition
//!   if its offset was not committed.
//! - **Commit**: [`BusConsumer::commit`] is asynchronous. A recorded mark is written at the latest
//!   by [`BusConsumer::close`] or a revocation. A mark of a partition that is no longer owned is
//!   dropped silently.
//! - **Flow control**: a consumer that is not polled buffers a bounded number of records and never
//!   leaves its group for that.
//! - **Cancellation**: dropping a publish future does not withdraw the record; dropping
//!   [`BusConsumer::next`] loses nothing.
//! - **Expiry**: records are kept for [`Topic::retention_hours`], whether consumed or not.
//!
//! The embedded backend is a log in SQLite with partitions, consumer groups and committed offsets.
//! It rebalances when a consumer joins or leaves and redelivers uncommitted records, like Kafka.

pub mod embedded;
pub mod kafka;
pub mod ledger;
pub mod trace;

#[cfg(test)]
mod conformance;
mod placement;

use std::{fmt, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use switchboard_schemas::{ids::OrgId, time::Timestamp, topics::Topic};

/// A bus with topics, partitions and consumer groups.
#[async_trait]
pub trait MessageBus: Send + Sync {
    /// Appends a record and returns once it is durable. Without an acknowledgement within `timeout`
    /// it returns [`BusError::Unavailable`], and the record may still arrive later.
    async fn publish(&self, record: OutgoingRecord, timeout: Duration) -> Result<(), BusError>;

    /// Joins a consumer group. The records of one partition go to one consumer of the group.
    async fn consume(
        &self,
        group: &str,
        topics: &[Topic],
    ) -> Result<Box<dyn BusConsumer>, BusError>;

    /// Removes the records of a conversation: finished jobs, events and dead letters. Kafka does
    /// nothing; there, records are kept until their retention ends.
    async fn erase_records(&self, key: &str) -> Result<(), BusError>;

    /// Removes all records of an organization, also of jobs that wait; events for its configuration
    /// stay.
    async fn erase_organization(&self, org: &OrgId) -> Result<(), BusError>;

    /// Creates missing topics; existing ones are not changed.
    async fn migrate(&self) -> Result<(), BusError>;

    /// Fails if the bus does not respond within two seconds.
    async fn check(&self) -> Result<(), BusError>;
}

/// A member of a consumer group.
#[async_trait]
pub trait BusConsumer: Send {
    /// Returns the next event. Cancel-safe. After an error the consumer is unusable, and its
    /// records go to another one.
    async fn next(&mut self) -> Result<BusEvent, BusError>;

    /// Records the progress of a partition. It is committed within a second, without waiting here.
    fn commit(&mut self, partition: PartitionId, mark: CommitMark);

    /// Pauses the delivery of a partition until [`Self::resume`]. Records fetched before may still
    /// be delivered.
    fn pause(&mut self, partition: PartitionId);

    /// Resumes the delivery of a partition.
    fn resume(&mut self, partition: PartitionId);

    /// Returns the number of undelivered records of each owned partition, as of the last few
    /// seconds.
    fn lag(&self) -> Vec<(PartitionId, u64)>;

    /// Commits the last marks and leaves the group, within five seconds.
    async fn close(self: Box<Self>) -> Result<(), BusError>;
}

/// A partition of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartitionId {
    /// Topic of the partition.
    pub topic: Topic,
    /// Number of the partition, from 0.
    pub number: u32,
}

impl fmt::Display for PartitionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.topic, self.number)
    }
}

/// A record to publish.
#[derive(Clone, Debug)]
pub struct OutgoingRecord {
    /// Topic of the record.
    pub topic: Topic,
    /// Key of the record; equal keys go to one partition.
    pub key: String,
    /// Payload of the record.
    pub payload: Bytes,
    /// Headers with names in lower case, including the trace context.
    pub headers: RecordHeaders,
}

/// A delivered record.
#[derive(Clone, Debug)]
pub struct IncomingRecord {
    /// Partition of the record.
    pub partition: PartitionId,
    /// Epoch of the assignment that delivered the record; a record of an older epoch is to be
    /// dropped.
    pub epoch: u64,
    /// Offset in the partition.
    pub offset: u64,
    /// Key of the record; empty if it has none or one that is not UTF-8.
    pub key: String,
    /// Payload of the record.
    pub payload: Bytes,
    /// Headers whose values are UTF-8.
    pub headers: RecordHeaders,
    /// Time at which the record was appended, by the clock of its producer.
    pub published_at: Timestamp,
    /// True if an earlier owner of the partition may have received the record: it was appended
    /// before this assignment.
    pub maybe_repeated: bool,
}

/// Names and values of a record's headers.
pub type RecordHeaders = Vec<(String, String)>;

/// An event of a consumer.
#[derive(Debug)]
pub enum BusEvent {
    /// A partition was assigned; its records follow.
    Assigned {
        /// The assigned partition.
        partition: PartitionId,
        /// Epoch of the assignment, rising with each one.
        epoch: u64,
        /// Mark that the last owner committed.
        committed: Option<CommitMark>,
    },
    /// A partition was revoked; marks recorded before are written.
    Revoked {
        /// The revoked partition.
        partition: PartitionId,
    },
    /// A record was delivered.
    Record(IncomingRecord),
}

/// The progress of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitMark {
    /// All offsets below this one are finished.
    pub next_offset: u64,
    /// Offsets finished from `next_offset` on, encoded by [`ledger`] and committed as metadata.
    pub finished: String,
}

/// An error of the bus.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BusError {
    /// There was no acknowledgement in time, or no room to wait for one. Retrying is safe.
    #[error("bus unavailable: {0}")]
    Unavailable(String),
    /// A retry cannot succeed.
    #[error("bus failed: {0}")]
    Fatal(String),
    /// A consumer owns this partition and receives none of its records, for a reason that the
    /// client does not know. Joining again helps.
    #[error("partition {0} has records, but none was delivered")]
    PartitionUnread(PartitionId),
}
