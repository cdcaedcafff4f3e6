//! Extractor that authorizes a caller for the agent in the path, with the checks in their
//! documented order.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use http::{HeaderMap, request::Parts};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;
use switchboard_schemas::{
    agent::{ActivationStatus, Agent},
    api_key::KeyScope,
    client_text::SessionId,
    ids::{AgentId, OrgId},
};
use utoipa::IntoParams;

use super::{
    caller::{AccessPolicy, AuthorizedCaller},
    id_hints,
};
use crate::{
    http::{ApiError, ApiResult, ErrorCode, origin},
    limits::RateLimitBucket,
    state::AppState,
};

/// Access policy for sending a message to an agent.
pub(crate) struct AgentChat;
/// Access policy for reading an agent's public configuration.
pub(crate) struct AgentRead;
/// Access policy for reading an agent's widget configuration.
pub(crate) struct WidgetRead;
/// Access policy for reading and changing a conversation.
pub(crate) struct ConversationAccess;

impl AccessPolicy for AgentChat {
    const BUCKET: RateLimitBucket = RateLimitBucket::Chat;
    const SCOPES: &'static [KeyScope] = &[KeyScope::Chat];
    const OPEN_TO_VISITORS: bool = true;
    const CHECKS_ORIGIN: bool = true;
}

impl AccessPolicy for AgentRead {
    const BUCKET: RateLimitBucket = RateLimitBucket::Config;
    const SCOPES: &'static [KeyScope] = &[KeyScope::Config];
}

/// Keys of widgets usually have only the scope `chat` and still need this route.
impl AccessPolicy for WidgetRead {
    const BUCKET: RateLimitBucket = RateLimitBucket::Config;
    const SCOPES: &'static [KeyScope] = &[KeyScope::Config, KeyScope::Chat];
}

impl AccessPolicy for ConversationAccess {
    const BUCKET: RateLimitBucket = RateLimitBucket::Conversations;
    const SCOPES: &'static [KeyScope] = &[KeyScope::Conversations];
    const OPEN_TO_VISITORS: bool = true;
    const NEEDS_ACTIVE: bool = false;
    const HAS_SESSION: bool = true;
}

/// An agent that the caller may access under policy `P`.
pub(crate) struct AuthorizedAgent<P> {
    pub(crate) caller: AuthorizedCaller<P>,
    /// The agent named in the path.
    pub(crate) agent: Arc<Agent>,
    session: String,
}

impl AuthorizedAgent<ConversationAccess> {
    /// Returns the session id of the path, or `CONVERSATION_NOT_FOUND` if it cannot be one.
    pub(crate) fn session_id(&self) -> ApiResult<SessionId> {
        self.session.parse().map_err(|_| conversation_not_found())
    }
}

/// Returns the error for a session without a conversation.
pub(crate) fn conversation_not_found() -> ApiError {
    ApiError::new(
        ErrorCode::ConversationNotFound,
        "no conversation of this session with this agent",
    )
}

impl<P: AccessPolicy> FromRequestParts<AppState> for AuthorizedAgent<P> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> ApiResult<Self> {
        let caller = AuthorizedCaller::<P>::from_request_parts(parts, state).await?;
        let AgentPath { agent_id } = read_path(parts).await?;
        if agent_id.trim().is_empty() {
            return Err(ApiError::new(
                ErrorCode::InvalidAgentId,
                "the path has no agent id",
            ));
        }
        let session = if P::HAS_SESSION {
            read_path::<SessionPath>(parts).await?.session_id
        } else {
            String::new()
        };
        if P::HAS_SESSION && session.trim().is_empty() {
            return Err(ApiError::new(
                ErrorCode::InvalidSessionId,
                "the path has no session id",
            ));
        }
        caller.check_agent(&agent_id)?;
        let agent = existing_agent(&agent_id, state).await?;
        check_organization(&agent, caller.org_id())?;
        if P::NEEDS_ACTIVE {
            check_active(&agent)?;
        }
        check_public(&agent)?;
        if P::CHECKS_ORIGIN {
            check_origin(&parts.headers, &agent)?;
        }
        caller.check_origin(&parts.headers, state)?;
        Ok(Self {
            caller,
            agent,
            session,
        })
    }
}

/// The agent of a path; empty in a path without its segment.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Path)]
pub(crate) struct AgentPath {
    /// The id of the agent. In the path of a conversation, it is an agent that replied in it.
    #[serde(default)]
    #[param(example = "agt_77777777777777777777777777")]
    agent_id: String,
}

/// The session of a path; empty in a path without its segment.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Path)]
pub(crate) struct SessionPath {
    /// The id that the client chose for the session.
    #[serde(default)]
    #[param(example = "session-1")]
    session_id: String,
}

async fn read_path<T: DeserializeOwned + Send>(parts: &mut Parts) -> ApiResult<T> {
    let path = Path::from_request_parts(parts, &()).await;
    let not_text = |_| ApiError::new(ErrorCode::NotFound, "the path is not UTF-8");
    path.map(|Path(ids)| ids).map_err(not_text)
}

/// Returns the agent with this id, of any organization, or `AGENT_NOT_FOUND`.
pub(crate) async fn existing_agent(id: &str, state: &AppState) -> ApiResult<Arc<Agent>> {
    let not_found = || ApiError::new(ErrorCode::AgentNotFound, id_hints::no_public("agent", id));
    let agent_id: AgentId = id.parse().map_err(|_| not_found())?;
    state.catalog.agent(&agent_id).await?.ok_or_else(not_found)
}

/// Rejects callers of other organizations.
pub(crate) fn check_organization(agent: &Agent, org: &OrgId) -> ApiResult<()> {
    if agent.org_id == *org {
        return Ok(());
    }
    Err(ApiError::new(
        ErrorCode::OrgMismatch,
        "the agent belongs to another organization",
    ))
}

/// Rejects requests to an inactive agent, with its offline message in the details.
pub(crate) fn check_active(agent: &Agent) -> ApiResult<()> {
    if agent.settings.status == ActivationStatus::Active {
        return Ok(());
    }
    let details =
        json!({ "offlineMessage": agent.settings.widget.offline_message, "name": agent.name });
    Err(ApiError::new(ErrorCode::AgentInactive, "the agent is not active").details(details))
}

/// Rejects agents that are not public.
pub(crate) fn check_public(agent: &Agent) -> ApiResult<()> {
    if agent.settings.public {
        return Ok(());
    }
    Err(ApiError::new(
        ErrorCode::AgentNotPublic,
        "the agent is not public",
    ))
}

/// Rejects pages that are not on the agent's allowlist.
pub(crate) fn check_origin(headers: &HeaderMap, agent: &Agent) -> ApiResult<()> {
    if origin::is_allowed(headers, &agent.settings.allowed_domains) {
        return Ok(());
    }
    let detail = "the request's origin is not among the agent's allowed domains";
    Err(ApiError::new(ErrorCode::DomainNotAllowed, detail))
}
