//! The rate limiter: a maximum number of requests per key in any rolling window.
//!
//! # Contract
//! - **Exactness**: in any window of the quota's length at most `limit` requests are admitted,
//!   across all processes that share the limiter and for any concurrency.
//! - **Rejection is free**: a rejected request does not count.
//! - **Retry time**: a request after `retry_after` of silence is admitted, and none is a second
//!   before it.
//! - **Clock**: the clock of the limiter decides, never that of a caller.
//! - **Expiry**: a key that was idle for a window is dropped.

#[cfg(test)]
mod conformance;
pub mod embedded;
pub mod redis;
mod window;

use std::time::Duration;

use async_trait::async_trait;

/// A rate limiter.
#[async_trait]
pub trait RateLimiter: Send + Sync {
    /// Admits or rejects one request of `key`.
    async fn take_request(
        &self,
        key: &str,
        quota: RequestQuota,
    ) -> Result<RateLimitOutcome, RateLimiterError>;

    /// Fails if the limiter does not respond.
    async fn check(&self) -> Result<(), RateLimiterError>;
}

/// A maximum number of requests in a rolling window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestQuota {
    /// Maximum number of requests in the window.
    pub limit: u32,
    /// Length of the window.
    pub window: Duration,
}

/// The decision about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimitOutcome {
    /// `true` if the request may pass.
    pub admitted: bool,
    /// Requests that would be admitted directly after this one.
    pub remaining: u32,
    /// Time until the next request is admitted; zero if one would be admitted now.
    pub retry_after: Duration,
    /// Time until the whole quota is free again without further requests.
    pub reset_after: Duration,
}

/// An error of the limiter.
#[derive(Debug, thiserror::Error)]
pub enum RateLimiterError {
    /// The limiter cannot be reached.
    #[error("limiter unavailable: {0}")]
    Unavailable(String),
}
