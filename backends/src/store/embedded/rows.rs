//! Statements of the embedded store that write the rows of a turn and read the head of a
//! conversation.

use rusqlite::{Connection, OptionalExtension, params};
use switchboard_schemas::{
    ids::{ConversationId, MessageId, OrgId},
    time::Timestamp,
};

use crate::{
    error::StoreError,
    store::{
        embedded_facts::put_fact,
        listing::ListRow,
        rows::{EndRows, HeadRow, MetadataChange, StampedCell, StartRows},
    },
};

const PUT_MESSAGE: &str =
    "INSERT INTO messages (org_id, conversation_id, position, body, stamp) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT DO UPDATE SET body = excluded.body, stamp = excluded.stamp
    WHERE (excluded.stamp, excluded.body) > (stamp, body)";
const PUT_REPLY: &str =
    "INSERT INTO replies (org_id, reply_id, body, stamp) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT DO UPDATE SET body = excluded.body, stamp = excluded.stamp
    WHERE (excluded.stamp, excluded.body) > (stamp, body)";
const PUT_SETTLED: &str =
    "INSERT INTO settled_turns (org_id, reply_id, body, settled_at) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT DO NOTHING";
const GET_SETTLED: &str = "SELECT body FROM settled_turns WHERE org_id = ?1 AND reply_id = ?2";
const DELETE_EXPIRED_SETTLED: &str = "DELETE FROM settled_turns WHERE settled_at < ?1";
/// Time for which a settled end stays, as in `tables.cql`.
const SETTLED_TURN_LIFETIME_MICROS: i64 = 86_400_000_000;
const PUT_PROGRESS: &str = "INSERT INTO conversations (org_id, conversation_id, progress, progress_stamp)
    VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT DO UPDATE SET progress = excluded.progress, progress_stamp = excluded.progress_stamp
    WHERE progress IS NULL OR (excluded.progress_stamp, excluded.progress) > (progress_stamp, progress)";
pub(in crate::store) const PUT_ORIGIN: &str =
    "INSERT INTO conversations (org_id, conversation_id, origin, origin_stamp)
    VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT DO UPDATE SET origin = excluded.origin, origin_stamp = excluded.origin_stamp
    WHERE origin IS NULL OR (excluded.origin_stamp, excluded.origin) > (origin_stamp, origin)";
const PUT_METADATA_AT: &str = "INSERT INTO conversations (org_id, conversation_id, metadata_at) VALUES (?1, ?2, ?3)
    ON CONFLICT DO UPDATE SET metadata_at = max(excluded.metadata_at, coalesce(metadata_at, excluded.metadata_at))";
/// A cleared key stays as NULL with its time, so that an older change does not restore it. At equal
/// times clearing wins.
const PUT_METADATA: &str =
    "INSERT INTO metadata (org_id, conversation_id, key, value, changed_at) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT DO UPDATE SET value = excluded.value, changed_at = excluded.changed_at
    WHERE (excluded.changed_at, excluded.value IS NULL, coalesce(excluded.value, ''))
        > (changed_at, value IS NULL, coalesce(value, ''))";
const PUT_LISTED: &str =
    "INSERT INTO conversation_lists VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
const GET_HEAD: &str = "SELECT origin, progress, metadata_at FROM conversations WHERE org_id = ?1 AND conversation_id = ?2";
const GET_METADATA: &str = "SELECT key, value FROM metadata
    WHERE org_id = ?1 AND conversation_id = ?2 AND value IS NOT NULL";

pub(in crate::store) fn begin_turn(
    connection: &Connection,
    rows: &StartRows,
) -> Result<(), StoreError> {
    if is_covered(
        connection,
        &rows.org,
        &rows.conversation,
        rows.progress.stamp,
    )? {
        return Ok(());
    }
    put_message(
        connection,
        &rows.org,
        &rows.conversation,
        rows.position,
        &rows.message,
    )?;
    put_metadata(connection, &rows.org, &rows.conversation, &rows.metadata)?;
    if let Some(origin) = &rows.origin {
        let values = params![
            rows.org.as_str(),
            rows.conversation.as_str(),
            origin,
            rows.progress.stamp
        ];
        connection.prepare_cached(PUT_ORIGIN)?.execute(values)?;
    }
    if let Some(row) = &rows.list_row {
        put_listed(connection, &rows.org, &rows.conversation, row)?;
    }
    put_progress(connection, &rows.org, &rows.conversation, &rows.progress)
}

pub(in crate::store) fn finish_turn(
    connection: &Connection,
    rows: &EndRows,
) -> Result<(), StoreError> {
    if is_covered(
        connection,
        &rows.org,
        &rows.conversation,
        rows.progress.stamp,
    )? {
        return Ok(());
    }
    if let Some((position, message)) = &rows.message {
        put_message(
            connection,
            &rows.org,
            &rows.conversation,
            *position,
            message,
        )?;
    }
    put_progress(connection, &rows.org, &rows.conversation, &rows.progress)?;
    put_fact(connection, &rows.org, &rows.fact)?;
    put_reply(connection, &rows.org, &rows.reply, &rows.record)
}

