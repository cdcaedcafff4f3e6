//! Conformance tests of the rate limiter, run on both backends.

use std::{
    future::{Ready, ready},
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::task::JoinSet;

use super::{RateLimitOutcome, RateLimiter, RequestQuota, embedded::EmbeddedLimiter};

/// Two handles of one limiter, like those of two processes.
type Pair = [Arc<dyn RateLimiter>; 2];

/// Tolerance of a retry time: a round trip and one slice.
const TOLERANCE: Duration = Duration::from_millis(300);

async fn take(limiter: &Arc<dyn RateLimiter>, quota: RequestQuota) -> RateLimitOutcome {
    limiter.take_request("key", quota).await.unwrap()
}

async fn concurrent_requests_are_admitted_up_to_the_limit(pair: Pair) {
    let quota = RequestQuota {
        limit: 60,
        window: Duration::from_secs(60),
    };
    let mut takes = JoinSet::new();
    for request in 0..200 {
        let limiter = Arc::clone(&pair[request % 2]);
        takes.spawn(async move { take(&limiter, quota).await.admitted });
    }
    let admitted = takes
        .join_all()
        .await
        .into_iter()
        .filter(|admitted| *admitted)
        .count();
    assert_eq!(admitted, 60);
}

async fn window_rolls_without_edges(pair: Pair) {
    // Half of the quota is used at the start and half in the middle, so that only the first half is
    // free at the end of the first window.
    let quota = RequestQuota {
        limit: 4,
        window: Duration::from_secs(2),
    };
    let start = Instant::now();
    let first = [
        take(&pair[0], quota).await.admitted,
        take(&pair[0], quota).await.admitted,
    ];
    let middle = start + Duration::from_secs(1);
    tokio::time::sleep_until(middle.into()).await;
    let second = [
        take(&pair[0], quota).await.admitted,
        take(&pair[1], quota).await.admitted,
    ];
    assert_eq!((first, second), ([true, true], [true, true]));
    let refused = take(&pair[0], quota).await;
    tokio::time::sleep(refused.retry_after + Duration::from_millis(100)).await;
    let third = [
        take(&pair[0], quota).await.admitted,
        take(&pair[1], quota).await.admitted,
        take(&pair[0], quota).await.admitted,
    ];
    assert_eq!(third, [true, true, false]);
}

async fn rejected_request_does_not_count(pair: Pair) {
    let quota = RequestQuota {
        limit: 2,
        window: Duration::from_secs(1),
    };
    take(&pair[0], quota).await;
    let last = take(&pair[0], quota).await;
    let deadline = Instant::now() + last.retry_after + TOLERANCE;
    // Rejected requests must not delay the next admission.
    while !take(&pair[0], quota).await.admitted {
        assert!(Instant::now() < deadline, "rejected requests were counted");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn request_is_admitted_after_its_retry_time(pair: Pair) {
    let quota = RequestQuota {
        limit: 1,
        window: Duration::from_millis(1_500),
    };
    assert!(take(&pair[0], quota).await.admitted);
    let refused = take(&pair[1], quota).await;
    assert!(!refused.admitted && refused.retry_after <= quota.window);
    let retry_at = Instant::now() + refused.retry_after;
    tokio::time::sleep_until((retry_at - TOLERANCE).into()).await;
    assert!(
        !take(&pair[0], quota).await.admitted,
        "admitted before its retry time"
    );
    tokio::time::sleep_until(retry_at.into()).await;
    assert!(
        take(&pair[0], quota).await.admitted,
        "rejected after its retry time"
    );
}

async fn outcome_reports_remaining_requests_and_reset(pair: Pair) {
    let quota = RequestQuota {
        limit: 3,
        window: Duration::from_secs(60),
    };
    for remaining in [2, 1, 0] {
        let verdict = take(&pair[0], quota).await;
        assert_eq!((verdict.admitted, verdict.remaining), (true, remaining));
        assert_eq!(verdict.retry_after.is_zero(), remaining > 0);
        assert!(
            verdict.reset_after > quota.window - TOLERANCE && verdict.reset_after <= quota.window
        );
    }
}

async fn idle_key_has_its_whole_quota_again(pair: Pair) {
    let quota = RequestQuota {
        limit: 5,
        window: Duration::from_secs(1),
    };
    for _ in 0..5 {
        take(&pair[0], quota).await;
    }
    // The test is about idle time, which therefore has to pass.
    tokio::time::sleep(quota.window + Duration::from_millis(50)).await;
    assert_eq!(take(&pair[0], quota).await.remaining, 4);
}

async fn keys_are_limited_independently(pair: Pair) {
    let quota = RequestQuota {
        limit: 1,
        window: Duration::from_secs(60),
    };
    assert!(pair[0].take_request("a", quota).await.unwrap().admitted);
    assert!(!pair[0].take_request("a", quota).await.unwrap().admitted);
    assert!(pair[0].take_request("b", quota).await.unwrap().admitted);
}

async fn very_high_limit_is_exact(pair: Pair) {
    let quota = RequestQuota {
        limit: 10_000,
        window: Duration::from_secs(60),
    };
    let mut takes = JoinSet::new();
    for task in 0..20 {
        let limiter = Arc::clone(&pair[task % 2]);
        takes.spawn(async move {
            let mut admitted = 0;
            for _ in 0..600 {
                admitted += usize::from(take(&limiter, quota).await.admitted);
            }
            admitted
        });
    }
    assert_eq!(takes.join_all().await.into_iter().sum::<usize>(), 10_000);
}

async fn limiter_check_succeeds(pair: Pair) {
    pair[0].check().await.unwrap();
}

macro_rules! suite {
    ($pair:expr, $($sentence:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $sentence() {
                super::$sentence($pair.await).await;
            }
        )*
    };
}

macro_rules! sentences {
    ($module:ident, $pair:expr) => {
        mod $module {
            suite!(
                $pair,
                concurrent_requests_are_admitted_up_to_the_limit,
                window_rolls_without_edges,
                rejected_request_does_not_count,
                request_is_admitted_after_its_retry_time,
                outcome_reports_remaining_requests_and_reset,
                idle_key_has_its_whole_quota_again,
                keys_are_limited_independently,
                very_high_limit_is_exact,
                limiter_check_succeeds,
            );
        }
    };
}

sentences!(embedded, super::embedded_pair());
#[cfg(feature = "real-services")]
sentences!(real_redis, super::redis_pair());

fn embedded_pair() -> Ready<Pair> {
    let limiter: Arc<dyn RateLimiter> = Arc::new(EmbeddedLimiter::new());
    ready([Arc::clone(&limiter), limiter])
}

#[cfg(feature = "real-services")]
async fn redis_pair() -> Pair {
    let config = crate::redis_link::test_config();
    let namespace = crate::redis_link::test_namespace();
    let first = super::redis::RedisLimiter::connect(&config, &namespace)
        .await
        .unwrap();
    let second = super::redis::RedisLimiter::connect(&config, &namespace)
        .await
        .unwrap();
    [Arc::new(first), Arc::new(second)]
}

#[cfg(feature = "real-services")]
mod real_redis_alone {
    use std::time::Duration;

    use crate::{
        limiter::{RateLimiter, RequestQuota, redis::RedisLimiter},
        redis_link::{RedisLink, test_config, test_namespace},
    };

    #[tokio::test]
    async fn idle_key_is_deleted_from_redis() {
        let (config, namespace) = (test_config(), test_namespace());
        let limiter = RedisLimiter::connect(&config, &namespace).await.unwrap();
        limiter
            .take_request(
                "key",
                RequestQuota {
                    limit: 5,
                    window: Duration::from_secs(1),
                },
            )
            .await
            .unwrap();
        let link = RedisLink::connect(&config, &namespace).await.unwrap();
        let mut exists = redis::cmd("EXISTS");
        exists.arg(link.key("limit:{key}"));
        assert!(link.query::<bool>(&exists).await.unwrap());
        let deadline = std::time::Instant::now() + Duration::from_secs(3);
        while link.query::<bool>(&exists).await.unwrap() {
            assert!(
                std::time::Instant::now() < deadline,
                "the key outlived its window"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
