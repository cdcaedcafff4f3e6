//! Reads of conversations, their messages and lists of them.

use async_trait::async_trait;
use switchboard_schemas::{
    conversation::{Conversation, Message},
    ids::{ConversationId, MessageId, OrgId},
};

use super::{
    ReplyState,
    deletion::HistoryState,
    listing::{ListQuery, ListedConversation},
};
use crate::error::StoreError;

/// State that a turn builds on.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnOpening {
    /// State of the turn's reply.
    pub reply: Option<ReplyState>,
    /// State of the conversation.
    pub history: HistoryState,
    /// Latest messages, oldest first.
    pub messages: Vec<Message>,
}

/// Reads of conversations.
///
/// # Contract
/// - **Messages**: a page contains counted messages only and costs work in proportion to the page,
///   not to the conversation.
/// - **Lists**: a conversation keeps its place in a list. A page of a list costs work in proportion
///   to the page and to the days that it spans.
#[async_trait]
pub trait ConversationReader: Send + Sync {
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

    /// Returns the state that the turn of `reply` builds on, with at most `messages_max` of the
    /// latest messages.
    async fn turn_opening(
        &self,
        org: &OrgId,
        reply: &MessageId,
        messages_max: u32,
    ) -> Result<TurnOpening, StoreError>;

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

    /// Fails if the store does not respond.
    async fn check(&self) -> Result<(), StoreError>;
}
