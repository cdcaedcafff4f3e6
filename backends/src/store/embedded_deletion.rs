//! Deletion of a conversation in the embedded store: first in parts what is stored elsewhere, so
//! that no other write waits long, then its messages, then the conversation itself in one
//! transaction. A conversation that is no longer listed has left no message in the file.

use rusqlite::{Connection, params};
use switchboard_schemas::ids::{ConversationId, OrgId};

use super::{
    deletion::{
        ConversationDeletion, DELETED_AT_ONCE, HistoryState, RelatedData, Tombstone, cleared_facts,
        related_data,
    },
    embedded::rows::{PUT_ORIGIN, head, put_progress, put_reply},
    embedded_facts::put_fact,
    reply_rows::deleted_cell,
    rows::{ConversationOrigin, position_column, tombstone_rows},
};
use crate::{error::StoreError, sqlite::SqliteDatabase};

const GET_BODIES: &str = "SELECT body FROM messages
    WHERE org_id = ?1 AND conversation_id = ?2 AND position >= ?3 AND position < ?4";
const DELETE_SETTLED: &str = "DELETE FROM settled_turns WHERE org_id = ?1 AND reply_id = ?2";
const DELETE_LINK: &str = "DELETE FROM session_links
    WHERE org_id = ?1 AND agent_id = ?2 AND session_id = ?3 AND conversation_id = ?4";
const DELETE_LISTED: &str = "DELETE FROM conversation_lists
    WHERE org_id = ?1 AND list = ?2 AND began_at = ?3 AND conversation_id = ?4";
const DELETE_MESSAGES: &str = "DELETE FROM messages WHERE org_id = ?1 AND conversation_id = ?2";
const DELETE_METADATA: &str = "DELETE FROM metadata WHERE org_id = ?1 AND conversation_id = ?2";
const FORGET_METADATA_AT: &str =
    "UPDATE conversations SET metadata_at = NULL WHERE org_id = ?1 AND conversation_id = ?2";

/// The conversation to delete.
struct DeletionTarget {
    origin: ConversationOrigin,
    standing: HistoryState,
    tombstone: Tombstone,
}

/// Deletes the conversation. Returns `false` if there is none, `true` if it existed or if this
/// deletion has already removed it.
pub(super) async fn delete(
    database: &SqliteDatabase,
    deletion: &ConversationDeletion,
) -> Result<bool, StoreError> {
    let wanted = deletion.clone();
    let found = match database
        .read(move |connection| find_target(connection, &wanted))
        .await?
    {
        Ok(found) => found,
        Err(done_before) => {
            // The rows are gone; their residue may not have been erased then.
            database.erase_residue().await?;
            return Ok(done_before);
        }
    };
    for from in
        (0..found.standing.message_count).step_by(usize::try_from(DELETED_AT_ONCE).unwrap_or(1))
    {
        let (deletion, session) = (
            deletion.clone(),
            found.origin.session_id.as_str().to_owned(),
        );
        database
            .write(move |connection| remove_related_data(connection, &deletion, from, &session))
            .await?;
    }
    let key = [
        deletion.org_id.to_string(),
        deletion.conversation_id.to_string(),
    ];
    database
        .write(move |connection| {
            connection.prepare_cached(DELETE_MESSAGES)?.execute(key)?;
            Ok(())
        })
        .await?;
    database.erase_residue().await?;
    let deletion = deletion.clone();
    database
        .write(move |connection| put_tombstone(connection, &deletion, &found))
        .await?;
    database.erase_residue().await?;
    Ok(true)
}

/// Finds the conversation. Returns `Err(true)` if this deletion has already removed it,
/// `Err(false)` if there is none.
fn find_target(
    connection: &Connection,
    deletion: &ConversationDeletion,
) -> Result<Result<DeletionTarget, bool>, StoreError> {
    let Some(head) = head(connection, &deletion.org_id, &deletion.conversation_id)? else {
        return Ok(Err(false));
    };
    let standing = head.history_state()?;
    let Some(origin) = head.origin()? else {
        return Ok(Err(standing
            .tombstone
            .is_some_and(|tombstone| tombstone.event_id == deletion.event_id)));
    };
    let tombstone = Tombstone::new(&standing, deletion, head.metadata_at);
    Ok(Ok(DeletionTarget {
        origin,
        standing,
        tombstone,
    }))
}

fn remove_related_data(
    connection: &Connection,
    ConversationDeletion {
        org_id,
        conversation_id,
        at,
        ..
    }: &ConversationDeletion,
    from: u64,
    session: &str,
) -> Result<(), StoreError> {
    let bodies = message_bodies(connection, org_id, conversation_id, from)?;
    let RelatedData {
        replies,
        agents,
        facts,
    } = related_data(&bodies, *at)?;
    for fact in &facts {
        put_fact(connection, org_id, fact)?;
    }
    for (reply, stamp) in replies {
        put_reply(connection, org_id, &reply, &deleted_cell(*at, stamp)?)?;
        connection
            .prepare_cached(DELETE_SETTLED)?
            .execute([org_id.as_str(), reply.as_str()])?;
    }
    for agent in agents {
        let link = [
            org_id.as_str(),
            agent.as_str(),
            session,
            conversation_id.as_str(),
        ];
        connection.prepare_cached(DELETE_LINK)?.execute(link)?;
    }
    Ok(())
}

fn message_bodies(
    connection: &Connection,
    org: &OrgId,
    id: &ConversationId,
    from: u64,
) -> Result<Vec<String>, StoreError> {
    let mut statement = connection.prepare_cached(GET_BODIES)?;
    let values = params![
        org.as_str(),
        id.as_str(),
        position_column(from)?,
        position_column(from + DELETED_AT_ONCE)?
    ];
    let bodies = statement.query_map(values, |row| row.get(0))?;
    Ok(bodies.collect::<rusqlite::Result<_>>()?)
}

fn put_tombstone(
    connection: &Connection,
    deletion: &ConversationDeletion,
    found: &DeletionTarget,
) -> Result<(), StoreError> {
    let (org, id) = (&deletion.org_id, &deletion.conversation_id);
    let key = [org.as_str(), id.as_str()];
    let row = super::listing::ListRow::new(&found.origin.owner, found.origin.created_at);
    for list in &row.lists {
        connection.prepare_cached(DELETE_LISTED)?.execute(params![
            key[0],
            list,
            row.began_at,
            key[1]
        ])?;
    }
    for statement in [DELETE_METADATA, FORGET_METADATA_AT] {
        connection.prepare_cached(statement)?.execute(key)?;
    }
    for fact in cleared_facts(id, &found.origin, &found.tombstone) {
        put_fact(connection, org, &fact)?;
    }
    let (origin, progress) = tombstone_rows(&found.tombstone)?;
    connection.prepare_cached(PUT_ORIGIN)?.execute(params![
        key[0],
        key[1],
        origin,
        progress.stamp
    ])?;
    put_progress(connection, org, id, &progress)
}
