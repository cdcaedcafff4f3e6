//! Tries something of the outside world again until it works or its time is over.

use std::{fmt::Display, future::Future, time::Duration};

use rand::RngExt;
use tokio::time::{Instant, sleep};

use crate::config::WorkersConfig;

/// The pauses between tries: doubled each time, between two bounds, with full jitter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    min: Duration,
    max: Duration,
    tries: u32,
}

impl Backoff {
    pub(crate) const fn of_store(config: &WorkersConfig) -> Self {
        Self {
            min: Duration::from_millis(config.store_retry_delay_min_ms),
            max: Duration::from_millis(config.store_retry_delay_max_ms),
            tries: 0,
        }
    }

    /// The next pause.
    pub(crate) fn next(&mut self) -> Duration {
        let ceiling = self
            .min
            .saturating_mul(1 << self.tries.min(16))
            .min(self.max);
        self.tries += 1;
        rand::rng().random_range(self.min..=ceiling.max(self.min))
    }
}

/// Repeats `work` until it succeeds; none when `until` has passed. `what` names it in the log.
pub(crate) async fn until<T, E, F>(
    until: Instant,
    mut backoff: Backoff,
    what: &str,
    mut work: impl FnMut() -> F,
) -> Option<T>
where
    F: Future<Output = Result<T, E>>,
    E: Display,
{
    loop {
        let error = match work().await {
            Ok(value) => return Some(value),
            Err(error) => error,
        };
        let pause = backoff.next();
        if Instant::now() + pause >= until {
            tracing::error!(%error, "gave up to {what}");
            return None;
        }
        tracing::warn!(%error, "could not {what}, trying again");
        sleep(pause).await;
    }
}
