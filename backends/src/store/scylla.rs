//! The conversation store on ScyllaDB or Apache Cassandra, without lightweight transactions.
//!
//! Every write carries its own timestamp (see [`super::stamp`]) and may be repeated. Rows are
//! written before the head that counts them, and a reply's record after it, so that no reader sees
//! a counted message that is missing or a final state without its text.

mod reads;
mod statements;

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::{try_join, try_join3};
use scylla::statement::batch::BatchType;
use serde_json::{Map, Value};
use switchboard_schemas::{
    client_text::SessionId,
    erasure::Erasure,
    ids::{AgentId, ConversationId, ErasureId, MessageId, OrgId},
    reply_event::ReplyEnd,
    time::Timestamp,
};
use tokio::sync::OnceCell;

use self::statements::PreparedStatements;
use super::{
    AcceptedReply, ConversationWriter, ErasureStore, ReplyState, ReplyStateStore,
    SESSION_LINKS_MAX, SessionLink, SessionLinkStore, TurnEnd, TurnStart, TurnWriter,
    deletion::{ConversationDeletion, moment_behind},
    listing::ListRow,
    reply_rows::{accepted_cell, known_reply},
    rows::{
        EndRows, HeadRow, MetadataChange, StampedCell, StartRows, TurnProgress, latest_first,
        position_column,
    },
    scylla_facts::FactStatements,
    turns::SettledTurn,
};
use crate::{
    analytics::facts::FactWrite,
    error::StoreError,
    json::{decode, encode},
    scylla_link::ScyllaLink,
};

/// Number of positions in a partition: about 1 MB of usual text, far below the limits of both
/// databases.
pub(super) const BUCKET_POSITIONS: u64 = 500;

/// Conversations in a cluster.
pub struct ScyllaStore {
    link: Arc<ScyllaLink>,
    prepared: OnceCell<PreparedStatements>,
}

type MetadataMap = std::collections::HashMap<String, String>;
type HeadColumns = (
    Option<String>,
    Option<String>,
    Option<i64>,
    Option<MetadataMap>,
);

impl ScyllaStore {
    /// Creates the store on a link. The cluster need not be reachable yet.
    pub fn connect(link: Arc<ScyllaLink>) -> Self {
        Self {
            link,
            prepared: OnceCell::new(),
        }
    }

    async fn prepared_statements(&self) -> Result<&PreparedStatements, StoreError> {
        self.prepared
            .get_or_try_init(|| Box::pin(PreparedStatements::new(&self.link)))
            .await
    }

    /// Returns the statements for facts and the link that they run on.
    pub(super) async fn fact_statements(
        &self,
    ) -> Result<(&ScyllaLink, &FactStatements), StoreError> {
        Ok((&self.link, &self.prepared_statements().await?.facts))
    }

    async fn put_fact(&self, org: &OrgId, fact: &FactWrite) -> Result<(), StoreError> {
        self.prepared_statements()
            .await?
            .facts
            .put_fact(&self.link, org, fact)
            .await
    }

    async fn put_message(
        &self,
        org: &OrgId,
        id: &ConversationId,
        position: i64,
        message: &StampedCell,
    ) -> Result<(), StoreError> {
        let bucket = position / position_column(BUCKET_POSITIONS)?;
        let values = (
            org.as_str(),
            id.as_str(),
            bucket,
            position,
            &message.body,
            message.stamp,
        );
        self.link
            .write(&self.prepared_statements().await?.put_message, values)
            .await
    }

    async fn put_progress(
        &self,
        org: &OrgId,
        id: &ConversationId,
        progress: &StampedCell,
    ) -> Result<(), StoreError> {
        let values = (org.as_str(), id.as_str(), &progress.body, progress.stamp);
        self.link
            .write(&self.prepared_statements().await?.put_progress, values)
            .await
    }

    async fn put_listed(
        &self,
        org: &OrgId,
        id: &ConversationId,
        row: Option<&ListRow>,
    ) -> Result<(), StoreError> {
        match row {
            Some(row) => {
                self.prepared_statements()
                    .await?
                    .lists
                    .put(&self.link, org, id, row)
                    .await
            }
            None => Ok(()),
        }
    }

    async fn put_reply(
        &self,
        org: &OrgId,
        reply: &MessageId,
        row: &StampedCell,
    ) -> Result<(), StoreError> {
        let values = (org.as_str(), reply.as_str(), &row.body, row.stamp);
        self.link
            .write(&self.prepared_statements().await?.put_reply, values)
            .await
    }

