//! Who administers, and what they may do. Every handler asks the one type here, whatever proves who they are.

use axum::extract::FromRequestParts;
use http::{header, request::Parts};
use secrecy::ExposeSecret;
use subtle::ConstantTimeEq;
use switchboard_schemas::ids::OrgId;

use crate::{
    client_address::CountedAddress,
    error::{ApiError, ApiResult, ErrorCode},
    key_headers::bearer_token,
    state::AppState,
};

/// Proof that the request comes from an administrator.
pub(crate) struct Administrator {
    reach: Reach,
}

/// How far an administrator's rights go.
enum Reach {
    /// The installation's own token: every organization.
    Installation,
}

/// Whose things are touched.
#[derive(Clone, Copy)]
pub(crate) enum Ground<'a> {
    /// All organizations: what belongs to none of them alone.
    Installation,
    /// One organization.
    Organization(&'a OrgId),
}

/// What is done there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Read what is configured.
    ReadConfiguration,
    /// Make, change or remove agents, teams and providers, or rename the organization.
    Configure,
    /// Make, change or remove API keys.
    ManageKeys,
    /// Make or remove organizations.
    ManageOrganizations,
    /// Read what visitors and agents said.
    ReadConversations,
}

impl Administrator {
    /// Whether they may; an error that says no otherwise. The request's log line names the organization.
    pub(crate) fn may(&self, ground: Ground<'_>, action: Action) -> ApiResult<()> {
        if let Ground::Organization(org) = ground {
            tracing::Span::current().record("org.id", org.as_str());
        }
        match (&self.reach, action) {
            (Reach::Installation, _) => Ok(()),
        }
    }

    /// The same for one organization.
    pub(crate) fn may_in(&self, org: &OrgId, action: Action) -> ApiResult<()> {
        self.may(Ground::Organization(org), action)
    }
}

impl FromRequestParts<AppState> for Administrator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> ApiResult<Self> {
        let Ok(CountedAddress(address)) = CountedAddress::from_request_parts(parts, state).await;
        let guesser = address.map(|address| format!("admin:{address}"));
        state.limits.failed_authentications.check(guesser.as_deref())?;
        let token = parts.headers.get(header::AUTHORIZATION).and_then(bearer_token).unwrap_or_default();
        let expected = state.admin_token.as_ref().map(|token| token.expose_secret().as_bytes());
        // An empty token is no token: it must not open an installation that set none.
        match expected {
            Some(expected) if !expected.is_empty() && bool::from(expected.ct_eq(token)) => {
                Ok(Self { reach: Reach::Installation })
            }
            _ => {
                state.limits.failed_authentications.miss(guesser.as_deref()).await?;
                Err(refusal(token, expected.is_some_and(|expected| !expected.is_empty())))
            }
        }
    }
}

fn refusal(token: &[u8], one_is_set: bool) -> ApiError {
    match (token.is_empty(), one_is_set) {
        (true, _) => ApiError::new(ErrorCode::MissingApiKey, "the administrator's token is needed"),
        (false, true) => ApiError::new(ErrorCode::InvalidApiKey, "this is not the administrator's token"),
        (false, false) => {
            let detail = "this service has no administrator's token; set SWITCHBOARD__ADMIN__TOKEN where it runs";
            ApiError::new(ErrorCode::InvalidApiKey, detail)
        }
    }
}
