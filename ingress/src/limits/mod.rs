//! Rate limits of keys, visitors, pages, client addresses and sign-ins.
//!
//! The bucket is part of a route's policy ([`crate::auth::caller::AccessPolicy::BUCKET`]). Requests
//! are counted after the key's expiry check and before its scope check, so that requests without
//! the scope count too. Visitors are counted after field validation and before the message is
//! submitted, so that a rejected message holds no idempotency key and no queue slot.

#[cfg(test)]
mod api_tests;
mod failed_auth_limiter;
mod rate_limit_headers;
mod shared_limiter;
mod sign_in_limiter;
mod site_limiter;

use std::{sync::Arc, time::Duration};

use data_encoding::HEXLOWER;
use serde_json::json;
use switchboard_backends::limiter::{RateLimitOutcome, RateLimiter, RequestQuota};
use switchboard_schemas::{
    api_key::{ApiKey, KeyLimits},
    ids::OrgId,
    secret::InstallationSecret,
    visitor_token::VisitorClaims,
};

pub(crate) use self::{
    failed_auth_limiter::FailedAuthLimiter,
    rate_limit_headers::{RateLimitHeaders, write_limit_headers},
    sign_in_limiter::SignInAttempt,
};
use self::{
    shared_limiter::SharedLimiter,
    sign_in_limiter::{SignInLimiter, counted_attempts},
    site_limiter::{SiteLimiter, SubjectLimiter},
};
use crate::{
    config::IngressConfig,
    http::{ApiError, ApiResult, ErrorCode, RateLimitAddress},
    metrics::IngressMetrics,
};

/// Length of the rolling windows.
const WINDOW: Duration = Duration::from_secs(60);
const VISITOR: &str = "visitor";
const PLAYGROUND: &str = "trial";
const ADMIN: &str = "admin";
const FAILED_AUTHENTICATION: &str = "failed_authentication";
const UNKNOWN_SESSION: &str = "unknown_session";
const SIGN_IN_ACCOUNT: &str = "sign_in_account";
const SIGN_IN_ADDRESS: &str = "sign_in_address";
/// Window for sign-ins; passwords are guessed slowly, so that one minute would be too short.
const SIGN_IN_WINDOW: Duration = Duration::from_secs(15 * 60);

/// Groups of routes that are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RateLimitBucket {
    /// Agent and team chat.
    Chat,
    /// Agent and widget configuration.
    Config,
    /// Conversations and single messages.
    Conversations,
}

/// Subject of a rate limit whose id must be pseudonymized.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RateLimitSubject<'a> {
    /// Visitor id that the client supplied.
    Visitor(&'a str),
    /// Session id, if no visitor id is known.
    Session(&'a str),
    /// E-mail address of a dashboard account and address of a client.
    Account(&'a str),
}

/// Rate limits of one process, counted together with all other processes.
pub(crate) struct RateLimits {
    /// Wrong keys, admin tokens and one-time links, per client address.
    pub(crate) failed_authentications: FailedAuthLimiter,
    /// Unknown sessions, per organization and client address.
    unknown_sessions: FailedAuthLimiter,
    sign_ins: SignInLimiter,
    /// Limits of pages and their visitors.
    pub(crate) sites: SiteLimiter,
    limiter: Arc<SharedLimiter>,
    /// Playground runs per person.
    playground: SubjectLimiter,
    /// Requests of signed-in persons to the admin API.
    admin: SubjectLimiter,
    secret: InstallationSecret,
    metrics: IngressMetrics,
}

impl RateLimitBucket {
    const fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Config => "config",
            Self::Conversations => "conversations",
        }
    }

    /// Returns the limit of the key, otherwise the default (specification: Limits).
    fn quota(self, limits: &KeyLimits) -> RequestQuota {
        let (own, usual) = match self {
            Self::Chat => (limits.chat_per_minute, 60),
            Self::Config => (limits.config_per_minute, 120),
            Self::Conversations => (limits.conversations_per_minute, 120),
        };
        per_minute(own.unwrap_or(usual))
    }

    /// Returns the quota of one visitor: the default of a key, or the issuing key's limit if that
    /// is lower.
    fn visitor_quota(self, key: Option<&ApiKey>) -> RequestQuota {
        let usual = self.quota(&KeyLimits::default());
        let limit = key.map_or(usual.limit, |key| {
            self.quota(&key.limits).limit.min(usual.limit)
        });
        RequestQuota { limit, ..usual }
    }
}

