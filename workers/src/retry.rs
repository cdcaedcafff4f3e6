//! Repeats calls to stores and brokers until they succeed or a deadline passes.

use std::{fmt::Display, future::Future, time::Duration};

use rand::RngExt;
use switchboard_backends::{StoreError, bus::BusError};
use tokio::time::{Instant, sleep};

use crate::config::WorkersConfig;

/// An error of work that is tried again.
pub(crate) trait RetriedError: Display {
    /// Returns true if another try would fail in the same way.
    fn is_final(&self) -> bool;
}

impl RetriedError for StoreError {
    fn is_final(&self) -> bool {
        matches!(self, Self::Refused(_))
    }
}

impl RetriedError for BusError {
    fn is_final(&self) -> bool {
        false
    }
}

/// Pauses between tries: exponential between two bounds, with full jitter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryDelays {
    min: Duration,
    max: Duration,
    tries: u32,
}

impl RetryDelays {
    /// Creates the pauses that the configuration sets for stores.
    pub(crate) const fn of_store(config: &WorkersConfig) -> Self {
        Self {
            min: Duration::from_millis(config.store_retry_delay_min_ms),
            max: Duration::from_millis(config.store_retry_delay_max_ms),
            tries: 0,
        }
    }

    /// Returns the next pause.
    fn next_delay(&mut self) -> Duration {
        let ceiling = longest_pause(self.min, self.max, self.tries);
        self.tries += 1;
        rand::rng().random_range(self.min..=ceiling.max(self.min))
    }
}

/// Returns the longest pause before a try, which doubles with each one that failed.
pub(crate) fn longest_pause(min: Duration, max: Duration, failed_tries: u32) -> Duration {
    min.saturating_mul(1 << failed_tries.min(16)).min(max)
}

/// Repeats `work` until it succeeds. Returns `None` if the next try would be after `deadline`.
/// `task` names the work in the log.
pub(crate) async fn retry_until<T, E, F>(
    deadline: Instant,
    mut delays: RetryDelays,
    task: &str,
    mut work: impl FnMut() -> F,
) -> Option<T>
where
    F: Future<Output = Result<T, E>>,
    E: RetriedError,
{
    loop {
        let error = match work().await {
            Ok(value) => return Some(value),
            Err(error) => error,
        };
        let delay = delays.next_delay();
        if error.is_final() || Instant::now() + delay >= deadline {
            tracing::error!(%error, task, "gave up retrying");
            return None;
        }
        tracing::warn!(%error, task, "retrying after an error");
        sleep(delay).await;
    }
}
