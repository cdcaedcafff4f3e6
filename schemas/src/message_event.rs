//! What happened in conversations, for analytics: a public contract on [`crate::topics::Topic::Messages`], keyed by
//! conversation. At least once and in order per conversation; `eventId` is stable, so that repeats can be dropped.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    client_text::{SessionId, VisitorId},
    conversation::{FinishReason, ReplyStatus},
    ids::{AgentId, ConversationId, EventId, KeyId, MessageId, OrgId, RequestId, TeamId},
    routing::RoutingFacts,
    time::Timestamp,
    turn::MessageSource,
    versioned::TopicRecord,
};

/// One fact about one conversation. The common fields stand first and flat, so that table engines read them as columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessageEvent {
    /// Stable across repeats of the same fact.
    pub event_id: EventId,
    /// When it happened.
    pub occurred_at: Timestamp,
    /// Tenant.
    pub org_id: OrgId,
    /// Conversation, the record's key.
    pub conversation_id: ConversationId,
    /// Who made it happen.
    pub actor: EventActor,
    /// The agent concerned.
    pub agent_id: AgentId,
    /// The team that was addressed, if one was.
    pub team_id: Option<TeamId>,
    /// The request that led to it.
    pub request_id: RequestId,
    /// The fact itself.
    #[serde(flatten)]
    pub body: EventBody,
}

impl TopicRecord for MessageEvent {
    const VERSION: u32 = 1;
}

/// Who made something happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Actor")]
pub enum EventActor {
    /// The visitor of a page or the user of a program.
    Visitor,
    /// An agent.
    Agent,
    /// A program with a key, or a person of the organization.
    Api,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
pub enum EventBody {
    /// A user message entered the history.
    #[serde(rename = "message.user")]
    UserMessage(Box<UserMessageFact>),
    /// A reply reached its final state.
    #[serde(rename = "message.assistant")]
    AssistantMessage(Box<AssistantMessageFact>),
    /// Metadata, rating or feedback changed.
    #[serde(rename = "conversation.updated")]
    ConversationUpdated(Box<ConversationUpdatedFact>),
}

/// A user message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserMessageFact {
    /// Message.
    pub message_id: MessageId,
    /// Place in the conversation.
    pub position: u64,
    /// Text. Personal data.
    pub content: String,
    /// The client's name of the conversation.
    pub session_id: SessionId,
    /// Who wrote. Personal data.
    pub visitor_id: Option<VisitorId>,
    /// Where it came from.
    pub source: MessageSource,
    /// The key that was used.
    pub key_id: Option<KeyId>,
    /// When the ingress accepted it.
    pub accepted_at: Timestamp,
}

/// A reply in its final state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssistantMessageFact {
    /// Message.
    pub message_id: MessageId,
    /// The message that it answers.
    pub in_reply_to: MessageId,
    /// Place in the conversation; absent when there is no text and so no place.
    pub position: Option<u64>,
    /// Text; empty when it failed. May repeat personal data.
    pub content: String,
    /// Final state.
    pub status: ReplyStatus,
    /// What the provider said of the end.
    pub finish_reason: Option<FinishReason>,
    /// Name of the failure, if it is one.
    pub failure: Option<String>,
    /// Model that answered.
    pub model: String,
    /// Tokens read.
    pub prompt_tokens: u64,
    /// Tokens written.
    pub completion_tokens: u64,
    /// Whether the token figures are ours.
    pub usage_estimated: bool,
    /// Milliseconds from acceptance to the end.
    pub response_time_ms: u64,
    /// Milliseconds from acceptance to the first text; absent without text.
    pub first_text_ms: Option<u64>,
    /// Which attempt it was.
    pub attempt: u32,
    /// Why this agent, for a team's message.
    pub routing_reason: Option<String>,
    /// What that decision stood on: the stage that made it, its time, and a score for each member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing: Option<RoutingFacts>,
    /// Structured data that was shown.
    pub ui_spec: Option<Value>,
}

/// A change of metadata.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConversationUpdatedFact {
    /// Keys as they are now; `null` where one was cleared. Personal data.
    pub changes: Map<String, Value>,
    /// Whether the conversation was deleted: everything that was told of it before is to be deleted too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
}
