//! Limits of pages without a key: they bound the load that many visitors, or one who changes
//! identity, can put on an agent.
//!
//! The limit per address is checked before the limit per site, so that a blocked address does not
//! use up the site's quota.

use std::{sync::Arc, time::Duration};

use prometheus::{IntCounter, IntCounterVec};
use switchboard_backends::limiter::{RateLimitOutcome, RequestQuota};
use switchboard_schemas::ids::AgentId;

use super::{
    per_minute, rate_limit_headers::RateLimitHeaders, shared_limiter::SharedLimiter, too_many,
};
use crate::{
    config::IngressConfig,
    http::{ApiError, ApiResult, RateLimitAddress},
};

const TOKENS: &str = "visitor_tokens";
const NEW_VISITORS: &str = "new_visitors";
const ADDRESS_CHATS: &str = "address_chats";
const SITE_CHATS: &str = "site_chats";

/// Rate limits of pages and their visitors.
pub(crate) struct SiteLimiter {
    tokens: SubjectLimiter,
    new_visitors: SubjectLimiter,
    address_chats: SubjectLimiter,
    site_chats: SubjectLimiter,
}

/// A quota that applies to each subject separately.
pub(super) struct SubjectLimiter {
    name: &'static str,
    quota: RequestQuota,
    limiter: Arc<SharedLimiter>,
    refusals: IntCounter,
}

impl SiteLimiter {
    pub(super) fn new(
        config: &IngressConfig,
        limiter: &Arc<SharedLimiter>,
        refusals: &IntCounterVec,
    ) -> Self {
        let limit = |name, limit| SubjectLimiter::new(name, per_minute(limit), limiter, refusals);
        Self {
            tokens: limit(TOKENS, config.visitor_tokens_per_address_per_minute),
            new_visitors: limit(NEW_VISITORS, config.new_visitors_per_site_per_minute),
            address_chats: limit(ADDRESS_CHATS, config.visitor_chats_per_address_per_minute),
            site_chats: limit(SITE_CHATS, config.visitor_chats_per_site_per_minute),
        }
    }

    /// Counts a request for a visitor token.
    ///
    /// # Errors
    /// Returns `RATE_LIMITED` if the quota of the address is exceeded.
    pub(crate) async fn admit_token(
        &self,
        address: &RateLimitAddress,
        limit_headers: &RateLimitHeaders,
    ) -> ApiResult<()> {
        let Some(verdict) = self.tokens.take_request(address.0.as_deref()).await else {
            return Ok(());
        };
        limit_headers.add_verdict(self.tokens.name, self.tokens.quota, verdict);
        self.tokens.check_verdict(verdict)
    }

    /// Adds the token quota to the headers of a request that is rejected before it is counted.
    pub(crate) fn report_token_policy(&self, limit_headers: &RateLimitHeaders) {
        if self.tokens.quota.limit > 0 {
            limit_headers.add_policy(self.tokens.name, self.tokens.quota);
        }
    }

    /// Counts a new visitor of an agent. Returning visitors are not counted, so that a flood of new
    /// ones does not end running conversations.
    ///
    /// # Errors
    /// Returns `RATE_LIMITED` if the agent has too many new visitors.
    pub(crate) async fn admit_new_visitor(
        &self,
        agent: &AgentId,
        limit_headers: &RateLimitHeaders,
    ) -> ApiResult<()> {
        self.new_visitors
            .admit_request(Some(agent.as_str()), limit_headers)
            .await
    }

    /// Counts a visitor's message against the limits of its address and site.
    ///
    /// # Errors
    /// Returns `RATE_LIMITED` if the quota of the address or site is exceeded.
    pub(crate) async fn admit_chat(
        &self,
        agent: &AgentId,
        RateLimitAddress(address): &RateLimitAddress,
        limit_headers: &RateLimitHeaders,
    ) -> ApiResult<()> {
        let address = address
            .as_ref()
            .map(|address| format!("{}:{address}", agent.as_str()));
        self.address_chats
            .admit_request(address.as_deref(), limit_headers)
            .await?;
        self.site_chats
            .admit_request(Some(agent.as_str()), limit_headers)
            .await
    }
}

impl SubjectLimiter {
    pub(super) fn new(
        name: &'static str,
        quota: RequestQuota,
        limiter: &Arc<SharedLimiter>,
        refusals: &IntCounterVec,
    ) -> Self {
        Self {
            name,
            quota,
            limiter: Arc::clone(limiter),
            refusals: refusals.with_label_values(&[name]),
        }
    }

    /// Counts a request, and adds the quota to the headers if it is exceeded.
    pub(super) async fn admit_request(
        &self,
        subject: Option<&str>,
        limit_headers: &RateLimitHeaders,
    ) -> ApiResult<()> {
        let Some(verdict) = self.take_request(subject).await else {
            return Ok(());
        };
        if !verdict.admitted {
            limit_headers.add_verdict(self.name, self.quota, verdict);
        }
        self.check_verdict(verdict)
    }

    /// Counts a request. Returns `None` if the subject is unknown or the limit is 0.
    pub(super) async fn take_request(&self, subject: Option<&str>) -> Option<RateLimitOutcome> {
        let subject = subject.filter(|_| self.quota.limit > 0)?;
        Some(
            self.limiter
                .take_request(&format!("{}:{subject}", self.name), self.quota)
                .await,
        )
    }

    pub(super) fn check_verdict(&self, verdict: RateLimitOutcome) -> ApiResult<()> {
        if verdict.admitted {
            return Ok(());
        }
        Err(self.reject(verdict.retry_after))
    }

    /// Counts a refusal and creates its error.
    pub(super) fn reject(&self, retry_after: Duration) -> ApiError {
        too_many(self.count_refusal(), self.quota, retry_after)
    }

    /// Counts a refusal and returns the name of the bucket.
    pub(super) fn count_refusal(&self) -> &'static str {
        self.refusals.inc();
        self.name
    }

    pub(super) const fn limit(&self) -> u32 {
        self.quota.limit
    }
}
