//! The conversation store: conversations, their messages and the state of replies.
//!
//! # Contract
//! - **Idempotence**: every write may be repeated. Of two different writes of the same thing the
//!   higher attempt wins, in any order of arrival.
//! - **Durability**: a write that returned `Ok` survives a crash of this process (with ScyllaDB,
//!   also the loss of any nodes less than a quorum).
//! - **Visibility**: a read that begins after a write has returned sees the write.
//! - **Cost**: a page of messages costs work in proportion to the page, not to the conversation.
//! - **Lists**: a conversation is listed from its first turn on, latest first. A page of a list
//!   costs work in proportion to the page and to the days that it spans.
//! - **Deletion**: deleted data is found by no read, and no late write of earlier turns restores
//!   any of it. The same session may start anew. A deletion may be repeated, even after it stopped
//!   halfway.
//! - **Tenancy**: a read with another organization finds nothing.
//! - **Order**: one worker at a time writes the turns of a conversation. Between two that may write
//!   the same turn, [`ConversationStore::settle_turn`] decides, and nothing else does.

#[cfg(test)]
mod conformance;
pub mod deletion;
pub mod embedded;
mod embedded_deletion;
mod embedded_facts;
mod erasures;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod fixtures;
pub mod listing;
pub(crate) mod rows;
pub mod scylla;
mod scylla_deletion;
mod scylla_erasures;
mod scylla_facts;
mod scylla_lists;
mod stamp;

use self::{
    deletion::{ConversationDeletion, HistoryState, Tombstone},
    listing::{ListQuery, ListedConversation},
};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use switchboard_schemas::{
    client_text::SessionId,
    conversation::{Conversation, ConversationOwner, Message},
    erasure::Erasure,
    ids::{AgentId, ConversationId, ErasureId, MessageId, OrgId, TeamId},
    reply_event::{ReplyEnd, ReplyHead},
    time::Timestamp,
    turn::Turn,
};

use crate::error::StoreError;

/// Maximum number of conversations returned for a session; an agent is a member of fewer teams.
pub const SESSION_LINKS_MAX: u32 = 100;

/// The store of conversations.
#[async_trait]
pub trait ConversationStore: Send + Sync {
    /// Starts a turn: creates the conversation if it is the first one, stores and counts the user
    /// message at its position, records the active reply and merges the visitor data into the
    /// metadata.
    async fn begin_turn(&self, start: &TurnStart) -> Result<(), StoreError>;

    /// Ends a turn: stores the reply, if it has text, and its record, counts it (also for
    /// [`crate::analytics`]) and clears the active reply.
    async fn finish_turn(&self, end: &TurnEnd) -> Result<(), StoreError>;

    /// Decides between ends of one turn that the relay could not decide between: the first one
    /// stays for a day. Returns the one that stays, which still has to be stored with
    /// [`finish_turn`](Self::finish_turn).
    async fn settle_turn(&self, end: &TurnEnd) -> Result<TurnEnd, StoreError>;

    /// Records that a message was accepted, so that every process finds its reply before the turn
    /// begins. It never replaces a final state, in any order of arrival.
    async fn record_acceptance(&self, accepted: &AcceptedReply) -> Result<(), StoreError>;

