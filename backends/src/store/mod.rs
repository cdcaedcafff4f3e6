//! The store: conversations and their messages.
//!
//! # Contract
//! - **Idempotence**: every write may be repeated; of two different writes of the same thing the higher attempt wins,
//!   whatever their order of arrival.
//! - **Durability**: a write that returned `Ok` survives a crash of this process (and, with ScyllaDB, of any node less
//!   than a quorum).
//! - **Visibility**: a read that begins after a write returned sees it.
//! - **Work**: a page of messages costs work in proportion to the page, not to the conversation.
//! - **Lists**: a conversation is listed from its first turn on, latest beginning first; a page of a list costs work in
//!   proportion to the page and to the days that it spans.
//! - **Deletion**: what is deleted is found by no read, and no late write of the turns before brings any of it back; the
//!   same session may begin anew. A deletion may be repeated, also where it stopped halfway.
//! - **Tenancy**: a read with another organization finds nothing.
//! - **Order**: one worker at a time writes the turns of a conversation; the store does not arbitrate between two.

#[cfg(test)]
mod conformance;
pub mod deletion;
pub mod embedded;
mod embedded_deletion;
mod erasures;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod fixtures;
pub mod listing;
pub(crate) mod rows;
pub mod scylla;
mod scylla_deletion;
mod scylla_erasures;
mod scylla_lists;
mod stamp;

pub use crate::error::StoreError;

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

/// Conversations that one look for a session gives: an agent is in fewer teams than this.
pub const SESSION_LINKS_MAX: u32 = 100;

/// Where conversations are kept.
#[async_trait]
pub trait ConversationStore: Send + Sync {
    /// A turn begins: makes the conversation if it is the first one, stores the user message at its position, counts it,
    /// names the active reply, and merges what the turn says of its visitor into the metadata.
    async fn begin_turn(&self, start: &TurnStart) -> Result<(), StoreError>;

    /// A turn ends: stores the reply, if it has text, and its record; counts it, also for [`crate::analytics`]; no reply is
    /// active any more.
    async fn finish_turn(&self, end: &TurnEnd) -> Result<(), StoreError>;

    /// Notes that a message was accepted, so that every process finds its reply before the turn begins. Never wins over
    /// a final state, whatever the order of arrival.
    async fn accept(&self, accepted: &AcceptedReply) -> Result<(), StoreError>;

    /// What is known of a reply apart from its conversation: that it was accepted, or what became of it.
    async fn known_reply(
        &self,
        org: &OrgId,
        reply: &MessageId,
    ) -> Result<Option<ReplyState>, StoreError>;

    /// What became of a reply; none while it has no final state.
    async fn reply(
        &self,
        org: &OrgId,
        reply: &MessageId,
    ) -> Result<Option<ReplyRecord>, StoreError> {
        Ok(match self.known_reply(org, reply).await? {
            Some(ReplyState::Final(record)) => Some(*record),
            Some(ReplyState::Accepted(_)) | None => None,
        })
    }

    /// A conversation without its messages.
    async fn conversation(
        &self,
        org: &OrgId,
        id: &ConversationId,
    ) -> Result<Option<Conversation>, StoreError>;

    /// What the next turn of a conversation stands on, also of one that was deleted or never began.
    async fn history_state(
        &self,
        org: &OrgId,
        id: &ConversationId,
    ) -> Result<HistoryState, StoreError>;

    /// Deletes a conversation with its messages, its replies' records, its notes of who answered, and its places in the
    /// lists; called by the one who writes its turns, between two of them. `false` when there is none, or when another
    /// deletion was faster; a repeat of the one that did it says `true`.
    async fn delete_conversation(
        &self,
        deletion: &ConversationDeletion,
    ) -> Result<bool, StoreError>;

    /// Messages from position `from` on, oldest first, at most `limit`; only those that are counted.
    async fn messages(
        &self,
        org: &OrgId,
        id: &ConversationId,
        from: u64,
        limit: u32,
    ) -> Result<Vec<Message>, StoreError>;

    /// A part of a list of conversations, latest beginning first; fewer than the query's limit only at its end. An
    /// attempt at a first turn that another message replaced may have left its beginning too: whoever reads the
    /// conversation compares.
    async fn conversations(
        &self,
        org: &OrgId,
        query: &ListQuery,
    ) -> Result<Vec<ListedConversation>, StoreError>;

