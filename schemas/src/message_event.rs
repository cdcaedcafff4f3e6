//! Events of conversations for analytics, a public contract on [`crate::topics::Topic::Messages`].
//!
//! Records are keyed by conversation and delivered at least once and in order per conversation.
//! `eventId` is stable, so that readers can drop duplicates.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    client_text::{SessionId, VisitorId},
    conversation::{FinishReason, ReplyStatus},
    file::Attachment,
    ids::{AgentId, ConversationId, EventId, KeyId, MessageId, OrgId, RequestId, TeamId},
    lead::CapturedLead,
    routing::RoutingFacts,
    time::Timestamp,
    turn::MessageSource,
    versioned::TopicRecord,
};

/// One event of a conversation. The common fields come first and are flat, so that table engines
/// read them as columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessageEvent {
    /// Id of the event, the same in every delivery.
    pub event_id: EventId,
    /// Time of the event.
    pub occurred_at: Timestamp,
    /// Organization that owns the conversation.
    pub org_id: OrgId,
    /// Id of the conversation, the record's key.
    pub conversation_id: ConversationId,
    /// Actor that caused the event.
    pub actor: EventActor,
    /// Agent of the conversation.
    pub agent_id: AgentId,
    /// Team to which the conversation is addressed, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team_id: Option<TeamId>,
    /// HTTP request that caused the event.
    pub request_id: RequestId,
    /// Content of the event.
    #[serde(flatten)]
    pub body: EventBody,
}

impl TopicRecord for MessageEvent {
    const VERSION: u32 = 1;
}

/// The actor that caused an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Actor")]
pub enum EventActor {
    /// The visitor of a page or the user of a program.
    Visitor,
    /// An agent caused the event.
    Agent,
    /// A program with an API key, or a user of the organization.
    Api,
}

/// The content of an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
pub enum EventBody {
    /// A user message was stored.
    #[serde(rename = "message.user")]
    UserMessage(Box<UserMessageFact>),
    /// A reply reached its final state.
    #[serde(rename = "message.assistant")]
    AssistantMessage(Box<AssistantMessageFact>),
    /// Metadata, rating or feedback changed.
    #[serde(rename = "conversation.updated")]
    ConversationUpdated(Box<ConversationUpdatedFact>),
    /// A visitor submitted a lead. A later one of the conversation replaces it.
    #[serde(rename = "lead.captured")]
    LeadCaptured(Box<LeadCapturedFact>),
}

/// The facts about a user message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserMessageFact {
    /// Id of the message.
    pub message_id: MessageId,
    /// Position in the conversation.
    pub position: u64,
    /// Text of the message. Personal data.
    pub content: String,
    /// Files that were sent with the message, without their bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// Session id chosen by the client.
    pub session_id: SessionId,
    /// Id of the visitor. Personal data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visitor_id: Option<VisitorId>,
    /// Channel of the message.
    pub source: MessageSource,
    /// API key of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_id: Option<KeyId>,
    /// Time at which the ingress accepted the message.
    pub accepted_at: Timestamp,
}

/// The facts about a reply in its final state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssistantMessageFact {
    /// Id of the reply.
    pub message_id: MessageId,
    /// Id of the user message.
    pub in_reply_to: MessageId,
    /// Position in the conversation; absent if there is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// Text of the reply; empty if it failed. May repeat personal data.
    pub content: String,
    /// Final state of the reply.
    pub status: ReplyStatus,
    /// Finish reason reported by the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReason>,
    /// Code of the failure, if the reply failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Model that generated the reply.
    pub model: String,
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Tokens of the reply.
    pub completion_tokens: u64,
    /// `true` if the token counts are estimated.
    pub usage_estimated: bool,
    /// Milliseconds from acceptance to the end.
    pub response_time_ms: u64,
    /// Milliseconds from acceptance to the first text; absent without text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_text_ms: Option<u64>,
    /// Number of the attempt that produced the reply.
    pub attempt: u32,
    /// Reason for the choice of the agent, for a team's message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing_reason: Option<String>,
    /// Details of the routing decision: its stage, its duration and a score for each member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing: Option<RoutingFacts>,
    /// Structured data shown with the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ui_spec: Option<Value>,
}

/// A change of a conversation's metadata.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConversationUpdatedFact {
    /// Current values of the changed keys; `null` for a cleared one. Personal data.
    pub changes: Map<String, Value>,
    /// `true` if the conversation was deleted; readers must delete all earlier events of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
}

/// A lead that a visitor submitted. Personal data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeadCapturedFact {
    /// The lead.
    pub lead: CapturedLead,
}
