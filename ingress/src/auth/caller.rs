//! Who calls: the step that turns a key or a visitor token into the right to go on. A handler whose signature holds a
//! [`Caller`] cannot run for anyone else.

use std::marker::PhantomData;

use axum::extract::FromRequestParts;
use http::{HeaderMap, request::Parts};
use switchboard_schemas::{
    api_key::KeyScope,
    client_text::{SessionId, VisitorId},
    ids::{AgentId, ConversationId, KeyId, OrgId},
    turn::MessageSource,
};

use crate::{
    credential::{Credential, VerifiedVisitor},
    error::{ApiError, ApiResult, ErrorCode},
    limits::{Bucket, LimitsTold},
    state::AppState,
};

/// What a route is for: what it costs, which scopes open it and which further checks it has.
pub(crate) trait Purpose: Send + Sync + 'static {
    /// Which of the key's quotas a request is taken from.
    const BUCKET: Bucket;
    /// Any one of these.
    const SCOPES: &'static [KeyScope];
    /// Whether a visitor token opens it too.
    const OPEN_TO_VISITORS: bool;
    /// Whether an inactive agent refuses.
    const NEEDS_ACTIVE: bool;
    /// Whether the page's origin counts.
    const CHECKS_ORIGIN: bool;
    /// Whether the path names a session.
    const HAS_SESSION: bool;
}

/// A caller who may do `P`.
pub(crate) struct Caller<P> {
    credential: Credential,
    told: LimitsTold,
    purpose: PhantomData<P>,
}

impl<P> Caller<P> {
    /// The organization that the caller belongs to.
    pub(crate) fn org_id(&self) -> &OrgId {
        self.credential.org_id()
    }

    /// The key that was used, or that the visitor token was made with; none for a token that a page got by itself.
    pub(crate) fn key_id(&self) -> Option<&KeyId> {
        self.credential.key_id()
    }

    /// Who repeats a request with an `Idempotency-Key`: a key, or a visitor, so that no visitor meets another's.
    pub(crate) fn sender(&self) -> &str {
        match &self.credential {
            Credential::Key(key) => key.id.as_str(),
            Credential::Visitor(visitor) => visitor.claims.visitor_id.as_str(),
        }
    }

    /// The visitor whose token was used.
    pub(crate) fn visitor_id(&self) -> Option<&VisitorId> {
        self.visitor().map(|visitor| &visitor.claims.visitor_id)
    }

    /// The caller's own conversation of this session with an agent.
    pub(crate) fn conversation(&self, agent: &AgentId, session: &SessionId) -> ConversationId {
        match self.visitor_id() {
            None => ConversationId::of_agent(self.org_id(), agent, session),
            Some(visitor) => ConversationId::of_visitor(self.org_id(), agent, visitor, session),
        }
    }

    /// Whether the caller may know of this conversation: a key of its organization's all, a visitor of its own.
    pub(crate) fn may_know(&self, conversation: &ConversationId) -> bool {
        self.visitor().is_none_or(|VerifiedVisitor { claims, .. }| {
            conversation.is_of_visitor(&claims.org_id, &claims.agent_id, &claims.visitor_id)
        })
    }

    /// Refuses a visitor token that was made for another agent, whether the one in the path exists or not: what a token
    /// is not made for lies outside its scope, and the answer must not tell which agents there are. It stands behind the
    /// empty id, which says nothing about anybody, and before the look for the agent.
    pub(crate) fn check_agent(&self, agent: &str) -> ApiResult<()> {
        match self.visitor() {
            Some(visitor) if visitor.claims.agent_id.as_str() != agent => Err(ApiError::new(
                ErrorCode::InsufficientScope,
                "the visitor token was made for another agent",
            )),
            _ => Ok(()),
        }
    }

    /// Refuses a visitor token on another page than the one that it was made for.
    pub(crate) fn check_origin(&self, headers: &HeaderMap, state: &AppState) -> ApiResult<()> {
        self.visitor()
            .map_or(Ok(()), |visitor| visitor.check_origin(headers, state))
    }

    /// What the answer will say of limits.
    pub(crate) const fn limits_told(&self) -> &LimitsTold {
        &self.told
    }

    /// Where its messages come from.
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

impl<P: Purpose> FromRequestParts<AppState> for Caller<P> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> ApiResult<Self> {
        let Some(credential) = Credential::supplied(parts, state).await? else {
            let hint = "send the API key as `Authorization: Bearer …` or `X-API-Key: …`";
            return Err(ApiError::new(ErrorCode::MissingApiKey, hint));
        };
        let told = LimitsTold::of(&parts.extensions);
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

fn check_scope<P: Purpose>(credential: &Credential) -> ApiResult<()> {
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
