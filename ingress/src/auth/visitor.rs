//! Issues visitor tokens.
//!
//! A page presents an agent id and its origin, which the browser guarantees, or a key with the
//! scope `chat`. Neither identifies the *visitor*: a chat key is readable in the page's source.
//! Only the visitor secret of an earlier token proves who the visitor is.

#[cfg(test)]
mod tests;

use std::time::Duration;

use axum::extract::FromRequestParts;
use http::{HeaderMap, request::Parts};
use serde::Deserialize;
use serde_json::Value;
use switchboard_schemas::{
    agent::Agent,
    api_key::{ApiKey, KeyScope},
    client_text::VisitorId,
    time::Timestamp,
    visitor_token::{CredentialKind, OriginHash, VisitorClaims, VisitorCredential, new_visitor_id},
};
use utoipa::ToSchema;

use super::{caller::check_key_scope, credential::CallerCredential};
use crate::{
    http::{ApiError, ApiResult, ErrorCode, RateLimitAddress, fields, origin},
    limits::RateLimitHeaders,
    state::AppState,
};

const VISITOR_ID: &str = "visitorId";
const VISITOR_SECRET: &str = "visitorSecret";

/// A request for a visitor token. Unknown fields are ignored.
// Fields are raw values, because they are validated in the documented order.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VisitorTokenRequest {
    /// The agent that the visitor talks to.
    #[serde(default)]
    #[schema(value_type = String, required = true, pattern = r"\S")]
    pub(crate) agent_id: Value,
    /// The secret that came with the visitor's last token; without it a new visitor is created.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    visitor_secret: Value,
    /// Id of the visitor; accepted only together with its secret.
    #[serde(default)]
    #[schema(value_type = Option<VisitorId>)]
    visitor_id: Value,
}

/// A caller that may request visitor tokens.
pub(crate) struct TokenRequester {
    /// The API key; `None` for pages that present only their origin.
    pub(crate) key: Option<std::sync::Arc<ApiKey>>,
    limit_headers: RateLimitHeaders,
    address: RateLimitAddress,
}

pub(crate) struct IssuedVisitorToken {
    pub(crate) claims: VisitorClaims,
    /// The token, which is sent with every request.
    pub(crate) token: VisitorCredential,
    /// The secret, which proves the visitor's identity later.
    pub(crate) secret: VisitorCredential,
}

/// Checks of the key, in order: present, known, not expired, rate limit, scope. Without a key the
/// origin is required.
impl FromRequestParts<AppState> for TokenRequester {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> ApiResult<Self> {
        let credential = CallerCredential::from_headers(parts, state).await?;
        let (limit_headers, sites) = (
            RateLimitHeaders::from_extensions(&parts.extensions),
            &state.limits.sites,
        );
        match &credential {
            Some(credential) => credential
                .check_expiry()
                .inspect_err(|_| sites.report_token_policy(&limit_headers))?,
            None if origin::has_origin(&parts.headers) => {}
            None => {
                let hint =
                    "send an API key with the scope chat, or an Origin header as browsers do";
                return Err(ApiError::new(ErrorCode::MissingApiKey, hint));
            }
        }
        let Ok(address) = RateLimitAddress::from_request_parts(parts, state).await;
        sites.admit_token(&address, &limit_headers).await?;
        match credential {
            None => Ok(Self {
                key: None,
                limit_headers,
                address,
            }),
            Some(CallerCredential::Key(key)) => {
                check_key_scope(&key, &[KeyScope::Chat])?;
                Ok(Self {
                    key: Some(key),
                    limit_headers,
                    address,
                })
            }
            // Otherwise a leaked token could be renewed forever.
            Some(CallerCredential::Visitor(_)) => {
                Err(insufficient("a visitor token cannot request another token"))
            }
        }
    }
}

impl TokenRequester {
    /// Issues a token for a visitor of `agent`: the one that the secret in the body proves, or a
    /// new one.
    pub(crate) async fn issue_token(
        &self,
        agent: &Agent,
        headers: &HeaderMap,
        body: &VisitorTokenRequest,
        state: &AppState,
    ) -> ApiResult<IssuedVisitorToken> {
        let origin = match (
            origin::has_origin(headers),
            origin::origin_hash(headers, &state.secret),
        ) {
            (true, None) => {
                return Err(ApiError::new(
                    ErrorCode::DomainNotAllowed,
                    "the request must name exactly one origin",
                ));
            }
            (_, origin) => origin,
        };
        let known = self.known_visitor(agent, origin, body, state).await?;
        if known.is_none() {
            state
                .limits
                .sites
                .admit_new_visitor(&agent.id, &self.limit_headers)
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
        Ok(IssuedVisitorToken {
            token: claims.sign(CredentialKind::Token, &state.secret),
            secret: lasting.sign(CredentialKind::Secret, &state.secret),
            claims,
        })
    }

    async fn known_visitor(
        &self,
        agent: &Agent,
        origin: Option<OriginHash>,
        body: &VisitorTokenRequest,
        state: &AppState,
    ) -> ApiResult<Option<VisitorId>> {
        let claimed = fields::text_value(VISITOR_ID, &body.visitor_id)?;
        let Some(proof) = fields::text_value(VISITOR_SECRET, &body.visitor_secret)? else {
            let unproven = || {
                ApiError::field(
                    VISITOR_ID,
                    "is accepted only together with its visitorSecret",
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
                .record_failure(self.address.0.as_deref())
                .await?;
            return Err(ApiError::field(
                VISITOR_SECRET,
                "was not issued by this installation",
            ));
        };
        if proven.is_expired(Timestamp::now()) {
            return Err(ApiError::field(
                VISITOR_SECRET,
                "has expired; omit it to continue as a new visitor",
            ));
        }
        if proven.agent_id != agent.id || proven.origin != origin {
            return Err(ApiError::field(
                VISITOR_SECRET,
                "was issued for another agent or origin",
            ));
        }
        if claimed.is_some_and(|claimed| claimed != proven.visitor_id.as_str()) {
            return Err(ApiError::field(
                VISITOR_ID,
                "does not match the visitorSecret",
            ));
        }
        Ok(Some(proven.visitor_id))
    }
}

fn insufficient(detail: &'static str) -> ApiError {
    ApiError::new(ErrorCode::InsufficientScope, detail)
}
