//! The conversation store of the embedded backend: one SQLite file, one transaction per write of a
//! turn.
//!
//! Rows and stamps are those of the Scylla backend and are compared here explicitly: of two writes
//! of one cell the higher stamp wins, of equal stamps the greater text, as in ScyllaDB and
//! Cassandra.

pub(super) mod rows;
#[cfg(test)]
mod tests;

use std::path::Path;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::{Map, Value};
use switchboard_schemas::{
    client_text::SessionId,
    conversation::{Conversation, Message},
    erasure::Erasure,
    ids::{AgentId, ConversationId, ErasureId, MessageId, OrgId},
    reply_event::ReplyEnd,
    time::Timestamp,
};

use self::rows::{begin_turn, finish_turn, head, put_metadata, put_reply, settle_turn};
use super::{
    AcceptedReply, ConversationReader, ConversationWriter, ErasureStore, ReplyState,
    ReplyStateStore, SESSION_LINKS_MAX, SessionLink, SessionLinkStore, TurnEnd, TurnOpening,
    TurnStart, TurnWriter,
    deletion::{ConversationDeletion, HistoryState, moment_behind},
    embedded_deletion, embedded_erasures,
    embedded_facts::put_fact,
    listing::{ListQuery, ListRange, ListedConversation, parse_listed},
    reply_rows::{accepted_cell, known_reply},
    rows::{
        EndRows, MetadataChange, StartRows, TurnProgress, latest_first, page_range,
        position_column, read_page,
    },
    turns::SettledTurn,
};
use crate::{
    error::StoreError,
    json::{decode, encode},
    sqlite::{FileSharing, SqliteDatabase},
};

/// Schema migrations, oldest first.
const MIGRATIONS: &[&str] = &[
    include_str!("embedded.sql"),
    include_str!("embedded_links.sql"),
    include_str!("embedded_lists.sql"),
    include_str!("embedded_figures.sql"),
    include_str!("embedded_erasures.sql"),
    include_str!("embedded_settled_turns.sql"),
];

const GET_REPLY: &str = "SELECT body FROM replies WHERE org_id = ?1 AND reply_id = ?2";
const GET_PROGRESS: &str =
    "SELECT progress FROM conversations WHERE org_id = ?1 AND conversation_id = ?2";
const GET_MESSAGES: &str = "SELECT body FROM messages
    WHERE org_id = ?1 AND conversation_id = ?2 AND position >= ?3 AND position < ?4 ORDER BY position";
const PUT_LINK: &str = "INSERT INTO session_links VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT DO UPDATE SET answered_at = max(answered_at, excluded.answered_at)";
const GET_LINKS: &str = "SELECT conversation_id, answered_at FROM session_links
    WHERE org_id = ?1 AND agent_id = ?2 AND session_id = ?3 LIMIT ?4";
const GET_LISTED: &str = "SELECT began_at, conversation_id FROM conversation_lists
    WHERE org_id = ?1 AND list = ?2 AND began_at >= ?3 AND (began_at, conversation_id) < (?4, ?5)
    ORDER BY began_at DESC, conversation_id DESC LIMIT ?6";

/// Conversations in a local file.
#[derive(Clone)]
pub struct EmbeddedStore {
    pub(crate) database: SqliteDatabase,
    #[cfg(test)]
    pub(super) work: std::sync::Arc<std::sync::atomic::AtomicU64>,
}

impl EmbeddedStore {
    /// Opens or creates the file.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the file cannot be used, [`StoreError::Malformed`] if a newer
    /// version wrote it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self {
            database: SqliteDatabase::open(path, FileSharing::OneProcess, MIGRATIONS)?,
            #[cfg(test)]
            work: std::sync::Arc::default(),
        })
    }
}

#[async_trait]
impl TurnWriter for EmbeddedStore {
    async fn begin_turn(&self, start: &TurnStart) -> Result<(), StoreError> {
        let rows = StartRows::from_start(start)?;
        self.database
            .write(move |connection| begin_turn(connection, &rows))
            .await
    }

    async fn finish_turn(&self, end: &TurnEnd) -> Result<(), StoreError> {
        let rows = EndRows::from_end(end)?;
        self.database
            .write(move |connection| finish_turn(connection, &rows))
            .await
    }

    async fn settle_turn(&self, end: &TurnEnd) -> Result<TurnEnd, StoreError> {
        let (org, reply) = (end.org_id.clone(), end.user_message_id.reply());
        let (body, now) = (encode(end)?, Timestamp::now());
        let settled = self
            .database
            .write(move |connection| settle_turn(connection, &org, &reply, &body, now));
        Ok(decode::<SettledTurn>(&settled.await?)?.end_of(end))
    }

    async fn settle_cancellation(
        &self,
        org: &OrgId,
        reply: &MessageId,
        end: &ReplyEnd,
    ) -> Result<bool, StoreError> {
        let (org, reply, now) = (org.clone(), reply.clone(), Timestamp::now());
        let cancelled = end.clone();
        let body = encode(&SettledTurn::Cancelled { cancelled })?;
        let settled = self
            .database
            .write(move |connection| settle_turn(connection, &org, &reply, &body, now));
        Ok(decode::<SettledTurn>(&settled.await?)?.is_cancelled())
    }
}

