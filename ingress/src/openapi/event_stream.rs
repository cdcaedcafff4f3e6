//! Data of server-sent events as the document shows it.

#![expect(
    dead_code,
    reason = "only the generator of the document reads these types"
)]

use switchboard_schemas::{
    conversation::{FinishReason, ReplyStatus, TokenUsage},
    ids::{AgentId, ConversationId, MessageId},
};
use utoipa::ToSchema;

/// Event `start`: the agent and the model of the reply.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct StartEvent {
    /// The id of the reply.
    message_id: MessageId,
    /// The id of the conversation.
    conversation_id: ConversationId,
    /// The id of the agent that replies.
    agent_id: AgentId,
    /// The name of that agent.
    agent_name: String,
    /// The reason for which a team chose the agent.
    #[schema(nullable = false)]
    routing_reason: Option<String>,
    /// The model that writes the reply.
    model: String,
    /// The generation of the text that follows; texts of two generations must not be concatenated.
    generation: u64,
}

/// Event `delta`: a piece of the text.
#[derive(ToSchema)]
pub(crate) struct DeltaEvent {
    /// The text of the piece, which ends between two characters.
    text: String,
    /// The byte of the reply at which the text begins.
    offset: u64,
}

/// Event `ui`: structured data to show.
#[derive(ToSchema)]
pub(crate) struct UiSpec {
    /// The kind of the data, for instance `product-grid`.
    r#type: String,
    /// The products to show.
    data: Vec<switchboard_schemas::agent::Product>,
}

/// Event `tool`: the progress of a tool call.
#[derive(ToSchema)]
pub(crate) struct ToolEvent {
    /// The name of the tool.
    name: String,
    /// The state of the call: `started`, `finished` or `failed`.
    #[schema(pattern = "^(started|finished|failed)$")]
    status: String,
}

/// Event `done`: the reply is stored. An `error` event, with a problem as its data, ends a stream
/// that failed.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct DoneEvent {
    /// The final state: `completed` or `cancelled`.
    status: ReplyStatus,
    /// The reason for which the model stopped.
    finish_reason: Option<FinishReason>,
    /// The tokens that were used.
    usage: TokenUsage,
    /// The length of the whole text, in bytes.
    length: u64,
    /// Milliseconds from acceptance to the end.
    response_time: u64,
}
