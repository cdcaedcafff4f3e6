//! Attempts on disk for the embedded relay: a job that kills its process is counted before it begins, so that the
//! restart loop ends after [`super::ATTEMPTS_MAX`].

use std::{
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use rusqlite::{Connection, OptionalExtension, params};
use switchboard_schemas::{ids::MessageId, time::Timestamp};

use super::{DONE_TTL, RelayError, claim_state::AttemptRecord};

// A killed process loses nothing with synchronous off, only a power cut can; a few lost counts are then harmless.
const SCHEMA: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = OFF;
    CREATE TABLE IF NOT EXISTS attempts (
        reply_id TEXT PRIMARY KEY,
        attempt INTEGER NOT NULL,
        failures INTEGER NOT NULL,
        released INTEGER NOT NULL,
        written_at INTEGER NOT NULL
    ) WITHOUT ROWID, STRICT;";

/// The file of attempts.
pub(super) struct AttemptBook {
    connection: Mutex<Connection>,
}

impl AttemptBook {
    /// Opens or makes the file, and drops what is older than any job can be.
    pub(super) fn open(path: &Path) -> Result<Self, RelayError> {
        let open = || {
            let connection = Connection::open(path)?;
            connection.execute_batch(SCHEMA)?;
            let keep_micros = i64::try_from(DONE_TTL.as_micros()).unwrap_or(i64::MAX);
            let oldest = Timestamp::now().micros() - keep_micros;
            connection.execute("DELETE FROM attempts WHERE written_at < ?1", params![oldest])?;
            Ok(connection)
        };
        open().map(|connection| Self { connection: Mutex::new(connection) }).map_err(unavailable)
    }

    /// What an earlier run wrote of a reply.
    pub(super) fn read(&self, reply_id: &MessageId) -> Result<Option<AttemptRecord>, RelayError> {
        self.connection()
            .prepare_cached("SELECT attempt, failures, released FROM attempts WHERE reply_id = ?1")
            .and_then(|mut select| {
                select
                    .query_row(params![reply_id.as_str()], |row| {
                        Ok(AttemptRecord { attempt: row.get(0)?, failures: row.get(1)?, released: row.get(2)? })
                    })
                    .optional()
            })
            .map_err(unavailable)
    }

    /// Counts an attempt. Writers may pass each other, so the highest attempt stays.
    pub(super) fn write(&self, reply_id: &MessageId, record: AttemptRecord) -> Result<(), RelayError> {
        self.execute(
            "INSERT INTO attempts VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (reply_id) DO UPDATE SET
                attempt = excluded.attempt, failures = excluded.failures, released = excluded.released,
                written_at = excluded.written_at
             WHERE excluded.attempt > attempt",
            params![
                reply_id.as_str(),
                record.attempt,
                record.failures,
                record.released,
                Timestamp::now().micros()
            ],
        )
    }

    /// Notes that an attempt was handed over and did not die.
    pub(super) fn release(&self, reply_id: &MessageId, attempt: u32) -> Result<(), RelayError> {
        self.execute(
            "UPDATE attempts SET released = 1 WHERE reply_id = ?1 AND attempt = ?2",
            params![reply_id.as_str(), attempt],
        )
    }

    /// The reply is final.
    pub(super) fn forget(&self, reply_id: &MessageId, attempt: u32) -> Result<(), RelayError> {
        self.execute(
            "DELETE FROM attempts WHERE reply_id = ?1 AND attempt = ?2",
            params![reply_id.as_str(), attempt],
        )
    }

    fn execute(&self, sql: &str, values: impl rusqlite::Params) -> Result<(), RelayError> {
        let changed = self.connection().prepare_cached(sql).and_then(|mut statement| statement.execute(values));
        changed.map(|_| ()).map_err(unavailable)
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unavailable(error: rusqlite::Error) -> RelayError {
    RelayError::Unavailable(format!("attempt file: {error}"))
}