    /// Sets and clears (`null`) keys of the metadata; of two changes of one key the later `at` wins. `false` when there
    /// is no such conversation.
    async fn update_metadata(
        &self,
        org: &OrgId,
        id: &ConversationId,
        changes: &Map<String, Value>,
        at: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Notes that an agent answered in a conversation that its session alone does not find: a team's, or a page visitor's.
    /// Of two notes the later moment stays.
    async fn link_session(&self, link: &SessionLink) -> Result<(), StoreError>;

    /// Such conversations of this session in which the agent answered, the latest first, at most [`SESSION_LINKS_MAX`].
    async fn linked_conversations(
        &self,
        org: &OrgId,
        agent: &AgentId,
        session: &SessionId,
    ) -> Result<Vec<ConversationId>, StoreError>;

    /// Keeps the state of an erasure; of two states of one the one with more steps wins.
    async fn put_erasure(&self, erasure: &Erasure) -> Result<(), StoreError>;

    /// An erasure.
    async fn erasure(&self, org: &OrgId, id: &ErasureId) -> Result<Option<Erasure>, StoreError>;

    /// At most `limit` erasures, latest first; those before `before`, if it is given.
    async fn erasures(
        &self,
        org: &OrgId,
        before: Option<&ErasureId>,
        limit: u32,
    ) -> Result<Vec<Erasure>, StoreError>;

    /// Whether the store answers.
    async fn check(&self) -> Result<(), StoreError>;
}

/// An agent's answer in a conversation that its session alone does not find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionLink {
    /// Tenant.
    pub org_id: OrgId,
    /// Who answered.
    pub agent_id: AgentId,
    /// The client's name of the conversation.
    pub session_id: SessionId,
    /// The conversation.
    pub conversation_id: ConversationId,
    /// When.
    pub answered_at: Timestamp,
}

/// A turn that begins.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnStart {
    /// The message and its circumstances.
    pub turn: Turn,
    /// Whom the conversation is with.
    pub owner: ConversationOwner,
    /// Place of the user message.
    pub position: u64,
    /// The deletion behind which the conversation began anew, if there was one.
    pub tombstone: Option<Tombstone>,
    /// The attempt that writes.
    pub attempt: u32,
}

/// A turn that has its final state.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnEnd {
    /// Tenant.
    pub org_id: OrgId,
    /// When the turn was accepted; with the attempt it decides which write wins.
    pub accepted_at: Timestamp,
    /// As at its beginning.
    pub tombstone: Option<Tombstone>,
    /// The attempt that writes.
    pub attempt: u32,
    /// The user message.
    pub user_message_id: MessageId,
    /// Who answered; none when nobody could.
    pub agent_id: Option<AgentId>,
    /// The team that was addressed, if one was.
    pub team_id: Option<TeamId>,
    /// The assistant message, if it has text.
    pub message: Option<Message>,
    /// What is kept under the reply's id.
    pub record: ReplyRecord,
}

/// A message that was accepted and whose turn need not have begun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AcceptedReply {
    /// Tenant.
    pub org_id: OrgId,
    /// The message; its reply's id follows from it.
    pub user_message_id: MessageId,
    /// Whom it was sent to.
    pub owner: ConversationOwner,
    /// When the ingress accepted it.
    pub accepted_at: Timestamp,
}

/// What the store knows under a reply's id.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplyState {
    /// It was accepted; how far it is, its conversation tells.
    Accepted(AcceptedReply),
    /// It has its final state.
    Final(Box<ReplyRecord>),
}

/// What became of a reply; kept as one value, because equal timestamps would merge cell by cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplyRecord {
    /// The message that it answers.
    pub user_message_id: MessageId,
    /// Place of that message.
    pub user_position: u64,
    /// Place of the reply; none when it has no text.
    pub position: Option<u64>,
    /// How it began; none when it failed before that.
    pub head: Option<ReplyHead>,
    /// How it ended.
    pub end: ReplyEnd,
    /// The generation of its text.
    pub generation: u32,
    /// The attempt that wrote it.
    pub attempt: u32,
    /// When it ended.
    pub finished_at: Timestamp,
    /// Milliseconds from acceptance to the first text.
    pub first_text_ms: Option<u64>,
}

impl ReplyRecord {
    /// Messages in the history once this turn is over.
    pub fn message_count(&self) -> u64 {
        self.position.unwrap_or(self.user_position) + 1
    }
}
