//! The store of the embedded twin: one SQLite file, one transaction per write of a turn.
//!
//! The rows and stamps are those of the production twin, compared here by hand: of two writes of one cell the higher
//! stamp stays, of equal stamps the greater text, as ScyllaDB and Cassandra decide it.

use std::path::Path;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::{Map, Value};
use switchboard_schemas::{
    client_text::SessionId,
    conversation::{Conversation, Message},
    erasure::Erasure,
    ids::{AgentId, ConversationId, ErasureId, MessageId, OrgId},
    time::Timestamp,
};

use super::{
    AcceptedReply, ConversationStore, ReplyState, SESSION_LINKS_MAX, SessionLink, StoreError,
    TurnEnd, TurnStart,
    deletion::{ConversationDeletion, HistoryState, moment_behind},
    embedded_deletion, erasures,
    listing::{ListQuery, ListRange, ListRow, ListedConversation, listed},
    rows::{
        Cell, EndRows, HeadRow, MetadataChange, Progress, StartRows, accepted_cell, column, decode,
        known_reply, latest_first, page_range, read_page,
    },
};
use crate::{analytics::put_fact, sqlite::SqliteDatabase};

/// Tables, oldest change first.
const MIGRATIONS: &[&str] = &[
    include_str!("embedded.sql"),
    include_str!("embedded_links.sql"),
    include_str!("embedded_lists.sql"),
    include_str!("embedded_figures.sql"),
    include_str!("embedded_erasures.sql"),
];

const PUT_MESSAGE: &str =
    "INSERT INTO messages (org_id, conversation_id, position, body, stamp) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT DO UPDATE SET body = excluded.body, stamp = excluded.stamp
    WHERE (excluded.stamp, excluded.body) > (stamp, body)";
const PUT_REPLY: &str =
    "INSERT INTO replies (org_id, reply_id, body, stamp) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT DO UPDATE SET body = excluded.body, stamp = excluded.stamp
    WHERE (excluded.stamp, excluded.body) > (stamp, body)";
const PUT_PROGRESS: &str = "INSERT INTO conversations (org_id, conversation_id, progress, progress_stamp)
    VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT DO UPDATE SET progress = excluded.progress, progress_stamp = excluded.progress_stamp
    WHERE progress IS NULL OR (excluded.progress_stamp, excluded.progress) > (progress_stamp, progress)";
pub(super) const PUT_ORIGIN: &str =
    "INSERT INTO conversations (org_id, conversation_id, origin, origin_stamp)
    VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT DO UPDATE SET origin = excluded.origin, origin_stamp = excluded.origin_stamp
    WHERE origin IS NULL OR (excluded.origin_stamp, excluded.origin) > (origin_stamp, origin)";
const PUT_METADATA_AT: &str = "INSERT INTO conversations (org_id, conversation_id, metadata_at) VALUES (?1, ?2, ?3)
    ON CONFLICT DO UPDATE SET metadata_at = max(excluded.metadata_at, coalesce(metadata_at, excluded.metadata_at))";
/// A cleared key stays as NULL with its time, so that an older change does not bring it back; at one time clearing wins.
const PUT_METADATA: &str =
    "INSERT INTO metadata (org_id, conversation_id, key, value, changed_at) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT DO UPDATE SET value = excluded.value, changed_at = excluded.changed_at
    WHERE (excluded.changed_at, excluded.value IS NULL, coalesce(excluded.value, ''))
        > (changed_at, value IS NULL, coalesce(value, ''))";
const GET_REPLY: &str = "SELECT body FROM replies WHERE org_id = ?1 AND reply_id = ?2";
const GET_PROGRESS: &str =
    "SELECT progress FROM conversations WHERE org_id = ?1 AND conversation_id = ?2";
const GET_HEAD: &str = "SELECT origin, progress, metadata_at FROM conversations WHERE org_id = ?1 AND conversation_id = ?2";
const GET_METADATA: &str = "SELECT key, value FROM metadata
    WHERE org_id = ?1 AND conversation_id = ?2 AND value IS NOT NULL";
const GET_MESSAGES: &str = "SELECT body FROM messages
    WHERE org_id = ?1 AND conversation_id = ?2 AND position >= ?3 AND position < ?4 ORDER BY position";
const PUT_LINK: &str = "INSERT INTO session_links VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT DO UPDATE SET answered_at = max(answered_at, excluded.answered_at)";
const GET_LINKS: &str = "SELECT conversation_id, answered_at FROM session_links
    WHERE org_id = ?1 AND agent_id = ?2 AND session_id = ?3 LIMIT ?4";
