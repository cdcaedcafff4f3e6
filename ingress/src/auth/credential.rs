//! Credentials of callers: an API key, or a visitor token (see
//! [`switchboard_schemas::visitor_token`]). Both pass the same checks in the same order.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::{HeaderMap, request::Parts};
use switchboard_schemas::{
    api_key::{ApiKey, ApiKeyText, KeyScope},
    ids::{KeyId, OrgId},
    time::Timestamp,
    visitor_token::{CredentialKind, VisitorClaims, VisitorCredential},
};

use super::key_headers::{PresentedKey, presented_key};
use crate::{
    http::{ApiError, ApiResult, ErrorCode, RateLimitAddress, origin},
    limits::{RateLimitBucket, RateLimitHeaders, RateLimits},
    state::{AppState, recent_uses::RecentUses},
};

/// A known credential, possibly expired.
pub(crate) enum CallerCredential {
    Key(Arc<ApiKey>),
    /// A visitor token with its claims.
    Visitor(Box<VerifiedVisitor>),
}

/// A verified visitor token and the key that it was created with.
pub(crate) struct VerifiedVisitor {
    pub(crate) claims: VisitorClaims,
    key: Option<Arc<ApiKey>>,
}

impl CallerCredential {
    /// Returns the credential in the request's headers, or `None` if there is none.
    ///
    /// # Errors
    /// Fails with `INVALID_API_KEY` for unknown credentials, and with `RATE_LIMITED` after too many
    /// of them.
    pub(crate) async fn from_headers(
        parts: &mut Parts,
        state: &AppState,
    ) -> ApiResult<Option<Self>> {
        let known = match presented_key(&parts.headers) {
            PresentedKey::Missing => return Ok(None),
            PresentedKey::Unusable => None,
            PresentedKey::Text(text) => match text.parse::<VisitorCredential>() {
                Ok(token) => resolve_visitor(&token, state).await?,
                Err(_) => resolve_key(text, state).await?,
            },
        };
        let Some(known) = known else {
            let Ok(RateLimitAddress(address)) =
                RateLimitAddress::from_request_parts(parts, state).await;
            state
                .limits
                .failed_authentications
                .record_failure(address.as_deref())
                .await?;
            return Err(ApiError::new(
                ErrorCode::InvalidApiKey,
                "the API key is not valid",
            ));
        };
        known.record_in_span();
        Ok(Some(known))
    }

    /// Rejects expired credentials. Evaluated on every request, because seconds matter. A token
    /// expires no later than its key.
    pub(crate) fn check_expiry(&self) -> ApiResult<()> {
        let now = Timestamp::now();
        let (expired, detail) = match self {
            Self::Key(key) => (key.is_expired(now), "the API key has expired"),
            Self::Visitor(visitor) => {
                let with_its_key = visitor.key.as_ref().is_some_and(|key| key.is_expired(now));
                (
                    with_its_key || visitor.claims.is_expired(now),
                    "the visitor token has expired",
                )
            }
        };
        if expired {
            Err(ApiError::new(ErrorCode::ExpiredApiKey, detail))
        } else {
            Ok(())
        }
    }

    /// Counts a request against the caller's rate limit: per key, or per visitor.
    pub(crate) async fn admit_request(
        &self,
        limits: &RateLimits,
        bucket: RateLimitBucket,
        limit_headers: &RateLimitHeaders,
    ) -> ApiResult<()> {
        match self {
            Self::Key(key) => limits.admit_key(key, bucket, limit_headers).await,
            Self::Visitor(visitor) => {
                limits
                    .admit_token(&visitor.claims, visitor.key(), bucket, limit_headers)
                    .await
            }
        }
    }

    /// Records the use of a key. Uses of visitor tokens are not attributed to their key.
    pub(crate) fn note_use(&self, uses: &RecentUses) {
        if let Self::Key(key) = self {
            uses.keys.record((key.org_id.clone(), key.id.clone()));
        }
    }

    /// Adds the quota to the rate-limit headers of a request that is rejected before it is counted.
    pub(crate) fn report_policy(&self, bucket: RateLimitBucket, limit_headers: &RateLimitHeaders) {
        match self {
            Self::Key(key) => RateLimits::report_key_policy(key, bucket, limit_headers),
            Self::Visitor(visitor) => {
                RateLimits::report_token_policy(visitor.key(), bucket, limit_headers)
            }
        }
    }

    /// Returns the organization of the credential.
    pub(crate) fn org_id(&self) -> &OrgId {
        match self {
            Self::Key(key) => &key.org_id,
            Self::Visitor(visitor) => &visitor.claims.org_id,
        }
    }

    /// Returns the key, or the key that issued the token.
    pub(crate) fn key_id(&self) -> Option<&KeyId> {
        match self {
            Self::Key(key) => Some(&key.id),
            Self::Visitor(visitor) => visitor.claims.key_id.as_ref(),
        }
    }

    fn record_in_span(&self) {
        let span = tracing::Span::current();
        span.record("org.id", self.org_id().as_str());
        if let Some(key) = self.key_id() {
            span.record("key.id", key.as_str());
        }
    }
}

impl VerifiedVisitor {
    /// Returns true if the issuing key still has the scope `chat`.
    pub(crate) fn key_may_chat(&self) -> bool {
        self.key().is_none_or(|key| key.has_scope(KeyScope::Chat))
    }

    /// Rejects requests of a page other than the token's. Requests without an origin pass: the
    /// origin distinguishes pages, it does not authenticate.
    pub(crate) fn check_origin(&self, headers: &HeaderMap, state: &AppState) -> ApiResult<()> {
        let Some(bound) = self.claims.origin else {
            return Ok(());
        };
        if !origin::has_origin(headers)
            || origin::origin_hash(headers, &state.secret) == Some(bound)
        {
            return Ok(());
        }
        Err(ApiError::new(
            ErrorCode::DomainNotAllowed,
            "the visitor token was issued for another origin",
        ))
    }

    fn key(&self) -> Option<&ApiKey> {
        self.key.as_deref()
    }
}

/// Verifies a visitor token. Tokens are signed, so that the limit of failed authentications does
/// not apply to them.
async fn resolve_visitor(
    token: &VisitorCredential,
    state: &AppState,
) -> ApiResult<Option<CallerCredential>> {
    let claims = token
        .open(&state.secret)
        .ok()
        .filter(|_| token.kind() == CredentialKind::Token);
    let Some(claims) = claims else {
        return Ok(None);
    };
    let key = match &claims.key_id {
        None => None,
        // A token is valid only as long as its key exists.
        Some(id) => match state
            .catalog
            .key_by_id(id)
            .await?
            .filter(|key| key.org_id == claims.org_id)
        {
            None => {
                return Err(ApiError::new(
                    ErrorCode::InvalidApiKey,
                    "the key of this visitor token was deleted",
                ));
            }
            key => key,
        },
    };
    Ok(Some(CallerCredential::Visitor(Box::new(VerifiedVisitor {
        claims,
        key,
    }))))
}

/// Resolves an API key. The checksum is verified first, so that blind guesses cost no lookup. An
/// address with too many failures is not rejected here: its right keys stay valid.
async fn resolve_key(text: &str, state: &AppState) -> ApiResult<Option<CallerCredential>> {
    let Ok(text) = text.parse::<ApiKeyText>() else {
        return Ok(None);
    };
    let key = state.catalog.key(&text.hash(&state.secret)).await?;
    Ok(key.map(CallerCredential::Key))
}
