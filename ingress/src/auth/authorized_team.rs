//! May they talk to this team. What is not reachable does not exist: every refusal is the same 404 without a code.

use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use http::{StatusCode, request::Parts};
use switchboard_schemas::{agent::ActivationStatus, api_key::KeyScope, ids::TeamId, team::Team};

use crate::{
    caller::{Caller, Purpose},
    error::{ApiError, ApiResult},
    limits::Bucket,
    state::AppState,
};

/// Sending a message to a team.
pub(crate) struct TeamChat;

impl Purpose for TeamChat {
    const BUCKET: Bucket = Bucket::Chat;
    const SCOPES: &'static [KeyScope] = &[KeyScope::Chat];
    const OPEN_TO_VISITORS: bool = false;
    const NEEDS_ACTIVE: bool = true;
    const CHECKS_ORIGIN: bool = false;
    const HAS_SESSION: bool = false;
}

/// A team that this caller may talk to.
pub(crate) struct ReachableTeam {
    /// Who calls.
    pub(crate) caller: Caller<TeamChat>,
    /// The team.
    pub(crate) team: Arc<Team>,
}

impl FromRequestParts<AppState> for ReachableTeam {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> ApiResult<Self> {
        let caller = Caller::<TeamChat>::from_request_parts(parts, state).await?;
        let id = team_id(parts).await.ok_or_else(not_found)?;
        let team = state.catalog.team(&id).await?.ok_or_else(not_found)?;
        if team.org_id != *caller.org_id()
            || !team.public
            || team.status != ActivationStatus::Active
        {
            return Err(not_found());
        }
        Ok(Self { caller, team })
    }
}

async fn team_id(parts: &mut Parts) -> Option<TeamId> {
    let params = RawPathParams::from_request_parts(parts, &()).await.ok()?;
    params
        .iter()
        .find(|(name, _)| *name == "teamId")
        .and_then(|(_, id)| id.parse().ok())
}

fn not_found() -> ApiError {
    ApiError::uncoded(StatusCode::NOT_FOUND, "no team has this id")
}
