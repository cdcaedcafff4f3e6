//! How much may be asked for: the requests of a key, or of a page's visitor, in each bucket, the messages of a visitor,
//! what pages take from an agent, the misses of an address.
//!
//! A key's bucket is part of its route's type ([`crate::caller::Purpose::BUCKET`]) and is counted where the caller is
//! made out, after the key's expiry and before its scope: a request that lacks the scope counts, or its answers would
//! be free to ask for. A visitor is counted once the fields are valid and before the message is given to anybody, so
//! that a refused message holds no idempotency key and no place in a queue.

mod misses;
mod pages;
mod shared;
mod told;

use std::{fmt::Write, sync::Arc, time::Duration};

use serde_json::json;
use switchboard_backends::limiter::{RateLimitOutcome, RateLimiter, RequestQuota};
use switchboard_schemas::{
    api_key::{ApiKey, KeyLimits},
    ids::OrgId,
    secret::InstallationSecret,
    visitor_token::VisitorClaims,
};

pub(crate) use self::{
    misses::MissLimit,
    told::{LimitsTold, tell_limits},
};
use self::{pages::PageLimits, shared::SharedLimiter};
use crate::{
    client_address::CountedAddress,
    config::IngressConfig,
    error::{ApiError, ApiResult, ErrorCode},
    metrics::Metrics,
};

/// Length of every rolling window.
const WINDOW: Duration = Duration::from_secs(60);
const VISITOR: &str = "visitor";
const TRIAL: &str = "trial";
const FAILED_AUTHENTICATION: &str = "failed_authentication";
const UNKNOWN_SESSION: &str = "unknown_session";
const SIGN_IN_ACCOUNT: &str = "sign_in_account";
const SIGN_IN_ADDRESS: &str = "sign_in_address";
/// Passwords are guessed slowly or not at all, so that a minute would be too short a memory.
const SIGN_IN_WINDOW: Duration = Duration::from_secs(15 * 60);

/// Requests of a key that are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bucket {
    /// Agent and team chat.
    Chat,
    /// Agent and widget configuration.
    Config,
    /// Conversations and single messages.
    Conversations,
}

/// Who sends a message to an agent, or tries to sign in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sender<'a> {
    /// What the client calls the visitor.
    Visitor(&'a str),
    /// The session, where the client names no visitor.
    Session(&'a str),
    /// Whoever claims to hold this account of the dashboard.
    Account(&'a str),
}

/// The limits of one process, which counts together with all others.
pub(crate) struct Limits {
    /// Keys that do not exist, by address.
    pub(crate) failed_authentications: MissLimit,
    /// By organization and address: a tenant's guests do not concern its neighbours.
    unknown_sessions: MissLimit,
    /// Attempts to sign in to one account, whether it exists or not, from wherever.
    sign_ins_by_account: MissLimit,
    /// Attempts to sign in from one address, to whatever accounts.
    sign_ins_by_address: MissLimit,
    /// What pages' visitors may ask for.
    pub(crate) pages: PageLimits,
    limiter: Arc<SharedLimiter>,
    trials_per_minute: u32,
    secret: InstallationSecret,
    metrics: Metrics,
}

impl Bucket {
    const fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Config => "config",
            Self::Conversations => "conversations",
        }
    }

    /// The administrator's limit, else the usual one (specification: Limits).
    fn quota(self, limits: &KeyLimits) -> RequestQuota {
        let (own, usual) = match self {
            Self::Chat => (limits.chat_per_minute, 60),
            Self::Config => (limits.config_per_minute, 120),
            Self::Conversations => (limits.conversations_per_minute, 120),
        };
        RequestQuota {
            limit: own.unwrap_or(usual),
            window: WINDOW,
        }
    }

    /// The quota of one visitor: a key's usual one, or less where the token was made with a key that has less.
    fn visitor_quota(self, key: Option<&ApiKey>) -> RequestQuota {
        let usual = self.quota(&KeyLimits::default());
        let limit = key.map_or(usual.limit, |key| {
            self.quota(&key.limits).limit.min(usual.limit)
        });
        RequestQuota { limit, ..usual }
    }
}

