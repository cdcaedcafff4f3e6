//! The bus: jobs and events, in partitions, in order per key.
//!
//! # Contract
//! - **Order**: records of one key are delivered in the order in which their publishes were acknowledged.
//! - **Delivery**: at least once. [`MessageBus::publish`] returns once the record survives a crash of this process (and, with
//!   Kafka, of any broker less than the replication allows). A record is delivered to one consumer of a group at a
//!   time, and again to the next owner of its partition if its offset was not committed.
//! - **Commit**: [`BusConsumer::commit`] is asynchronous; a mark that was given is written by [`BusConsumer::close`] and by a
//!   revoke at the latest. A mark for a partition that is no longer owned is dropped silently.
//! - **Flow**: a consumer that is not polled holds a bounded number of records; it never leaves its group for that.
//! - **Cancellation**: dropping a publish future does not take the record back; dropping [`BusConsumer::next`] loses nothing.
//! - **Expiry**: records are kept as long as [`Topic::retention_hours`] says, whether consumed or not.
//!
//! The embedded twin is a log in SQLite with partitions, consumer groups and committed offsets; it rebalances when
//! a consumer joins or leaves and redelivers what was not committed, like the real one.

pub mod embedded;
pub mod kafka;
pub mod ledger;

#[cfg(test)]
mod conformance;
mod lock;
mod placement;

use std::{fmt, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use switchboard_schemas::{time::Timestamp, topics::Topic};

/// Where records are published and consumed.
#[async_trait]
pub trait MessageBus: Send + Sync {
    /// Appends a record; `Ok` means durable. Not acknowledged within `timeout`: [`BusError::Unavailable`], and the
    /// record may or may not arrive later.
    async fn publish(&self, record: OutgoingRecord, timeout: Duration) -> Result<(), BusError>;

    /// Joins a consumer group; the records of one partition go to one consumer of it.
    async fn consume(
        &self,
        group: &str,
        topics: &[Topic],
    ) -> Result<Box<dyn BusConsumer>, BusError>;

    /// Makes the topics that are missing; those that exist are left as they are.
    async fn migrate(&self) -> Result<(), BusError>;

    /// Whether the bus answers, within two seconds.
    async fn check(&self) -> Result<(), BusError>;
}

/// One member of a consumer group.
#[async_trait]
pub trait BusConsumer: Send {
    /// The next thing that happened. Cancel-safe. An error ends the consumer; its records go to another one.
    async fn next(&mut self) -> Result<BusEvent, BusError>;

    /// Notes how far a partition is done; written within a second, without waiting here.
    fn commit(&mut self, partition: PartitionId, mark: CommitMark);

    /// Stops delivery of one partition until [`Self::resume`]. What was fetched before may still come.
    fn pause(&mut self, partition: PartitionId);

    /// Goes on with delivery.
    fn resume(&mut self, partition: PartitionId);

    /// Records behind the newest one, for each partition that is owned; as of the last few seconds.
    fn lag(&self) -> Vec<(PartitionId, u64)>;

    /// Writes the last marks and leaves the group, within five seconds.
    async fn close(self: Box<Self>) -> Result<(), BusError>;
}

/// A partition of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartitionId {
    /// Topic.
    pub topic: Topic,
    /// Number, from 0.
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
    /// Topic.
    pub topic: Topic,
    /// Equal keys go to one partition.
    pub key: String,
    /// The record.
    pub payload: Bytes,
    /// Names in lower case; the trace context travels here.
    pub headers: Headers,
}

/// A record as it was delivered.
#[derive(Clone, Debug)]
pub struct IncomingRecord {
    /// Where it lies.
    pub partition: PartitionId,
    /// Which assignment of the partition delivered it; a record of an older one is to be dropped.
    pub epoch: u64,
    /// Its place.
    pub offset: u64,
    /// Key; empty when the producer gave none or one that is not UTF-8.
    pub key: String,
    /// The record.
    pub payload: Bytes,
    /// Headers whose values are UTF-8.
    pub headers: Headers,
    /// When it was appended.
    pub published_at: Timestamp,
}

/// Headers of a record.
pub type Headers = Vec<(String, String)>;

/// Everything that can happen to a consumer.
#[derive(Debug)]
pub enum BusEvent {
    /// The partition is ours from here on; its records follow.
    Assigned {
        /// Which.
        partition: PartitionId,
        /// Rises with each assignment.
        epoch: u64,
        /// Where the last owner stopped.
        committed: Option<CommitMark>,
    },
    /// The partition is another's; marks that were given before are written.
    Revoked {
        /// Which.
        partition: PartitionId,
    },
    /// A record.
    Record(IncomingRecord),
}

/// How far a partition is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitMark {
    /// Every offset below this one is finished.
    pub next_offset: u64,
    /// Which offsets from `next_offset` on are finished too, as [`ledger`] writes them; travels with the commit.
    pub finished: String,
}

/// Why the bus did not do it.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// No acknowledgement in time, or no room to wait for one. Safe to try again.
    #[error("bus unavailable: {0}")]
    Unavailable(String),
    /// It will not work next time either.
    #[error("bus failed: {0}")]
    Fatal(String),
}
