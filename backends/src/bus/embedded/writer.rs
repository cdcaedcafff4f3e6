//! The writer thread of the embedded log. It combines waiting commands into one transaction, so
//! that many publishes share one sync.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rusqlite::Connection;
use switchboard_schemas::time::Timestamp;
use tokio::sync::oneshot;

use super::{file, groups::ConsumerGroups, sweep::ExpirySweep, tails::RecordTails};
use crate::{
    bus::{BusError, IncomingRecord, OutgoingRecord, PartitionId},
    sqlite::execute_cached,
    sqlite_residue::truncate_log,
};

/// Maximum number of queued commands; further publishes fail with [`BusError::Unavailable`].
const QUEUE_COMMANDS_MAX: usize = 4096;
/// Maximum number of commands in one transaction.
const BATCH_COMMANDS_MAX: usize = 512;
/// Interval at which marks are written, unless a flush comes earlier.
const MARKS_INTERVAL: Duration = Duration::from_millis(500);

/// The handle of the writer thread. Dropping it ends the thread after all queued commands have been
/// written.
pub(super) struct LogWriter {
    queue: Option<SyncSender<WriteCommand>>,
    thread: Option<JoinHandle<()>>,
}

type WriteResult = oneshot::Sender<Result<(), BusError>>;

enum WriteCommand {
    Publish(OutgoingRecord, WriteResult),
    Flush(WriteResult),
    Delete(PartitionId, Vec<u64>, WriteResult),
}

impl LogWriter {
    /// Starts the writer thread.
    pub(super) fn start(
        connection: Connection,
        log_emptier: Connection,
        tails: Arc<RecordTails>,
        groups: Arc<ConsumerGroups>,
    ) -> Result<Self, BusError> {
        let (queue, commands) = sync_channel(QUEUE_COMMANDS_MAX);
        let log = LogThread {
            connection,
            log_emptier,
            tails,
            groups,
            sweep: ExpirySweep::default(),
            marks_written: Instant::now(),
        };
        let thread = std::thread::Builder::new()
            .name("bus-writer".to_owned())
            .spawn(move || log.run(&commands))
            .map_err(|error| BusError::Fatal(format!("log writer: {error}")))?;
        Ok(Self {
            queue: Some(queue),
            thread: Some(thread),
        })
    }

    /// Appends a record and waits until it is durable.
    pub(super) async fn publish(
        &self,
        record: OutgoingRecord,
        timeout: Duration,
    ) -> Result<(), BusError> {
        self.ask(|answer| WriteCommand::Publish(record, answer), timeout)
            .await
    }

    /// Writes all recorded marks, after the commands queued before.
    pub(super) async fn flush(&self, timeout: Duration) -> Result<(), BusError> {
        self.ask(WriteCommand::Flush, timeout).await
    }

    /// Writes all recorded marks like [`Self::flush`], for threads.
    pub(super) fn flush_and_wait(&self) -> Result<(), BusError> {
        self.wait_for(WriteCommand::Flush)
    }

    /// Deletes records of a partition, for threads.
    pub(super) fn delete_and_wait(
        &self,
        partition: PartitionId,
        offsets: Vec<u64>,
    ) -> Result<(), BusError> {
        self.wait_for(|answer| WriteCommand::Delete(partition, offsets, answer))
    }

    fn wait_for(&self, command: impl FnOnce(WriteResult) -> WriteCommand) -> Result<(), BusError> {
        let (answer, answered) = oneshot::channel();
        let queue = self.queue.as_ref().ok_or_else(stopped)?;
        queue.send(command(answer)).map_err(|_| stopped())?;
        answered.blocking_recv().map_err(|_| stopped())?
    }

    async fn ask(
        &self,
        command: impl FnOnce(WriteResult) -> WriteCommand,
        timeout: Duration,
    ) -> Result<(), BusError> {
        let (answer, answered) = oneshot::channel();
        let queue = self.queue.as_ref().ok_or_else(stopped)?;
        queue
            .try_send(command(answer))
            .map_err(|error| match error {
                TrySendError::Full(_) => BusError::Unavailable("log writer is behind".to_owned()),
                TrySendError::Disconnected(_) => stopped(),
            })?;
        match tokio::time::timeout(timeout, answered).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(stopped()),
            Err(_) => Err(BusError::Unavailable(
                "log writer did not answer in time".to_owned(),
            )),
        }
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("log writer panicked");
        }
    }
}

fn stopped() -> BusError {
    BusError::Unavailable("log writer has stopped".to_owned())
}

/// The state of the writer thread.
struct LogThread {
    connection: Connection,
    /// Connection that empties the write-ahead log and writes nothing.
    log_emptier: Connection,
    tails: Arc<RecordTails>,
    groups: Arc<ConsumerGroups>,
    sweep: ExpirySweep,
    marks_written: Instant,
}

