//! What a caller shows: an API key, or a visitor token that a page got for one (see
//! [`switchboard_schemas::visitor_token`]). Both pass the same steps in the same order.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::{HeaderMap, request::Parts};
use switchboard_schemas::{
    api_key::{ApiKey, ApiKeyHash, ApiKeyText, KeyScope},
    ids::{KeyId, OrgId},
    time::Timestamp,
    visitor_token::{CredentialKind, VisitorClaims, VisitorCredential},
};

use crate::{
    client_address::CountedAddress,
    error::{ApiError, ApiResult, ErrorCode},
    key_headers::{SuppliedKey, supplied_key},
    key_uses::KeyUses,
    limits::{Bucket, Limits, LimitsTold},
    origin,
    state::AppState,
};

/// A credential that is known; it may have expired.
pub(crate) enum Credential {
    /// A key.
    Key(Arc<ApiKey>),
    /// A visitor token.
    Visitor(Box<VerifiedVisitor>),
}

/// A verified visitor token and the key that it was created with.
pub(crate) struct VerifiedVisitor {
    /// What the token says.
    pub(crate) claims: VisitorClaims,
    key: Option<Arc<ApiKey>>,
}

impl Credential {
    /// What the request's headers carry; none where they carry nothing.
    ///
    /// # Errors
    /// It is not known here; whoever tries too often is not answered any more.
    pub(crate) async fn supplied(parts: &mut Parts, state: &AppState) -> ApiResult<Option<Self>> {
        let Ok(CountedAddress(address)) = CountedAddress::from_request_parts(parts, state).await;
        let known = match supplied_key(&parts.headers) {
            SuppliedKey::Missing => return Ok(None),
            SuppliedKey::Unusable => None,
            SuppliedKey::Text(text) => match text.parse::<VisitorCredential>() {
                Ok(token) => visitor(&token, state).await?,
                Err(_) => key(text, address.as_deref(), state).await?,
            },
        };
        let Some(known) = known else {
            state
                .limits
                .failed_authentications
                .miss(address.as_deref())
                .await?;
            return Err(ApiError::new(
                ErrorCode::InvalidApiKey,
                "the API key is not valid",
            ));
        };
        known.trace();
        Ok(Some(known))
    }

    /// Refuses what is past its time. Compared at each request and never kept as a verdict: the second counts. A token
    /// ends no later than its key.
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

    /// Counts a request of this caller: a key's together, each visitor's apart.
    pub(crate) async fn admit(
        &self,
        limits: &Limits,
        bucket: Bucket,
        told: &LimitsTold,
    ) -> ApiResult<()> {
        match self {
            Self::Key(key) => limits.admit_key(key, bucket, told).await,
            Self::Visitor(visitor) => {
                limits
                    .admit_token(&visitor.claims, visitor.key(), bucket, told)
                    .await
            }
        }
    }

    /// Notes that a key is used. What a token does is its visitor's doing, and the key may be out of its holder's hands.
    pub(crate) fn note_use(&self, uses: &KeyUses) {
        if let Self::Key(key) = self {
            uses.note(key);
        }
    }

    /// Tells the quota of a caller that is refused before it is counted.
    pub(crate) fn tell_policy(&self, bucket: Bucket, told: &LimitsTold) {
        match self {
            Self::Key(key) => Limits::tell_key_policy(key, bucket, told),
            Self::Visitor(visitor) => Limits::tell_token_policy(visitor.key(), bucket, told),
        }
    }

    /// The organization that the caller belongs to.
    pub(crate) fn org_id(&self) -> &OrgId {
        match self {
            Self::Key(key) => &key.org_id,
            Self::Visitor(visitor) => &visitor.claims.org_id,
        }
    }

    /// The key that is used, or was used to make the token.
    pub(crate) fn key_id(&self) -> Option<&KeyId> {
        match self {
            Self::Key(key) => Some(&key.id),
            Self::Visitor(visitor) => visitor.claims.key_id.as_ref(),
        }
    }

    fn trace(&self) {
        let span = tracing::Span::current();
        span.record("org.id", self.org_id().as_str());
        if let Some(key) = self.key_id() {
            span.record("key.id", key.as_str());
        }
    }
}

impl VerifiedVisitor {
    /// Whether the key that the token was made with may still chat.
    pub(crate) fn key_may_chat(&self) -> bool {
        self.key().is_none_or(|key| key.allows(KeyScope::Chat))
    }

    /// Refuses another page than the token's, on every route that it opens. A request without an origin passes, as it
    /// does with a key: the origin tells pages apart, it does not authenticate.
    pub(crate) fn check_origin(&self, headers: &HeaderMap, state: &AppState) -> ApiResult<()> {
        let Some(bound) = self.claims.origin else {
            return Ok(());
        };
        if !origin::is_present(headers) || origin::print(headers, &state.secret) == Some(bound) {
            return Ok(());
        }
        Err(ApiError::new(
            ErrorCode::DomainNotAllowed,
            "the visitor token was made for another origin",
        ))
    }

    fn key(&self) -> Option<&ApiKey> {
        self.key.as_deref()
    }
}

/// A token proves itself, so that an address which has guessed too often does not lock out its neighbours' tokens.
async fn visitor(token: &VisitorCredential, state: &AppState) -> ApiResult<Option<Credential>> {
    let claims = token
        .open(&state.secret)
        .ok()
        .filter(|_| token.kind() == CredentialKind::Token);
    let Some(claims) = claims else {
        return Ok(None);
    };
    let key = match &claims.key_id {
        None => None,
        // Read by its id: a token dies with its key.
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
    Ok(Some(Credential::Visitor(Box::new(VerifiedVisitor {
        claims,
        key,
    }))))
}

/// The checksum is looked at before anything is read, so that blind guesses cost no read.
async fn key(text: &str, address: Option<&str>, state: &AppState) -> ApiResult<Option<Credential>> {
    let Ok(text) = text.parse::<ApiKeyText>() else {
        return Ok(None);
    };
    let key = existing_key(&text.hash(&state.secret), address, state).await?;
    Ok(key.map(Credential::Key))
}

async fn existing_key(
    hash: &ApiKeyHash,
    address: Option<&str>,
    state: &AppState,
) -> ApiResult<Option<Arc<ApiKey>>> {
    // Keys in use go on: somebody who guesses must not shut out those who share the address.
    if let Err(refusal) = state.limits.failed_authentications.check(address)
        && !state.catalog.knows_key(hash).await
    {
        return Err(refusal);
    }
    Ok(state.catalog.key(hash).await?)
}
