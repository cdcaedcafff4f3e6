//! `POST /api/public/agents/{agentId}/files` and `POST /api/public/teams/{teamId}/files`: receive a
//! file that a later message names.

use axum::{
    Json,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use http::StatusCode;
use switchboard_schemas::{conversation::ConversationOwner, file::FileSettings, team::Team};

use crate::{
    auth::{
        authorized_agent::{AgentChat, AgentPath, AuthorizedAgent},
        authorized_team::{AuthorizedTeam, TeamPath},
        caller::AuthorizedCaller,
    },
    files::{FileUploadForm, UploadTarget, UploadedFile, receive_upload},
    http::{ApiError, ApiResult, ErrorCode, RateLimitAddress, origin::OriginHeader},
    openapi::problems::{AgentUploadProblems, TeamUploadProblems},
    state::AppState,
};

/// Receives a file for an agent.
#[utoipa::path(
    post,
    path = "/api/public/agents/{agentId}/files",
    operation_id = "uploadAgentFile",
    tag = "Files",
    summary = "Upload a file for a message to an agent",
    description = "Needs the scope `chat`, and an agent that takes files. A message names the file in `attachments`; a \
        file that no message names is deleted after a day.",
    params(AgentPath, OriginHeader),
    request_body(content = FileUploadForm, content_type = "multipart/form-data"),
    responses((status = 201, description = "The stored file.", body = UploadedFile), AgentUploadProblems),
)]
pub(crate) async fn upload_agent_file(
    State(state): State<AppState>,
    address: RateLimitAddress,
    AuthorizedAgent { caller, agent, .. }: AuthorizedAgent<AgentChat>,
    request: Request,
) -> ApiResult<Response> {
    let accepted = agent.settings.accepted_files().cloned();
    let accepted = accepted.ok_or_else(|| feature_off("the agent takes no files"))?;
    if caller.visitor_id().is_some() {
        let (sites, headers) = (&state.limits.sites, caller.rate_limit_headers());
        sites.admit_chat(&agent.id, &address, headers).await?;
    }
    let owner = ConversationOwner::Agent(agent.id.clone());
    receive(&state, &caller, owner, vec![accepted], request).await
}

/// Receives a file for a team.
#[utoipa::path(
    post,
    path = "/api/public/teams/{teamId}/files",
    operation_id = "uploadTeamFile",
    tag = "Files",
    summary = "Upload a file for a message to a team",
    description = "Needs the scope `chat`, and a member that takes files. A member that does not gets the message with a \
        note in place of the file.",
    params(TeamPath),
    request_body(content = FileUploadForm, content_type = "multipart/form-data"),
    responses((status = 201, description = "The stored file.", body = UploadedFile), TeamUploadProblems),
)]
pub(crate) async fn upload_team_file(
    State(state): State<AppState>,
    AuthorizedTeam { caller, team }: AuthorizedTeam,
    request: Request,
) -> ApiResult<Response> {
    let accepted = accepted_by_members(&state, &team).await?;
    if accepted.is_empty() {
        return Err(feature_off("no member of the team takes files"));
    }
    let owner = ConversationOwner::Team(team.id.clone());
    receive(&state, &caller, owner, accepted, request).await
}

async fn receive<P>(
    state: &AppState,
    caller: &AuthorizedCaller<P>,
    owner: ConversationOwner,
    accepted: Vec<FileSettings>,
    request: Request,
) -> ApiResult<Response> {
    let target = UploadTarget {
        org_id: caller.org_id().clone(),
        owner,
        key_id: caller.key_id().cloned(),
        visitor_id: caller.visitor_id().cloned(),
        is_playground: false,
        accepted,
    };
    let file: UploadedFile = receive_upload(state, target, request).await?;
    Ok((StatusCode::CREATED, Json(file)).into_response())
}

/// Returns the files that each member takes which takes any.
async fn accepted_by_members(state: &AppState, team: &Team) -> ApiResult<Vec<FileSettings>> {
    let mut accepted = Vec::new();
    let members = team.members.iter().map(|member| &member.agent);
    for id in members.chain(&team.default_agent) {
        let agent = state.catalog.agent(id).await?;
        accepted.extend(agent.and_then(|agent| agent.settings.accepted_files().cloned()));
    }
    Ok(accepted)
}

fn feature_off(who: &str) -> ApiError {
    let detail = format!("{who}: enableFileUpload is off");
    ApiError::new(ErrorCode::InsufficientScope, detail)
}