impl Limits {
    pub(crate) fn new(
        limiter: Arc<dyn RateLimiter>,
        secret: InstallationSecret,
        config: &IngressConfig,
        metrics: Metrics,
    ) -> Self {
        let limiter = Arc::new(SharedLimiter::new(
            limiter,
            metrics.limiter_fallbacks.clone(),
        ));
        let misses_in = |name, limit, window| {
            let refused = metrics.rate_limited.with_label_values(&[name]);
            MissLimit::new(
                name,
                RequestQuota { limit, window },
                Arc::clone(&limiter),
                refused,
            )
        };
        let misses = |name, limit| misses_in(name, limit, WINDOW);
        Self {
            failed_authentications: misses(
                FAILED_AUTHENTICATION,
                config.failed_authentications_per_minute,
            ),
            unknown_sessions: misses(UNKNOWN_SESSION, config.unknown_sessions_per_minute),
            sign_ins_by_account: misses_in(
                SIGN_IN_ACCOUNT,
                config.sign_ins_per_account,
                SIGN_IN_WINDOW,
            ),
            sign_ins_by_address: misses_in(
                SIGN_IN_ADDRESS,
                config.sign_ins_per_address,
                SIGN_IN_WINDOW,
            ),
            pages: PageLimits::new(config, &limiter, &metrics.rate_limited),
            limiter,
            trials_per_minute: config.trials_per_minute,
            secret,
            metrics,
        }
    }

    /// Counts a request of a key.
    ///
    /// # Errors
    /// The key's quota of this bucket is used up.
    pub(crate) async fn admit_key(
        &self,
        key: &ApiKey,
        bucket: Bucket,
        told: &LimitsTold,
    ) -> ApiResult<()> {
        self.admit_subject(
            &format!("key:{}", key.id.as_str()),
            bucket,
            bucket.quota(&key.limits),
            told,
        )
        .await
    }

    /// Counts a request with a visitor token that was made with `key`. Nothing of it is taken from the key's own quota,
    /// which one visitor could use up for all.
    ///
    /// # Errors
    /// The visitor's quota of this bucket is used up.
    pub(crate) async fn admit_token(
        &self,
        claims: &VisitorClaims,
        key: Option<&ApiKey>,
        bucket: Bucket,
        told: &LimitsTold,
    ) -> ApiResult<()> {
        let subject = format!(
            "token:{}:{}",
            claims.agent_id.as_str(),
            claims.visitor_id.as_str()
        );
        self.admit_subject(&subject, bucket, bucket.visitor_quota(key), told)
            .await
    }

    /// Tells the quota of a visitor token that is refused before it is counted.
    pub(crate) fn tell_token_policy(key: Option<&ApiKey>, bucket: Bucket, told: &LimitsTold) {
        told.policy(bucket.name(), bucket.visitor_quota(key));
    }

    /// Tells the quota of a key that is refused before it is counted.
    pub(crate) fn tell_key_policy(key: &ApiKey, bucket: Bucket, told: &LimitsTold) {
        told.policy(bucket.name(), bucket.quota(&key.limits));
    }

    /// Counts a message to an agent or a team, `addressed`, against the limit for each of its visitors.
    ///
    /// # Errors
    /// The visitor's quota is used up.
    pub(crate) async fn admit_visitor(
        &self,
        addressed: &str,
        per_minute: u32,
        sender: Sender<'_>,
        told: &LimitsTold,
    ) -> ApiResult<()> {
        let quota = RequestQuota {
            limit: per_minute,
            window: WINDOW,
        };
        let key = format!("visitor:{addressed}:{}", self.pseudonym(sender));
        let verdict = self.limiter.take(&key, quota).await;
        if !verdict.admitted {
            told.verdict(VISITOR, quota, verdict);
        }
        self.pass(VISITOR, quota, verdict)
    }

    /// Counts a trial of a person, because each can cost a model call.
    ///
    /// # Errors
    /// The person has tried too often.
    pub(crate) async fn admit_trial(&self, person: &str) -> ApiResult<()> {
        if self.trials_per_minute == 0 {
            return Ok(());
        }
        let quota = RequestQuota {
            limit: self.trials_per_minute,
            window: WINDOW,
        };
        let verdict = self.limiter.take(&format!("trial:{person}"), quota).await;
        self.pass(TRIAL, quota, verdict)
    }

