//! A SQLite file of an embedded backend: a writer thread that commits waiting writes together, and
//! pooled readers.
//!
//! Each commit waits for the disk, so that an acknowledged write survives a crash of the process
//! and of the machine. Writes that arrive during a commit share the next one: throughput rises with
//! load, and no write waits for a timer.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::{
    sync::{Semaphore, mpsc, oneshot},
    task::{self, JoinSet},
    time::{self, Instant},
};

use crate::{
    error::StoreError,
    sqlite_residue::{SqliteResidue, truncate_log},
};

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
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
    residue: SqliteResidue,
}

impl SqliteDatabase {
    /// Opens or creates the file and applies missing `migrations`. The position of a migration in
    /// the list is its version, so that the list only grows at its end.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the file cannot be used, [`StoreError::Malformed`] if a newer
    /// version wrote it.
    pub(crate) fn open(path: &Path, migrations: &[&str]) -> Result<Self, StoreError> {
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).map_err(|error| unavailable(&error))?;
        }
        let writer = connect(path)?;
        migrate(&writer, migrations)?;
        // A process that was killed leaves deleted text in the log.
        truncate_log(&connect(path)?)?;
        let (writes, jobs) = mpsc::channel(WRITE_QUEUE_MAX);
        thread::Builder::new()
            .name("sqlite-writer".into())
            .spawn(move || write_until_closed(&writer, jobs))
            .map_err(|error| unavailable(&error))?;
        Ok(Self {
            writes,
            readers: Arc::new(ReaderPool::new(path)?),
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
        let deadline = Instant::now() + RESIDUE_WAIT;
        loop {
            let readers = Arc::clone(&self.readers);
            let erased = task::spawn_blocking(move || {
                Ok::<_, StoreError>(readers.residue.erase(&connect(&readers.path)?)?)
            });
            if erased.await.map_err(|error| unavailable(&error))?? {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(unavailable(&"readers need the write-ahead log"));
            }
            time::sleep(RESIDUE_PAUSE).await;
        }
    }
}

