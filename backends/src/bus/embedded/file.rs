//! The SQLite file of the embedded bus: its tables and all statements.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
    time::Duration,
};

use rusqlite::{Connection, Row, Transaction, params};
use switchboard_schemas::{time::Timestamp, topics::Topic};

use crate::{
    bus::{BusError, CommitMark, IncomingRecord, PartitionId, placement},
    sqlite::{LOG_KEPT_BYTES, open_for_one_process},
};

const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of rows deleted in one sweep step, so that no publish waits long behind it.
pub(super) const SWEEP_STEP_ROWS: usize = 256;
/// Retention of the marks of a group without members. It exceeds that of every topic, so that
/// deleting marks repeats no record.
const GROUP_RETENTION_HOURS: i64 = 24 * 31;
const HOUR_MICROS: i64 = 3_600_000_000;

/// `next_offset` survives the deletion of a partition's last record, so that no offset is used
/// twice.
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS partitions (
        topic TEXT NOT NULL, partition INTEGER NOT NULL, next_offset INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (topic, partition)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS records (
        topic TEXT NOT NULL, partition INTEGER NOT NULL, offset INTEGER NOT NULL,
        published_at INTEGER NOT NULL, key TEXT NOT NULL, headers TEXT NOT NULL, payload BLOB NOT NULL,
        PRIMARY KEY (topic, partition, offset)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS marks (
        consumer_group TEXT NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL,
        next_offset INTEGER NOT NULL, finished TEXT NOT NULL, written_at INTEGER NOT NULL,
        PRIMARY KEY (consumer_group, topic, partition)
    ) STRICT, WITHOUT ROWID;";

/// A committed mark of a group.
pub(super) type GroupMark = (String, PartitionId, CommitMark);

/// Opens or creates the file.
pub(super) fn open(path: &Path) -> rusqlite::Result<Connection> {
    let connection = open_for_one_process(path)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    // An acknowledged record also survives a power failure; group commit pays for the sync once
    // per batch.
    connection.pragma_update(None, "synchronous", "full")?;
    // Overwrite expired records, which contain messages of visitors.
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "journal_size_limit", LOG_KEPT_BYTES)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}

/// Creates missing tables and topics. The number of partitions of a topic never changes afterwards,
/// because keys would move.
pub(super) fn create_tables(connection: &mut Connection, partitions: u32) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    transaction.execute_batch(TABLES)?;
    for topic in Topic::ALL {
        let existing: i64 = transaction.query_row(
            "SELECT count(*) FROM partitions WHERE topic = ?1",
            [topic.name()],
            |row| row.get(0),
        )?;
        if existing == 0 {
            for number in 0..placement::partition_count(topic, partitions) {
                transaction.execute(
                    "INSERT INTO partitions (topic, partition) VALUES (?1, ?2)",
                    params![topic.name(), number],
                )?;
            }
        }
    }
    transaction.commit()
}

/// Returns all partitions with the offset of their next record.
pub(super) fn next_offsets(connection: &Connection) -> rusqlite::Result<HashMap<PartitionId, u64>> {
    let mut statement = connection.prepare(
        "SELECT topic, partition, max(next_offset, coalesce((SELECT max(offset) + 1 FROM records
             WHERE records.topic = partitions.topic AND records.partition = partitions.partition), 0))
         FROM partitions",
    )?;
    let rows = statement.query_map([], |row| Ok((partition_in(row)?, unsigned(row.get(2)?))))?;
    rows.filter_map(|row| {
        row.map(|(partition, next)| Some((partition?, next)))
            .transpose()
    })
    .collect()
}

