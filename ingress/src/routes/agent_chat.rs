//! `POST /api/public/agents/{agentId}/chat`: a message in, a streamed reply out.

use std::convert::identity;

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use switchboard_schemas::{agent::OnDisconnect, ids::RequestId};

use crate::{
    accept::accept,
    body::{self, BodyLimits},
    client_address::CountedAddress,
    error::ApiResult,
    idempotency::Repeat,
    observe::ArrivedAt,
    openapi::{
        bodies::{Accepted, ChatRequest},
        parameters::{AgentPath, ChatHeaders, OriginHeader},
        problems::AgentChatProblems,
    },
    publish::TurnJob,
    reachable::{AgentChat, ReachableAgent},
    reply::{Asked, respond, shape::ReplyShape, view::ReplyView},
    state::AppState,
    turn::{ChatBody, TurnContext},
};

/// Serves the route.
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
    address: CountedAddress,
    ReachableAgent { caller, agent, .. }: ReachableAgent<AgentChat>,
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
            .pages
            .admit_chat(&agent.id, &address, caller.limits_told())
            .await?;
    }
    let repeat = Repeat::read(&parts.headers, &caller, agent.id.as_str(), &chat)?;
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
        Asked {
            request_id,
            arrived,
            told: identity,
        },
    )
    .await
}
