//! `POST /api/public/agents/{agentId}/chat`: sends a message to an agent and responds with the
//! reply in the requested format.

use std::convert::identity;

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use switchboard_schemas::ids::RequestId;

use crate::{
    auth::authorized_agent::{AgentChat, AgentPath, AuthorizedAgent},
    chat::{
        bodies::ChatRequest,
        idempotency::IdempotencyKeyHeader,
        pipeline::{ChatRecipient, IncomingChat, handle_chat},
    },
    http::{ApiResult, ArrivedAt, RateLimitAddress, origin::OriginHeader},
    openapi::problems::AgentChatProblems,
    reply::{acceptance::AcceptedMessage, shape::PreferHeader, view::ReplyView},
    state::AppState,
};

/// Sends a message to an agent.
#[utoipa::path(
    post,
    path = "/api/public/agents/{agentId}/chat",
    operation_id = "chatWithAgent",
    tag = "Chat",
    summary = "Send a message to an agent",
    description = "Needs the scope `chat`. Messages with the same `sessionId` continue one conversation; a message that \
        comes while another is answered waits its turn; at most eight wait, and further ones get 429.",
    params(AgentPath, IdempotencyKeyHeader, PreferHeader, OriginHeader),
    request_body(content = ChatRequest, content_type = "application/json"),
    responses(
        (
            status = 200,
            description = "The reply, in the shape that `Accept` or `stream` asks for.",
            content((String = "text/plain"), (ReplyView = "application/json"), (String = "text/event-stream")),
        ),
        (status = 202, description = "Accepted; the reply comes later (`Prefer: respond-async`).", body = AcceptedMessage),
        AgentChatProblems,
    ),
)]
pub(crate) async fn chat_with_agent(
    State(state): State<AppState>,
    Extension(request_id): Extension<RequestId>,
    Extension(ArrivedAt(arrived)): Extension<ArrivedAt>,
    address: RateLimitAddress,
    AuthorizedAgent { caller, agent, .. }: AuthorizedAgent<AgentChat>,
    request: Request,
) -> ApiResult<Response> {
    let incoming = IncomingChat {
        request,
        request_id,
        arrived,
        address,
        map_error: identity,
    };
    handle_chat(state, &caller, ChatRecipient::Agent(agent), incoming).await
}
