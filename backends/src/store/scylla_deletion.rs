//! Deletion of a conversation on ScyllaDB or Cassandra. A deletion has a stamp of its own that
//! covers all writes of the deleted turns, however late they arrive, and none of later turns.
//!
//! The head is deleted in the middle. While it exists, a repeated deletion finds lists, records and
//! links through it; once it is a tombstone, the rest of the deletion needs nothing else.

use futures::future::{try_join, try_join_all, try_join4};

use super::{
    deletion::{
        ConversationDeletion, DELETED_AT_ONCE, RelatedData, Tombstone, cleared_facts, related_data,
    },
    listing::ListRow,
    replies::DELETED_FOR,
    reply_rows::deleted_cell,
    rows::{ConversationOrigin, HeadRow, position_column, tombstone_rows},
    scylla::BUCKET_POSITIONS,
    scylla_facts::FactStatements,
    scylla_lists::PreparedLists,
};
use crate::{
    error::StoreError,
    scylla_link::{ScyllaLink, statements},
};

statements! {
    /// Prepared statements of deletions.
    pub(super) struct PreparedDeletion {
        prepare_write put_tombstone =
            "INSERT INTO switchboard.conversations (org_id, conversation_id, origin, progress)
                VALUES (?, ?, ?, ?) USING TIMESTAMP ?",
        prepare_write delete_metadata =
            "DELETE metadata, metadata_at FROM switchboard.conversations USING TIMESTAMP ?
                WHERE org_id = ? AND conversation_id = ?",
        prepare_read get_bodies = "SELECT body FROM switchboard.messages
                WHERE org_id = ? AND conversation_id = ? AND bucket = ? AND position >= ? AND position < ?",
        prepare_write delete_bucket = "DELETE FROM switchboard.messages USING TIMESTAMP ?
                WHERE org_id = ? AND conversation_id = ? AND bucket = ?",
        prepare_write mark_reply = "INSERT INTO switchboard.replies (org_id, reply_id, body)
                VALUES (?, ?, ?) USING TTL ? AND TIMESTAMP ?",
        prepare_write delete_settled_turn =
            "DELETE FROM switchboard.settled_turns WHERE org_id = ? AND reply_id = ?",
        prepare_write delete_link = "DELETE FROM switchboard.session_links USING TIMESTAMP ?
                WHERE org_id = ? AND agent_id = ? AND session_id = ? AND conversation_id = ?",
    }
}

impl PreparedDeletion {
    /// Deletes the conversation with this head. Returns `false` if there is none.
    pub(super) async fn delete(
        &self,
        link: &ScyllaLink,
        (lists, fact_statements): (&PreparedLists, &FactStatements),
        deletion: &ConversationDeletion,
        head: &HeadRow,
    ) -> Result<bool, StoreError> {
        let standing = head.history_state()?;
        let tombstone = match head.origin()? {
            Some(origin) => {
                let row = ListRow::new(&origin.owner, origin.created_at);
                lists
                    .remove(link, &deletion.org_id, &deletion.conversation_id, &row)
                    .await?;
                self.remove_related_data(
                    link,
                    fact_statements,
                    deletion,
                    &origin,
                    standing.message_count,
                )
                .await?;
                let tombstone = Tombstone::new(&standing, deletion, head.metadata_at);
                for fact in cleared_facts(&deletion.conversation_id, &origin, &tombstone) {
                    fact_statements
                        .put_fact(link, &deletion.org_id, &fact)
                        .await?;
                }
                self.put_tombstone(link, deletion, &tombstone).await?;
                tombstone
            }
            // The same deletion stopped halfway.
            None => match standing
                .tombstone
                .filter(|tombstone| tombstone.event_id == deletion.event_id)
            {
                Some(tombstone) => tombstone,
                None => return Ok(false),
            },
        };
        try_join(
            self.remove_messages(link, deletion, &tombstone),
            self.remove_metadata(link, deletion, &tombstone),
        )
        .await?;
        Ok(true)
    }

