//! The embedded bus: a log with partitions and consumer groups in one SQLite file, for
//! installations without Kafka.
//!
//! [`writer`] is the only thread that writes and combines waiting commands into one transaction.
//! [`erasure`] finds what it is to delete.
//! [`tails`] keeps the newest records in memory, [`file`] the others. [`groups`] assigns
//! partitions, [`consumer`] delivers.

mod assignment;
mod consumer;
mod erasure;
mod file;
mod groups;
mod sweep;
mod tails;
#[cfg(test)]
mod tests;
mod writer;

use std::{path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use parking_lot::Mutex;
use rusqlite::Connection;
use switchboard_schemas::{ids::OrgId, topics::Topic};

use super::{BusConsumer, BusError, MessageBus, OutgoingRecord, PartitionId};
use crate::sqlite::log_copier;
use consumer::EmbeddedConsumer;
use erasure::{LogEraser, RecordFilter};
use groups::ConsumerGroups;
use tails::RecordTails;
use writer::LogWriter;

const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// The embedded bus. Only one process at a time may open a file. Dropping the bus and its consumers
/// closes the file after all queued commands have been written.
pub struct EmbeddedBus {
    shared: Arc<SharedLog>,
}

/// State shared by the bus and its consumers.
struct SharedLog {
    tails: Arc<RecordTails>,
    groups: Arc<ConsumerGroups>,
    /// Dropped before the writer, which it needs.
    eraser: LogEraser,
    writer: Arc<LogWriter>,
    reader: Arc<Mutex<Connection>>,
}

impl EmbeddedBus {
    /// Opens or creates the file at `path`, with `partitions` partitions for each busy topic. An
    /// existing file keeps its number.
    ///
    /// # Errors
    /// [`BusError::Fatal`] if the file cannot be opened or is not a log of this program.
    pub fn open(path: &Path, partitions: u32) -> Result<Self, BusError> {
        let fatal = |error: rusqlite::Error| BusError::Fatal(format!("log file: {error}"));
        let mut connection = file::open(path).map_err(fatal)?;
        file::create_tables(&mut connection, partitions).map_err(fatal)?;
        let tails = Arc::new(RecordTails::new(
            &file::next_offsets(&connection).map_err(fatal)?,
        ));
        let groups = Arc::new(ConsumerGroups::default());
        let reader = Arc::new(Mutex::new(file::open(path).map_err(fatal)?));
        log_copier::start(&mut connection, file::open(path).map_err(fatal)?).map_err(fatal)?;
        let log_emptier = file::open(path).map_err(fatal)?;
        let writer = LogWriter::start(connection, log_emptier, tails.clone(), groups.clone())?;
        let writer = Arc::new(writer);
        let eraser = LogEraser::start(path, tails.clone(), Arc::clone(&writer))?;
        Ok(Self {
            shared: Arc::new(SharedLog {
                tails,
                groups,
                eraser,
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

    async fn erase_records(&self, key: &str) -> Result<(), BusError> {
        let filter = RecordFilter::Key(key.to_owned());
        self.shared.eraser.erase(filter).await
    }

    async fn erase_organization(&self, org: &OrgId) -> Result<(), BusError> {
        let filter = RecordFilter::Organization(org.clone());
        self.shared.eraser.erase(filter).await
    }

    /// Has nothing to do, because opening creates the tables.
    async fn migrate(&self) -> Result<(), BusError> {
        Ok(())
    }

    async fn check(&self) -> Result<(), BusError> {
        self.shared.writer.flush(CHECK_TIMEOUT).await
    }
}

impl SharedLog {
    fn partitions(&self) -> Vec<PartitionId> {
        self.tails.partitions().collect()
    }

    /// Reads the file on a blocking thread.
    async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, BusError> {
        let reader = self.reader.clone();
        let rows = tokio::task::spawn_blocking(move || query(&reader.lock()));
        let rows = rows
            .await
            .map_err(|error| BusError::Unavailable(format!("log reader: {error}")))?;
        rows.map_err(|error| file::unavailable(&error))
    }
}
