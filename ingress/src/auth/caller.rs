//! Authenticated callers: the extractor that checks a key or visitor token against the policy of a
//! route. A handler with a [`AuthorizedCaller`] in its signature cannot run without one.

use std::marker::PhantomData;

use axum::extract::FromRequestParts;
use http::{HeaderMap, request::Parts};
use serde_json::json;
use switchboard_backends::files::StoredFile;
use switchboard_schemas::{
    api_key::{ApiKey, KeyScope},
    client_text::{SessionId, VisitorId},
    conversation::ConversationOwner,
    ids::{AgentId, ConversationId, KeyId, OrgId},
    turn::MessageSource,
};

use super::credential::{CallerCredential, VerifiedVisitor};
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
    const OPEN_TO_VISITORS: bool = false;
    /// True if the agent must be active.
    const NEEDS_ACTIVE: bool = true;
    /// True if the page's origin must be on the agent's allowlist.
    const CHECKS_ORIGIN: bool = false;
    /// True if the path contains a session id.
    const HAS_SESSION: bool = false;
}

/// A caller that satisfies policy `P`.
pub(crate) struct AuthorizedCaller<P> {
    credential: CallerCredential,
    limit_headers: RateLimitHeaders,
    purpose: PhantomData<P>,
}

impl<P> AuthorizedCaller<P> {
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
    pub(crate) fn sender_id(&self) -> &str {
        match &self.credential {
            CallerCredential::Key(key) => key.id.as_str(),
            CallerCredential::Visitor(visitor) => visitor.claims.visitor_id.as_str(),
        }
    }

    /// Returns the visitor, if a visitor token was used.
    pub(crate) fn visitor_id(&self) -> Option<&VisitorId> {
        self.visitor_credential()
            .map(|visitor| &visitor.claims.visitor_id)
    }

    /// Returns the id of the caller's own conversation with an agent in a session.
    pub(crate) fn conversation_id(&self, agent: &AgentId, session: &SessionId) -> ConversationId {
        match self.visitor_id() {
            None => ConversationId::of_agent(self.org_id(), agent, session),
            Some(visitor) => ConversationId::of_visitor(self.org_id(), agent, visitor, session),
        }
    }

    /// Returns true if the caller may access the conversation: keys reach all of their
    /// organization, visitors only their own.
    pub(crate) fn may_access(&self, conversation: &ConversationId) -> bool {
        self.visitor_credential()
            .is_none_or(|VerifiedVisitor { claims, .. }| {
                conversation.is_of_visitor(&claims.org_id, &claims.agent_id, &claims.visitor_id)
            })
    }

    /// Returns true if the caller may read the file: keys that read conversations reach all of
    /// their organization, other keys what they uploaded themselves, and visitors what they did.
    pub(crate) fn may_read_file(&self, file: &StoredFile) -> bool {
        let header = &file.header;
        let may_read = match &self.credential {
            CallerCredential::Key(key) => {
                let is_own = header.key_id.as_ref() == Some(&key.id) && header.visitor_id.is_none();
                key.has_scope(KeyScope::Conversations) || is_own
            }
            CallerCredential::Visitor(visitor) => {
                let claims = &visitor.claims;
                header.visitor_id.as_ref() == Some(&claims.visitor_id)
                    && header.owner == ConversationOwner::Agent(claims.agent_id.clone())
            }
        };
        may_read && !header.is_playground
    }

    /// Rejects a visitor token of another agent before the agent is looked up, so that the response
    /// does not reveal which agents exist.
    pub(crate) fn check_agent(&self, agent: &str) -> ApiResult<()> {
        match self.visitor_credential() {
            Some(visitor) if visitor.claims.agent_id.as_str() != agent => Err(ApiError::new(
                ErrorCode::InsufficientScope,
                "the visitor token was issued for another agent",
            )),
            _ => Ok(()),
        }
    }

    /// Rejects a visitor token that was issued to another origin.
    pub(crate) fn check_origin(&self, headers: &HeaderMap, state: &AppState) -> ApiResult<()> {
        self.visitor_credential()
            .map_or(Ok(()), |visitor| visitor.check_origin(headers, state))
    }

    pub(crate) const fn rate_limit_headers(&self) -> &RateLimitHeaders {
        &self.limit_headers
    }

    /// Returns the source that messages of this caller are recorded with.
    pub(crate) const fn source(&self) -> MessageSource {
        match self.credential {
            CallerCredential::Key(_) => MessageSource::Api,
            CallerCredential::Visitor(_) => MessageSource::Widget,
        }
    }

    const fn visitor_credential(&self) -> Option<&VerifiedVisitor> {
        match &self.credential {
            CallerCredential::Key(_) => None,
            CallerCredential::Visitor(visitor) => Some(visitor),
        }
    }
}

impl<P: AccessPolicy> FromRequestParts<AppState> for AuthorizedCaller<P> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> ApiResult<Self> {
        let Some(credential) = CallerCredential::from_headers(parts, state).await? else {
            let hint = "send the API key as `Authorization: Bearer …` or `X-API-Key: …`";
            return Err(ApiError::new(ErrorCode::MissingApiKey, hint));
        };
        let limit_headers = RateLimitHeaders::from_extensions(&parts.extensions);
        credential
            .check_expiry()
            .inspect_err(|_| credential.report_policy(P::BUCKET, &limit_headers))?;
        credential.note_use(&state.recent_uses);
        credential
            .admit_request(&state.limits, P::BUCKET, &limit_headers)
            .await?;
        check_scope::<P>(&credential)?;
        Ok(Self {
            credential,
            limit_headers,
            purpose: PhantomData,
        })
    }
}

fn check_scope<P: AccessPolicy>(credential: &CallerCredential) -> ApiResult<()> {
    match credential {
        CallerCredential::Key(key) => check_key_scope(key, P::SCOPES),
        CallerCredential::Visitor(visitor) if P::OPEN_TO_VISITORS && visitor.key_may_chat() => {
            Ok(())
        }
        CallerCredential::Visitor(_) => {
            let detail = "visitor tokens are not accepted by this endpoint";
            Err(ApiError::new(ErrorCode::InsufficientScope, detail))
        }
    }
}

/// Rejects a key that has none of the scopes of a route, with the needed and the held ones.
pub(super) fn check_key_scope(key: &ApiKey, needed: &[KeyScope]) -> ApiResult<()> {
    if needed.iter().any(|scope| key.has_scope(*scope)) {
        return Ok(());
    }
    let names = |scopes: &[KeyScope], word: &str| {
        let names: Vec<_> = scopes.iter().map(|scope| scope.name()).collect();
        names.join(word)
    };
    let detail = format!(
        "the API key needs the scope {} and has {}",
        names(needed, " or "),
        names(&key.scopes, " and "),
    );
    let details = json!({ "neededScopes": needed, "heldScopes": key.scopes });
    Err(ApiError::new(ErrorCode::InsufficientScope, detail).details(details))
}

#[cfg(test)]
mod tests {
    use crate::testing::World;

    #[tokio::test]
    async fn missing_scope_is_named_with_those_held() {
        let world = World::new().await;
        let scopes = serde_json::json!({ "name": "some", "scopes": ["chat", "conversations"] });
        let key = world.new_key("acme", scopes).await;
        let answer = world
            .send_with("GET", &World::agent_path(""), &[("x-api-key", &key)], "")
            .await;
        let problem = answer.expect(403);
        assert_eq!(
            problem["detail"],
            "the API key needs the scope config and has chat and conversations"
        );
        assert_eq!(problem["code"], "INSUFFICIENT_SCOPE");
    }
}
