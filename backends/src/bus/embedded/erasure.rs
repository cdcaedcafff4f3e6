//! The thread that removes the records of conversations and organizations from the file.
//!
//! It looks for them on a connection of its own, page by page, and all erasures that wait share one
//! look. Publishing waits for the deletion of a few rows at a time, however large the file is.
//!
//! A record of a conversation is removed if it can be no longer needed: a job once every consumer
//! group has finished it, so that its redelivery would run nothing. Events, dead letters and hints
//! about lost workers are removed at once. A job that waits belongs to the conversation that begins
//! anew. Of an organization nothing begins anew, so that all of its records go.

use std::{
    collections::HashSet,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use memchr::memmem::Finder;
use rusqlite::{Connection, params};
use switchboard_schemas::{ids::OrgId, topics::Topic};
use tokio::sync::oneshot;

use super::{file, tails::RecordTails, writer::LogWriter};
use crate::{
    bus::{
        BusError, CommitMark, PartitionId,
        ledger::{OffsetLedger, OffsetState},
    },
    sqlite_residue::{ResidueStep, SqliteResidue},
};

/// Maximum number of waiting erasures; further ones fail with [`BusError::Unavailable`].
const WAITING_MAX: usize = 1024;
/// Records that are looked at in one read.
const PAGE_ROWS: i64 = 256;
/// Records that are deleted in one write.
const DELETED_AT_ONCE: usize = 32;
/// Number of tries of a step to erase the residue, each of which waits a moment for readers.
const RESIDUE_TRIES_MAX: u32 = 10;
const RESIDUE_PAUSE: Duration = Duration::from_millis(20);

/// The records to remove.
pub(super) enum RecordFilter {
    /// Those of a conversation, whose id is the key.
    Key(String),
    /// Those of an organization, whose id is in their content. Announcements of changes of the
    /// configuration are not among them.
    Organization(OrgId),
}

/// The handle of the thread. Dropping it interrupts the thread.
pub(super) struct LogEraser {
    queue: Option<SyncSender<Erasure>>,
    is_stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

struct Erasure {
    filter: RecordFilter,
    answer: oneshot::Sender<Result<(), BusError>>,
}

impl LogEraser {
    /// Starts the thread for an existing file.
    pub(super) fn start(
        path: &Path,
        tails: Arc<RecordTails>,
        writer: Arc<LogWriter>,
    ) -> Result<Self, BusError> {
        let fatal = |error: &dyn std::fmt::Display| BusError::Fatal(format!("log file: {error}"));
        let (queue, erasures) = sync_channel(WAITING_MAX);
        let is_stopping = Arc::new(AtomicBool::default());
        let eraser = EraserThread {
            connection: file::open(path).map_err(|error| fatal(&error))?,
            residue: SqliteResidue::open(path).map_err(|error| fatal(&error))?,
            tails,
            writer,
            is_stopping: Arc::clone(&is_stopping),
        };
        let thread = thread::Builder::new()
            .name("bus-eraser".to_owned())
            .spawn(move || eraser.run(&erasures))
            .map_err(|error| fatal(&error))?;
        Ok(Self {
            queue: Some(queue),
            is_stopping,
            thread: Some(thread),
        })
    }

    /// Removes the records that were published before.
    pub(super) async fn erase(&self, filter: RecordFilter) -> Result<(), BusError> {
        let (answer, answered) = oneshot::channel();
        let erasure = Erasure { filter, answer };
        let queue = self.queue.as_ref().ok_or_else(stopped)?;
        queue.try_send(erasure).map_err(|error| match error {
            TrySendError::Full(_) => BusError::Unavailable("log eraser is behind".to_owned()),
            TrySendError::Disconnected(_) => stopped(),
        })?;
        answered.await.map_err(|_| stopped())?
    }
}

impl Drop for LogEraser {
    fn drop(&mut self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.queue = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("log eraser panicked");
        }
    }
}

fn stopped() -> BusError {
    BusError::Unavailable("log eraser has stopped".to_owned())
}

/// The state of the thread.
struct EraserThread {
    connection: Connection,
    residue: SqliteResidue,
    tails: Arc<RecordTails>,
    writer: Arc<LogWriter>,
    is_stopping: Arc<AtomicBool>,
}

impl EraserThread {
    fn run(self, erasures: &Receiver<Erasure>) {
        while let Ok(first) = erasures.recv() {
            let waiting: Vec<_> = std::iter::once(first)
                .chain(erasures.try_iter())
                // Nobody waits for the others any more; who still wants one asks again.
                .filter(|erasure| !erasure.answer.is_closed())
                .collect();
            if waiting.is_empty() {
                continue;
            }
            let filters = FilterSet::new(waiting.iter().map(|erasure| &erasure.filter));
            let result = self.erase(&filters);
            for erasure in waiting {
                drop(erasure.answer.send(result.clone()));
            }
        }
    }

    fn erase(&self, filters: &FilterSet<'_>) -> Result<(), BusError> {
        // The marks in the file show which records are finished.
        self.writer.flush_and_wait()?;
        for partition in self.tails.partitions() {
            self.erase_in(partition, filters)?;
        }
        self.erase_residue()
    }

    fn erase_in(&self, partition: PartitionId, filters: &FilterSet<'_>) -> Result<(), BusError> {
        let mut from = Some(0);
        while let Some(place) = from {
            self.check_running()?;
            let began = Instant::now();
            let found = find_page(&self.connection, partition, place, filters);
            let found = found.map_err(|error| file::unavailable(&error))?;
            let began_to_delete = Instant::now();
            for offsets in found.offsets.chunks(DELETED_AT_ONCE) {
                self.writer.delete_and_wait(partition, offsets.to_vec())?;
            }
            // Half of one processor's time is left to others.
            thread::sleep(began_to_delete - began);
            from = found.next;
        }
        Ok(())
    }

    fn erase_residue(&self) -> Result<(), BusError> {
        let (mut place, mut tries) = (0, 0);
        loop {
            self.check_running()?;
            let began = Instant::now();
            let step = self.residue.erase_step(&self.connection, place);
            match step.map_err(|error| file::unavailable(&error))? {
                ResidueStep::Complete => return Ok(()),
                ResidueStep::Next(next) => {
                    (place, tries) = (next, 0);
                    thread::sleep(began.elapsed());
                }
                ResidueStep::Busy if tries < RESIDUE_TRIES_MAX => {
                    tries += 1;
                    thread::sleep(RESIDUE_PAUSE);
                }
                ResidueStep::Busy => {
                    return Err(BusError::Unavailable("readers need the log file".into()));
                }
            }
        }
    }

    fn check_running(&self) -> Result<(), BusError> {
        if self.is_stopping.load(Ordering::Relaxed) {
            return Err(stopped());
        }
        Ok(())
    }
}

/// The filters of erasures that share one look at the file.
#[derive(Default)]
struct FilterSet<'a> {
    keys: HashSet<&'a str>,
    organizations: Vec<Finder<'a>>,
}