/// Appends a record to its partition.
pub(super) fn append(connection: &Connection, record: &IncomingRecord) -> Result<(), BusError> {
    let headers = serde_json::to_string(&record.headers)
        .map_err(|error| BusError::Fatal(error.to_string()))?;
    let mut statement = connection
        .prepare_cached("INSERT INTO records VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")
        .map_err(|error| unavailable(&error))?;
    statement
        .execute(params![
            record.partition.topic.name(),
            record.partition.number,
            signed(record.offset),
            record.published_at.micros(),
            record.key,
            headers,
            &record.payload[..],
        ])
        .map(drop)
        .map_err(|error| unavailable(&error))
}

/// Returns records in a range of offsets, oldest first.
pub(super) fn read(
    connection: &Connection,
    partition: PartitionId,
    from: u64,
    below: u64,
    limit: usize,
) -> rusqlite::Result<Vec<IncomingRecord>> {
    let mut statement = connection.prepare_cached(
        "SELECT offset, published_at, key, headers, payload FROM records
         WHERE topic = ?1 AND partition = ?2 AND offset >= ?3 AND offset < ?4 ORDER BY offset LIMIT ?5",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let bounds = params![
        partition.topic.name(),
        partition.number,
        signed(from),
        signed(below),
        limit
    ];
    statement
        .query_map(bounds, |row| record_in(partition, row))?
        .collect()
}

/// Writes the committed mark of a partition.
pub(super) fn write_mark(
    connection: &Connection,
    (group, partition, mark): &GroupMark,
) -> Result<(), BusError> {
    let write = || {
        connection
            .prepare_cached("INSERT OR REPLACE INTO marks VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
            .execute(params![
                group,
                partition.topic.name(),
                partition.number,
                signed(mark.next_offset),
                mark.finished,
                Timestamp::now().micros()
            ])
    };
    write().map(drop).map_err(|error| unavailable(&error))
}

/// Returns all marks of a group.
pub(super) fn marks_of(
    connection: &Connection,
    group: &str,
) -> rusqlite::Result<HashMap<PartitionId, CommitMark>> {
    let mut statement = connection.prepare_cached(
        "SELECT topic, partition, next_offset, finished FROM marks WHERE consumer_group = ?1",
    )?;
    let rows = statement.query_map([group], |row| {
        let mark = CommitMark {
            next_offset: unsigned(row.get(2)?),
            finished: row.get(3)?,
        };
        Ok((partition_in(row)?, mark))
    })?;
    rows.filter_map(|row| {
        row.map(|(partition, mark)| Some((partition?, mark)))
            .transpose()
    })
    .collect()
}

/// Returns the marks of all groups on a partition.
pub(super) fn marks_on(
    connection: &Connection,
    partition: PartitionId,
) -> rusqlite::Result<Vec<CommitMark>> {
    let mut statement = connection.prepare_cached(
        "SELECT next_offset, finished FROM marks WHERE topic = ?1 AND partition = ?2",
    )?;
    let rows = statement.query_map(params![partition.topic.name(), partition.number], |row| {
        Ok(CommitMark {
            next_offset: unsigned(row.get(0)?),
            finished: row.get(1)?,
        })
    })?;
    rows.collect()
}

/// Deletes records of a partition whose next record has the offset `end`.
pub(super) fn delete(
    connection: &mut Connection,
    partition: PartitionId,
    offsets: &[u64],
    end: u64,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    for offset in offsets {
        let mut delete = transaction.prepare_cached(
            "DELETE FROM records WHERE topic = ?1 AND partition = ?2 AND offset = ?3",
        )?;
        delete.execute(params![
            partition.topic.name(),
            partition.number,
            signed(*offset)
        ])?;
    }
    write_next_offset(&transaction, partition, end)?;
    transaction.commit()
}

/// Records the offset of the next record, before the last record of a partition is deleted.
fn write_next_offset(
    transaction: &Transaction<'_>,
    partition: PartitionId,
    next: u64,
) -> rusqlite::Result<usize> {
    transaction.execute(
        "UPDATE partitions SET next_offset = ?3 WHERE topic = ?1 AND partition = ?2",
        params![partition.topic.name(), partition.number, signed(next)],
    )
}

/// Deletes the oldest expired records of a partition. Returns their number; more may be left if it
/// is [`SWEEP_STEP_ROWS`].
pub(super) fn expire_step(
    connection: &mut Connection,
    partition: PartitionId,
    next: u64,
    now: Timestamp,
) -> rusqlite::Result<usize> {
    let Some(hours) = partition.topic.retention_hours() else {
        return Ok(0);
    };
    let expired_before = now.micros() - i64::from(hours) * HOUR_MICROS;
    let transaction = connection.transaction()?;
    // Only the head of the partition is examined, because records are stored in the order of their
    // age.
    let last: Option<i64> = transaction
        .prepare_cached(
            "SELECT max(offset) FROM (SELECT offset, published_at FROM records
                 WHERE topic = ?1 AND partition = ?2 ORDER BY offset LIMIT ?3) WHERE published_at < ?4",
        )?
        .query_row(
            params![partition.topic.name(), partition.number, SWEEP_STEP_ROWS as i64, expired_before],
            |row| row.get(0),
        )?;
    let Some(last) = last else {
        return Ok(0);
    };
    write_next_offset(&transaction, partition, next)?;
    let place = params![partition.topic.name(), partition.number, last];
    let deleted = transaction.execute(
        "DELETE FROM records WHERE topic = ?1 AND partition = ?2 AND offset <= ?3",
        place,
    )?;
    transaction.commit()?;
    Ok(deleted)
}