impl ReaderPool {
    fn new(path: &Path) -> Result<Self, StoreError> {
        Ok(Self {
            path: path.to_owned(),
            permits: Arc::new(Semaphore::new(READERS)),
            idle: Mutex::default(),
            residue: SqliteResidue::open(path).map_err(|error| unavailable(&error))?,
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
        // Dropping it ends the snapshot.
        let snapshot = connection.unchecked_transaction()?;
        let outcome = work(&snapshot);
        drop(snapshot);
        self.idle.lock().push(connection);
        outcome
    }

    fn connect(&self) -> Result<Connection, StoreError> {
        let connection = connect(&self.path)?;
        connection.pragma_update(None, "query_only", true)?;
        Ok(connection)
    }
}

fn connect(path: &Path) -> Result<Connection, StoreError> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY_WAIT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // Overwrite deleted data and keep no copy in the log after its next checkpoint: people request
    // that their text is deleted.
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "journal_size_limit", 0)?;
    Ok(connection)
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
    if let Err(error) = execute(connection, "BEGIN IMMEDIATE") {
        tracing::warn!(%error, "embedded database rejects writes");
        return;
    }
    let mut answers = Vec::new();
    let mut next = Some(first);
    while let Some(job) = next {
        answers.push(write_one(connection, job));
        // SQLite itself rolls back a transaction that met a full disk: all of its writes are gone.
        next = if answers.len() < WRITES_PER_COMMIT_MAX && !connection.is_autocommit() {
            jobs.try_recv().ok()
        } else {
            None
        };
    }
    let committed = execute(connection, "COMMIT");
    if committed.is_err() && !connection.is_autocommit() {
        let _ = execute(connection, "ROLLBACK");
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
    let begun = execute(connection, "SAVEPOINT one");
    let written = job(connection);
    let undone = if written.succeeded {
        Ok(())
    } else {
        execute(connection, "ROLLBACK TO one")
    };
    let ended = begun
        .and(undone)
        .and_then(|()| execute(connection, "RELEASE one"));
    match ended {
        Ok(()) => written.answer,
        Err(error) => Box::new(move |_| (written.answer)(Err(error.into()))),
    }
}

fn execute(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
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
mod tests {
    use futures::future::join_all;

    use super::*;

    /// The log after the last write of an erasure, which changes only the first page.
    const LOG_OF_ONE_PAGE_BYTES: u64 = 32 + 24 + 4096;
    const TABLE: &str = "CREATE TABLE numbers (number INTEGER PRIMARY KEY) STRICT";

    fn open(
        directory: &tempfile::TempDir,
        migrations: &[&str],
    ) -> Result<SqliteDatabase, StoreError> {
        SqliteDatabase::open(&directory.path().join("numbers.db"), migrations)
    }

    async fn insert(database: &SqliteDatabase, number: u32) -> Result<(), StoreError> {
        let insert = move |connection: &Connection| {
            connection
                .prepare_cached("INSERT INTO numbers VALUES (?1)")?
                .execute([number])?;
            Ok(())
        };
        database.write(insert).await
    }

    async fn numbers(database: &SqliteDatabase) -> Vec<u32> {
        let select = |connection: &Connection| {
            let mut statement =
                connection.prepare_cached("SELECT number FROM numbers ORDER BY number")?;
            Ok(statement
                .query_map([], |row| row.get(0))?
                .collect::<rusqlite::Result<_>>()?)
        };
        database.read(select).await.unwrap()
    }

    #[tokio::test]
    async fn failed_write_does_not_undo_others_of_its_commit() {
        let directory = tempfile::tempdir().unwrap();
        let database = open(&directory, &[TABLE]).unwrap();
        let outcomes = join_all([1, 2, 1, 3].map(|number| insert(&database, number))).await;
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 3);
        assert_eq!(numbers(&database).await, [1, 2, 3]);
    }

    #[tokio::test]
    async fn read_sees_all_acknowledged_writes() {
        let directory = tempfile::tempdir().unwrap();
        let database = open(&directory, &[TABLE]).unwrap();
        for number in 0..50 {
            insert(&database, number).await.unwrap();
            assert_eq!(numbers(&database).await.len() as u32, number + 1);
        }
    }

    #[tokio::test]
    async fn paused_reads_keep_no_reader_from_others() {
        let directory = tempfile::tempdir().unwrap();
        let database = open(&directory, &[TABLE]).unwrap();
        let mut paused: Vec<_> = (0..4 * READERS)
            .map(|_| Box::pin(numbers(&database)))
            .collect();
        for read in &mut paused {
            let _ = futures::poll!(read);
        }
        assert!(numbers(&database).await.is_empty());
    }

    #[tokio::test]
    async fn waiting_writes_share_commits() {
        let directory = tempfile::tempdir().unwrap();
        let database = open(&directory, &[TABLE]).unwrap();
        let outcomes = join_all((0..2000).map(|number| insert(&database, number))).await;
        assert!(outcomes.iter().all(Result::is_ok));
        assert_eq!(numbers(&database).await.len(), 2000);
    }

    #[tokio::test]
    async fn migrations_run_once_and_in_order() {
        let directory = tempfile::tempdir().unwrap();
        insert(&open(&directory, &[TABLE]).unwrap(), 7)
            .await
            .unwrap();
        let second = "INSERT INTO numbers SELECT number + 1 FROM numbers";
        for _ in 0..2 {
            assert_eq!(
                numbers(&open(&directory, &[TABLE, second]).unwrap()).await,
                [7, 8]
            );
        }
    }

    #[tokio::test]
    async fn deleted_data_is_not_left_in_the_file() {
        const WORDS: &str = "zebra crossing";
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("numbers.db");
        let database = open(&directory, &["CREATE TABLE texts (text TEXT) STRICT"]).unwrap();
        let log = path.with_file_name("numbers.db-wal");
        let holds_words = || {
            let bytes = [&path, &log]
                .map(|path| std::fs::read(path).unwrap())
                .concat();
            bytes
                .windows(WORDS.len())
                .any(|part| part == WORDS.as_bytes())
        };
        for (statement, is_there) in [
            ("INSERT INTO texts VALUES (?1)", true),
            ("DELETE FROM texts WHERE text = ?1", false),
        ] {
            let run = move |connection: &Connection| {
                Ok(connection.execute(statement, [WORDS]).map(|_| ())?)
            };
            database.write(run).await.unwrap();
            database.erase_residue().await.unwrap();
            assert_eq!(holds_words(), is_there, "{statement}");
        }
        assert!(std::fs::metadata(log).unwrap().len() <= LOG_OF_ONE_PAGE_BYTES);
    }

    #[tokio::test]
    async fn log_is_emptied_behind_a_reader_that_needs_it() {
        let directory = tempfile::tempdir().unwrap();
        let database = open(&directory, &[TABLE]).unwrap();
        let log = directory.path().join("numbers.db-wal");
        let (begun, has_begun) = oneshot::channel();
        let slow_read = database.read(move |connection| {
            connection.query_row("SELECT count(*) FROM numbers", [], |_| Ok(()))?;
            let _ = begun.send(());
            thread::sleep(Duration::from_secs(1));
            Ok(())
        });
        let deletion = async {
            has_begun.await.unwrap();
            let write = |connection: &Connection| {
                Ok(connection.execute("DELETE FROM numbers", []).map(|_| ())?)
            };
            database.write(write).await.unwrap();
            database.erase_residue().await.unwrap();
            std::fs::metadata(&log).unwrap().len()
        };
        let (read, left) = tokio::join!(slow_read, deletion);
        read.unwrap();
        assert!(
            left <= LOG_OF_ONE_PAGE_BYTES,
            "busy is no success: {left} bytes"
        );
    }

    #[test]
    fn file_of_a_newer_version_is_rejected() {
        let directory = tempfile::tempdir().unwrap();
        drop(open(&directory, &[TABLE, "SELECT 1"]).unwrap());
        assert!(matches!(
            open(&directory, &[TABLE]),
            Err(StoreError::Malformed(_))
        ));
    }
}