    async fn put_metadata(
        &self,
        org: &OrgId,
        id: &ConversationId,
        change: &MetadataChange,
    ) -> Result<(), StoreError> {
        let prepared = self.prepared_statements().await?;
        let at = change.at.micros();
        let set = (at, at, &change.set, org.as_str(), id.as_str());
        if change.cleared.is_empty() {
            return self.link.write(&prepared.set_metadata, set).await;
        }
        // All statements concern one partition: the batch is one mutation, so that a reader sees
        // all of the change or nothing.
        let clear = (at, &change.cleared, org.as_str(), id.as_str());
        let statements = vec![&prepared.set_metadata, &prepared.clear_metadata];
        self.link
            .write_together(BatchType::Unlogged, statements, (set, clear))
            .await
    }

    /// Settles a turn, and returns what was settled first.
    async fn settle(
        &self,
        org: &OrgId,
        reply: &MessageId,
        body: &str,
    ) -> Result<Option<SettledTurn>, StoreError> {
        let prepared = self.prepared_statements().await?;
        let (link, org, reply) = (&self.link, org.as_str(), reply.as_str());
        link.write(&prepared.settle_turn, (org, reply, body))
            .await?;
        let mut settled = link
            .query_rows::<(String,)>(&prepared.get_settled_turn, (org, reply))
            .await?;
        settled.pop().map(|(body,)| decode(&body)).transpose()
    }

    async fn head(&self, org: &OrgId, id: &ConversationId) -> Result<Option<HeadRow>, StoreError> {
        let rows = self.link.query_rows::<HeadColumns>(
            &self.prepared_statements().await?.get_head,
            (org.as_str(), id.as_str()),
        );
        Ok(rows
            .await?
            .pop()
            .map(|(origin, progress, metadata_at, metadata)| HeadRow {
                origin,
                progress,
                metadata_at: metadata_at.map(Timestamp::from_micros),
                metadata: metadata.unwrap_or_default().into_iter().collect(),
            }))
    }

    async fn message_count(&self, org: &OrgId, id: &ConversationId) -> Result<u64, StoreError> {
        let values = (org.as_str(), id.as_str());
        let rows = self
            .link
            .query_rows::<(Option<String>,)>(
                &self.prepared_statements().await?.get_progress,
                values,
            )
            .await?;
        match rows.into_iter().next() {
            Some((Some(progress),)) => Ok(decode::<TurnProgress>(&progress)?.message_count),
            _ => Ok(0),
        }
    }
}

#[async_trait]
impl TurnWriter for ScyllaStore {
    async fn begin_turn(&self, start: &TurnStart) -> Result<(), StoreError> {
        let rows = StartRows::from_start(start)?;
        let (org, id) = (&rows.org, &rows.conversation);
        let message = self.put_message(org, id, rows.position, &rows.message);
        let metadata = self.put_metadata(org, id, &rows.metadata);
        try_join3(
            message,
            metadata,
            self.put_listed(org, id, rows.list_row.as_ref()),
        )
        .await?;
        let Some(origin) = &rows.origin else {
            return self.put_progress(org, id, &rows.progress).await;
        };
        let values = (
            org.as_str(),
            id.as_str(),
            origin,
            &rows.progress.body,
            rows.progress.stamp,
        );
        self.link
            .write(&self.prepared_statements().await?.put_first, values)
            .await
    }

    async fn finish_turn(&self, end: &TurnEnd) -> Result<(), StoreError> {
        let rows = EndRows::from_end(end)?;
        let history = async {
            if let Some((position, message)) = &rows.message {
                self.put_message(&rows.org, &rows.conversation, *position, message)
                    .await?;
            }
            self.put_progress(&rows.org, &rows.conversation, &rows.progress)
                .await
        };
        // A turn with a stored record is not repeated, so that its fact is written first.
        try_join(history, self.put_fact(&rows.org, &rows.fact)).await?;
        self.put_reply(&rows.org, &rows.reply, &rows.record).await
    }

    async fn settle_turn(&self, end: &TurnEnd) -> Result<TurnEnd, StoreError> {
        let reply = end.user_message_id.reply();
        let settled = self.settle(&end.org_id, &reply, &encode(end)?).await?;
        // Nothing is left if the conversation was deleted in between.
        Ok(settled.map_or_else(|| end.clone(), |settled| settled.end_of(end)))
    }