const PUT_LISTED: &str =
    "INSERT INTO conversation_lists VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
const GET_LISTED: &str = "SELECT began_at, conversation_id FROM conversation_lists
    WHERE org_id = ?1 AND list = ?2 AND began_at >= ?3 AND (began_at, conversation_id) < (?4, ?5)
    ORDER BY began_at DESC, conversation_id DESC LIMIT ?6";

/// Conversations in a file of this machine.
#[derive(Clone)]
pub struct EmbeddedStore {
    pub(crate) database: SqliteDatabase,
    #[cfg(test)]
    pub(super) work: std::sync::Arc<std::sync::atomic::AtomicU64>,
}

impl EmbeddedStore {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when it cannot be used, [`StoreError::Malformed`] when a newer program wrote it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self {
            database: SqliteDatabase::open(path, MIGRATIONS)?,
            #[cfg(test)]
            work: std::sync::Arc::default(),
        })
    }
}

#[async_trait]
impl ConversationStore for EmbeddedStore {
    async fn begin_turn(&self, start: &TurnStart) -> Result<(), StoreError> {
        let rows = StartRows::of(start)?;
        self.database
            .write(move |connection| begin_turn(connection, &rows))
            .await
    }

    async fn finish_turn(&self, end: &TurnEnd) -> Result<(), StoreError> {
        let rows = EndRows::of(end)?;
        self.database
            .write(move |connection| finish_turn(connection, &rows))
            .await
    }

    async fn accept(&self, accepted: &AcceptedReply) -> Result<(), StoreError> {
        let cell = accepted_cell(accepted)?;
        let (org, reply) = (accepted.org_id.clone(), accepted.user_message_id.reply());
        self.database
            .write(move |connection| put_reply(connection, &org, &reply, &cell))
            .await
    }

    async fn known_reply(
        &self,
        org: &OrgId,
        reply: &MessageId,
    ) -> Result<Option<ReplyState>, StoreError> {
        let key = [org.to_string(), reply.to_string()];
        let body: Option<String> = self
            .database
            .read(move |connection| {
                let mut statement = connection.prepare_cached(GET_REPLY)?;
                Ok(statement.query_row(key, |row| row.get(0)).optional()?)
            })
            .await?;
        body.map(|body| known_reply(&body)).transpose()
    }

    async fn conversation(
        &self,
        org: &OrgId,
        id: &ConversationId,
    ) -> Result<Option<Conversation>, StoreError> {
        let (org, id) = (org.clone(), id.clone());
        self.database
            .read(move |connection| match head(connection, &org, &id)? {
                Some(head) => head.conversation(org, id),
                None => Ok(None),
            })
            .await
    }

    async fn history_state(
        &self,
        org: &OrgId,
        id: &ConversationId,
    ) -> Result<HistoryState, StoreError> {
        let (org, id) = (org.clone(), id.clone());
        let read = move |connection: &Connection| {
            head(connection, &org, &id)?
                .map_or_else(|| Ok(HistoryState::default()), |head| head.history_state())
        };
        self.database.read(read).await
    }

    async fn delete_conversation(
        &self,
        deletion: &ConversationDeletion,
    ) -> Result<bool, StoreError> {
        embedded_deletion::delete(&self.database, deletion).await
    }

    async fn messages(
        &self,
        org: &OrgId,
        id: &ConversationId,
        from: u64,
        limit: u32,
    ) -> Result<Vec<Message>, StoreError> {
        let (org, id) = (org.clone(), id.clone());
        #[cfg(test)]
        let work = std::sync::Arc::clone(&self.work);
        self.database
            .read(move |connection| {
                let Some(range) = page_range(from, limit, message_count(connection, &org, &id)?)
                else {
                    return Ok(Vec::new());
                };
                let mut statement = connection.prepare_cached(GET_MESSAGES)?;
                let values = params![
                    org.as_str(),
                    id.as_str(),
                    column(range.0)?,
                    column(range.1)?
                ];
                let bodies = statement
                    .query_map(values, |row| row.get(0))?
                    .collect::<rusqlite::Result<Vec<String>>>()?;
                #[cfg(test)]
                count_work(&statement, &work);
                read_page(&bodies, range)
            })
            .await
    }