impl RateLimits {
    pub(crate) fn new(
        limiter: Arc<dyn RateLimiter>,
        secret: InstallationSecret,
        config: &IngressConfig,
        metrics: IngressMetrics,
    ) -> Self {
        let limiter = Arc::new(SharedLimiter::new(
            limiter,
            metrics.limiter_fallbacks.clone(),
        ));
        let subjects =
            |name, quota| SubjectLimiter::new(name, quota, &limiter, &metrics.rate_limited);
        let failures = |name, limit| FailedAuthLimiter::new(subjects(name, per_minute(limit)));
        let sign_ins = |name, free| {
            let quota = RequestQuota {
                limit: counted_attempts(free),
                window: SIGN_IN_WINDOW,
            };
            subjects(name, quota)
        };
        Self {
            failed_authentications: failures(
                FAILED_AUTHENTICATION,
                config.failed_authentications_per_minute,
            ),
            unknown_sessions: failures(UNKNOWN_SESSION, config.unknown_sessions_per_minute),
            sign_ins: SignInLimiter::new(
                sign_ins(SIGN_IN_ACCOUNT, config.sign_ins_per_account),
                sign_ins(SIGN_IN_ADDRESS, config.sign_ins_per_address),
            ),
            sites: SiteLimiter::new(config, &limiter, &metrics.rate_limited),
            playground: subjects(PLAYGROUND, per_minute(config.trials_per_minute)),
            admin: subjects(ADMIN, per_minute(config.admin_requests_per_minute)),
            limiter,
            secret,
            metrics,
        }
    }

    /// Counts a request with an API key.
    ///
    /// # Errors
    /// Returns `RATE_LIMITED` if the key's quota is exceeded.
    pub(crate) async fn admit_key(
        &self,
        key: &ApiKey,
        bucket: RateLimitBucket,
        limit_headers: &RateLimitHeaders,
    ) -> ApiResult<()> {
        self.admit_subject(
            &format!("key:{}", key.id.as_str()),
            bucket,
            bucket.quota(&key.limits),
            limit_headers,
        )
        .await
    }

    /// Counts a request with a visitor token that `key` issued. It does not count against the key's
    /// own quota, which one visitor could use up.
    ///
    /// # Errors
    /// Returns `RATE_LIMITED` if the visitor's quota is exceeded.
    pub(crate) async fn admit_token(
        &self,
        claims: &VisitorClaims,
        key: Option<&ApiKey>,
        bucket: RateLimitBucket,
        limit_headers: &RateLimitHeaders,
    ) -> ApiResult<()> {
        let subject = format!(
            "token:{}:{}",
            claims.agent_id.as_str(),
            claims.visitor_id.as_str()
        );
        self.admit_subject(&subject, bucket, bucket.visitor_quota(key), limit_headers)
            .await
    }

    /// Adds the quota of a visitor token that is rejected before it is counted.
    pub(crate) fn report_token_policy(
        key: Option<&ApiKey>,
        bucket: RateLimitBucket,
        limit_headers: &RateLimitHeaders,
    ) {
        limit_headers.add_policy(bucket.name(), bucket.visitor_quota(key));
    }

    /// Adds the quota of a key that is rejected before it is counted.
    pub(crate) fn report_key_policy(
        key: &ApiKey,
        bucket: RateLimitBucket,
        limit_headers: &RateLimitHeaders,
    ) {
        limit_headers.add_policy(bucket.name(), bucket.quota(&key.limits));
    }

    /// Counts a message to the agent or team `addressed` against the limit per visitor.
    ///
    /// # Errors
    /// Returns `RATE_LIMITED` if the visitor's quota is exceeded.
    pub(crate) async fn admit_visitor(
        &self,
        addressed: &str,
        limit: u32,
        sender: RateLimitSubject<'_>,
        limit_headers: &RateLimitHeaders,
    ) -> ApiResult<()> {
        let quota = per_minute(limit);
        let key = format!("visitor:{addressed}:{}", self.pseudonym(sender));
        let verdict = self.limiter.take_request(&key, quota).await;
        if !verdict.admitted {
            limit_headers.add_verdict(VISITOR, quota, verdict);
        }
        self.check_verdict(VISITOR, quota, verdict)
    }

    /// Counts a playground run or the test of a provider, because each may call a model.
    ///
    /// # Errors
    /// Returns `RATE_LIMITED` if the person's quota is exceeded.
    pub(crate) async fn admit_playground_run(&self, person: &str) -> ApiResult<()> {
        self.playground
            .admit_request(Some(person), &RateLimitHeaders::default())
            .await
    }

    /// Counts a request of a signed-in person to the admin API.
    ///
    /// # Errors
    /// Returns `RATE_LIMITED` if the person's quota is exceeded.
    pub(crate) async fn admit_administrator(
        &self,
        person: &str,
        limit_headers: &RateLimitHeaders,
    ) -> ApiResult<()> {
        self.admin.admit_request(Some(person), limit_headers).await
    }

