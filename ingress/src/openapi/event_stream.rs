//! Data of server-sent events.

use std::borrow::Cow;

use serde::Serialize;
use switchboard_schemas::{
    conversation::{FinishReason, ReplyStatus, TokenUsage},
    ids::{AgentId, ConversationId, MessageId},
};
use utoipa::ToSchema;

/// Event `start`: the agent and the model of the reply.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StartEvent<'a> {
    /// The id of the reply.
    pub(crate) message_id: &'a MessageId,
    /// The id of the conversation.
    pub(crate) conversation_id: &'a ConversationId,
    /// The id of the agent that replies.
    pub(crate) agent_id: &'a AgentId,
    /// The name of that agent.
    pub(crate) agent_name: &'a str,
    /// The reason for which a team chose the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) routing_reason: Option<&'a str>,
    /// The model that writes the reply.
    pub(crate) model: &'a str,
    /// The generation of the text that follows; texts of two generations must not be concatenated.
    pub(crate) generation: u64,
}

/// Event `delta`: a piece of the text.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeltaEvent<'a> {
    /// The text of the piece, which ends between two characters.
    pub(crate) text: Cow<'a, str>,
    /// The byte of the reply at which the text begins.
    pub(crate) offset: u64,
}

/// Event `ui`: structured data to show.
#[derive(ToSchema)]
#[expect(
    dead_code,
    reason = "workers serialize it, and the ingress passes it on"
)]
pub(crate) struct UiSpec {
    /// The kind of the data, for instance `product-grid`.
    r#type: String,
    /// The products to show.
    data: Vec<switchboard_schemas::agent::Product>,
}

/// Event `tool`: the progress of a tool call.
#[derive(ToSchema)]
#[expect(dead_code, reason = "`ToolProgress` is serialized in its place")]
pub(crate) struct ToolEvent {
    /// The name of the tool.
    name: String,
    /// The state of the call: `started`, `finished` or `failed`.
    #[schema(pattern = "^(started|finished|failed)$")]
    status: String,
}

/// Event `done`: the reply is stored. An `error` event, with a problem as its data, ends a stream
/// that failed.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DoneEvent<'a> {
    /// The final state: `completed` or `cancelled`.
    pub(crate) status: ReplyStatus,
    /// The reason for which the model stopped.
    pub(crate) finish_reason: Option<FinishReason>,
    /// The tokens that were used.
    pub(crate) usage: &'a TokenUsage,
    /// The length of the whole text, in bytes.
    pub(crate) length: u64,
    /// Milliseconds from acceptance to the end.
    pub(crate) response_time: u64,
}