    async fn conversations(
        &self,
        org: &OrgId,
        query: &ListQuery,
    ) -> Result<Vec<ListedConversation>, StoreError> {
        let range = ListRange::of(org, query);
        #[cfg(test)]
        let work = std::sync::Arc::clone(&self.work);
        self.database
            .read(move |connection| {
                let mut statement = connection.prepare_cached(GET_LISTED)?;
                let (at, id) = &range.behind;
                let values = params![
                    range.org.as_str(),
                    range.list,
                    range.since,
                    at,
                    id,
                    range.limit
                ];
                let rows = statement.query_map(values, |row| Ok((row.get(0)?, row.get(1)?)))?;
                let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
                #[cfg(test)]
                count_work(&statement, &work);
                rows.into_iter().map(listed).collect()
            })
            .await
    }

    async fn update_metadata(
        &self,
        org: &OrgId,
        id: &ConversationId,
        changes: &Map<String, Value>,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let (org, id, mut change) = (org.clone(), id.clone(), MetadataChange::new(changes, at)?);
        self.database
            .write(move |connection| {
                let Some(head) = head(connection, &org, &id)? else {
                    return Ok(false);
                };
                change.at = moment_behind(head.grave()?.tombstone.as_ref(), change.at);
                let Some(origin) = head.origin()? else {
                    return Ok(false);
                };
                if !change.is_empty() {
                    put_metadata(connection, &org, &id, &change)?;
                }
                if let Some(rating) = change.rating(&id, origin.created_at) {
                    put_fact(connection, &org, &rating)?;
                }
                Ok(true)
            })
            .await
    }

    async fn link_session(&self, link: &SessionLink) -> Result<(), StoreError> {
        let link = link.clone();
        self.database
            .write(move |connection| {
                let (org, agent, session) = (
                    link.org_id.as_str(),
                    link.agent_id.as_str(),
                    link.session_id.as_str(),
                );
                let values = params![
                    org,
                    agent,
                    session,
                    link.conversation_id.as_str(),
                    link.answered_at.micros()
                ];
                connection.prepare_cached(PUT_LINK)?.execute(values)?;
                Ok(())
            })
            .await
    }

