//! May they: the checks between a path and its agent, in the order that the contract documents.

use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use http::{HeaderMap, request::Parts};
use serde_json::json;
use switchboard_schemas::{
    agent::{ActivationStatus, Agent},
    api_key::KeyScope,
    client_text::SessionId,
    ids::{AgentId, OrgId},
};

use crate::{
    caller::{Caller, Purpose},
    error::{ApiError, ApiResult, ErrorCode},
    limits::Bucket,
    origin,
    state::AppState,
};

/// Sending a message to an agent.
pub(crate) struct AgentChat;
/// Reading an agent's public configuration.
pub(crate) struct AgentRead;
/// Reading an agent's widget configuration.
pub(crate) struct WidgetRead;
/// Reading and changing a conversation.
pub(crate) struct ConversationAccess;

impl Purpose for AgentChat {
    const BUCKET: Bucket = Bucket::Chat;
    const SCOPES: &'static [KeyScope] = &[KeyScope::Chat];
    const OPEN_TO_VISITORS: bool = true;
    const NEEDS_ACTIVE: bool = true;
    const CHECKS_ORIGIN: bool = true;
    const HAS_SESSION: bool = false;
}

impl Purpose for AgentRead {
    const BUCKET: Bucket = Bucket::Config;
    const SCOPES: &'static [KeyScope] = &[KeyScope::Config];
    const OPEN_TO_VISITORS: bool = false;
    const NEEDS_ACTIVE: bool = true;
    const CHECKS_ORIGIN: bool = false;
    const HAS_SESSION: bool = false;
}

/// A widget's key should carry `chat` alone and still has to read this.
impl Purpose for WidgetRead {
    const BUCKET: Bucket = Bucket::Config;
    const SCOPES: &'static [KeyScope] = &[KeyScope::Config, KeyScope::Chat];
    const OPEN_TO_VISITORS: bool = false;
    const NEEDS_ACTIVE: bool = true;
    const CHECKS_ORIGIN: bool = false;
    const HAS_SESSION: bool = false;
}

impl Purpose for ConversationAccess {
    const BUCKET: Bucket = Bucket::Conversations;
    const SCOPES: &'static [KeyScope] = &[KeyScope::Conversations];
    const OPEN_TO_VISITORS: bool = true;
    const NEEDS_ACTIVE: bool = false;
    const CHECKS_ORIGIN: bool = false;
    const HAS_SESSION: bool = true;
}

/// An agent that this caller may reach for `P`.
pub(crate) struct ReachableAgent<P> {
    /// Who calls.
    pub(crate) caller: Caller<P>,
    /// The agent.
    pub(crate) agent: Arc<Agent>,
    session: String,
}

impl ReachableAgent<ConversationAccess> {
    /// The session that the path names; one that cannot exist has no conversation.
    pub(crate) fn session_id(&self) -> ApiResult<SessionId> {
        self.session.parse().map_err(|_| conversation_not_found())
    }
}

/// No conversation for the session.
pub(crate) fn conversation_not_found() -> ApiError {
    ApiError::new(
        ErrorCode::ConversationNotFound,
        "no conversation of this session with this agent",
    )
}

impl<P: Purpose> FromRequestParts<AppState> for ReachableAgent<P> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> ApiResult<Self> {
        let caller = Caller::<P>::from_request_parts(parts, state).await?;
        let ids = PathIds::read(parts).await?;
        if ids.agent.trim().is_empty() {
            return Err(ApiError::new(
                ErrorCode::InvalidAgentId,
                "the path has no agent id",
            ));
        }
        if P::HAS_SESSION && ids.session.trim().is_empty() {
            return Err(ApiError::new(
                ErrorCode::InvalidSessionId,
                "the path has no session id",
            ));
        }
        caller.check_agent(&ids.agent)?;
        let agent = existing_agent(&ids.agent, state).await?;
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
            session: ids.session,
        })
    }
}

/// Ids as the path has them, decoded; empty where it has none.
#[derive(Default)]
struct PathIds {
    agent: String,
    session: String,
}

impl PathIds {
    async fn read(parts: &mut Parts) -> ApiResult<Self> {
        let not_text = |_| ApiError::new(ErrorCode::NotFound, "the path is not UTF-8");
        let params = RawPathParams::from_request_parts(parts, &())
            .await
            .map_err(not_text)?;
        let mut ids = Self::default();
        for (name, value) in &params {
            match name {
                "agentId" => value.clone_into(&mut ids.agent),
                "sessionId" => value.clone_into(&mut ids.session),
                _ => {}
            }
        }
        Ok(ids)
    }
}

/// The agent with this id, of whatever organization.
pub(crate) async fn existing_agent(id: &str, state: &AppState) -> ApiResult<Arc<Agent>> {
    let not_found = || ApiError::new(ErrorCode::AgentNotFound, "no agent has this id");
    let id: AgentId = id.parse().map_err(|_| not_found())?;
    state.catalog.agent(&id).await?.ok_or_else(not_found)
}

/// Refuses callers of other organizations.
pub(crate) fn check_organization(agent: &Agent, org: &OrgId) -> ApiResult<()> {
    if agent.org_id == *org {
        return Ok(());
    }
    Err(ApiError::new(
        ErrorCode::OrgMismatch,
        "the agent belongs to another organization",
    ))
}

/// Refuses what the agent does only while it is active, and says what a widget shows instead.
pub(crate) fn check_active(agent: &Agent) -> ApiResult<()> {
    if agent.settings.status == ActivationStatus::Active {
        return Ok(());
    }
    let details =
        json!({ "offlineMessage": agent.settings.widget.offline_message, "name": agent.name });
    Err(ApiError::new(ErrorCode::AgentInactive, "the agent is not active").details(details))
}

/// Refuses an agent that the public API does not reach.
pub(crate) fn check_public(agent: &Agent) -> ApiResult<()> {
    if agent.settings.public {
        return Ok(());
    }
    Err(ApiError::new(
        ErrorCode::AgentNotPublic,
        "the agent is not public",
    ))
}

/// Refuses pages that are not on the agent's list.
pub(crate) fn check_origin(headers: &HeaderMap, agent: &Agent) -> ApiResult<()> {
    if origin::is_allowed(headers, &agent.settings.allowed_domains) {
        return Ok(());
    }
    let detail = "the request's origin is not among the agent's allowed domains";
    Err(ApiError::new(ErrorCode::DomainNotAllowed, detail))
}