/// Deletes all but the last record of each key in a partition of a compacted topic.
pub(super) fn compact(connection: &Connection, partition: PartitionId) -> rusqlite::Result<usize> {
    connection.execute(
        "DELETE FROM records WHERE topic = ?1 AND partition = ?2 AND offset NOT IN
             (SELECT max(offset) FROM records WHERE topic = ?1 AND partition = ?2 GROUP BY key)",
        params![partition.topic.name(), partition.number],
    )
}

/// Deletes the marks of groups that have had no member for long.
pub(super) fn forget_groups(
    connection: &mut Connection,
    alive: &HashSet<String>,
    now: Timestamp,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    for group in alive {
        transaction.execute(
            "UPDATE marks SET written_at = ?2 WHERE consumer_group = ?1",
            params![group, now.micros()],
        )?;
    }
    let forgotten_before = now.micros() - GROUP_RETENTION_HOURS * HOUR_MICROS;
    transaction.execute(
        "DELETE FROM marks WHERE written_at < ?1",
        [forgotten_before],
    )?;
    transaction.commit()
}

/// Converts an error of SQLite. A full disk or a locked file may recover, so that it counts as
/// unavailable.
pub(super) fn unavailable(error: &rusqlite::Error) -> BusError {
    BusError::Unavailable(format!("log file: {error}"))
}

/// Parses the partition of a row; `None` for a topic unknown to this version.
fn partition_in(row: &Row<'_>) -> rusqlite::Result<Option<PartitionId>> {
    let (topic, number) = (row.get::<_, String>("topic")?, row.get("partition")?);
    Ok(Topic::from_name(&topic).map(|topic| PartitionId { topic, number }))
}

fn record_in(partition: PartitionId, row: &Row<'_>) -> rusqlite::Result<IncomingRecord> {
    Ok(IncomingRecord {
        partition,
        epoch: 0,
        offset: unsigned(row.get(0)?),
        published_at: Timestamp::from_micros(row.get(1)?),
        maybe_repeated: false,
        key: row.get(2)?,
        headers: serde_json::from_str(&row.get::<_, String>(3)?).unwrap_or_default(),
        payload: row.get::<_, Vec<u8>>(4)?.into(),
    })
}

pub(super) fn signed(offset: u64) -> i64 {
    i64::try_from(offset).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(offset: i64) -> u64 {
    u64::try_from(offset).unwrap_or(0)
}