    async fn linked_conversations(
        &self,
        org: &OrgId,
        agent: &AgentId,
        session: &SessionId,
    ) -> Result<Vec<ConversationId>, StoreError> {
        let (org, agent, session) = (org.clone(), agent.clone(), session.clone());
        let links = self.database.read(move |connection| {
            let mut statement = connection.prepare_cached(GET_LINKS)?;
            let values = params![
                org.as_str(),
                agent.as_str(),
                session.as_str(),
                SESSION_LINKS_MAX
            ];
            let links = statement.query_map(values, |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(links.collect::<rusqlite::Result<Vec<_>>>()?)
        });
        latest_first(links.await?)
    }

    async fn put_erasure(&self, erasure: &Erasure) -> Result<(), StoreError> {
        erasures::put(&self.database, erasure).await
    }

    async fn erasure(&self, org: &OrgId, id: &ErasureId) -> Result<Option<Erasure>, StoreError> {
        erasures::get(&self.database, org, id).await
    }

    async fn erasures(
        &self,
        org: &OrgId,
        before: Option<&ErasureId>,
        limit: u32,
    ) -> Result<Vec<Erasure>, StoreError> {
        erasures::list(&self.database, org, before, limit).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.database
            .write(|connection| Ok(connection.query_row("SELECT 1", [], |_| Ok(()))?))
            .await
    }
}

fn begin_turn(connection: &Connection, rows: &StartRows) -> Result<(), StoreError> {
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

fn finish_turn(connection: &Connection, rows: &EndRows) -> Result<(), StoreError> {
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

/// Whether a turn belongs to what was deleted: there is no row left here that could win over its writes.
fn is_covered(
    connection: &Connection,
    org: &OrgId,
    id: &ConversationId,
    stamp: i64,
) -> Result<bool, StoreError> {
    let grave = head(connection, org, id)?
        .map(|head| head.grave())
        .transpose()?;
    let tombstone = grave.and_then(|grave| grave.tombstone);
    Ok(tombstone.is_some_and(|tombstone| stamp <= tombstone.stamp()))
}

pub(super) fn put_listed(
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

pub(super) fn put_reply(
    connection: &Connection,
    org: &OrgId,
    reply: &MessageId,
    row: &Cell,
) -> Result<(), StoreError> {
    let values = params![org.as_str(), reply.as_str(), row.body, row.stamp];
    connection.prepare_cached(PUT_REPLY)?.execute(values)?;
    Ok(())
}

pub(super) fn put_message(
    connection: &Connection,
    org: &OrgId,
    id: &ConversationId,
    position: i64,
    message: &Cell,
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

pub(super) fn put_progress(
    connection: &Connection,
    org: &OrgId,
    id: &ConversationId,
    progress: &Cell,
) -> Result<(), StoreError> {
    let values = params![org.as_str(), id.as_str(), progress.body, progress.stamp];
    connection.prepare_cached(PUT_PROGRESS)?.execute(values)?;
    Ok(())
}

pub(super) fn put_metadata(
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

pub(super) fn head(
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

fn message_count(
    connection: &Connection,
    org: &OrgId,
    id: &ConversationId,
) -> Result<u64, StoreError> {
    let mut statement = connection.prepare_cached(GET_PROGRESS)?;
    let progress: Option<Option<String>> = statement
        .query_row([org.as_str(), id.as_str()], |row| row.get(0))
        .optional()?;
    let Some(progress) = progress.flatten() else {
        return Ok(0);
    };
    Ok(decode::<Progress>(&progress)?.message_count)
}

/// Steps of SQLite's machine, which would show rows that are skipped as well as rows that are returned.
#[cfg(test)]
fn count_work(statement: &rusqlite::Statement<'_>, work: &std::sync::atomic::AtomicU64) {
    let steps = statement.reset_status(rusqlite::StatementStatus::VmStep);
    work.fetch_add(
        u64::try_from(steps).unwrap(),
        std::sync::atomic::Ordering::Relaxed,
    );
}

#[cfg(test)]
mod tests {
    use super::{
        super::conformance::{Talk, replied},
        *,
    };

    async fn write_a_turn(path: &Path, talk: &Talk) -> EmbeddedStore {
        let store = EmbeddedStore::open(path).unwrap();
        let turn = talk.turn(0, "question");
        store.begin_turn(&turn.start(1)).await.unwrap();
        store
            .finish_turn(&turn.end(1, replied("answer")))
            .await
            .unwrap();
        store
    }

    async fn assert_it_is_there(path: &Path, talk: &Talk) {
        let messages = EmbeddedStore::open(path)
            .unwrap()
            .messages(&talk.org, &talk.id, 0, 10)
            .await
            .unwrap();
        assert_eq!(
            messages
                .iter()
                .map(|message| message.content.as_str())
                .collect::<Vec<_>>(),
            ["question", "answer"]
        );
    }

    #[tokio::test]
    async fn conversations_survive_reopening() {
        let directory = tempfile::tempdir().unwrap();
        let (path, talk) = (directory.path().join("store.db"), Talk::new());
        drop(write_a_turn(&path, &talk).await);
        assert_it_is_there(&path, &talk).await;
    }

    /// The files as they lie there while the store is open are what a killed process leaves behind.
    #[tokio::test]
    async fn a_killed_process_leaves_every_write_that_returned() {
        let (living, left) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let talk = Talk::new();
        let store = write_a_turn(&living.path().join("store.db"), &talk).await;
        for file in ["store.db", "store.db-wal"] {
            std::fs::copy(living.path().join(file), left.path().join(file)).unwrap();
        }
        assert_it_is_there(&left.path().join("store.db"), &talk).await;
        drop(store);
    }

    #[tokio::test]
    async fn conversations_of_an_older_file_are_listed_by_their_start() {
        let directory = tempfile::tempdir().unwrap();
        let (path, talk) = (directory.path().join("store.db"), Talk::new());
        let start = StartRows::of(&talk.turn(0, "question").start(1)).unwrap();
        let (row, older) = (
            start.list_row.unwrap(),
            SqliteDatabase::open(&path, &MIGRATIONS[..2]).unwrap(),
        );
        let (org, id) = (talk.org.to_string(), talk.id.to_string());
        let put = move |connection: &Connection| {
            connection
                .prepare_cached(PUT_ORIGIN)?
                .execute(params![org, id, start.origin, 1])?;
            Ok(())
        };
        older.write(put).await.unwrap();
        drop(older);
        let store = EmbeddedStore::open(&path).unwrap();
        let query = ListQuery {
            limit: 10,
            ..ListQuery::default()
        };
        let listed = store.conversations(&talk.org, &query).await.unwrap();
        assert_eq!(
            listed
                .iter()
                .map(|listed| listed.began_at.micros())
                .collect::<Vec<_>>(),
            [row.began_at]
        );
        let range = ListRange {
            list: row.lists[1].clone(),
            ..ListRange::of(&talk.org, &query)
        };
        assert_ne!(range.list, "");
        let count = "SELECT count(*) FROM conversation_lists WHERE list = ?1";
        let counted = store.database.read(move |connection| {
            Ok(connection.query_row(count, [range.list], |row| row.get::<_, i64>(0))?)
        });
        assert_eq!(counted.await.unwrap(), 1);
    }
}