    /// Looks for a session's conversation. Its id is all that guards it within a key's reach, so that guessing is limited.
    ///
    /// # Errors
    /// Those of `look_up`, or the address has asked for too many sessions that do not exist.
    pub(crate) async fn guard_session<T>(
        &self,
        org: &OrgId,
        CountedAddress(address): &CountedAddress,
        look_up: impl Future<Output = ApiResult<T>>,
    ) -> ApiResult<T> {
        let guesser = address
            .as_ref()
            .map(|address| format!("{}:{address}", org.as_str()));
        self.unknown_sessions.check(guesser.as_deref())?;
        let found = look_up.await;
        if found.as_ref().is_err_and(ApiError::is_not_found) {
            self.unknown_sessions.miss(guesser.as_deref()).await?;
        }
        found
    }

    /// Counts an attempt to prove who one is, before anything is looked at: attempts at once cannot all slip through
    /// before the first has failed, and no answer depends on whether the account exists.
    ///
    /// # Errors
    /// The account or the address has seen too many.
    pub(crate) async fn admit_sign_in(
        &self,
        account: &str,
        address: &CountedAddress,
    ) -> ApiResult<()> {
        self.sign_ins_by_address.miss(address.0.as_deref()).await?;
        self.sign_ins_by_account
            .miss(Some(&self.pseudonym(Sender::Account(account))))
            .await
    }

    /// Counts an attempt to use a link, whose secret nobody guesses: only the cost of looking is bounded.
    ///
    /// # Errors
    /// The address has made too many.
    pub(crate) async fn admit_link(&self, address: &CountedAddress) -> ApiResult<()> {
        self.sign_ins_by_address.miss(address.0.as_deref()).await
    }

    /// Keeps looking for the shared limiter while it is away; never ends.
    pub(crate) async fn watch(&self) {
        self.limiter.watch().await;
    }

    async fn admit_subject(
        &self,
        subject: &str,
        bucket: Bucket,
        quota: RequestQuota,
        told: &LimitsTold,
    ) -> ApiResult<()> {
        let verdict = self
            .limiter
            .take(&format!("{subject}:{}", bucket.name()), quota)
            .await;
        told.verdict(bucket.name(), quota, verdict);
        self.pass(bucket.name(), quota, verdict)
    }

    fn pass(&self, bucket: &str, quota: RequestQuota, verdict: RateLimitOutcome) -> ApiResult<()> {
        if verdict.admitted {
            return Ok(());
        }
        self.metrics.rate_limited.with_label_values(&[bucket]).inc();
        Err(too_many(bucket, quota, verdict.retry_after))
    }

    /// A visitor's id can be an e-mail address, which must not lie in the limiter.
    fn pseudonym(&self, sender: Sender<'_>) -> String {
        let (purpose, id) = match sender {
            Sender::Visitor(id) => ("limit-visitor", id),
            Sender::Session(id) => ("limit-session", id),
            Sender::Account(name) => ("limit-account", name),
        };
        self.secret
            .mac(purpose, id.as_bytes())
            .iter()
            .fold(String::new(), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            })
    }
}

fn too_many(bucket: &str, quota: RequestQuota, retry_after: Duration) -> ApiError {
    let details = json!({ "bucket": bucket, "limit": quota.limit });
    let detail = if quota.window == SIGN_IN_WINDOW {
        "too many attempts to sign in"
    } else {
        "too many requests within a minute"
    };
    ApiError::new(ErrorCode::RateLimited, detail)
        .details(details)
        .retry_after(retry_after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keys_own_limit_wins_over_the_usual_one_in_its_bucket_alone() {
        let limits = KeyLimits {
            config_per_minute: Some(7),
            ..KeyLimits::default()
        };
        let quotas = [Bucket::Chat, Bucket::Config, Bucket::Conversations]
            .map(|bucket| bucket.quota(&limits).limit);
        assert_eq!(quotas, [60, 7, 120]);
    }
}
