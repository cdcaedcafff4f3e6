//! `POST /api/public/agents/{agentId}/chat`: sends a message to an agent and streams the reply.

use std::convert::identity;

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use switchboard_schemas::{agent::OnDisconnect, ids::RequestId};

use crate::{
    auth::authorized_agent::{AgentChat, AuthorizedAgent},
    chat::{
        idempotency::IdempotencyKey,
        request::{ChatBody, TurnContext},
        submission::accept,
    },
    http::{
        ApiResult, ArrivedAt, RateLimitAddress,
        body::{self, BodyLimits},
    },
    jobs::publish::TurnJob,
    openapi::{
        bodies::{Accepted, ChatRequest},
        parameters::{AgentPath, ChatHeaders, OriginHeader},
        problems::AgentChatProblems,
    },
    reply::{ResponseContext, respond, shape::ReplyShape, view::ReplyView},
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
        comes while another is answered waits its turn.",
    params(AgentPath, ChatHeaders, OriginHeader),
    request_body(content = ChatRequest, content_type = "application/json"),
    responses(
        (
            status = 200,
            description = "The reply, in the shape that `Accept` or `stream` asks for.",
            content((String = "text/plain"), (ReplyView = "application/json"), (String = "text/event-stream")),
        ),
        (status = 202, description = "Accepted; the reply comes later (`Prefer: respond-async`).", body = Accepted),
        AgentChatProblems,
    ),
)]
pub(crate) async fn post(
    State(state): State<AppState>,
    Extension(request_id): Extension<RequestId>,
    Extension(ArrivedAt(arrived)): Extension<ArrivedAt>,
    address: RateLimitAddress,
    AuthorizedAgent { caller, agent, .. }: AuthorizedAgent<AgentChat>,
    request: Request,
) -> ApiResult<Response> {
    let (parts, body) = request.into_parts();
    let body = body::read(&parts.headers, body, BodyLimits::public(&state.config)).await?;
    let body = body::parse_object(&body)?;
    let chat =
        ChatBody::parse(&body, agent.settings.limits.max_message_length)?.sent_by(&caller)?;
    let shape = ReplyShape::chosen(&parts.headers, &body)?;
    let per_minute = agent.settings.limits.rate_limit_per_minute;
    state
        .limits
        .admit_visitor(
            agent.id.as_str(),
            per_minute,
            chat.sender(),
            caller.limits_told(),
        )
        .await?;
    if caller.visitor_id().is_some() {
        state
            .limits
            .sites
            .admit_chat(&agent.id, &address, caller.limits_told())
            .await?;
    }
    let repeat = IdempotencyKey::read(&parts.headers, &caller, agent.id.as_str(), &chat)?;
    let context = TurnContext::of(&state, request_id.clone(), shape, &parts);
    let job = TurnJob::Agent(chat.into_agent_job(&caller, &agent, context));
    let on_disconnect = if shape.waits() {
        agent.settings.on_disconnect
    } else {
        OnDisconnect::Continue
    };
    let follower = accept(state, shape, job, repeat)
        .await?
        .on_disconnect(on_disconnect);
    respond(
        follower,
        shape,
        ResponseContext {
            request_id,
            arrived,
            told: identity,
        },
    )
    .await
}
