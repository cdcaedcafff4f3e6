//! Extractor that authorizes a caller for the team in the path. Every rejection is the same 404
//! without a code.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use http::{StatusCode, request::Parts};
use serde::Deserialize;
use switchboard_schemas::{agent::ActivationStatus, api_key::KeyScope, ids::TeamId, team::Team};
use utoipa::IntoParams;

use super::{
    caller::{AccessPolicy, AuthorizedCaller},
    id_hints,
};
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
        let path = Path::<TeamPath>::from_request_parts(parts, state).await;
        let text = path.map_or_else(|_| String::new(), |Path(path)| path.team_id);
        let not_found =
            || ApiError::uncoded(StatusCode::NOT_FOUND, id_hints::no_public("team", &text));
        let team_id: TeamId = text.parse().map_err(|_| not_found())?;
        let team = state.catalog.team(&team_id).await?;
        let team = team.ok_or_else(not_found)?;
        if team.org_id != *caller.org_id()
            || !team.public
            || team.status != ActivationStatus::Active
        {
            return Err(not_found());
        }
        Ok(Self { caller, team })
    }
}

/// The team of a path; empty in a path without its segment.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Path)]
pub(crate) struct TeamPath {
    /// The id of the team.
    #[serde(default)]
    #[param(example = "team_77777777777777777777777777")]
    team_id: String,
}