/// Returns the end of a turn that was settled first, which is `body` if there was none. Ends of the
/// day before are deleted.
pub(in crate::store) fn settle_turn(
    connection: &Connection,
    org: &OrgId,
    reply: &MessageId,
    body: &str,
    now: Timestamp,
) -> Result<String, StoreError> {
    let expired = now.micros() - SETTLED_TURN_LIFETIME_MICROS;
    connection
        .prepare_cached(DELETE_EXPIRED_SETTLED)?
        .execute([expired])?;
    connection.prepare_cached(PUT_SETTLED)?.execute(params![
        org.as_str(),
        reply.as_str(),
        body,
        now.micros()
    ])?;
    let settled = connection
        .prepare_cached(GET_SETTLED)?
        .query_row([org.as_str(), reply.as_str()], |row| row.get(0))?;
    Ok(settled)
}

/// Returns `true` if a turn belongs to a deleted conversation. No row is left here whose stamp
/// could win over its writes.
fn is_covered(
    connection: &Connection,
    org: &OrgId,
    id: &ConversationId,
    stamp: i64,
) -> Result<bool, StoreError> {
    let deleted_head = head(connection, org, id)?
        .map(|head| head.deletion_marker())
        .transpose()?;
    let tombstone = deleted_head.and_then(|deleted_head| deleted_head.tombstone);
    Ok(tombstone.is_some_and(|tombstone| stamp <= tombstone.stamp()))
}

pub(in crate::store) fn put_listed(
    connection: &Connection,
    org: &OrgId,
    id: &ConversationId,
    row: &ListRow,
) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(PUT_LISTED)?;
    for list in &row.lists {
        statement.execute(params![org.as_str(), list, row.began_at, id.as_str()])?;
    }
    Ok(())
}

pub(in crate::store) fn put_reply(
    connection: &Connection,
    org: &OrgId,
    reply: &MessageId,
    row: &StampedCell,
) -> Result<(), StoreError> {
    let values = params![org.as_str(), reply.as_str(), row.body, row.stamp];
    connection.prepare_cached(PUT_REPLY)?.execute(values)?;
    Ok(())
}

pub(in crate::store) fn put_message(
    connection: &Connection,
    org: &OrgId,
    id: &ConversationId,
    position: i64,
    message: &StampedCell,
) -> Result<(), StoreError> {
    let values = params![
        org.as_str(),
        id.as_str(),
        position,
        message.body,
        message.stamp
    ];
    connection.prepare_cached(PUT_MESSAGE)?.execute(values)?;
    Ok(())
}

pub(in crate::store) fn put_progress(
    connection: &Connection,
    org: &OrgId,
    id: &ConversationId,
    progress: &StampedCell,
) -> Result<(), StoreError> {
    let values = params![org.as_str(), id.as_str(), progress.body, progress.stamp];
    connection.prepare_cached(PUT_PROGRESS)?.execute(values)?;
    Ok(())
}

pub(in crate::store) fn put_metadata(
    connection: &Connection,
    org: &OrgId,
    id: &ConversationId,
    change: &MetadataChange,
) -> Result<(), StoreError> {
    let at = change.at.micros();
    connection
        .prepare_cached(PUT_METADATA_AT)?
        .execute(params![org.as_str(), id.as_str(), at])?;
    let set = change.set.iter().map(|(key, value)| (key, Some(value)));
    let cleared = change.cleared.iter().map(|key| (key, None));
    let mut statement = connection.prepare_cached(PUT_METADATA)?;
    for (key, value) in set.chain(cleared) {
        statement.execute(params![org.as_str(), id.as_str(), key, value, at])?;
    }
    Ok(())
}

pub(in crate::store) fn head(
    connection: &Connection,
    org: &OrgId,
    id: &ConversationId,
) -> Result<Option<HeadRow>, StoreError> {
    let key = [org.as_str(), id.as_str()];
    let read = |row: &rusqlite::Row<'_>| {
        let metadata_at = row.get::<_, Option<i64>>(2)?.map(Timestamp::from_micros);
        Ok(HeadRow {
            origin: row.get(0)?,
            progress: row.get(1)?,
            metadata_at,
            metadata: Vec::new(),
        })
    };
    let Some(mut head) = connection
        .prepare_cached(GET_HEAD)?
        .query_row(key, read)
        .optional()?
    else {
        return Ok(None);
    };
    let mut statement = connection.prepare_cached(GET_METADATA)?;
    let metadata = statement.query_map(key, |row| Ok((row.get(0)?, row.get(1)?)))?;
    head.metadata = metadata.collect::<rusqlite::Result<_>>()?;
    Ok(Some(head))
}
