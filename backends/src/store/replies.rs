//! The states of replies, each found by the id of its reply.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use switchboard_schemas::{
    conversation::ConversationOwner,
    ids::{MessageId, OrgId},
    reply_event::{ReplyEnd, ReplyHead},
    time::Timestamp,
};

use crate::error::StoreError;

/// Time for which the store knows that a reply was deleted.
pub(super) const DELETED_FOR: Duration = Duration::from_hours(24);

/// States of replies.
///
/// # Contract
/// A reply may have a state before its conversation exists. Its final state is recorded by
/// [`super::TurnWriter::finish_turn`] and never replaced by an acceptance, in any order of arrival.
#[async_trait]
pub trait ReplyStateStore: Send + Sync {
    /// Records that a message was accepted, so that every process finds its reply before the turn
    /// begins.
    async fn record_acceptance(&self, accepted: &AcceptedReply) -> Result<(), StoreError>;

    /// Returns the state of a reply independently of its conversation.
    async fn known_reply(
        &self,
        org: &OrgId,
        reply: &MessageId,
    ) -> Result<Option<ReplyState>, StoreError>;

    /// Returns the record of a reply, or `None` while it has no final state.
    async fn final_record(
        &self,
        org: &OrgId,
        reply: &MessageId,
    ) -> Result<Option<ReplyRecord>, StoreError> {
        Ok(match self.known_reply(org, reply).await? {
            Some(ReplyState::Final(record)) => Some(*record),
            Some(ReplyState::Accepted(_) | ReplyState::Deleted) | None => None,
        })
    }
}

/// An accepted message whose turn may not have begun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AcceptedReply {
    /// Organization that owns the conversation.
    pub org_id: OrgId,
    /// Id of the user message, from which the id of the reply follows.
    pub user_message_id: MessageId,
    /// Agent or team to which the message was sent.
    pub owner: ConversationOwner,
    /// Time at which the ingress accepted the message.
    pub accepted_at: Timestamp,
}

/// The stored state of a reply.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplyState {
    /// The message was accepted; the conversation shows its progress.
    Accepted(AcceptedReply),
    /// The reply has its final state.
    Final(Box<ReplyRecord>),
    /// The conversation of the reply was deleted within the last [`DELETED_FOR`]: a repeated record
    /// of its message is not answered again.
    Deleted,
}

/// The final state of a reply, stored as one value because writes with equal timestamps would be
/// merged cell by cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplyRecord {
    /// Id of the user message.
    pub user_message_id: MessageId,
    /// Position of the user message.
    pub user_position: u64,
    /// Position of the reply; `None` if it has no text.
    pub position: Option<u64>,
    /// Start of the reply; `None` if it failed earlier.
    pub head: Option<ReplyHead>,
    /// End of the reply.
    pub end: ReplyEnd,
    /// Generation of the text.
    pub generation: u32,
    /// Attempt that wrote the record.
    pub attempt: u32,
    /// Time at which the reply ended.
    pub finished_at: Timestamp,
    /// Milliseconds from acceptance to the first text.
    pub first_text_ms: Option<u64>,
}

impl ReplyRecord {
    /// Returns the number of messages in the history after this turn.
    pub fn message_count(&self) -> u64 {
        self.position.unwrap_or(self.user_position) + 1
    }
}