#[async_trait]
impl ReplyStateStore for EmbeddedStore {
    async fn record_acceptance(&self, accepted: &AcceptedReply) -> Result<(), StoreError> {
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
        let (org, reply) = (org.clone(), reply.clone());
        let read = move |connection: &Connection| read_reply(connection, &org, &reply);
        self.database.read(read).await
    }
}

#[async_trait]
impl ConversationReader for EmbeddedStore {
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
        let read = move |connection: &Connection| read_history_state(connection, &org, &id);
        self.database.read(read).await
    }

    async fn turn_opening(
        &self,
        org: &OrgId,
        reply: &MessageId,
        messages_max: u32,
    ) -> Result<TurnOpening, StoreError> {
        let (org, reply) = (org.clone(), reply.clone());
        self.database
            .read(move |connection| {
                let id = reply.conversation();
                let history = read_history_state(connection, &org, &id)?;
                let count = history.message_count;
                let range = page_range(history.latest(messages_max), messages_max, count);
                Ok(TurnOpening {
                    reply: read_reply(connection, &org, &reply)?,
                    messages: range.map_or_else(
                        || Ok(Vec::new()),
                        |range| read_messages(connection, &org, &id, range),
                    )?,
                    history,
                })
            })
            .await
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
                let messages = read_messages(connection, &org, &id, range)?;
                #[cfg(test)]
                {
                    let statement = connection.prepare_cached(GET_MESSAGES)?;
                    count_work(&statement, &work);
                }
                Ok(messages)
            })
            .await
    }

    async fn conversations(
        &self,
        org: &OrgId,
        query: &ListQuery,
    ) -> Result<Vec<ListedConversation>, StoreError> {
        let range = ListRange::from_query(org, query);
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
                rows.into_iter().map(parse_listed).collect()
            })
            .await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.database
            .write(|connection| Ok(connection.query_row("SELECT 1", [], |_| Ok(()))?))
            .await
    }
}

#[async_trait]
impl ConversationWriter for EmbeddedStore {
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
                change.at = moment_behind(head.deletion_marker()?.tombstone.as_ref(), change.at);
                let Some(origin) = head.origin()? else {
                    return Ok(false);
                };
                if !change.is_empty() {
                    put_metadata(connection, &org, &id, &change)?;
                }
                for fact in change.facts(&id, origin.created_at) {
                    put_fact(connection, &org, &fact)?;
                }
                Ok(true)
            })
            .await
    }

    async fn delete_conversation(
        &self,
        deletion: &ConversationDeletion,
    ) -> Result<bool, StoreError> {
        embedded_deletion::delete(&self.database, deletion).await
    }
}

#[async_trait]
impl SessionLinkStore for EmbeddedStore {
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
}

#[async_trait]
impl ErasureStore for EmbeddedStore {
    async fn put_erasure(&self, erasure: &Erasure) -> Result<(), StoreError> {
        embedded_erasures::put(&self.database, erasure).await
    }

    async fn erasure(&self, org: &OrgId, id: &ErasureId) -> Result<Option<Erasure>, StoreError> {
        embedded_erasures::get(&self.database, org, id).await
    }

    async fn erasures(
        &self,
        org: &OrgId,
        before: Option<&ErasureId>,
        limit: u32,
    ) -> Result<Vec<Erasure>, StoreError> {
        embedded_erasures::list(&self.database, org, before, limit).await
    }
}

fn read_reply(
    connection: &Connection,
    org: &OrgId,
    reply: &MessageId,
) -> Result<Option<ReplyState>, StoreError> {
    let mut statement = connection.prepare_cached(GET_REPLY)?;
    let key = [org.as_str(), reply.as_str()];
    let body: Option<String> = statement.query_row(key, |row| row.get(0)).optional()?;
    body.map_or(Ok(None), |body| known_reply(&body))
}

fn read_history_state(
    connection: &Connection,
    org: &OrgId,
    id: &ConversationId,
) -> Result<HistoryState, StoreError> {
    head(connection, org, id)?
        .map_or_else(|| Ok(HistoryState::default()), |head| head.history_state())
}

fn read_messages(
    connection: &Connection,
    org: &OrgId,
    id: &ConversationId,
    range: (u64, u64),
) -> Result<Vec<Message>, StoreError> {
    let mut statement = connection.prepare_cached(GET_MESSAGES)?;
    let values = params![
        org.as_str(),
        id.as_str(),
        position_column(range.0)?,
        position_column(range.1)?
    ];
    let bodies = statement
        .query_map(values, |row| row.get(0))?
        .collect::<rusqlite::Result<Vec<String>>>()?;
    read_page(&bodies, range)
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
    Ok(decode::<TurnProgress>(&progress)?.message_count)
}

/// Counts the steps of SQLite's virtual machine, which include skipped rows.
#[cfg(test)]
fn count_work(statement: &rusqlite::Statement<'_>, work: &std::sync::atomic::AtomicU64) {
    let steps = statement.reset_status(rusqlite::StatementStatus::VmStep);
    work.fetch_add(
        u64::try_from(steps).unwrap(),
        std::sync::atomic::Ordering::Relaxed,
    );
}
