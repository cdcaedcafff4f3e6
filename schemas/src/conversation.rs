//! The stored form of conversations, messages and replies (specification: Conversation, Message).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::{
    client_text::SessionId,
    file::Attachment,
    ids::{AgentId, ConversationId, MessageId, OrgId, TeamId},
    lead::LEAD_KEY,
    routing::RoutingFacts,
    time::Timestamp,
};

/// Metadata keys that the service sets itself; clients cannot set them in `metadata`.
pub const RESERVED_KEYS: [&str; 6] = [
    "visitorId",
    "visitorEmail",
    "visitorName",
    "source",
    "ipAddress",
    LEAD_KEY,
];

/// A conversation without its messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
    /// Id of the conversation.
    pub id: ConversationId,
    /// Organization that owns the conversation.
    pub org_id: OrgId,
    /// Session id chosen by the client.
    pub session_id: SessionId,
    /// Agent or team of the conversation.
    pub owner: ConversationOwner,
    /// Number of messages in the history. Positions run from 0 without gaps.
    pub message_count: u64,
    /// Reply that is in progress, if any.
    pub active_message_id: Option<MessageId>,
    /// Reply that ended last, if none is in progress. Its final state is stored later and may be
    /// missing for a moment.
    pub last_reply_id: Option<MessageId>,
    /// Time of the first message.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// Reserved keys, rating, feedback and the client's own keys.
    pub metadata: Map<String, Value>,
}

impl Conversation {
    /// Returns the length of a page of at most `limit` messages that starts at position `offset`.
    /// Messages that follow this reading of the conversation are not part of it: otherwise a page
    /// could contain a reply that `active_message_id` still names.
    #[must_use]
    pub fn page_length(&self, offset: u64, limit: u32) -> u32 {
        let remaining = self.message_count.saturating_sub(offset);
        u32::try_from(remaining).unwrap_or(limit).min(limit)
    }
}

/// The agent or team of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind", content = "id")]
pub enum ConversationOwner {
    /// A conversation with one agent.
    Agent(AgentId),
    /// A conversation with a team, whose members answer.
    Team(TeamId),
}

/// A message in the history of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Id of the message.
    pub id: MessageId,
    /// Position in the conversation, dense from 0.
    pub position: u64,
    /// Text of the message.
    pub content: String,
    /// Files that were sent with the message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// Time of acceptance, or of the end of a reply.
    pub created_at: Timestamp,
    /// Author of the message and the facts about a reply.
    #[serde(flatten)]
    pub author: MessageAuthor,
}

/// The author of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum MessageAuthor {
    /// The message was written by a visitor.
    User,
    /// The message is a reply of an agent.
    Assistant(Box<ReplyFacts>),
}

/// The facts about a reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplyFacts {
    /// Agent that replied.
    pub agent_id: AgentId,
    /// Name of the agent at that time.
    pub agent_name: String,
    /// Final state of the reply.
    pub status: ReplyStatus,
    /// Finish reason reported by the provider.
    pub finish_reason: Option<FinishReason>,
    /// Tokens read and generated.
    pub usage: TokenUsage,
    /// Milliseconds from acceptance to the end of the reply.
    pub response_time_ms: u64,
    /// Model that generated the reply.
    pub model: String,
    /// Reason for the choice of the agent, for a team's message.
    pub routing_reason: Option<String>,
    /// Details of the routing decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing: Option<RoutingFacts>,
    /// Structured data shown with the reply.
    pub ui_spec: Option<Value>,
    /// Generation of the text.
    pub generation: u32,
    /// Part of the conversation that did not fit into the prompt; absent if all of it did.
    #[serde(rename = "left_out", default, skip_serializing_if = "Option::is_none")]
    pub truncation: Option<ContextTruncation>,
    /// Summary used in the prompt, if it is new or was last stored long before this message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<ConversationSummary>,
    /// Timeline of the reply; absent in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<ReplySteps>,
}

/// The timeline of a reply, in milliseconds from the acceptance of its message. Each process reads
/// its own clock. An attempt that continues a failed one reports its own steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplySteps {
    /// Time at which a member of the team was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routed_ms: Option<u64>,
    /// Time at which the job was enqueued for its conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued_ms: Option<u64>,
    /// Time at which a worker claimed the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_ms: Option<u64>,
    /// Time of the first model call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_ms: Option<u64>,
    /// Time of the first text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_text_ms: Option<u64>,
}

/// The part of a conversation that did not fit into the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContextTruncation {
    /// Number of messages that did not fit.
    pub messages: u64,
    /// Number of those messages that the summary covers.
    pub summarized: u64,
}

/// A summary of the beginning of a conversation, written by a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationSummary {
    /// Text of the summary. May repeat personal data.
    pub text: String,
    /// The summary covers the messages before this position.
    pub until: u64,
}

/// The state of a reply. The last four are final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplyStatus {
    /// Accepted and waiting in the queue of the conversation.
    Queued,
    /// A member of the team is being chosen.
    Routing,
    /// The reply is being generated.
    InProgress,
    /// The provider reported a regular end.
    Completed,
    /// The text ended early; the part so far is stored.
    Incomplete,
    /// The reply failed without text.
    Failed,
    /// Canceled by request; the text so far is stored.
    Cancelled,
}

impl ReplyStatus {
    /// Returns `true` if the state can no longer change.
    pub const fn is_final(self) -> bool {
        matches!(
            self,
            Self::Completed | Self::Incomplete | Self::Failed | Self::Cancelled
        )
    }
}

/// The reason why the provider stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model ended the reply.
    Stop,
    /// The limit of tokens or bytes was reached.
    Length,
    /// The content filter of the provider intervened.
    ContentFilter,
    /// The reply was canceled.
    Cancelled,
}

/// Token counts of one reply.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema,
)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Usage")]
#[schema(as = Usage)]
pub struct TokenUsage {
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Tokens of the reply.
    pub completion_tokens: u64,
    /// `true` if the counts are estimated because the provider reported none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}
