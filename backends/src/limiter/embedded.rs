//! The limiter inside one process.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;

use super::{
    RateLimitOutcome, RateLimiter, RateLimiterError, RequestQuota,
    window::{Micros, RollingWindow, micros},
};

/// How often silent keys are forgotten.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);

/// Counts the requests of this process.
pub struct EmbeddedLimiter {
    born: Instant,
    keys: Mutex<Keys>,
}

#[derive(Default)]
struct Keys {
    /// Each key with the window that it was last asked about.
    windows: HashMap<String, (Duration, RollingWindow)>,
    swept_at: Micros,
}

impl EmbeddedLimiter {
    /// A limiter that has seen no request.
    pub fn new() -> Self {
        Self {
            born: Instant::now(),
            keys: Mutex::default(),
        }
    }
}

impl Default for EmbeddedLimiter {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl RateLimiter for EmbeddedLimiter {
    async fn take(
        &self,
        key: &str,
        quota: RequestQuota,
    ) -> Result<RateLimitOutcome, RateLimiterError> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let now = micros(self.born.elapsed());
        keys.sweep(now);
        Ok(keys.take(key, now, quota))
    }

    async fn check(&self) -> Result<(), RateLimiterError> {
        Ok(())
    }
}

impl Keys {
    fn take(&mut self, key: &str, now: Micros, quota: RequestQuota) -> RateLimitOutcome {
        // A known key costs no allocation.
        if let Some((length, window)) = self.windows.get_mut(key) {
            *length = quota.window;
            return window.take(now, quota);
        }
        let (_, window) = self
            .windows
            .entry(key.to_owned())
            .or_insert((quota.window, RollingWindow::default()));
        window.take(now, quota)
    }

    fn sweep(&mut self, now: Micros) {
        if now.saturating_sub(self.swept_at) >= micros(SWEEP_INTERVAL) {
            self.swept_at = now;
            self.windows
                .retain(|_, (length, window)| !window.is_silent(now, *length));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_key_is_forgotten_and_a_busy_one_is_not() {
        let quota = RequestQuota {
            limit: 5,
            window: Duration::from_secs(60),
        };
        let mut keys = Keys::default();
        keys.take("silent", 0, quota);
        keys.take("busy", 50_000_000, quota);
        keys.sweep(70_000_000);
        assert_eq!(keys.windows.keys().collect::<Vec<_>>(), ["busy"]);
    }
}
