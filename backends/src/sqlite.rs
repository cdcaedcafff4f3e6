//! A SQLite file of an embedded backend: a writer thread that commits waiting writes together, and
//! pooled readers.
//!
//! Each commit waits for the disk, so that an acknowledged write survives a crash of the process
//! and of the machine. Writes that arrive during a commit share the next one: throughput rises with
//! load, and no write waits for a timer.

use std::{
    ffi::CStr,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use parking_lot::Mutex;
use rusqlite::{Connection, OpenFlags};
use switchboard_schemas::ids::OrgId;
use tokio::{
    sync::{Semaphore, mpsc, oneshot},
    task::{self, JoinSet},
    time::{self, Instant},
};

use crate::{
    error::StoreError,
    sqlite_residue::{ResidueStep, SqliteResidue, truncate_log},
};

pub(crate) mod log_copier;

/// Maximum number of queued writes.
const WRITE_QUEUE_MAX: usize = 1024;
/// Maximum number of writes in one commit, which bounds the wait of the first of them.
const WRITES_PER_COMMIT_MAX: usize = 256;
/// Number of pooled read connections.
const READERS: usize = 4;
/// Timeout of waiting for a place in the queue or for a reader.
const QUEUE_WAIT: Duration = Duration::from_secs(3);
/// Timeout of waiting for another process that holds the file.
const BUSY_WAIT: Duration = Duration::from_secs(5);
/// Pause between two tries to erase what deleted rows leave.
const RESIDUE_PAUSE: Duration = Duration::from_millis(300);
/// Timeout of all tries, longer than a read may take.
const RESIDUE_WAIT: Duration = Duration::from_secs(10);
/// Maximum number of prepared statements per connection, more than any backend has.
const STATEMENTS_MAX: usize = 48;
/// Size that the write-ahead log keeps between checkpoints, in bytes. It is overwritten: the sync
/// of a file that does not grow takes a third of the time.
pub(crate) const LOG_KEPT_BYTES: u32 = 4 << 20;
/// Rows of an organization that are deleted in one write.
const ROWS_PER_STEP: usize = 500;
/// Tables with the columns of their primary keys, which begin with the organization.
pub(crate) const TABLES_WITH_ORGANIZATIONS: &str =
    "SELECT name, (SELECT group_concat(name, ', ') FROM
        (SELECT name FROM pragma_table_info(tables.name) WHERE pk > 0 ORDER BY pk))
    FROM sqlite_schema AS tables WHERE type = 'table'
        AND (SELECT pk FROM pragma_table_info(tables.name) WHERE name = 'org_id') = 1";
/// Locks of files that one process opens. They are taken once, and the index of the log is in its
/// memory.
const ONE_PROCESS: &CStr = c"unix-excl";

/// The processes that may open a file at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileSharing {
    /// The service alone.
    OneProcess,
    /// The service and other programs, such as its commands.
    Commands,
}

/// A database of this process; clones share it.
#[derive(Clone)]
pub(crate) struct SqliteDatabase {
    writes: mpsc::Sender<WriteJob>,
    readers: Arc<ReaderPool>,
}

/// A queued write: runs its work and returns its completion, which is called after the commit.
type WriteJob = Box<dyn FnOnce(&Connection) -> UncommittedWrite + Send>;

/// A write that is done and not yet committed.
struct UncommittedWrite {
    succeeded: bool,
    answer: Box<dyn FnOnce(Result<(), StoreError>) + Send>,
}

struct ReaderPool {
    path: PathBuf,
    sharing: FileSharing,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
    residue: SqliteResidue,
    passes: ResiduePasses,
}

/// The passes over the file that erase residue, one at a time.
#[derive(Default)]
struct ResiduePasses {
    begun: AtomicU64,
    /// Number of the last pass that came to the end of the file.
    last_complete: tokio::sync::Mutex<u64>,
}