    /// Returns the state of a reply independently of its conversation: accepted or final.
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
            Some(ReplyState::Accepted(_)) | None => None,
        })
    }

    /// Returns a conversation without its messages.
    async fn conversation(
        &self,
        org: &OrgId,
        id: &ConversationId,
    ) -> Result<Option<Conversation>, StoreError>;

    /// Returns the state that the next turn of a conversation builds on, also for one that was
    /// deleted or never began.
    async fn history_state(
        &self,
        org: &OrgId,
        id: &ConversationId,
    ) -> Result<HistoryState, StoreError>;

    /// Deletes a conversation with its messages, reply records, session links and list entries. It
    /// is called by the worker that writes its turns, between two of them. Returns `false` if there
    /// is none or another deletion was faster; a repeat of the same deletion returns `true`.
    async fn delete_conversation(
        &self,
        deletion: &ConversationDeletion,
    ) -> Result<bool, StoreError>;

    /// Returns at most `limit` counted messages from position `from` on, oldest first.
    async fn messages(
        &self,
        org: &OrgId,
        id: &ConversationId,
        from: u64,
        limit: u32,
    ) -> Result<Vec<Message>, StoreError>;

    /// Returns a part of a list of conversations, latest first; fewer than the query's limit only
    /// at its end. A first turn that another message replaced may have left an entry with its own
    /// start time, so that callers compare it with the conversation.
    async fn conversations(
        &self,
        org: &OrgId,
        query: &ListQuery,
    ) -> Result<Vec<ListedConversation>, StoreError>;

    /// Sets and clears (`null`) keys of the metadata. Of two changes of one key the later `at`
    /// wins. Returns `false` if the conversation does not exist.
    async fn update_metadata(
        &self,
        org: &OrgId,
        id: &ConversationId,
        changes: &Map<String, Value>,
        at: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Records that an agent answered in a conversation that cannot be derived from its session:
    /// one of a team or of a page visitor. Of two records the later time is kept.
    async fn link_session(&self, link: &SessionLink) -> Result<(), StoreError>;

    /// Returns the linked conversations of this session in which the agent answered, latest first,
    /// at most [`SESSION_LINKS_MAX`].
    async fn linked_conversations(
        &self,
        org: &OrgId,
        agent: &AgentId,
        session: &SessionId,
    ) -> Result<Vec<ConversationId>, StoreError>;

    /// Stores the state of an erasure. Of two states of one erasure the one with more steps wins.
    async fn put_erasure(&self, erasure: &Erasure) -> Result<(), StoreError>;

    /// Returns the erasure with this id.
    async fn erasure(&self, org: &OrgId, id: &ErasureId) -> Result<Option<Erasure>, StoreError>;

    /// Returns at most `limit` erasures, latest first, starting before `before` if given.
    async fn erasures(
        &self,
        org: &OrgId,
        before: Option<&ErasureId>,
        limit: u32,
    ) -> Result<Vec<Erasure>, StoreError>;

    /// Fails if the store does not respond.
    async fn check(&self) -> Result<(), StoreError>;
}

/// A link from a session to a conversation that cannot be derived from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionLink {
    /// Organization that owns the conversation.
    pub org_id: OrgId,
    /// Agent that answered.
    pub agent_id: AgentId,
    /// Session id chosen by the client.
    pub session_id: SessionId,
    /// Id of the conversation.
    pub conversation_id: ConversationId,
    /// Time of the answer.
    pub answered_at: Timestamp,
}

/// The start of a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnStart {
    /// The user message and its context.
    pub turn: Turn,
    /// Agent or team of the conversation.
    pub owner: ConversationOwner,
    /// Position of the user message.
    pub position: u64,
    /// Deletion after which the conversation started anew, if any.
    pub tombstone: Option<Tombstone>,
    /// Attempt that writes.
    pub attempt: u32,
}

/// The end of a turn in its final state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnEnd {
    /// Organization that owns the conversation.
    pub org_id: OrgId,
    /// Time at which the turn was accepted; with the attempt it decides which write wins.
    pub accepted_at: Timestamp,
    /// Deletion after which the conversation started anew, as at the start of the turn.
    pub tombstone: Option<Tombstone>,
    /// Attempt that writes.
    pub attempt: u32,
    /// Id of the user message.
    pub user_message_id: MessageId,
    /// Agent that replied; `None` if no agent could.
    pub agent_id: Option<AgentId>,
    /// Team to which the message was addressed, if any.
    pub team_id: Option<TeamId>,
    /// Assistant message, if it has text.
    pub message: Option<Message>,
    /// Record stored under the id of the reply.
    pub record: ReplyRecord,
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
