//! Rate limiter shared by all processes, with a local fallback: while the shared one is unavailable
//! each process grants the full limit, and no request waits for a timeout.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use prometheus::IntCounter;
use switchboard_backends::limiter::{
    RateLimitOutcome, RateLimiter, RateLimiterError, RequestQuota, embedded::EmbeddedLimiter,
};
use tokio::sync::Notify;

/// Interval of probes while the shared limiter is unavailable.
const PROBE_INTERVAL: Duration = Duration::from_millis(250);
/// Request of a probe. It uses the same script as real requests, because a server can answer a ping
/// and still reject scripts.
const PROBE: (&str, RequestQuota) = (
    "probe",
    RequestQuota {
        limit: 1,
        window: Duration::from_secs(1),
    },
);

/// A limiter that always returns a verdict.
pub(super) struct SharedLimiter {
    shared: Arc<dyn RateLimiter>,
    local: EmbeddedLimiter,
    is_unavailable: AtomicBool,
    lost: Notify,
    fallbacks: IntCounter,
}

impl SharedLimiter {
    pub(super) fn new(shared: Arc<dyn RateLimiter>, fallbacks: IntCounter) -> Self {
        Self {
            shared,
            local: EmbeddedLimiter::new(),
            is_unavailable: AtomicBool::new(false),
            lost: Notify::new(),
            fallbacks,
        }
    }

    /// Counts one request under `key`; locally while the shared limiter is unavailable.
    pub(super) async fn take_request(&self, key: &str, quota: RequestQuota) -> RateLimitOutcome {
        if !self.is_unavailable.load(Ordering::Acquire) {
            match self.shared.take_request(key, quota).await {
                Ok(verdict) => return verdict,
                Err(error) => self.mark_unavailable(&error),
            }
        }
        self.fallbacks.inc();
        // The local limiter never fails; if it did, requests would be granted.
        let granted = RateLimitOutcome {
            admitted: true,
            remaining: quota.limit.saturating_sub(1),
            retry_after: Duration::ZERO,
            reset_after: quota.window,
        };
        self.local.take_request(key, quota).await.unwrap_or(granted)
    }

    /// Probes the shared limiter while it is unavailable; never returns. Requests do not probe,
    /// because each would wait for a timeout.
    pub(super) async fn watch(&self) {
        loop {
            self.lost.notified().await;
            while self.shared.take_request(PROBE.0, PROBE.1).await.is_err() {
                tokio::time::sleep(PROBE_INTERVAL).await;
            }
            self.is_unavailable.store(false, Ordering::Release);
            tracing::info!("shared limiter available again");
        }
    }

    fn mark_unavailable(&self, error: &RateLimiterError) {
        if !self.is_unavailable.swap(true, Ordering::AcqRel) {
            tracing::warn!(%error, "shared limiter unavailable, counting locally");
            self.lost.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use switchboard_backends::testing::{Fault, Faulty};
    use tokio::{task::JoinSet, time::Instant};

    use super::*;

    const QUOTA: RequestQuota = RequestQuota {
        limit: 2,
        window: Duration::from_secs(60),
    };
    /// Delay before a call of the unavailable limiter fails.
    const STALL: Duration = Duration::from_millis(500);

    fn limiter() -> (Arc<Faulty<EmbeddedLimiter>>, Arc<SharedLimiter>, IntCounter) {
        let backend = Arc::new(Faulty::new(EmbeddedLimiter::new()));
        let fallbacks = IntCounter::new("fallbacks", "test").unwrap();
        let shared = SharedLimiter::new(Arc::clone(&backend) as _, fallbacks.clone());
        (backend, Arc::new(shared), fallbacks)
    }

    #[tokio::test(start_paused = true)]
    async fn outage_delays_one_request_and_grants_the_local_limit() {
        let (backend, limiter, fallbacks) = limiter();
        backend.faults.inject("take_request", Fault::Stall(STALL));
        let began = Instant::now();
        let mut admitted = Vec::new();
        for _ in 0..4 {
            admitted.push(limiter.take_request("key", QUOTA).await.admitted);
        }
        assert_eq!(admitted, [true, true, false, false]);
        assert_eq!(began.elapsed(), STALL);
        assert_eq!(backend.faults.call_count("take_request"), 1);
        assert_eq!(fallbacks.get(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn shared_limiter_is_used_again_after_its_recovery() {
        let (backend, limiter, fallbacks) = limiter();
        let mut watch = JoinSet::new();
        let watched = Arc::clone(&limiter);
        watch.spawn(async move { watched.watch().await });
        backend.faults.inject("take_request", Fault::Stall(STALL));
        limiter.take_request("key", QUOTA).await;
        backend.faults.clear("take_request");
        let counted = async {
            while limiter.is_unavailable.load(Ordering::SeqCst) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(STALL + 2 * PROBE_INTERVAL, counted)
            .await
            .expect("the limiter recovers");
        let before = fallbacks.get();
        assert_eq!(limiter.take_request("key", QUOTA).await.remaining, 1);
        assert_eq!(fallbacks.get(), before);
    }
}