impl SqliteDatabase {
    /// Opens or creates the file and applies missing `migrations`. The position of a migration in
    /// the list is its version, so that the list only grows at its end.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the file cannot be used, [`StoreError::Malformed`] if a newer
    /// version wrote it.
    pub(crate) fn open(
        path: &Path,
        sharing: FileSharing,
        migrations: &[&str],
    ) -> Result<Self, StoreError> {
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).map_err(|error| unavailable(&error))?;
        }
        let mut writer = connect(path, sharing)?;
        migrate(&writer, migrations)?;
        // A process that was killed leaves deleted text in the log.
        truncate_log(&connect(path, sharing)?)?;
        if sharing == FileSharing::OneProcess {
            log_copier::start(&mut writer, connect(path, sharing)?)?;
        }
        let (writes, jobs) = mpsc::channel(WRITE_QUEUE_MAX);
        thread::Builder::new()
            .name("sqlite-writer".into())
            .spawn(move || write_until_closed(&writer, jobs))
            .map_err(|error| unavailable(&error))?;
        Ok(Self {
            writes,
            readers: Arc::new(ReaderPool::new(path, sharing)?),
        })
    }

    /// Runs `work` in a transaction and returns once it is on disk. An error of `work` undoes only
    /// this write.
    ///
    /// # Errors
    /// Those of `work`, and [`StoreError::Unavailable`] if the disk or the queue is full.
    pub(crate) async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        let job: WriteJob = Box::new(move |connection| {
            let outcome = work(connection);
            let succeeded = outcome.is_ok();
            let answer = Box::new(move |committed: Result<(), StoreError>| {
                // Dropping the caller does not undo its write.
                let _ = sender.send(outcome.and_then(|value| committed.map(|()| value)));
            });
            UncommittedWrite { succeeded, answer }
        });
        self.writes
            .send_timeout(job, QUEUE_WAIT)
            .await
            .map_err(|_| unavailable(&"the write queue is full"))?;
        receiver
            .await
            .map_err(|_| unavailable(&"the write could not begin"))?
    }

    /// Runs `work` on a snapshot of everything that was committed before this call.
    ///
    /// # Errors
    /// Those of `work`, and [`StoreError::Unavailable`] if no reader is free in time.
    pub(crate) async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let readers = Arc::clone(&self.readers);
        // A task of its own: a future that nobody polls would keep the reader that it was given,
        // and whoever paused it might wait for another read.
        let mut reading = JoinSet::new();
        reading.spawn(async move {
            let permit = Arc::clone(&readers.permits).acquire_owned();
            let permit = time::timeout(QUEUE_WAIT, permit)
                .await
                .map_err(|_| unavailable(&"all readers are busy"))?
                .map_err(|error| unavailable(&error))?;
            let reading = task::spawn_blocking(move || {
                let _permit = permit;
                readers.read(work)
            });
            reading.await.map_err(|error| unavailable(&error))?
        });
        match reading.join_next().await {
            Some(joined) => joined.map_err(|error| unavailable(&error))?,
            None => Err(unavailable(&"the read could not begin")),
        }
    }
}

impl SqliteDatabase {
    /// Removes what the file and its write-ahead log still contain of deleted rows.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if readers needed the log for [`RESIDUE_WAIT`] all the time;
    /// then it is not empty, and the deletion is not finished.
    pub(crate) async fn erase_residue(&self) -> Result<(), StoreError> {
        let passes = &self.readers.passes;
        let begun = passes.begun.load(Ordering::SeqCst);
        let mut complete = passes.last_complete.lock().await;
        // A pass that began after this call erased what the caller deleted, too.
        if *complete > begun {
            return Ok(());
        }
        let number = passes.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let (mut place, mut deadline) = (0, Instant::now() + RESIDUE_WAIT);
        loop {
            let (readers, began) = (Arc::clone(&self.readers), Instant::now());
            let step = task::spawn_blocking(move || {
                let connection = readers.connect_to_write()?;
                Ok::<_, StoreError>(readers.residue.erase_step(&connection, place)?)
            });
            match step.await.map_err(|error| unavailable(&error))?? {
                ResidueStep::Complete => {
                    *complete = number;
                    return Ok(());
                }
                // Other writes have their turn.
                ResidueStep::Next(next) => {
                    place = next;
                    time::sleep(began.elapsed()).await;
                    deadline = Instant::now() + RESIDUE_WAIT;
                }
                ResidueStep::Busy if Instant::now() >= deadline => {
                    return Err(unavailable(&"readers need the write-ahead log"));
                }
                ResidueStep::Busy => time::sleep(RESIDUE_PAUSE).await,
            }
        }
    }
}

impl SqliteDatabase {
    /// Deletes all rows of an organization, in steps after which other writes have their turn, and
    /// then what they leave in the file. Entries of the catalog are deleted one by one instead.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`]; another call goes on.
    pub(crate) async fn erase_organization(&self, org: &OrgId) -> Result<(), StoreError> {
        let tables = self.read(|connection| {
            let mut select = connection.prepare(TABLES_WITH_ORGANIZATIONS)?;
            let tables = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(tables.collect::<rusqlite::Result<Vec<(String, String)>>>()?)
        });
        for (table, key) in tables.await? {
            let delete = format!(
                "DELETE FROM {table} WHERE ({key}) IN
                     (SELECT {key} FROM {table} WHERE org_id = ?1 LIMIT {ROWS_PER_STEP})"
            );
            loop {
                let (delete, org) = (delete.clone(), org.clone());
                let step = self.write(move |connection| {
                    let mut delete = connection.prepare_cached(&delete)?;
                    Ok(delete.execute([org.as_str()])?)
                });
                if step.await? < ROWS_PER_STEP {
                    break;
                }
            }
        }
        self.erase_residue().await
    }
}

impl ReaderPool {
    fn new(path: &Path, sharing: FileSharing) -> Result<Self, StoreError> {
        Ok(Self {
            path: path.to_owned(),
            sharing,
            permits: Arc::new(Semaphore::new(READERS)),
            idle: Mutex::default(),
            residue: SqliteResidue::open(path).map_err(|error| unavailable(&error))?,
            passes: ResiduePasses::default(),
        })
    }

    fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let idle = self.idle.lock().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.connect()?,
        };
        execute_cached(&connection, "BEGIN")?;
        let outcome = work(&connection);
        // A connection whose snapshot does not end is not used again.
        if execute_cached(&connection, "ROLLBACK").is_ok() {
            self.idle.lock().push(connection);
        }
        outcome
    }

    fn connect(&self) -> Result<Connection, StoreError> {
        let connection = self.connect_to_write()?;
        connection.pragma_update(None, "query_only", true)?;
        Ok(connection)
    }

    fn connect_to_write(&self) -> Result<Connection, StoreError> {
        connect(&self.path, self.sharing)
    }
}

fn connect(path: &Path, sharing: FileSharing) -> Result<Connection, StoreError> {
    let connection = match sharing {
        FileSharing::OneProcess => open_for_one_process(path)?,
        FileSharing::Commands => Connection::open(path)?,
    };
    connection.busy_timeout(BUSY_WAIT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // People request that their data is deleted. A kept log is emptied by `erase_residue`; accounts
    // and products are deleted without it.
    connection.pragma_update(None, "secure_delete", true)?;
    let kept_bytes = match sharing {
        FileSharing::OneProcess => LOG_KEPT_BYTES,
        FileSharing::Commands => 0,
    };
    connection.pragma_update(None, "journal_size_limit", kept_bytes)?;
    Ok(connection)
}

/// Opens or creates a file that no other process may open meanwhile.
pub(crate) fn open_for_one_process(path: &Path) -> rusqlite::Result<Connection> {
    Connection::open_with_flags_and_vfs(path, OpenFlags::default(), ONE_PROCESS)
}

fn migrate(connection: &Connection, migrations: &[&str]) -> Result<(), StoreError> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let done: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let newest = u32::try_from(migrations.len()).unwrap_or(u32::MAX);
    if done > newest {
        return Err(StoreError::Malformed(format!(
            "the database has version {done}, written by a newer program"
        )));
    }
    for migration in migrations.iter().skip(done as usize) {
        connection.execute_batch(migration)?;
    }
    connection.pragma_update(None, "user_version", newest)?;
    Ok(connection.execute_batch("COMMIT")?)
}

fn write_until_closed(connection: &Connection, mut jobs: mpsc::Receiver<WriteJob>) {
    while let Some(first) = jobs.blocking_recv() {
        commit_together(connection, first, &mut jobs);
    }
}

fn commit_together(connection: &Connection, first: WriteJob, jobs: &mut mpsc::Receiver<WriteJob>) {
    if let Err(error) = execute_cached(connection, "BEGIN IMMEDIATE") {
        tracing::warn!(%error, "embedded database rejects writes");
        return;
    }
    let mut answers = Vec::new();
    let second = jobs.try_recv().ok();
    let mut next = if second.is_some() {
        answers.push(write_one(connection, first));
        second
    } else {
        // A failing write that is alone undoes nothing of others.
        let written = first(connection);
        if !written.succeeded {
            let _ = execute_cached(connection, "ROLLBACK");
            (written.answer)(Ok(()));
            return;
        }
        answers.push(written.answer);
        None
    };
    while let Some(job) = next {
        answers.push(write_one(connection, job));
        // SQLite itself rolls back a transaction that met a full disk: all of its writes are gone.
        next = if answers.len() < WRITES_PER_COMMIT_MAX && !connection.is_autocommit() {
            jobs.try_recv().ok()
        } else {
            None
        };
    }
    let committed = execute_cached(connection, "COMMIT");
    if committed.is_err() && !connection.is_autocommit() {
        let _ = execute_cached(connection, "ROLLBACK");
    }
    let failure = committed.err().map(|error| error.to_string());
    for answer in answers {
        answer(
            failure
                .as_ref()
                .map_or(Ok(()), |failure| Err(unavailable(failure))),
        );
    }
}

/// Runs a write in a savepoint of its own, so that a failing write undoes no other one.
fn write_one(
    connection: &Connection,
    job: WriteJob,
) -> Box<dyn FnOnce(Result<(), StoreError>) + Send> {
    let begun = execute_cached(connection, "SAVEPOINT one");
    let written = job(connection);
    let undone = if written.succeeded {
        Ok(())
    } else {
        execute_cached(connection, "ROLLBACK TO one")
    };
    let ended = begun
        .and(undone)
        .and_then(|()| execute_cached(connection, "RELEASE one"));
    match ended {
        Ok(()) => written.answer,
        Err(error) => Box::new(move |_| (written.answer)(Err(error.into()))),
    }
}

/// Executes a statement without values that stays prepared.
pub(crate) fn execute_cached(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(|_| ())
}

fn unavailable(error: &impl ToString) -> StoreError {
    StoreError::Unavailable(error.to_string())
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error {
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..) => Self::Malformed(error.to_string()),
            _ => unavailable(&error),
        }
    }
}

#[cfg(test)]
mod tests;
