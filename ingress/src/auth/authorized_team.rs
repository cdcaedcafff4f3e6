//! Extractor that authorizes a caller for the team in the path. Every rejection is the same 404
//! without a code.

use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use http::{StatusCode, request::Parts};
use switchboard_schemas::{agent::ActivationStatus, api_key::KeyScope, ids::TeamId, team::Team};

use super::caller::{AccessPolicy, AuthorizedCaller};
use crate::{
    http::{ApiError, ApiResult},
    limits::RateLimitBucket,
    state::AppState,
};

/// Access policy for sending a message to a team.
pub(crate) struct TeamChat;

impl AccessPolicy for TeamChat {
    const BUCKET: RateLimitBucket = RateLimitBucket::Chat;
    const SCOPES: &'static [KeyScope] = &[KeyScope::Chat];
}

/// A team that the caller may send messages to.
pub(crate) struct AuthorizedTeam {
    pub(crate) caller: AuthorizedCaller<TeamChat>,
    /// The team named in the path.
    pub(crate) team: Arc<Team>,
}

impl FromRequestParts<AppState> for AuthorizedTeam {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> ApiResult<Self> {
        let caller = AuthorizedCaller::<TeamChat>::from_request_parts(parts, state).await?;
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
