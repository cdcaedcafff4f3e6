//! Limits failed lookups of secrets, such as keys and sessions, to prevent guessing.
//!
//! Only failures count. Keys, tokens and links are compared first, so that a guesser locks out
//! nobody at the same address: these secrets are too long to be guessed. Session ids are text of
//! clients and can be guessed; their subjects are rejected before the lookup.

use std::{collections::HashMap, time::Instant};

use parking_lot::Mutex;

use super::site_limiter::SubjectLimiter;
use crate::http::ApiResult;

/// Maximum number of blocked subjects in memory; others are rejected by the shared limiter after
/// their lookup.
const REFUSED_MAX: usize = 10_000;

/// A limit of failures per subject. Subjects are client addresses or accounts; unknown addresses
/// are not limited.
pub(crate) struct FailedAuthLimiter {
    failures: SubjectLimiter,
    /// End of the block by subject; kept in memory, so that a flood of guesses does not reach the
    /// limiter.
    refused: Mutex<HashMap<String, Instant>>,
}

impl FailedAuthLimiter {
    pub(super) fn new(failures: SubjectLimiter) -> Self {
        Self {
            failures,
            refused: Mutex::default(),
        }
    }

    /// Fails if `subject` is blocked.
    ///
    /// # Errors
    /// Returns `RATE_LIMITED` while the subject is blocked.
    pub(super) fn check(&self, subject: Option<&str>) -> ApiResult<()> {
        let refused = self.refused.lock();
        let until = subject.and_then(|subject| refused.get(subject));
        let wait = until.and_then(|until| until.checked_duration_since(Instant::now()));
        match wait.filter(|wait| !wait.is_zero()) {
            Some(wait) => Err(self.failures.reject(wait)),
            None => Ok(()),
        }
    }

    /// Counts a failure of `subject`.
    ///
    /// # Errors
    /// Returns `RATE_LIMITED` if the quota is exceeded.
    pub(crate) async fn record_failure(&self, subject: Option<&str>) -> ApiResult<()> {
        self.check(subject)?;
        let verdict = self.failures.take_request(subject).await;
        let (Some(subject), Some(verdict)) = (subject, verdict) else {
            return Ok(());
        };
        if !verdict.retry_after.is_zero() {
            self.block_until(subject, Instant::now() + verdict.retry_after);
        }
        self.failures.check_verdict(verdict)
    }

    fn block_until(&self, subject: &str, until: Instant) {
        let mut refused = self.refused.lock();
        if refused.len() >= REFUSED_MAX {
            let now = Instant::now();
            refused.retain(|_, until| *until > now);
        }
        if refused.len() < REFUSED_MAX {
            refused.insert(subject.to_owned(), until);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use prometheus::{IntCounter, IntCounterVec, Opts};
    use switchboard_backends::limiter::{RequestQuota, embedded::EmbeddedLimiter};

    use super::*;
    use crate::limits::shared_limiter::SharedLimiter;

    fn limit(limit: u32, window: Duration) -> FailedAuthLimiter {
        let fallbacks = IntCounter::new("fallbacks", "test").unwrap();
        let refusals = IntCounterVec::new(Opts::new("refusals", "test"), &["bucket"]).unwrap();
        let limiter = SharedLimiter::new(Arc::new(EmbeddedLimiter::new()), fallbacks);
        let quota = RequestQuota { limit, window };
        let failures = SubjectLimiter::new("limiter", quota, &Arc::new(limiter), &refusals);
        FailedAuthLimiter::new(failures)
    }

    #[tokio::test]
    async fn last_failed_attempt_blocks_until_one_expires() {
        let limiter = limit(2, Duration::from_millis(200));
        for _ in 0..2 {
            assert!(limiter.check(Some("a")).is_ok());
            limiter.record_failure(Some("a")).await.unwrap();
        }
        let wait = limiter
            .check(Some("a"))
            .unwrap_err()
            .into_parts()
            .retry_after
            .unwrap();
        assert!(limiter.record_failure(Some("a")).await.is_err());
        assert!(
            limiter.check(Some("b")).is_ok(),
            "another subject is blocked"
        );
        tokio::time::sleep(wait).await;
        assert!(limiter.check(Some("a")).is_ok());
    }

    #[tokio::test]
    async fn zero_limit_and_unknown_subject_never_block() {
        let (none, one) = (
            limit(0, Duration::from_secs(60)),
            limit(1, Duration::from_secs(60)),
        );
        for _ in 0..3 {
            assert!(none.record_failure(Some("a")).await.is_ok() && none.check(Some("a")).is_ok());
            assert!(one.record_failure(None).await.is_ok() && one.check(None).is_ok());
        }
    }

    #[test]
    fn blocked_subjects_are_bounded_and_expire() {
        let limiter = limit(1, Duration::from_secs(60));
        let now = Instant::now();
        for number in 0..REFUSED_MAX {
            limiter.block_until(&number.to_string(), now + Duration::from_secs(60));
        }
        limiter.block_until("one more", now + Duration::from_secs(60));
        assert!(limiter.check(Some("one more")).is_ok());
        limiter
            .refused
            .lock()
            .values_mut()
            .for_each(|until| *until = now);
        limiter.block_until("one more", now + Duration::from_secs(60));
        assert!(limiter.check(Some("one more")).is_err());
        assert_eq!(limiter.refused.lock().len(), 1);
    }
}
