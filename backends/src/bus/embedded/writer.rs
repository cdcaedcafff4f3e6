//! The one thread that writes the log: whatever waits goes into one transaction, so that many publishes share one sync.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rusqlite::{Connection, TransactionBehavior};
use switchboard_schemas::time::Timestamp;
use tokio::sync::oneshot;

use super::{file, groups::Groups, sweep::Sweep, tails::Tails};
use crate::bus::{BusError, IncomingRecord, OutgoingRecord};

/// Publishes that may wait for the writer; the next one is answered with [`BusError::Unavailable`].
const QUEUE_COMMANDS_MAX: usize = 4096;
/// Publishes in one transaction.
const BATCH_COMMANDS_MAX: usize = 512;
/// Marks are written this often, or earlier with a flush.
const MARKS_INTERVAL: Duration = Duration::from_millis(500);

/// Handle of the thread; dropping it ends the thread after what was queued has been written.
pub(super) struct Writer {
    queue: Option<SyncSender<Command>>,
    thread: Option<JoinHandle<()>>,
}

type Answer = oneshot::Sender<Result<(), BusError>>;

enum Command {
    Publish(OutgoingRecord, Answer),
    Flush(Answer),
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(
        connection: Connection,
        tails: Arc<Tails>,
        groups: Arc<Groups>,
    ) -> Result<Self, BusError> {
        let (queue, commands) = sync_channel(QUEUE_COMMANDS_MAX);
        let log = Log {
            connection,
            tails,
            groups,
            sweep: Sweep::default(),
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

    /// Appends a record.
    pub(super) async fn publish(
        &self,
        record: OutgoingRecord,
        timeout: Duration,
    ) -> Result<(), BusError> {
        self.ask(|answer| Command::Publish(record, answer), timeout)
            .await
    }

    /// Writes all marks that were given; what was queued before is written too.
    pub(super) async fn flush(&self, timeout: Duration) -> Result<(), BusError> {
        self.ask(Command::Flush, timeout).await
    }

    async fn ask(
        &self,
        command: impl FnOnce(Answer) -> Command,
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

impl Drop for Writer {
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

/// What the thread works with.
struct Log {
    connection: Connection,
    tails: Arc<Tails>,
    groups: Arc<Groups>,
    sweep: Sweep,
    marks_written: Instant,
}

impl Log {
    fn run(mut self, commands: &Receiver<Command>) {
        loop {
            match commands.recv_timeout(MARKS_INTERVAL) {
                Ok(first) => self.answer(first, commands),
                Err(RecvTimeoutError::Timeout) => self.write_due_marks(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.sweep
                .step(&mut self.connection, &self.tails, &self.groups);
        }
        if let Err(error) = self.write(&[], true) {
            tracing::warn!(%error, "last marks not written; their records will be delivered again");
        }
    }

    fn answer(&mut self, first: Command, commands: &Receiver<Command>) {
        let (mut records, mut answers, mut flush) = (Vec::new(), Vec::new(), false);
        for command in std::iter::once(first)
            .chain(commands.try_iter())
            .take(BATCH_COMMANDS_MAX)
        {
            match command {
                Command::Publish(record, answer) => {
                    records.push(record);
                    answers.push(answer);
                }
                Command::Flush(answer) => {
                    flush = true;
                    answers.push(answer);
                }
            }
        }
        let records = self.place(records);
        let result = self.write(&records, flush || self.marks_are_due());
        if result.is_ok() {
            self.announce(records);
        }
        for answer in answers {
            // A caller that gave up does not take its record back.
            drop(answer.send(repeat(&result)));
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

    /// Gives each record its partition and its offset; both count only once the transaction has succeeded.
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
        let result = write(&mut self.connection, records, &marks);
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
    connection: &mut Connection,
    records: &[IncomingRecord],
    marks: &[file::GroupMark],
) -> Result<(), BusError> {
    if records.is_empty() && marks.is_empty() {
        return Ok(());
    }
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(|error| file::unavailable(&error))?;
    records
        .iter()
        .try_for_each(|record| file::append(&transaction, record))?;
    marks
        .iter()
        .try_for_each(|mark| file::write_mark(&transaction, mark))?;
    transaction
        .commit()
        .map_err(|error| file::unavailable(&error))
}

/// One result for each of those who share a transaction.
fn repeat(result: &Result<(), BusError>) -> Result<(), BusError> {
    match result {
        Ok(()) => Ok(()),
        Err(BusError::Unavailable(reason)) => Err(BusError::Unavailable(reason.clone())),
        Err(BusError::Fatal(reason)) => Err(BusError::Fatal(reason.clone())),
    }
}