impl LogThread {
    fn run(mut self, commands: &Receiver<WriteCommand>) {
        // A process that was killed leaves deleted text in the log.
        self.empty_log();
        loop {
            match commands.recv_timeout(MARKS_INTERVAL) {
                Ok(first) => self.answer(first, commands),
                Err(RecvTimeoutError::Timeout) => self.write_due_marks(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let has_deleted = self
                .sweep
                .step(&mut self.connection, &self.tails, &self.groups);
            if has_deleted {
                self.empty_log();
            }
        }
        if let Err(error) = self.write(&[], true) {
            tracing::warn!(%error, "last marks not written; their records will be delivered again");
        }
    }

    fn answer(&mut self, first: WriteCommand, commands: &Receiver<WriteCommand>) {
        let (mut records, mut answers, mut flush) = (Vec::new(), Vec::new(), false);
        let mut deletions = Vec::new();
        for command in std::iter::once(first)
            .chain(commands.try_iter())
            .take(BATCH_COMMANDS_MAX)
        {
            match command {
                WriteCommand::Publish(record, answer) => {
                    records.push(record);
                    answers.push(answer);
                }
                WriteCommand::Flush(answer) => {
                    flush = true;
                    answers.push(answer);
                }
                WriteCommand::Delete(partition, offsets, answer) => {
                    deletions.push((partition, offsets, answer));
                }
            }
        }
        let records = self.place(records);
        let result = self.write(&records, flush || self.marks_are_due());
        if result.is_ok() {
            self.announce(records);
        }
        for answer in answers {
            // A caller that gave up does not withdraw its record.
            drop(answer.send(result.clone()));
        }
        for (partition, offsets, answer) in deletions {
            let end = self.tails.end(partition);
            let deleted = file::delete(&mut self.connection, partition, &offsets, end);
            self.tails.forget(partition);
            drop(answer.send(deleted.map_err(|error| file::unavailable(&error))));
        }
    }

    /// Empties the write-ahead log, which holds copies of deleted records until it is overwritten.
    /// A log that a reader needs stays until the next time.
    fn empty_log(&self) {
        if let Err(error) = truncate_log(&self.log_emptier) {
            tracing::warn!(%error, "write-ahead log not emptied");
        }
    }

    fn write_due_marks(&mut self) {
        if self.marks_are_due()
            && let Err(error) = self.write(&[], true)
        {
            tracing::warn!(%error, "marks not written, trying again");
        }
    }

    fn marks_are_due(&self) -> bool {
        self.marks_written.elapsed() >= MARKS_INTERVAL
    }

    /// Assigns partitions and offsets. Both take effect only after the transaction has succeeded.
    fn place(&self, records: Vec<OutgoingRecord>) -> Vec<IncomingRecord> {
        let mut next_offsets = std::collections::HashMap::new();
        let published_at = Timestamp::now();
        let place = |record: OutgoingRecord| {
            let partition = self.tails.place(record.topic, &record.key);
            let next = next_offsets
                .entry(partition)
                .or_insert_with(|| self.tails.end(partition));
            let offset = *next;
            *next += 1;
            let OutgoingRecord {
                key,
                payload,
                headers,
                ..
            } = record;
            IncomingRecord {
                partition,
                epoch: 0,
                offset,
                key,
                payload,
                headers,
                published_at,
                maybe_repeated: false,
            }
        };
        records.into_iter().map(place).collect()
    }

    fn write(&mut self, records: &[IncomingRecord], with_marks: bool) -> Result<(), BusError> {
        let marks = if with_marks {
            self.groups.take_unwritten()
        } else {
            Vec::new()
        };
        let result = write(&self.connection, records, &marks);
        if result.is_err() {
            self.groups.put_back(marks);
        }
        if with_marks {
            self.marks_written = Instant::now();
        }
        result
    }

    fn announce(&self, records: Vec<IncomingRecord>) {
        let partitions: HashSet<_> = records.iter().map(|record| record.partition).collect();
        records
            .into_iter()
            .for_each(|record| self.tails.append(record));
        self.groups.ring(&partitions);
    }
}

fn write(
    connection: &Connection,
    records: &[IncomingRecord],
    marks: &[file::GroupMark],
) -> Result<(), BusError> {
    if records.is_empty() && marks.is_empty() {
        return Ok(());
    }
    let execute = |sql| execute_cached(connection, sql).map_err(|error| file::unavailable(&error));
    execute("BEGIN IMMEDIATE")?;
    let written = records
        .iter()
        .try_for_each(|record| file::append(connection, record))
        .and_then(|()| {
            marks
                .iter()
                .try_for_each(|mark| file::write_mark(connection, mark))
        })
        .and_then(|()| execute("COMMIT"));
    if written.is_err() && !connection.is_autocommit() {
        execute("ROLLBACK")?;
    }
    written
}