    async fn settle_cancellation(
        &self,
        org: &OrgId,
        reply: &MessageId,
        end: &ReplyEnd,
    ) -> Result<bool, StoreError> {
        let cancelled = end.clone();
        let body = encode(&SettledTurn::Cancelled { cancelled })?;
        let settled = self.settle(org, reply, &body).await?;
        Ok(settled.is_none_or(|settled| settled.is_cancelled()))
    }
}

#[async_trait]
impl ReplyStateStore for ScyllaStore {
    async fn record_acceptance(&self, accepted: &AcceptedReply) -> Result<(), StoreError> {
        self.put_reply(
            &accepted.org_id,
            &accepted.user_message_id.reply(),
            &accepted_cell(accepted)?,
        )
        .await
    }

    async fn known_reply(
        &self,
        org: &OrgId,
        reply: &MessageId,
    ) -> Result<Option<ReplyState>, StoreError> {
        let values = (org.as_str(), reply.as_str());
        let rows = self
            .link
            .query_rows::<(String,)>(&self.prepared_statements().await?.get_reply, values)
            .await?;
        rows.first().map_or(Ok(None), |(body,)| known_reply(body))
    }
}

#[async_trait]
impl ConversationWriter for ScyllaStore {
    async fn update_metadata(
        &self,
        org: &OrgId,
        id: &ConversationId,
        changes: &Map<String, Value>,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let Some(head) = self.head(org, id).await? else {
            return Ok(false);
        };
        let change = MetadataChange::new(
            changes,
            moment_behind(head.deletion_marker()?.tombstone.as_ref(), at),
        )?;
        let Some(origin) = head.origin()? else {
            return Ok(false);
        };
        if !change.is_empty() {
            self.put_metadata(org, id, &change).await?;
        }
        for fact in change.facts(id, origin.created_at) {
            self.put_fact(org, &fact).await?;
        }
        Ok(true)
    }

    async fn delete_conversation(
        &self,
        deletion: &ConversationDeletion,
    ) -> Result<bool, StoreError> {
        let Some(head) = self
            .head(&deletion.org_id, &deletion.conversation_id)
            .await?
        else {
            return Ok(false);
        };
        let prepared = self.prepared_statements().await?;
        Box::pin(prepared.deletion.delete(
            &self.link,
            (&prepared.lists, &prepared.facts),
            deletion,
            &head,
        ))
        .await
    }
}

#[async_trait]
impl SessionLinkStore for ScyllaStore {
    async fn link_session(&self, link: &SessionLink) -> Result<(), StoreError> {
        let (org, agent, session) = (
            link.org_id.as_str(),
            link.agent_id.as_str(),
            link.session_id.as_str(),
        );
        let at = link.answered_at.micros();
        let values = (org, agent, session, link.conversation_id.as_str(), at, at);
        self.link
            .write(&self.prepared_statements().await?.put_link, values)
            .await
    }

    async fn linked_conversations(
        &self,
        org: &OrgId,
        agent: &AgentId,
        session: &SessionId,
    ) -> Result<Vec<ConversationId>, StoreError> {
        let limit = i32::try_from(SESSION_LINKS_MAX).unwrap_or(i32::MAX);
        let values = (org.as_str(), agent.as_str(), session.as_str(), limit);
        latest_first(
            self.link
                .query_rows::<(String, i64)>(&self.prepared_statements().await?.get_links, values)
                .await?,
        )
    }
}

#[async_trait]
impl ErasureStore for ScyllaStore {
    async fn put_erasure(&self, erasure: &Erasure) -> Result<(), StoreError> {
        self.prepared_statements()
            .await?
            .erasures
            .put(&self.link, erasure)
            .await
    }

    async fn erasure(&self, org: &OrgId, id: &ErasureId) -> Result<Option<Erasure>, StoreError> {
        self.prepared_statements()
            .await?
            .erasures
            .get(&self.link, org, id)
            .await
    }

    async fn erasures(
        &self,
        org: &OrgId,
        before: Option<&ErasureId>,
        limit: u32,
    ) -> Result<Vec<Erasure>, StoreError> {
        self.prepared_statements()
            .await?
            .erasures
            .list(&self.link, org, before, limit)
            .await
    }
}
