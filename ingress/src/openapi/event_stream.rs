//! The `data` of server-sent events as the document shows it.

#![expect(
    dead_code,
    reason = "these types are read by the generator of the document alone"
)]

use switchboard_schemas::{
    conversation::{FinishReason, ReplyStatus, TokenUsage},
    ids::{AgentId, ConversationId, MessageId},
};
use utoipa::ToSchema;

/// Event `start`: who answers.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct StartEvent {
    /// The reply.
    message_id: MessageId,
    /// Its conversation.
    conversation_id: ConversationId,
    /// Who answers.
    agent_id: AgentId,
    /// Its name.
    agent_name: String,
    /// Why it was chosen, for a team's message.
    #[schema(nullable = false)]
    routing_reason: Option<String>,
    /// The model.
    model: String,
    /// The text that follows belongs to this generation; texts of two generations are never joined.
    generation: u64,
}

/// Event `delta`: a piece of the text.
#[derive(ToSchema)]
pub(crate) struct DeltaEvent {
    /// Whole characters.
    text: String,
    /// Byte of the reply at which the text begins.
    offset: u64,
}

/// Event `ui`: structured data to show.
#[derive(ToSchema)]
pub(crate) struct UiSpec {
    /// The kind, for instance `product-grid`.
    r#type: String,
    /// What is shown.
    data: Vec<switchboard_schemas::agent::Product>,
}

/// Event `tool`: how far a tool call is.
#[derive(ToSchema)]
pub(crate) struct ToolEvent {
    /// Name of the tool.
    name: String,
    /// `started`, `finished` or `failed`.
    #[schema(pattern = "^(started|finished|failed)$")]
    status: String,
}

/// Event `done`: the reply is stored. An `error` event, with a problem as its data, ends a stream that failed.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct DoneEvent {
    /// `completed` or `cancelled`.
    status: ReplyStatus,
    /// Why the model stopped.
    finish_reason: Option<FinishReason>,
    /// Tokens.
    usage: TokenUsage,
    /// Bytes of the whole text.
    length: u64,
    /// Milliseconds from acceptance to the end.
    response_time: u64,
}
