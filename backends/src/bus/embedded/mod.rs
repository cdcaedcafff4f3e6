//! The bus in one SQLite file: a log with partitions and consumer groups, for an installation without Kafka.
//!
//! [`writer`] is the one thread that writes; it puts all that waits into one transaction. [`tails`] holds the newest
//! records in memory, [`file`] the rest. [`groups`] decides who owns which partition, [`consumer`] delivers.

mod assignment;
mod consumer;
mod file;
mod groups;
mod sweep;
mod tails;
#[cfg(test)]
mod tests;
mod writer;

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use rusqlite::Connection;
use switchboard_schemas::topics::Topic;

use super::{BusConsumer, BusError, MessageBus, OutgoingRecord, PartitionId, lock::lock};
use consumer::EmbeddedConsumer;
use groups::Groups;
use tails::Tails;
use writer::Writer;

const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// The embedded bus. One process at a time may open a file; dropping the bus and its consumers closes it, after what
/// was queued has been written.
pub struct EmbeddedBus {
    shared: Arc<Shared>,
}

/// What the bus and its consumers hold together.
struct Shared {
    tails: Arc<Tails>,
    groups: Arc<Groups>,
    writer: Writer,
    reader: Arc<Mutex<Connection>>,
}

impl EmbeddedBus {
    /// Opens the file at `path` or makes it, with so many partitions for each busy topic; a file that exists keeps the
    /// number it has.
    ///
    /// # Errors
    /// [`BusError::Fatal`] where the file cannot be opened or is no log of ours.
    pub fn open(path: &Path, partitions: u32) -> Result<Self, BusError> {
        let fatal = |error: rusqlite::Error| BusError::Fatal(format!("log file: {error}"));
        let mut connection = file::open(path).map_err(fatal)?;
        file::create_tables(&mut connection, partitions).map_err(fatal)?;
        let tails = Arc::new(Tails::new(&file::next_offsets(&connection).map_err(fatal)?));
        let groups = Arc::new(Groups::default());
        let reader = Arc::new(Mutex::new(file::open(path).map_err(fatal)?));
        let writer = Writer::start(connection, tails.clone(), groups.clone())?;
        Ok(Self {
            shared: Arc::new(Shared {
                tails,
                groups,
                writer,
                reader,
            }),
        })
    }
}

#[async_trait]
impl MessageBus for EmbeddedBus {
    async fn publish(&self, record: OutgoingRecord, timeout: Duration) -> Result<(), BusError> {
        self.shared.writer.publish(record, timeout).await
    }

    async fn consume(
        &self,
        group: &str,
        topics: &[Topic],
    ) -> Result<Box<dyn BusConsumer>, BusError> {
        let name = group.to_owned();
        let stored = self
            .shared
            .read(move |connection| file::marks_of(connection, &name))
            .await?;
        let partitions = self.shared.partitions();
        let seat = self.shared.groups.join(group, topics, stored, &partitions);
        Ok(Box::new(EmbeddedConsumer::new(self.shared.clone(), seat)))
    }

    /// Nothing is left to do: opening made the tables.
    async fn migrate(&self) -> Result<(), BusError> {
        Ok(())
    }

    async fn check(&self) -> Result<(), BusError> {
        self.shared.writer.flush(CHECK_TIMEOUT).await
    }
}

impl Shared {
    fn partitions(&self) -> Vec<PartitionId> {
        self.tails.partitions().collect()
    }

    /// Reads the file on a thread that may block.
    async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, BusError> {
        let reader = self.reader.clone();
        let rows = tokio::task::spawn_blocking(move || query(&lock(&reader)));
        let rows = rows
            .await
            .map_err(|error| BusError::Unavailable(format!("log reader: {error}")))?;
        rows.map_err(|error| file::unavailable(&error))
    }
}
