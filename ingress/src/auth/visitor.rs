//! Makes visitor tokens: who may have one for which agent, and who the visitor is.
//!
//! A page shows an agent's id and its origin, which the browser vouches for; or a key with the scope `chat`. Both leave
//! who the *visitor* is to the visitor's secret: a chat key stands in a page's source, where everybody can read it, so
//! that nobody's word for a visitor's id is taken.

use std::time::Duration;

use axum::extract::FromRequestParts;
use http::{HeaderMap, request::Parts};
use serde_json::{Map, Value};
use switchboard_schemas::{
    agent::Agent,
    api_key::{ApiKey, KeyScope},
    client_text::VisitorId,
    time::Timestamp,
    visitor_token::{CredentialKind, OriginHash, VisitorClaims, VisitorCredential, new_visitor_id},
};

use crate::{
    client_address::CountedAddress,
    credential::Credential,
    error::{ApiError, ApiResult, ErrorCode},
    fields,
    limits::LimitsTold,
    origin,
    state::AppState,
};

const VISITOR_ID: &str = "visitorId";
const VISITOR_SECRET: &str = "visitorSecret";

/// Somebody who may ask for a token, for an agent that is still to be named.
pub(crate) struct Applicant {
    /// The key; none for a page that shows its origin alone.
    pub(crate) key: Option<std::sync::Arc<ApiKey>>,
    told: LimitsTold,
    address: CountedAddress,
}

/// What a visitor is given.
pub(crate) struct Admission {
    /// What the token says.
    pub(crate) claims: VisitorClaims,
    /// Goes with every request.
    pub(crate) token: VisitorCredential,
    /// Proves, later, that it is the same visitor.
    pub(crate) secret: VisitorCredential,
}

/// Steps of the key: present, known, not expired, rate limit, scope. Without a key the origin stands in its place.
impl FromRequestParts<AppState> for Applicant {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> ApiResult<Self> {
        let credential = Credential::supplied(parts, state).await?;
        let (told, pages) = (LimitsTold::of(&parts.extensions), &state.limits.pages);
        match &credential {
            Some(credential) => credential
                .check_expiry()
                .inspect_err(|_| pages.tell_token_policy(&told))?,
            None if origin::is_present(&parts.headers) => {}
            None => {
                let hint = "send an API key with the scope chat, or ask from a page, whose browser sends its Origin";
                return Err(ApiError::new(ErrorCode::MissingApiKey, hint));
            }
        }
        let Ok(address) = CountedAddress::from_request_parts(parts, state).await;
        pages.admit_token(&address, &told).await?;
        match credential {
            None => Ok(Self {
                key: None,
                told,
                address,
            }),
            Some(Credential::Key(key)) if key.allows(KeyScope::Chat) => Ok(Self {
                key: Some(key),
                told,
                address,
            }),
            Some(Credential::Key(_)) => {
                Err(insufficient("the API key lacks the scope of this endpoint"))
            }
            // Or a token that leaked would live for ever.
            Some(Credential::Visitor(_)) => {
                Err(insufficient("a visitor token makes no further token"))
            }
        }
    }
}

impl Applicant {
    /// Makes a token for a visitor of `agent`: the one that the body's secret proves, else a new one.
    pub(crate) async fn admit(
        &self,
        agent: &Agent,
        headers: &HeaderMap,
        body: &Map<String, Value>,
        state: &AppState,
    ) -> ApiResult<Admission> {
        let origin = match (
            origin::is_present(headers),
            origin::print(headers, &state.secret),
        ) {
            (true, None) => {
                return Err(ApiError::new(
                    ErrorCode::DomainNotAllowed,
                    "the request names no one origin",
                ));
            }
            (_, origin) => origin,
        };
        let known = self.known_visitor(agent, origin, body, state).await?;
        if known.is_none() {
            state
                .limits
                .pages
                .admit_new_visitor(&agent.id, &self.told)
                .await?;
        }
        let after = |milliseconds| Timestamp::now().after(Duration::from_millis(milliseconds));
        let claims = VisitorClaims {
            org_id: agent.org_id.clone(),
            agent_id: agent.id.clone(),
            visitor_id: known.unwrap_or_else(new_visitor_id),
            key_id: self.key.as_ref().map(|key| key.id.clone()),
            origin,
            expires_at: after(state.config.visitor_token_lifetime_ms),
        };
        let lasting = VisitorClaims {
            key_id: None,
            expires_at: after(state.config.visitor_secret_lifetime_ms),
            ..claims.clone()
        };
        Ok(Admission {
            token: claims.sign(CredentialKind::Token, &state.secret),
            secret: lasting.sign(CredentialKind::Secret, &state.secret),
            claims,
        })
    }

    async fn known_visitor(
        &self,
        agent: &Agent,
        origin: Option<OriginHash>,
        body: &Map<String, Value>,
        state: &AppState,
    ) -> ApiResult<Option<VisitorId>> {
        let claimed = fields::optional_text(body, VISITOR_ID)?;
        let Some(proof) = fields::optional_text(body, VISITOR_SECRET)? else {
            let unproven = || {
                ApiError::field(
                    VISITOR_ID,
                    "is believed only together with its visitorSecret",
                )
            };
            return claimed.map_or(Ok(None), |_| Err(unproven()));
        };
        let opened = proof
            .parse::<VisitorCredential>()
            .ok()
            .filter(|proof| proof.kind() == CredentialKind::Secret);
        let Some(proven) = opened.and_then(|proof| proof.open(&state.secret).ok()) else {
            state
                .limits
                .failed_authentications
                .miss(self.address.0.as_deref())
                .await?;
            return Err(ApiError::field(
                VISITOR_SECRET,
                "is not one that was given out here",
            ));
        };
        if proven.is_expired(Timestamp::now()) {
            return Err(ApiError::field(
                VISITOR_SECRET,
                "has expired; ask without it to come as a new visitor",
            ));
        }
        if proven.agent_id != agent.id || proven.origin != origin {
            return Err(ApiError::field(
                VISITOR_SECRET,
                "was given out for another agent or another page",
            ));
        }
        if claimed.is_some_and(|claimed| claimed != proven.visitor_id.as_str()) {
            return Err(ApiError::field(
                VISITOR_ID,
                "is not the one of the visitorSecret",
            ));
        }
        Ok(Some(proven.visitor_id))
    }
}

fn insufficient(detail: &'static str) -> ApiError {
    ApiError::new(ErrorCode::InsufficientScope, detail)
}
