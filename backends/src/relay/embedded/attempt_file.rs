//! Attempt counts of the embedded relay on disk, so that a job that kills its process is given up
//! after [`ATTEMPTS_MAX`](crate::relay::ATTEMPTS_MAX) restarts.

use std::path::Path;

use parking_lot::{Mutex, MutexGuard};
use rusqlite::{Connection, OptionalExtension, params};
use switchboard_schemas::{ids::MessageId, time::Timestamp};

use crate::{
    relay::{FINAL_STATE_TTL, RelayError},
    sqlite::open_for_one_process,
};

// With synchronous off, a killed process loses nothing; a power failure may lose a few counts,
// which is harmless.
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

/// The part of a claim that survives a crash of the process that also holds the relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AttemptRecord {
    /// Last attempt that was granted.
    pub(super) attempt: u32,
    /// Number of failed attempts before it.
    pub(super) failures: u32,
    /// `true` if the attempt was released as planned.
    pub(super) released: bool,
}

/// The database file of attempt counts.
pub(super) struct AttemptFile {
    connection: Mutex<Connection>,
}

impl AttemptFile {
    /// Opens or creates the file and deletes records older than any job can be.
    pub(super) fn open(path: &Path) -> Result<Self, RelayError> {
        let open = || {
            let connection = open_for_one_process(path)?;
            connection.execute_batch(SCHEMA)?;
            let keep_micros = i64::try_from(FINAL_STATE_TTL.as_micros()).unwrap_or(i64::MAX);
            let oldest = Timestamp::now().micros() - keep_micros;
            connection.execute(
                "DELETE FROM attempts WHERE written_at < ?1",
                params![oldest],
            )?;
            Ok(connection)
        };
        open()
            .map(|connection| Self {
                connection: Mutex::new(connection),
            })
            .map_err(unavailable)
    }

    /// Returns the attempts that an earlier run recorded for a reply.
    pub(super) fn read(&self, reply_id: &MessageId) -> Result<Option<AttemptRecord>, RelayError> {
        self.connection()
            .prepare_cached("SELECT attempt, failures, released FROM attempts WHERE reply_id = ?1")
            .and_then(|mut select| {
                select
                    .query_row(params![reply_id.as_str()], |row| {
                        Ok(AttemptRecord {
                            attempt: row.get(0)?,
                            failures: row.get(1)?,
                            released: row.get(2)?,
                        })
                    })
                    .optional()
            })
            .map_err(unavailable)
    }

    /// Records an attempt. Concurrent writes may be reordered, so the highest attempt is kept.
    pub(super) fn write(
        &self,
        reply_id: &MessageId,
        record: AttemptRecord,
    ) -> Result<(), RelayError> {
        self.execute(
            "INSERT INTO attempts VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (reply_id) DO UPDATE SET
                attempt = excluded.attempt, failures = excluded.failures, released = excluded.released,
                written_at = excluded.written_at
             WHERE excluded.attempt > attempt",
            params![reply_id.as_str(), record.attempt, record.failures, record.released, Timestamp::now().micros()],
        )
    }

    /// Records that an attempt was released and did not fail.
    pub(super) fn mark_released(
        &self,
        reply_id: &MessageId,
        attempt: u32,
    ) -> Result<(), RelayError> {
        self.execute(
            "UPDATE attempts SET released = 1 WHERE reply_id = ?1 AND attempt = ?2",
            params![reply_id.as_str(), attempt],
        )
    }

    /// Deletes the record of a reply that is final.
    pub(super) fn delete(&self, reply_id: &MessageId, attempt: u32) -> Result<(), RelayError> {
        self.execute(
            "DELETE FROM attempts WHERE reply_id = ?1 AND attempt = ?2",
            params![reply_id.as_str(), attempt],
        )
    }

    fn execute(&self, sql: &str, values: impl rusqlite::Params) -> Result<(), RelayError> {
        let changed = self
            .connection()
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(values));
        changed.map(|_| ()).map_err(unavailable)
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock()
    }
}

fn unavailable(error: rusqlite::Error) -> RelayError {
    RelayError::Unavailable(format!("attempt file: {error}"))
}

#[cfg(test)]
mod tests {
    use crate::relay::{
        ATTEMPTS_MAX, ClaimCompletion, ClaimOutcome, ClaimRequest, ClaimStore, ClaimTask,
        ClaimToken, embedded::EmbeddedRelay,
    };
    use std::path::Path;
    use switchboard_schemas::{
        ids::MessageId,
        reply_event::{Frame, FrameBody},
    };

    /// Opens the relay like a process that has just started, and claims the reply.
    async fn claim_after_start(
        path: &Path,
        reply_id: &MessageId,
    ) -> (EmbeddedRelay, ClaimToken, ClaimTask) {
        let relay = EmbeddedRelay::open(Some(path)).unwrap();
        let request = ClaimRequest {
            reply_id: reply_id.clone(),
            publish_nonce: "publish".into(),
            nonce: rand::random(),
            attempt_min: 1,
            maybe_held: false,
        };
        match relay.claim_reply(&request).await.unwrap() {
            ClaimOutcome::Granted { token, task, .. } => (relay, token, task),
            other => panic!("not granted: {other:?}"),
        }
    }

    fn any_reply() -> MessageId {
        format!("msg_{}{}", "0".repeat(26), "1".repeat(26))
            .parse()
            .unwrap()
    }

    #[tokio::test]
    async fn job_that_kills_its_process_ends_after_the_last_attempt() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("attempts.sqlite");
        for attempt in 1..=ATTEMPTS_MAX {
            let (_relay, token, task) = claim_after_start(&path, &any_reply()).await;
            assert_eq!((token.attempt, task), (attempt, ClaimTask::Generate));
        }
        let (_relay, token, task) = claim_after_start(&path, &any_reply()).await;
        assert_eq!((token.attempt, task), (ATTEMPTS_MAX + 1, ClaimTask::GiveUp));
    }

    #[tokio::test]
    async fn planned_restart_costs_no_attempt() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("attempts.sqlite");
        for attempt in 1..=ATTEMPTS_MAX * 2 {
            let (relay, token, task) = claim_after_start(&path, &any_reply()).await;
            assert_eq!((token.attempt, task), (attempt, ClaimTask::Generate));
            relay.release_claim(&token).await.unwrap();
        }
    }

    #[tokio::test]
    async fn completed_reply_leaves_no_record() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("attempts.sqlite");
        let (relay, token, _) = claim_after_start(&path, &any_reply()).await;
        let end = Frame {
            attempt: 1,
            generation: 1,
            seq: 1,
            body: FrameBody::Ui(serde_json::Value::Null),
        };
        let completion = ClaimCompletion {
            end,
            message_count: 2,
            announced: true,
            push_to: None,
        };
        relay.complete_claim(&token, &completion).await.unwrap();
        let attempts = super::AttemptFile::open(&path).unwrap();
        assert_eq!(attempts.read(&any_reply()).unwrap(), None);
    }
}
