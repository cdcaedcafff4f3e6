//! `POST /api/public/teams/{teamId}/chat`: sends a message to a team; routing chooses the agent
//! that replies.
//!
//! Some errors of this route have no codes, as the specification demands.

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use http::StatusCode;
use switchboard_schemas::{agent::AgentLimits, ids::RequestId, team::Team};
use tokio::time::Instant;

use crate::{
    auth::authorized_team::AuthorizedTeam,
    chat::{
        idempotency::IdempotencyKey,
        request::{ChatBody, TurnContext},
        submission::accept,
    },
    http::{
        ApiError, ApiResult, ArrivedAt, ErrorCode,
        body::{self, BodyLimits},
    },
    jobs::publish::TurnJob,
    openapi::{
        bodies::{Accepted, TeamChatRequest},
        parameters::{ChatHeaders, TeamPath},
        problems::TeamChatProblems,
    },
    reply::{ResponseContext, respond, shape::ReplyShape, view::ReplyView},
    state::AppState,
};

/// Sends a message to a team.
#[utoipa::path(
    post,
    path = "/api/public/teams/{teamId}/chat",
    operation_id = "chatWithTeam",
    tag = "Chat",
    summary = "Send a message to a team",
    description = "Needs the scope `chat`. The team's routing chooses who answers, and stays with it until the topic \
        changes. Where no code is listed for a status, the error has none.",
    params(TeamPath, ChatHeaders),
    request_body(content = TeamChatRequest, content_type = "application/json"),
    responses(
        (
            status = 200,
            description = "The reply, in the shape that `Accept` or `stream` asks for.",
            content((String = "text/plain"), (ReplyView = "application/json"), (String = "text/event-stream")),
        ),
        (status = 202, description = "Accepted; the reply comes later (`Prefer: respond-async`).", body = Accepted),
        TeamChatProblems,
    ),
)]
pub(crate) async fn post(
    State(state): State<AppState>,
    Extension(request_id): Extension<RequestId>,
    Extension(ArrivedAt(arrived)): Extension<ArrivedAt>,
    team: AuthorizedTeam,
    request: Request,
) -> ApiResult<Response> {
    chat(state, request_id, arrived, team, request)
        .await
        .map_err(without_code)
}

async fn chat(
    state: AppState,
    request_id: RequestId,
    arrived: Instant,
    AuthorizedTeam { caller, team }: AuthorizedTeam,
    request: Request,
) -> ApiResult<Response> {
    let (parts, body) = request.into_parts();
    let body = body::read(&parts.headers, body, BodyLimits::public(&state.config)).await?;
    let limits = smallest_limits(&state, &team).await?;
    let body = body::parse_object(&body)?;
    let chat = ChatBody::parse_for_team(&body, limits.max_message_length)?;
    let shape = ReplyShape::chosen(&parts.headers, &body)?;
    let per_minute = limits.rate_limit_per_minute;
    state
        .limits
        .admit_visitor(
            team.id.as_str(),
            per_minute,
            chat.sender(),
            caller.limits_told(),
        )
        .await?;
    let repeat = IdempotencyKey::read(&parts.headers, &caller, team.id.as_str(), &chat)?;
    let context = TurnContext::of(&state, request_id.clone(), shape, &parts);
    let job = TurnJob::Team(chat.into_team_job(&caller, &team, context)?);
    respond(
        accept(state, shape, job, repeat).await?,
        shape,
        ResponseContext {
            request_id,
            arrived,
            told: without_code,
        },
    )
    .await
}

/// Returns the strictest limits of all agents of the team, because the agent is not chosen yet.
async fn smallest_limits(state: &AppState, team: &Team) -> ApiResult<AgentLimits> {
    let mut smallest = AgentLimits {
        max_message_length: u32::MAX,
        rate_limit_per_minute: u32::MAX,
    };
    for id in team
        .members
        .iter()
        .map(|member| &member.agent)
        .chain(&team.default_agent)
    {
        if let Some(agent) = state.catalog.agent(id).await? {
            let limits = &agent.settings.limits;
            smallest.max_message_length =
                smallest.max_message_length.min(limits.max_message_length);
            smallest.rate_limit_per_minute = smallest
                .rate_limit_per_minute
                .min(limits.rate_limit_per_minute);
        }
    }
    Ok(smallest)
}

fn without_code(error: ApiError) -> ApiError {
    match error.code() {
        Some(ErrorCode::InvalidRequestData) => error.without_code(),
        // The agent became unavailable after routing, which the caller could not prevent.
        Some(ErrorCode::Internal | ErrorCode::AgentInactive) => ApiError::uncoded(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the message could not be routed or answered",
        ),
        _ => error,
    }
}
