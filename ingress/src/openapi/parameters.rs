//! Parameters as the document shows them. The handlers read them by hand, because which error a bad one gives, and when,
//! is part of the contract.

#![expect(
    dead_code,
    reason = "these types are read by the generator of the document alone"
)]

use switchboard_schemas::ids::{AgentId, ConversationId, MessageId, TeamId};
use utoipa::IntoParams;

/// What a path with an agent has.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct AgentPath {
    /// The agent.
    #[param(rename = "agentId", value_type = String, example = "agt_77777777777777777777777777")]
    agent_id: AgentId,
}

/// What a path with a team has.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct TeamPath {
    /// The team.
    #[param(rename = "teamId", value_type = String, example = "team_77777777777777777777777777")]
    team_id: TeamId,
}

/// What a path with a message has.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct MessagePath {
    /// The reply, as `X-Message-Id` named it.
    #[param(
        rename = "messageId",
        value_type = String,
        example = "msg_7777777777777777777777777777777777777777777777777777"
    )]
    message_id: MessageId,
}

/// What a path with a conversation has.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ConversationPath {
    /// An agent that answered in the conversation.
    #[param(rename = "agentId", value_type = String, example = "agt_77777777777777777777777777")]
    agent_id: AgentId,
    /// The client's own name of the conversation.
    #[param(rename = "sessionId", example = "session-1")]
    session_id: String,
}

/// Which conversation is meant where the agent and a team have one of the same session.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ConversationChoice {
    /// The conversation, where the agent's own and a team's have the same session; usually left out.
    #[param(rename = "conversationId", value_type = String, required = false, nullable = false)]
    conversation_id: Option<ConversationId>,
}

/// Which messages of a conversation.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// Messages to return. More than 100 count as 100; what is no whole number from 1 on counts as 50.
    #[param(
        required = false,
        nullable = false,
        minimum = 1,
        maximum = 100,
        default = 50,
        example = 20
    )]
    limit: Option<u32>,
    /// Messages to skip, from the oldest on. What is no whole number counts as 0.
    #[param(
        required = false,
        nullable = false,
        minimum = 0,
        default = 0,
        example = 0
    )]
    offset: Option<u64>,
}

/// Headers of a chat request.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct ChatHeaders {
    /// Makes a repeat safe for 24 hours: the same request again joins the first one's reply, another one with the same
    /// key gets 422.
    #[param(
        rename = "Idempotency-Key",
        required = false,
        nullable = false,
        min_length = 1,
        max_length = 255,
        pattern = "^[!-~]([ -~]*[!-~])?$",
        example = "6f1c2a9e-order-1"
    )]
    idempotency_key: Option<String>,
    /// `respond-async` asks for 202 at once instead of the reply.
    #[param(rename = "Prefer", required = false, nullable = false)]
    prefer: Option<String>,
}

/// The page that asks.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct OriginHeader {
    /// Set by browsers. Where the agent has a list of allowed domains, an origin that is not on it is refused; programs
    /// leave it out.
    #[param(rename = "Origin", required = false, nullable = false)]
    origin: Option<String>,
}

/// Where a reader goes on in a reply.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ResumeQuery {
    /// Bytes of the reply that the reader has.
    #[param(
        required = false,
        nullable = false,
        minimum = 0,
        default = 0,
        example = 0
    )]
    after: Option<u64>,
    /// The generation that those bytes belong to (`X-Reply-Generation`). A reply that was begun anew gives 409.
    #[param(required = false, nullable = false, minimum = 0)]
    generation: Option<u64>,
}

/// What browsers send by themselves when they go on.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct ResumeHeaders {
    /// Id of the last event that the reader has: generation and byte. Wins over the query.
    #[param(
        rename = "Last-Event-ID",
        required = false,
        nullable = false,
        pattern = r"^[0-9]+\.[0-9]+$",
        example = "1.0"
    )]
    last_event_id: Option<String>,
}

/// What a cache has.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct CacheHeaders {
    /// The `ETag` of the copy at hand.
    #[param(rename = "If-None-Match", required = false, nullable = false)]
    if_none_match: Option<String>,
}
