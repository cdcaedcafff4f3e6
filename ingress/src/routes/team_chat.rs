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
use switchboard_schemas::ids::RequestId;

use crate::{
    auth::authorized_team::{AuthorizedTeam, TeamPath},
    chat::{
        bodies::TeamChatRequest,
        idempotency::IdempotencyKeyHeader,
        pipeline::{ChatRecipient, IncomingChat, handle_chat},
    },
    http::{ApiError, ApiResult, ArrivedAt, ErrorCode, RateLimitAddress},
    openapi::problems::TeamChatProblems,
    reply::{acceptance::AcceptedMessage, shape::PreferHeader, view::ReplyView},
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
    params(TeamPath, IdempotencyKeyHeader, PreferHeader),
    request_body(content = TeamChatRequest, content_type = "application/json"),
    responses(
        (
            status = 200,
            description = "The reply, in the shape that `Accept` or `stream` asks for.",
            content((String = "text/plain"), (ReplyView = "application/json"), (String = "text/event-stream")),
        ),
        (status = 202, description = "Accepted; the reply comes later (`Prefer: respond-async`).", body = AcceptedMessage),
        TeamChatProblems,
    ),
)]
pub(crate) async fn chat_with_team(
    State(state): State<AppState>,
    Extension(request_id): Extension<RequestId>,
    Extension(ArrivedAt(arrived)): Extension<ArrivedAt>,
    address: RateLimitAddress,
    AuthorizedTeam { caller, team }: AuthorizedTeam,
    request: Request,
) -> ApiResult<Response> {
    let incoming = IncomingChat {
        request,
        request_id,
        arrived,
        address,
        map_error: without_code,
    };
    handle_chat(state, &caller, ChatRecipient::Team(team), incoming)
        .await
        .map_err(without_code)
}

/// Removes codes that the specification does not give to this route.
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
