//! The limiter: how many requests a key may make in any rolling window.
//!
//! # Contract
//! - **Exactness**: in any window of the quota's length at most `limit` requests are admitted, across all processes that
//!   share the limiter, whatever they do at once.
//! - **Refusal costs nothing**: a refused request does not count.
//! - **Truth of the wait**: a request after `retry_after` of silence is admitted, and none is a second before it.
//! - **Clock**: the limiter's own clock decides, never a caller's.
//! - **Expiry**: a key that was silent for a window is forgotten.

#[cfg(test)]
mod conformance;
pub mod embedded;
pub mod redis;
mod window;

use std::time::Duration;

use async_trait::async_trait;

/// Counts requests.
#[async_trait]
pub trait RateLimiter: Send + Sync {
    /// Admits or refuses one request under `key`.
    async fn take(
        &self,
        key: &str,
        quota: RequestQuota,
    ) -> Result<RateLimitOutcome, RateLimiterError>;

    /// Whether the limiter answers.
    async fn check(&self) -> Result<(), RateLimiterError>;
}

/// So many requests in so long a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestQuota {
    /// Requests.
    pub limit: u32,
    /// Length of the window.
    pub window: Duration,
}

/// Whether a request may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimitOutcome {
    /// Whether it may.
    pub admitted: bool,
    /// Requests that would be admitted right after this one.
    pub remaining: u32,
    /// Until the next request is admitted; zero when it would be now.
    pub retry_after: Duration,
    /// Until the whole quota is free again, if nothing more comes.
    pub reset_after: Duration,
}

/// Why the limiter did not answer.
#[derive(Debug, thiserror::Error)]
pub enum RateLimiterError {
    /// It cannot be reached.
    #[error("limiter unavailable: {0}")]
    Unavailable(String),
}
