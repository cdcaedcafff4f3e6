//! What is kept of a conversation: its messages, and what is known about it (specification: Conversation, Message).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::{
    client_text::SessionId,
    ids::{AgentId, ConversationId, MessageId, OrgId, TeamId},
    routing::RoutingFacts,
    time::Timestamp,
};

/// Metadata keys that the service sets itself; clients' `metadata` objects cannot set them.
pub const RESERVED_KEYS: [&str; 5] = [
    "visitorId",
    "visitorEmail",
    "visitorName",
    "source",
    "ipAddress",
];

/// A conversation without its messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
    /// Identifier.
    pub id: ConversationId,
    /// Tenant.
    pub org_id: OrgId,
    /// The client's name of it.
    pub session_id: SessionId,
    /// Whom it is with.
    pub owner: ConversationOwner,
    /// Messages in the history; positions run from 0 to this, without gaps.
    pub message_count: u64,
    /// The reply that is being made, if one is.
    pub active_message_id: Option<MessageId>,
    /// The reply that ended last, if none is being made. What became of it is stored behind this and may be a moment late.
    pub last_reply_id: Option<MessageId>,
    /// First message.
    pub created_at: Timestamp,
    /// Last change.
    pub updated_at: Timestamp,
    /// Reserved keys, rating, feedback and the clients' own keys.
    pub metadata: Map<String, Value>,
}

/// Whom a conversation is with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind", content = "id")]
pub enum ConversationOwner {
    /// One agent.
    Agent(AgentId),
    /// A team, whose members answer.
    Team(TeamId),
}

/// A message of the history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Identifier.
    pub id: MessageId,
    /// Place in the conversation, dense from 0.
    pub position: u64,
    /// The text.
    pub content: String,
    /// When it was accepted, or finished.
    pub created_at: Timestamp,
    /// Who wrote it and what belongs to that.
    #[serde(flatten)]
    pub author: MessageAuthor,
}

/// Who wrote a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum MessageAuthor {
    /// A visitor.
    User,
    /// An agent.
    Assistant(Box<ReplyFacts>),
}

/// What is known about an assistant message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplyFacts {
    /// Who answered.
    pub agent_id: AgentId,
    /// Its name at that time.
    pub agent_name: String,
    /// How it ended.
    pub status: ReplyStatus,
    /// What the provider said of the end.
    pub finish_reason: Option<FinishReason>,
    /// Tokens used.
    pub usage: TokenUsage,
    /// Milliseconds from acceptance to the end.
    pub response_time_ms: u64,
    /// The model that answered.
    pub model: String,
    /// Why this agent, for a team's message.
    pub routing_reason: Option<String>,
    /// What that decision stood on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing: Option<RoutingFacts>,
    /// Structured data to show.
    pub ui_spec: Option<Value>,
    /// The generation of the text.
    pub generation: u32,
    /// What of the conversation the model was not told word for word; absent when it was told everything.
    #[serde(rename = "left_out", default, skip_serializing_if = "Option::is_none")]
    pub truncation: Option<ContextTruncation>,
    /// The summary that stood for it, where it is new or was last kept long before this message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<ConversationSummary>,
    /// When it came how far; absent in what older programs kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<ReplySteps>,
}

/// The way of a reply, in milliseconds from the acceptance of its message. Each process reads its own clock. An attempt
/// that goes on where another one died tells its own steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplySteps {
    /// A team's member was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routed_ms: Option<u64>,
    /// The work lay in the queue of its conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued_ms: Option<u64>,
    /// A worker took it up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_ms: Option<u64>,
    /// A model was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_ms: Option<u64>,
    /// The first text came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_text_ms: Option<u64>,
}

/// Messages that did not fit into a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContextTruncation {
    /// How many.
    pub messages: u64,
    /// For how many of them the summary stood.
    pub summarized: u64,
}

/// The beginning of a conversation in few words, made by a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationSummary {
    /// The words. May repeat personal data.
    pub text: String,
    /// It covers the messages before this position.
    pub until: u64,
}

/// State of a reply; the last four never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplyStatus {
    /// Accepted, its turn has not come.
    Queued,
    /// A team is choosing.
    Routing,
    /// Being made.
    InProgress,
    /// The provider said that it finished.
    Completed,
    /// Broken off; the text so far is kept.
    Incomplete,
    /// No text.
    Failed,
    /// Stopped by request; the text so far is kept.
    Cancelled,
}

impl ReplyStatus {
    /// Whether the state can still change.
    pub const fn is_final(self) -> bool {
        matches!(
            self,
            Self::Completed | Self::Incomplete | Self::Failed | Self::Cancelled
        )
    }
}

/// Why the provider stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// A natural end.
    Stop,
    /// The limit of tokens or bytes.
    Length,
    /// The provider's content filter.
    ContentFilter,
    /// A request to stop.
    Cancelled,
}

/// Tokens of one reply.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema,
)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Usage")]
#[schema(as = Usage)]
pub struct TokenUsage {
    /// Tokens read.
    pub prompt_tokens: u64,
    /// Tokens written.
    pub completion_tokens: u64,
    /// Whether the figures are ours, because the provider gave none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}
