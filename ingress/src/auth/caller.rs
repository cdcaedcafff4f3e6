//! Authenticated callers: the extractor that checks a key or visitor token against the policy of a
//! route. A handler with a [`Caller`] in its signature cannot run without one.

use std::marker::PhantomData;

use axum::extract::FromRequestParts;
use http::{HeaderMap, request::Parts};
use switchboard_schemas::{
    api_key::KeyScope,
    client_text::{SessionId, VisitorId},
    ids::{AgentId, ConversationId, KeyId, OrgId},
    turn::MessageSource,
};

use super::credential::{Credential, VerifiedVisitor};
use crate::{
    http::{ApiError, ApiResult, ErrorCode},
    limits::{RateLimitBucket, RateLimitHeaders},
    state::AppState,
};

/// Access rules of a route: its rate-limit bucket, scopes and further checks.
pub(crate) trait AccessPolicy: Send + Sync + 'static {
    /// Bucket that requests are counted in.
    const BUCKET: RateLimitBucket;
    /// Scopes of which the key needs at least one.
    const SCOPES: &'static [KeyScope];
    /// True if visitor tokens are accepted.
    const OPEN_TO_VISITORS: bool;
    /// True if the agent must be active.
    const NEEDS_ACTIVE: bool;
    /// True if the page's origin must be on the agent's allowlist.
    const CHECKS_ORIGIN: bool;
    /// True if the path contains a session id.
    const HAS_SESSION: bool;
}

/// A caller that satisfies policy `P`.
pub(crate) struct Caller<P> {
    credential: Credential,
    told: RateLimitHeaders,
    purpose: PhantomData<P>,
}

impl<P> Caller<P> {
    /// Returns the organization of the caller.
    pub(crate) fn org_id(&self) -> &OrgId {
        self.credential.org_id()
    }

    /// Returns the key that was used, or that issued the visitor token; `None` for tokens that a
    /// page requested without a key.
    pub(crate) fn key_id(&self) -> Option<&KeyId> {
        self.credential.key_id()
    }

    /// Returns the namespace of the caller's idempotency keys: the key id, or the visitor id so
    /// that visitors are separate.
    pub(crate) fn sender(&self) -> &str {
        match &self.credential {
            Credential::Key(key) => key.id.as_str(),
            Credential::Visitor(visitor) => visitor.claims.visitor_id.as_str(),
        }
    }

    /// Returns the visitor, if a visitor token was used.
    pub(crate) fn visitor_id(&self) -> Option<&VisitorId> {
        self.visitor().map(|visitor| &visitor.claims.visitor_id)
    }

    /// Returns the id of the caller's own conversation with an agent in a session.
    pub(crate) fn conversation(&self, agent: &AgentId, session: &SessionId) -> ConversationId {
        match self.visitor_id() {
            None => ConversationId::of_agent(self.org_id(), agent, session),
            Some(visitor) => ConversationId::of_visitor(self.org_id(), agent, visitor, session),
        }
    }

    /// Returns true if the caller may access the conversation: keys reach all of their
    /// organization, visitors only their own.
    pub(crate) fn may_know(&self, conversation: &ConversationId) -> bool {
        self.visitor().is_none_or(|VerifiedVisitor { claims, .. }| {
            conversation.is_of_visitor(&claims.org_id, &claims.agent_id, &claims.visitor_id)
        })
    }

    /// Rejects a visitor token of another agent before the agent is looked up, so that the response
    /// does not reveal which agents exist.
    pub(crate) fn check_agent(&self, agent: &str) -> ApiResult<()> {
        match self.visitor() {
            Some(visitor) if visitor.claims.agent_id.as_str() != agent => Err(ApiError::new(
                ErrorCode::InsufficientScope,
                "the visitor token was made for another agent",
            )),
            _ => Ok(()),
        }
    }

    /// Rejects a visitor token that was issued to another origin.
    pub(crate) fn check_origin(&self, headers: &HeaderMap, state: &AppState) -> ApiResult<()> {
        self.visitor()
            .map_or(Ok(()), |visitor| visitor.check_origin(headers, state))
    }

    /// Returns the collector of rate-limit headers.
    pub(crate) const fn limits_told(&self) -> &RateLimitHeaders {
        &self.told
    }

    /// Returns the source that messages of this caller are recorded with.
    pub(crate) const fn source(&self) -> MessageSource {
        match self.credential {
            Credential::Key(_) => MessageSource::Api,
            Credential::Visitor(_) => MessageSource::Widget,
        }
    }

    const fn visitor(&self) -> Option<&VerifiedVisitor> {
        match &self.credential {
            Credential::Key(_) => None,
            Credential::Visitor(visitor) => Some(visitor),
        }
    }
}

impl<P: AccessPolicy> FromRequestParts<AppState> for Caller<P> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> ApiResult<Self> {
        let Some(credential) = Credential::supplied(parts, state).await? else {
            let hint = "send the API key as `Authorization: Bearer …` or `X-API-Key: …`";
            return Err(ApiError::new(ErrorCode::MissingApiKey, hint));
        };
        let told = RateLimitHeaders::of(&parts.extensions);
        credential
            .check_expiry()
            .inspect_err(|_| credential.tell_policy(P::BUCKET, &told))?;
        credential.note_use(&state.key_uses);
        credential.admit(&state.limits, P::BUCKET, &told).await?;
        check_scope::<P>(&credential)?;
        Ok(Self {
            credential,
            told,
            purpose: PhantomData,
        })
    }
}

fn check_scope<P: AccessPolicy>(credential: &Credential) -> ApiResult<()> {
    let (allowed, detail) = match credential {
        Credential::Key(key) => (
            P::SCOPES.iter().any(|scope| key.allows(*scope)),
            "the API key lacks the scope of this endpoint",
        ),
        Credential::Visitor(visitor) => (
            P::OPEN_TO_VISITORS && visitor.key_may_chat(),
            "a visitor token does not open this endpoint",
        ),
    };
    if allowed {
        Ok(())
    } else {
        Err(ApiError::new(ErrorCode::InsufficientScope, detail))
    }
}