    async fn put_tombstone(
        &self,
        link: &ScyllaLink,
        deletion: &ConversationDeletion,
        tombstone: &Tombstone,
    ) -> Result<(), StoreError> {
        let (origin, progress) = tombstone_rows(tombstone)?;
        let (org, id) = (deletion.org_id.as_str(), deletion.conversation_id.as_str());
        link.write(
            &self.put_tombstone,
            (org, id, origin, progress.body, progress.stamp),
        )
        .await
    }

    async fn remove_related_data(
        &self,
        link: &ScyllaLink,
        fact_statements: &FactStatements,
        deletion: &ConversationDeletion,
        origin: &ConversationOrigin,
        message_count: u64,
    ) -> Result<(), StoreError> {
        for from in (0..message_count).step_by(usize::try_from(DELETED_AT_ONCE).unwrap_or(1)) {
            let bodies = self.message_bodies(link, deletion, from).await?;
            let RelatedData {
                replies,
                agents,
                facts,
            } = related_data(&bodies, deletion.at)?;
            let (org, id, session) = (
                deletion.org_id.as_str(),
                deletion.conversation_id.as_str(),
                origin.session_id.as_str(),
            );
            let settled = replies
                .iter()
                .map(|(reply, _)| link.write(&self.delete_settled_turn, (org, reply.as_str())));
            let kept_for = i32::try_from(DELETED_FOR.as_secs()).unwrap_or(i32::MAX);
            let replies = replies.iter().map(|(reply, stamp)| async move {
                let mark = deleted_cell(deletion.at, *stamp)?;
                let values = (org, reply.as_str(), mark.body, kept_for, mark.stamp);
                link.write(&self.mark_reply, values).await
            });
            let at = deletion.at.micros();
            let links = agents
                .iter()
                .map(|agent| link.write(&self.delete_link, (at, org, agent.as_str(), session, id)));
            let facts = facts
                .iter()
                .map(|fact| fact_statements.put_fact(link, &deletion.org_id, fact));
            try_join4(
                try_join_all(settled),
                try_join_all(replies),
                try_join_all(links),
                try_join_all(facts),
            )
            .await?;
        }
        Ok(())
    }

    /// Returns a page of message bodies within one bucket. A repeated deletion may find some of
    /// them gone.
    async fn message_bodies(
        &self,
        link: &ScyllaLink,
        deletion: &ConversationDeletion,
        from: u64,
    ) -> Result<Vec<String>, StoreError> {
        let (org, id) = (deletion.org_id.as_str(), deletion.conversation_id.as_str());
        let (bucket, end) = (
            position_column(from / BUCKET_POSITIONS)?,
            position_column(from + DELETED_AT_ONCE)?,
        );
        let rows = link
            .query_rows::<(String,)>(
                &self.get_bodies,
                (org, id, bucket, position_column(from)?, end),
            )
            .await?;
        Ok(rows.into_iter().map(|(body,)| body).collect())
    }

    async fn remove_messages(
        &self,
        link: &ScyllaLink,
        deletion: &ConversationDeletion,
        tombstone: &Tombstone,
    ) -> Result<(), StoreError> {
        let (org, id) = (deletion.org_id.as_str(), deletion.conversation_id.as_str());
        for bucket in 0..=tombstone.positions / BUCKET_POSITIONS {
            link.write(
                &self.delete_bucket,
                (tombstone.stamp(), org, id, position_column(bucket)?),
            )
            .await?;
        }
        Ok(())
    }

    async fn remove_metadata(
        &self,
        link: &ScyllaLink,
        deletion: &ConversationDeletion,
        tombstone: &Tombstone,
    ) -> Result<(), StoreError> {
        let (org, id) = (deletion.org_id.as_str(), deletion.conversation_id.as_str());
        link.write(&self.delete_metadata, (tombstone.at.micros(), org, id))
            .await
    }
}

/// A page never spans two buckets.
const _: () = assert!(BUCKET_POSITIONS.is_multiple_of(DELETED_AT_ONCE));
