//! The rate limiter inside one process.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use parking_lot::Mutex;

use super::{
    RateLimitOutcome, RateLimiter, RateLimiterError, RequestQuota,
    window::{ClockMicros, RollingWindow, to_micros},
};

/// Interval at which idle keys are dropped.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);

/// Rate limits within this process.
pub struct EmbeddedLimiter {
    born: Instant,
    keys: Mutex<KeyWindows>,
}

#[derive(Default)]
struct KeyWindows {
    /// Rolling window of each key, with the length it was last used with.
    windows: HashMap<String, (Duration, RollingWindow)>,
    swept_at: ClockMicros,
}

impl EmbeddedLimiter {
    /// Creates a limiter without requests.
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
    async fn take_request(
        &self,
        key: &str,
        quota: RequestQuota,
    ) -> Result<RateLimitOutcome, RateLimiterError> {
        let mut keys = self.keys.lock();
        let now = to_micros(self.born.elapsed());
        keys.sweep(now);
        Ok(keys.take_request(key, now, quota))
    }

    async fn check(&self) -> Result<(), RateLimiterError> {
        Ok(())
    }
}

impl KeyWindows {
    fn take_request(
        &mut self,
        key: &str,
        now: ClockMicros,
        quota: RequestQuota,
    ) -> RateLimitOutcome {
        // A known key needs no allocation.
        if let Some((length, window)) = self.windows.get_mut(key) {
            *length = quota.window;
            return window.take_request(now, quota);
        }
        let (_, window) = self
            .windows
            .entry(key.to_owned())
            .or_insert((quota.window, RollingWindow::default()));
        window.take_request(now, quota)
    }

    fn sweep(&mut self, now: ClockMicros) {
        if now.saturating_sub(self.swept_at) >= to_micros(SWEEP_INTERVAL) {
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
    fn idle_key_is_dropped_and_a_busy_one_kept() {
        let quota = RequestQuota {
            limit: 5,
            window: Duration::from_secs(60),
        };
        let mut keys = KeyWindows::default();
        keys.take_request("silent", 0, quota);
        keys.take_request("busy", 50_000_000, quota);
        keys.sweep(70_000_000);
        assert_eq!(keys.windows.keys().collect::<Vec<_>>(), ["busy"]);
    }
}