    /// Looks up the conversation of a session and counts unknown sessions. Within an organization
    /// the session id is the only protection, so that guessing is limited.
    ///
    /// # Errors
    /// Returns the errors of `look_up`, or `RATE_LIMITED` after too many unknown sessions.
    pub(crate) async fn guard_session<T>(
        &self,
        org: &OrgId,
        RateLimitAddress(address): &RateLimitAddress,
        look_up: impl Future<Output = ApiResult<T>>,
    ) -> ApiResult<T> {
        let guesser = address
            .as_ref()
            .map(|address| format!("{}:{address}", org.as_str()));
        self.unknown_sessions.check(guesser.as_deref())?;
        let found = look_up.await;
        if found.as_ref().is_err_and(ApiError::is_not_found) {
            self.unknown_sessions
                .record_failure(guesser.as_deref())
                .await?;
        }
        found
    }

    /// Counts a sign-in attempt of an account, existing or not, and delays it after many of them.
    /// The account is counted per address, so that strangers elsewhere do not delay its owner. A
    /// browser in which the owner has signed in before counts as an address of its own.
    ///
    /// # Errors
    /// Returns `RATE_LIMITED` if the address has too many attempts under way.
    pub(crate) async fn begin_sign_in(
        &self,
        account: &str,
        RateLimitAddress(address): &RateLimitAddress,
        known_browser: Option<String>,
    ) -> ApiResult<SignInAttempt<'_>> {
        let address = known_browser.as_deref().or(address.as_deref());
        let account = format!("{account}\n{}", address.unwrap_or_default());
        let account = self.pseudonym(RateLimitSubject::Account(&account));
        self.sign_ins.begin(&account, address).await
    }

    /// Counts an invalid one-time link.
    ///
    /// # Errors
    /// Returns `RATE_LIMITED` after too many invalid links of the address.
    pub(crate) async fn refuse_link(
        &self,
        RateLimitAddress(address): &RateLimitAddress,
    ) -> ApiResult<()> {
        let subject = address.as_ref().map(|address| format!("link:{address}"));
        self.failed_authentications
            .record_failure(subject.as_deref())
            .await
    }

    /// Probes the shared limiter while it is unavailable; never returns.
    pub(crate) async fn watch(&self) {
        self.limiter.watch().await;
    }

    async fn admit_subject(
        &self,
        subject: &str,
        bucket: RateLimitBucket,
        quota: RequestQuota,
        limit_headers: &RateLimitHeaders,
    ) -> ApiResult<()> {
        let verdict = self
            .limiter
            .take_request(&format!("{subject}:{}", bucket.name()), quota)
            .await;
        limit_headers.add_verdict(bucket.name(), quota, verdict);
        self.check_verdict(bucket.name(), quota, verdict)
    }

    fn check_verdict(
        &self,
        bucket: &str,
        quota: RequestQuota,
        verdict: RateLimitOutcome,
    ) -> ApiResult<()> {
        if verdict.admitted {
            return Ok(());
        }
        self.metrics.rate_limited.with_label_values(&[bucket]).inc();
        Err(too_many(bucket, quota, verdict.retry_after))
    }

    /// Returns a keyed hash of the subject, because visitor ids can be e-mail addresses and must
    /// not be stored in the limiter.
    fn pseudonym(&self, sender: RateLimitSubject<'_>) -> String {
        let (purpose, id) = match sender {
            RateLimitSubject::Visitor(id) => ("limit-visitor", id),
            RateLimitSubject::Session(id) => ("limit-session", id),
            RateLimitSubject::Account(name) => ("limit-account", name),
        };
        HEXLOWER.encode(&self.secret.mac(purpose, id.as_bytes()))
    }
}

const fn per_minute(limit: u32) -> RequestQuota {
    RequestQuota {
        limit,
        window: WINDOW,
    }
}

fn too_many(bucket: &str, quota: RequestQuota, retry_after: Duration) -> ApiError {
    let details = json!({ "bucket": bucket, "limit": quota.limit });
    ApiError::new(ErrorCode::RateLimited, "too many requests within a minute")
        .details(details)
        .retry_after(retry_after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_limit_overrides_the_default_in_its_bucket_only() {
        let limits = KeyLimits {
            config_per_minute: Some(7),
            ..KeyLimits::default()
        };
        let quotas = [
            RateLimitBucket::Chat,
            RateLimitBucket::Config,
            RateLimitBucket::Conversations,
        ]
        .map(|bucket| bucket.quota(&limits).limit);
        assert_eq!(quotas, [60, 7, 120]);
    }
}
