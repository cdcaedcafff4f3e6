//! Reads of conversations.

use async_trait::async_trait;
use futures::future::try_join;
use switchboard_schemas::{
    conversation::{Conversation, Message},
    ids::{ConversationId, MessageId, OrgId},
};

use super::{
    super::{
        ConversationReader, ReplyStateStore, TurnOpening,
        deletion::HistoryState,
        listing::{ListQuery, ListRange, ListedConversation},
        rows::{page_range, position_column, read_page},
    },
    BUCKET_POSITIONS, ScyllaStore,
};
use crate::error::StoreError;

#[async_trait]
impl ConversationReader for ScyllaStore {
    async fn conversation(
        &self,
        org: &OrgId,
        id: &ConversationId,
    ) -> Result<Option<Conversation>, StoreError> {
        match self.head(org, id).await? {
            Some(head) => head.conversation(org.clone(), id.clone()),
            None => Ok(None),
        }
    }

    async fn history_state(
        &self,
        org: &OrgId,
        id: &ConversationId,
    ) -> Result<HistoryState, StoreError> {
        self.head(org, id)
            .await?
            .map_or_else(|| Ok(HistoryState::default()), |head| head.history_state())
    }

    async fn turn_opening(
        &self,
        org: &OrgId,
        reply: &MessageId,
        messages_max: u32,
    ) -> Result<TurnOpening, StoreError> {
        let id = reply.conversation();
        let (known, history) =
            try_join(self.known_reply(org, reply), self.history_state(org, &id)).await?;
        let messages = if history.message_count == 0 {
            Vec::new()
        } else {
            let from = history.latest(messages_max);
            self.messages(org, &id, from, messages_max).await?
        };
        Ok(TurnOpening {
            reply: known,
            history,
            messages,
        })
    }

    async fn messages(
        &self,
        org: &OrgId,
        id: &ConversationId,
        from: u64,
        limit: u32,
    ) -> Result<Vec<Message>, StoreError> {
        let count = self.message_count(org, id).await?;
        let Some((from, end)) = page_range(from, limit, count) else {
            return Ok(Vec::new());
        };
        let mut bodies = Vec::new();
        for bucket in from / BUCKET_POSITIONS..=(end - 1) / BUCKET_POSITIONS {
            let values = (
                org.as_str(),
                id.as_str(),
                position_column(bucket)?,
                position_column(from)?,
                position_column(end)?,
            );
            let rows = self
                .link
                .query_rows::<(String,)>(&self.prepared_statements().await?.get_messages, values)
                .await?;
            bodies.extend(rows.into_iter().map(|(body,)| body));
        }
        read_page(&bodies, (from, end))
    }

    async fn conversations(
        &self,
        org: &OrgId,
        query: &ListQuery,
    ) -> Result<Vec<ListedConversation>, StoreError> {
        self.prepared_statements()
            .await?
            .lists
            .get(&self.link, &ListRange::from_query(org, query))
            .await
    }

    async fn check(&self) -> Result<(), StoreError> {
        // Reads a row that nobody writes from a quorum of its copies.
        let rows = self.link.query_rows::<(Option<String>,)>(
            &self.prepared_statements().await?.get_progress,
            ("check", "check"),
        );
        rows.await.map(|_| ())
    }
}
