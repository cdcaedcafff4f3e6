//! Who calls: the step that turns a key into the right to go on. A handler whose signature holds a [`Caller`] cannot
//! run for anyone else.

use std::{marker::PhantomData, sync::Arc};

use axum::extract::FromRequestParts;
use http::{HeaderMap, request::Parts};
use switchboard_schemas::{
    api_key::{ApiKey, ApiKeyText, Scope},
    ids::{KeyId, OrgId},
    time::Timestamp,
    turn::Source,
};

use crate::{
    error::{ApiError, ApiResult, ErrorCode},
    key_headers::{SuppliedKey, supplied_key},
    state::AppState,
};

/// What a route is for: which scopes open it and which further checks it has.
pub(crate) trait Purpose: Send + Sync + 'static {
    /// Any one of these.
    const SCOPES: &'static [Scope];
    /// Whether an inactive agent refuses.
    const NEEDS_ACTIVE: bool;
    /// Whether the page's origin counts.
    const CHECKS_ORIGIN: bool;
    /// Whether the path names a session.
    const HAS_SESSION: bool;
}

/// A caller who may do `P`.
pub(crate) struct Caller<P> {
    key: Arc<ApiKey>,
    purpose: PhantomData<P>,
}

impl<P> Caller<P> {
    /// The organization that the caller belongs to.
    pub(crate) fn org_id(&self) -> &OrgId {
        &self.key.org_id
    }

    /// The key that was used.
    pub(crate) fn key_id(&self) -> &KeyId {
        &self.key.id
    }

    /// Where its messages come from.
    pub(crate) const fn source(&self) -> Source {
        Source::Api
    }
}

impl<P: Purpose> FromRequestParts<AppState> for Caller<P> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> ApiResult<Self> {
        let key = known_key(&parts.headers, state).await?;
        // Compared at each request and never kept as a verdict: the second counts.
        if key.is_expired(Timestamp::now()) {
            return Err(ApiError::new(ErrorCode::ExpiredApiKey, "the API key has expired"));
        }
        tracing::Span::current().record("key.id", key.id.as_str()).record("org.id", key.org_id.as_str());
        if !P::SCOPES.iter().any(|scope| key.allows(*scope)) {
            return Err(ApiError::new(ErrorCode::InsufficientScope, "the API key lacks the scope of this endpoint"));
        }
        Ok(Self { key, purpose: PhantomData })
    }
}

async fn known_key(headers: &HeaderMap, state: &AppState) -> ApiResult<Arc<ApiKey>> {
    let invalid = || ApiError::new(ErrorCode::InvalidApiKey, "the API key is not valid");
    let text = match supplied_key(headers) {
        SuppliedKey::Text(text) => text,
        SuppliedKey::Unusable => return Err(invalid()),
        SuppliedKey::Missing => {
            let hint = "send the API key as `Authorization: Bearer …` or `X-API-Key: …`";
            return Err(ApiError::new(ErrorCode::MissingApiKey, hint));
        }
    };
    // The checksum is looked at here, so that blind guesses cost no read.
    let text: ApiKeyText = text.parse().map_err(|_| invalid())?;
    state.catalog.key(&text.hash(&state.secret)).await?.ok_or_else(invalid)
}
