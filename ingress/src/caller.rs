//! Who calls: the step that turns a key into the right to go on. A handler whose signature holds a [`Caller`] cannot
//! run for anyone else.

use std::{marker::PhantomData, sync::Arc};

use axum::extract::FromRequestParts;
use http::request::Parts;
use switchboard_schemas::{
    api_key::{ApiKey, ApiKeyHash, ApiKeyText, Scope},
    ids::{KeyId, OrgId},
    time::Timestamp,
    turn::Source,
};

use crate::{
    client_address::CountedAddress,
    error::{ApiError, ApiResult, ErrorCode},
    key_headers::{SuppliedKey, supplied_key},
    limits::{Bucket, Limits, LimitsTold},
    state::AppState,
};

/// What a route is for: what it costs, which scopes open it and which further checks it has.
pub(crate) trait Purpose: Send + Sync + 'static {
    /// Which of the key's quotas a request is taken from.
    const BUCKET: Bucket;
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
    told: LimitsTold,
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

    /// What the answer will say of limits.
    pub(crate) const fn limits_told(&self) -> &LimitsTold {
        &self.told
    }

    /// Where its messages come from.
    pub(crate) const fn source(&self) -> Source {
        Source::Api
    }
}

impl<P: Purpose> FromRequestParts<AppState> for Caller<P> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> ApiResult<Self> {
        let key = known_key(parts, state).await?;
        let told = LimitsTold::of(&parts.extensions);
        // Compared at each request and never kept as a verdict: the second counts.
        if key.is_expired(Timestamp::now()) {
            Limits::tell_policy(&key, P::BUCKET, &told);
            return Err(ApiError::new(ErrorCode::ExpiredApiKey, "the API key has expired"));
        }
        tracing::Span::current().record("key.id", key.id.as_str()).record("org.id", key.org_id.as_str());
        state.limits.admit_key(&key, P::BUCKET, &told).await?;
        if !P::SCOPES.iter().any(|scope| key.allows(*scope)) {
            return Err(ApiError::new(ErrorCode::InsufficientScope, "the API key lacks the scope of this endpoint"));
        }
        Ok(Self { key, told, purpose: PhantomData })
    }
}

async fn known_key(parts: &mut Parts, state: &AppState) -> ApiResult<Arc<ApiKey>> {
    let Ok(CountedAddress(address)) = CountedAddress::from_request_parts(parts, state).await;
    // The checksum is looked at here, so that blind guesses cost no read.
    let text = match supplied_key(&parts.headers) {
        SuppliedKey::Text(text) => text.parse::<ApiKeyText>().ok(),
        SuppliedKey::Unusable => None,
        SuppliedKey::Missing => {
            let hint = "send the API key as `Authorization: Bearer …` or `X-API-Key: …`";
            return Err(ApiError::new(ErrorCode::MissingApiKey, hint));
        }
    };
    if let Some(text) = text
        && let Some(key) = existing_key(&text.hash(&state.secret), address.as_deref(), state).await?
    {
        return Ok(key);
    }
    state.limits.failed_authentications.miss(address.as_deref()).await?;
    Err(ApiError::new(ErrorCode::InvalidApiKey, "the API key is not valid"))
}

async fn existing_key(hash: &ApiKeyHash, address: Option<&str>, state: &AppState) -> ApiResult<Option<Arc<ApiKey>>> {
    // Keys in use go on: somebody who guesses must not shut out those who share the address.
    if let Err(refusal) = state.limits.failed_authentications.check(address)
        && !state.catalog.knows_key(hash).await
    {
        return Err(refusal);
    }
    Ok(state.catalog.key(hash).await?)
}