impl<'a> FilterSet<'a> {
    fn new(filters: impl Iterator<Item = &'a RecordFilter>) -> Self {
        let mut set = Self::default();
        for filter in filters {
            match filter {
                RecordFilter::Key(key) => drop(set.keys.insert(key)),
                RecordFilter::Organization(org) => {
                    set.organizations.push(Finder::new(org.as_str()));
                }
            }
        }
        set
    }

    fn has_key(&self, key: &str) -> bool {
        // Hints about lost workers and their dead letters have `/` and a number behind the key.
        let owner = key.split_once('/').map_or(key, |(owner, _)| owner);
        self.keys.contains(owner)
    }

    fn has_organization(&self, payload: &[u8]) -> bool {
        let mut organizations = self.organizations.iter();
        organizations.any(|organization| organization.find(payload).is_some())
    }
}

/// Records of a page that are to be deleted, and the place of the next page.
struct FoundRecords {
    offsets: Vec<u64>,
    next: Option<u64>,
}

fn find_page(
    connection: &Connection,
    partition: PartitionId,
    from: u64,
    filters: &FilterSet<'_>,
) -> rusqlite::Result<FoundRecords> {
    let is_searched = !filters.organizations.is_empty() && partition.topic != Topic::Control;
    let mut statement = connection.prepare_cached(
        "SELECT offset, key, CASE WHEN ?4 THEN payload END FROM records
         WHERE topic = ?1 AND partition = ?2 AND offset >= ?3 ORDER BY offset LIMIT ?5",
    )?;
    let (topic, number) = (partition.topic.name(), partition.number);
    let bounds = params![topic, number, file::signed(from), is_searched, PAGE_ROWS];
    let (mut of_keys, mut offsets, mut last, mut count) = (Vec::new(), Vec::new(), None, 0);
    let mut rows = statement.query(bounds)?;
    while let Some(row) = rows.next()? {
        let offset = file::unsigned(row.get(0)?);
        if is_searched && filters.has_organization(row.get_ref(2)?.as_blob()?) {
            offsets.push(offset);
        } else if filters.has_key(row.get_ref(1)?.as_str()?) {
            of_keys.push(offset);
        }
        (last, count) = (Some(offset), count + 1);
    }
    if matches!(partition.topic, Topic::Route | Topic::Jobs) && !of_keys.is_empty() {
        of_keys = finished_by_all(of_keys, &file::marks_on(connection, partition)?);
    }
    offsets.extend(of_keys);
    let next = last.filter(|_| count == PAGE_ROWS).map(|last| last + 1);
    Ok(FoundRecords { offsets, next })
}

/// Returns the offsets, in ascending order, that every group has finished; none without a group.
fn finished_by_all(offsets: Vec<u64>, marks: &[CommitMark]) -> Vec<u64> {
    let mut ledgers: Vec<_> = marks
        .iter()
        .map(|mark| OffsetLedger::resume(Some(mark)))
        .collect();
    let mut is_finished = |offset: &u64| {
        let states = ledgers.iter_mut().map(|ledger| ledger.take(*offset));
        states.fold(!marks.is_empty(), |all, state| {
            all && state == OffsetState::AlreadyFinished
        })
    };
    offsets
        .into_iter()
        .filter(|offset| is_finished(offset))
        .collect()
}
