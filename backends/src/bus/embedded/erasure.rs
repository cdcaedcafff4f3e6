//! Removal of the records of a conversation or an organization from the file.
//!
//! A record is removed if it can be no longer needed: a job once every consumer group has finished
//! it, so that its redelivery would run nothing. Events, dead letters and hints about lost workers
//! are removed at once. A job that waits belongs to the conversation that begins anew.

use std::{path::Path, thread, time::Duration};

use rusqlite::{Connection, params};
use switchboard_schemas::{ids::OrgId, topics::Topic};

use super::{file, tails::RecordTails};
use crate::{
    bus::{
        BusError, CommitMark, PartitionId,
        ledger::{OffsetLedger, OffsetState},
    },
    sqlite_residue::{SqliteResidue, truncate_log},
};

/// Number of tries to erase the residue, each of which waits a moment for readers.
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

/// The residue of the log file, with a connection of its own.
pub(super) struct LogResidue {
    connection: Connection,
    residue: SqliteResidue,
}

impl LogResidue {
    /// Opens the residue of an existing file.
    pub(super) fn open(path: &Path) -> Result<Self, BusError> {
        let fatal = |error: String| BusError::Fatal(format!("log file: {error}"));
        Ok(Self {
            connection: file::open(path).map_err(|error| fatal(error.to_string()))?,
            residue: SqliteResidue::open(path).map_err(|error| fatal(error.to_string()))?,
        })
    }

    /// Empties the write-ahead log, which holds copies of deleted records until it is overwritten.
    /// A log that a reader needs stays until the next time.
    pub(super) fn empty_log(&self) {
        if let Err(error) = truncate_log(&self.connection) {
            tracing::warn!(%error, "write-ahead log not emptied");
        }
    }

    /// Erases what deleted records left in the file.
    pub(super) fn erase(&self) -> Result<(), BusError> {
        for _ in 0..RESIDUE_TRIES_MAX {
            let erased = self.residue.erase(&self.connection);
            if erased.map_err(|error| file::unavailable(&error))? {
                return Ok(());
            }
            thread::sleep(RESIDUE_PAUSE);
        }
        Err(BusError::Unavailable("readers need the log file".into()))
    }
}

/// Removes records. The marks in the file must be the latest ones.
pub(super) fn erase_records(
    connection: &mut Connection,
    tails: &RecordTails,
    filter: &RecordFilter,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    for partition in tails.partitions() {
        let mut offsets = filter.offsets(&transaction, partition)?;
        if offsets.is_empty() {
            continue;
        }
        if matches!(partition.topic, Topic::Route | Topic::Jobs) {
            offsets = finished_by_all(offsets, &file::marks_on(&transaction, partition)?);
        }
        for offset in offsets {
            transaction
                .prepare_cached(
                    "DELETE FROM records WHERE topic = ?1 AND partition = ?2 AND offset = ?3",
                )?
                .execute(params![
                    partition.topic.name(),
                    partition.number,
                    file::signed(offset)
                ])?;
        }
        file::write_next_offset(&transaction, partition, tails.end(partition))?;
        tails.forget(partition);
    }
    transaction.commit()
}

impl RecordFilter {
    /// Returns the offsets of the records, in ascending order.
    fn offsets(
        &self,
        connection: &Connection,
        partition: PartitionId,
    ) -> rusqlite::Result<Vec<u64>> {
        let (condition, value) = match self {
            // Hints about lost workers and their dead letters have `/` and a number behind the key.
            Self::Key(key) => ("key = ?3 OR key GLOB ?3 || '/*'", key.as_str()),
            Self::Organization(_) if partition.topic == Topic::Control => return Ok(Vec::new()),
            Self::Organization(org) => ("instr(payload, CAST(?3 AS BLOB)) > 0", org.as_str()),
        };
        let mut statement = connection.prepare_cached(&format!(
            "SELECT offset FROM records WHERE topic = ?1 AND partition = ?2 AND ({condition})
             ORDER BY offset"
        ))?;
        let place = params![partition.topic.name(), partition.number, value];
        statement
            .query_map(place, |row| row.get(0).map(file::unsigned))?
            .collect()
    }
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
