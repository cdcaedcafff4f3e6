//! How much pages may ask for without a key of their own: a visitor has the quotas of a key, and these bound what many
//! visitors, or one who keeps coming as another, can take from an agent.
//!
//! An address comes before its agent in each pair, so that what is refused to one address takes nothing from the site.

use std::sync::Arc;

use prometheus::{IntCounter, IntCounterVec};
use switchboard_backends::limiter::{RateLimitOutcome, RequestQuota};
use switchboard_schemas::ids::AgentId;

use super::{WINDOW, shared::SharedLimiter, told::LimitsTold, too_many};
use crate::{client_address::CountedAddress, config::IngressConfig, error::ApiResult};

const TOKENS: &str = "visitor_tokens";
const NEW_VISITORS: &str = "new_visitors";
const ADDRESS_CHATS: &str = "address_chats";
const SITE_CHATS: &str = "site_chats";

/// The limits of pages.
pub(crate) struct PageLimits {
    tokens: SubjectLimit,
    new_visitors: SubjectLimit,
    address_chats: SubjectLimit,
    site_chats: SubjectLimit,
}

/// A quota that each subject has for itself.
struct SubjectLimit {
    name: &'static str,
    quota: RequestQuota,
    limiter: Arc<SharedLimiter>,
    refusals: IntCounter,
}

impl PageLimits {
    pub(super) fn new(
        config: &IngressConfig,
        limiter: &Arc<SharedLimiter>,
        refusals: &IntCounterVec,
    ) -> Self {
        let limit = |name, limit| SubjectLimit {
            name,
            quota: RequestQuota {
                limit,
                window: WINDOW,
            },
            limiter: Arc::clone(limiter),
            refusals: refusals.with_label_values(&[name]),
        };
        Self {
            tokens: limit(TOKENS, config.visitor_tokens_per_address_per_minute),
            new_visitors: limit(NEW_VISITORS, config.new_visitors_per_site_per_minute),
            address_chats: limit(ADDRESS_CHATS, config.visitor_chats_per_address_per_minute),
            site_chats: limit(SITE_CHATS, config.visitor_chats_per_site_per_minute),
        }
    }

    /// Counts a request for a token.
    ///
    /// # Errors
    /// The address has asked for too many.
    pub(crate) async fn admit_token(
        &self,
        address: &CountedAddress,
        told: &LimitsTold,
    ) -> ApiResult<()> {
        let Some(verdict) = self.tokens.take(address.0.as_deref()).await else {
            return Ok(());
        };
        told.verdict(self.tokens.name, self.tokens.quota, verdict);
        self.tokens.pass(verdict)
    }

    /// Tells the quota of tokens to a caller that is refused before it is counted.
    pub(crate) fn tell_token_policy(&self, told: &LimitsTold) {
        if self.tokens.quota.limit > 0 {
            told.policy(self.tokens.name, self.tokens.quota);
        }
    }

    /// Counts a visitor whom the agent has not met. Those who come back are not counted: a flood of strangers must not
    /// end the conversations that are going on.
    ///
    /// # Errors
    /// The agent has met too many.
    pub(crate) async fn admit_new_visitor(
        &self,
        agent: &AgentId,
        told: &LimitsTold,
    ) -> ApiResult<()> {
        self.new_visitors.admit(Some(agent.as_str()), told).await
    }

    /// Counts a visitor's message, behind the visitor's own limit.
    ///
    /// # Errors
    /// The address, or the site, has sent too many.
    pub(crate) async fn admit_chat(
        &self,
        agent: &AgentId,
        CountedAddress(address): &CountedAddress,
        told: &LimitsTold,
    ) -> ApiResult<()> {
        let address = address
            .as_ref()
            .map(|address| format!("{}:{address}", agent.as_str()));
        self.address_chats.admit(address.as_deref(), told).await?;
        self.site_chats.admit(Some(agent.as_str()), told).await
    }
}

impl SubjectLimit {
    /// Counts a request, and tells the limit where it refuses.
    async fn admit(&self, subject: Option<&str>, told: &LimitsTold) -> ApiResult<()> {
        let Some(verdict) = self.take(subject).await else {
            return Ok(());
        };
        if !verdict.admitted {
            told.verdict(self.name, self.quota, verdict);
        }
        self.pass(verdict)
    }

    /// None where nothing is counted: the subject is unknown, or the limit is 0.
    async fn take(&self, subject: Option<&str>) -> Option<RateLimitOutcome> {
        let subject = subject.filter(|_| self.quota.limit > 0)?;
        Some(
            self.limiter
                .take(&format!("{}:{subject}", self.name), self.quota)
                .await,
        )
    }

    fn pass(&self, verdict: RateLimitOutcome) -> ApiResult<()> {
        if verdict.admitted {
            return Ok(());
        }
        self.refusals.inc();
        Err(too_many(self.name, self.quota, verdict.retry_after))
    }
}
