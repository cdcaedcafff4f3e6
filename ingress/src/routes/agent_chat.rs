//! `POST /api/public/agents/{agentId}/chat`: a message in, a streamed reply out.

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use switchboard_schemas::ids::RequestId;

use crate::{
    accept::accept,
    body::{self, BodyLimits},
    error::ApiResult,
    idempotency::Repeat,
    observe::ArrivedAt,
    publish::TurnJob,
    reachable::{AgentChat, ReachableAgent},
    reply::text,
    state::AppState,
    turn::{ChatBody, TurnContext},
};

/// Serves the route.
pub(crate) async fn post(
    State(state): State<AppState>,
    Extension(request_id): Extension<RequestId>,
    Extension(ArrivedAt(arrived)): Extension<ArrivedAt>,
    ReachableAgent { caller, agent, .. }: ReachableAgent<AgentChat>,
    request: Request,
) -> ApiResult<Response> {
    let (parts, body) = request.into_parts();
    let body = body::read(&parts.headers, body, BodyLimits::public(&state.config)).await?;
    let chat = ChatBody::parse(&body::parse_object(&body)?, agent.settings.limits.max_message_length)?;
    let repeat = Repeat::read(&parts.headers, &caller, agent.id.as_str(), &chat)?;
    let job = chat.into_agent_job(&caller, &agent, TurnContext::of(&state, request_id, &parts));
    text::respond(accept(state, TurnJob::Agent(job), repeat).await?, arrived).await
}
