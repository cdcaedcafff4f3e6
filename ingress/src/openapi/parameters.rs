//! Parameters as the document shows them. The handlers parse them without these types, because the
//! error for an invalid value and the order of the checks are part of the contract.

#![expect(
    dead_code,
    reason = "only the generator of the document reads these types"
)]

use switchboard_schemas::ids::{AgentId, ConversationId, MessageId, TeamId};
use utoipa::IntoParams;

/// The parameter of a path with an agent.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct AgentPath {
    /// The id of the agent.
    #[param(rename = "agentId", value_type = String, example = "agt_77777777777777777777777777")]
    agent_id: AgentId,
}

/// The parameter of a path with a team.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct TeamPath {
    /// The id of the team.
    #[param(rename = "teamId", value_type = String, example = "team_77777777777777777777777777")]
    team_id: TeamId,
}

/// The parameter of a path with a message.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct MessagePath {
    /// The id of the reply, from `X-Message-Id`.
    #[param(
        rename = "messageId",
        value_type = String,
        example = "msg_7777777777777777777777777777777777777777777777777777"
    )]
    message_id: MessageId,
}

/// The parameters of a path with a conversation.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ConversationPath {
    /// The id of an agent that replied in the conversation.
    #[param(rename = "agentId", value_type = String, example = "agt_77777777777777777777777777")]
    agent_id: AgentId,
    /// The id that the client chose for the session.
    #[param(rename = "sessionId", example = "session-1")]
    session_id: String,
}

/// The choice between two conversations of one session.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ConversationChoice {
    /// The id of the conversation. Needed only if the agent itself and a team both have a
    /// conversation with this session.
    #[param(rename = "conversationId", value_type = String, required = false)]
    conversation_id: ConversationId,
}

/// The page of the messages of a conversation.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// Messages to return: 50 by default, at most 100. Larger numbers count as 100, other values as
    /// 50.
    #[param(
        required = false,
        minimum = 1,
        maximum = 100,
        default = 50,
        example = 20
    )]
    limit: u32,
    /// Messages to skip, oldest first. A value that is not a whole number counts as 0.
    #[param(required = false, minimum = 0, default = 0, example = 0)]
    offset: u64,
}

/// Headers of a chat request.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct ChatHeaders {
    /// Makes retries safe for 24 hours: a request with the same key and body joins the reply of the
    /// first one, and another body gets 422.
    #[param(
        rename = "Idempotency-Key",
        required = false,
        min_length = 1,
        max_length = 255,
        pattern = "^[!-~]([ -~]*[!-~])?$",
        example = "6f1c2a9e-order-1"
    )]
    idempotency_key: String,
    /// `respond-async` returns 202 at once instead of the reply.
    #[param(rename = "Prefer", required = false)]
    prefer: String,
}

/// The origin of the page that sends the request.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct OriginHeader {
    /// Set by browsers. If the agent has a list of allowed domains, other origins are rejected;
    /// requests without the header are accepted.
    #[param(rename = "Origin", required = false)]
    origin: String,
}

/// The position from which a client resumes a reply.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ResumeQuery {
    /// The number of bytes that the client has.
    #[param(required = false, minimum = 0, default = 0, example = 0)]
    after: u64,
    /// The generation of those bytes (`X-Reply-Generation`). If the reply was restarted since, the
    /// response is 409.
    #[param(required = false, minimum = 0)]
    generation: u64,
}

/// The header that browsers send when they reconnect.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct ResumeHeaders {
    /// The id of the last event that the client has: generation and byte. Takes precedence over the
    /// query.
    #[param(
        rename = "Last-Event-ID",
        required = false,
        pattern = r"^[0-9]+\.[0-9]+$",
        example = "1.0"
    )]
    last_event_id: String,
}

/// The version that a cache has.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct IfNoneMatchHeader {
    /// The `ETag` of the cached copy.
    #[param(rename = "If-None-Match", required = false)]
    if_none_match: String,
}
