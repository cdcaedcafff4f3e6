//! One suite for both limiters: each test is a sentence of the contract.

use std::{
    future::{Ready, ready},
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::task::JoinSet;

use super::{RateLimitOutcome, RateLimiter, RequestQuota, embedded::EmbeddedLimiter};

/// Two ways to one limiter, as two processes have them.
type Pair = [Arc<dyn RateLimiter>; 2];

/// What the wait may be wrong by: the way there and back, and one slice.
const TOLERANCE: Duration = Duration::from_millis(300);

async fn take(limiter: &Arc<dyn RateLimiter>, quota: RequestQuota) -> RateLimitOutcome {
    limiter.take("key", quota).await.unwrap()
}

async fn exactly_the_limit_is_admitted_of_200_at_once(pair: Pair) {
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

async fn the_window_rolls_and_has_no_edge(pair: Pair) {
    // Half of the quota at the start, half at the middle: at the end of the first window only the first half is free.
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

async fn a_refused_request_costs_nothing(pair: Pair) {
    let quota = RequestQuota {
        limit: 2,
        window: Duration::from_secs(1),
    };
    take(&pair[0], quota).await;
    let last = take(&pair[0], quota).await;
    let deadline = Instant::now() + last.retry_after + TOLERANCE;
    // Asking all the time must not put the next admission off.
    while !take(&pair[0], quota).await.admitted {
        assert!(Instant::now() < deadline, "refusals were counted");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn the_wait_is_true(pair: Pair) {
    let quota = RequestQuota {
        limit: 1,
        window: Duration::from_millis(1_500),
    };
    assert!(take(&pair[0], quota).await.admitted);
    let refused = take(&pair[1], quota).await;
    assert!(!refused.admitted && refused.retry_after <= quota.window);
    let told = Instant::now() + refused.retry_after;
    tokio::time::sleep_until((told - TOLERANCE).into()).await;
    assert!(
        !take(&pair[0], quota).await.admitted,
        "admitted before the wait that was told"
    );
    tokio::time::sleep_until(told.into()).await;
    assert!(
        take(&pair[0], quota).await.admitted,
        "refused after the wait that was told"
    );
}

async fn the_verdict_counts_down_and_tells_the_reset(pair: Pair) {
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

async fn a_key_that_was_silent_for_a_window_has_its_whole_quota(pair: Pair) {
    let quota = RequestQuota {
        limit: 5,
        window: Duration::from_secs(1),
    };
    for _ in 0..5 {
        take(&pair[0], quota).await;
    }
    // Silence is what this is about, so the time itself is the condition.
    tokio::time::sleep(quota.window + Duration::from_millis(50)).await;
    assert_eq!(take(&pair[0], quota).await.remaining, 4);
}

async fn two_keys_do_not_touch_each_other(pair: Pair) {
    let quota = RequestQuota {
        limit: 1,
        window: Duration::from_secs(60),
    };
    assert!(pair[0].take("a", quota).await.unwrap().admitted);
    assert!(!pair[0].take("a", quota).await.unwrap().admitted);
    assert!(pair[0].take("b", quota).await.unwrap().admitted);
}

async fn a_very_high_limit_is_exact_too(pair: Pair) {
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

async fn it_answers_that_it_is_there(pair: Pair) {
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
                exactly_the_limit_is_admitted_of_200_at_once,
                the_window_rolls_and_has_no_edge,
                a_refused_request_costs_nothing,
                the_wait_is_true,
                the_verdict_counts_down_and_tells_the_reset,
                a_key_that_was_silent_for_a_window_has_its_whole_quota,
                two_keys_do_not_touch_each_other,
                a_very_high_limit_is_exact_too,
                it_answers_that_it_is_there,
            );
        }
    };
}

sentences!(embedded, super::embedded_pair());
#[cfg(feature = "real-services")]
sentences!(redis, super::redis_pair());

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
mod redis_alone {
    use std::time::Duration;

    use crate::{
        limiter::{RateLimiter, RequestQuota, redis::RedisLimiter},
        redis_link::{RedisLink, test_config, test_namespace},
    };

    #[tokio::test]
    async fn a_silent_key_leaves_nothing_in_redis() {
        let (config, namespace) = (test_config(), test_namespace());
        let limiter = RedisLimiter::connect(&config, &namespace).await.unwrap();
        limiter
            .take(
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
