//! The rate limiter on Redis: one script per request, so that any number of processes share one
//! exact window.

use std::time::Duration;

use async_trait::async_trait;
use redis::Script;

use super::{
    RateLimitOutcome, RateLimiter, RateLimiterError, RequestQuota,
    window::{slice_length, to_micros},
};
use crate::{
    config::RedisConfig,
    redis_link::{RedisLink, RedisLinkError},
};

/// Rate limits across all processes of an installation.
pub struct RedisLimiter {
    link: RedisLink,
    take: Script,
}

impl RedisLimiter {
    /// Opens the limiter. Redis need not be reachable yet.
    ///
    /// # Errors
    /// The URL is invalid.
    pub async fn connect(config: &RedisConfig, namespace: &str) -> Result<Self, RateLimiterError> {
        let link = RedisLink::connect(config, namespace).await?;
        Ok(Self {
            link,
            take: Script::new(include_str!("redis/take.lua")),
        })
    }
}

#[async_trait]
impl RateLimiter for RedisLimiter {
    async fn take_request(
        &self,
        key: &str,
        quota: RequestQuota,
    ) -> Result<RateLimitOutcome, RateLimiterError> {
        let mut call = self.take.key(self.link.key(&format!("limit:{{{key}}}")));
        call.arg(quota.limit)
            .arg(to_micros(quota.window))
            .arg(slice_length(quota));
        // The first request after an outage may count twice: this admits one less, never one more.
        let (admitted, remaining, retry_after, reset_after) = self.link.invoke(&call).await?;
        Ok(RateLimitOutcome {
            admitted,
            remaining,
            retry_after: Duration::from_micros(retry_after),
            reset_after: Duration::from_micros(reset_after),
        })
    }

    async fn check(&self) -> Result<(), RateLimiterError> {
        Ok(self.link.check().await?)
    }
}

impl From<RedisLinkError> for RateLimiterError {
    fn from(error: RedisLinkError) -> Self {
        Self::Unavailable(error.0)
    }
}
