//! Rate limits during a Redis outage: each ingress enforces the full limit alone.

use std::time::{Duration, Instant};

use serde_json::json;

use super::super::{own_services::OwnRedis, start_cluster};
use crate::support::{Client, OrganizationDocument, PATIENCE, TestService, eventually};

const LIMIT: usize = 5;
/// Longest duration of a request, except for the first ones of the outage.
const STALL: Duration = Duration::from_millis(400);
const HEALTHY_READS: usize = 10;

async fn fallbacks(service: &TestService) -> f64 {
    let mut sum = 0.0;
    for (_, url) in service.ops_urls() {
        let metrics = Client::new(&url).get("/metrics").await.text;
        let line = metrics
            .lines()
            .find_map(|line| line.strip_prefix("switchboard_limiter_fallbacks_total "));
        sum += line.map_or(0.0, |value| value.parse().unwrap());
    }
    sum
}

#[tokio::test]
async fn ingresses_limit_alone_without_redis_and_together_after_it() {
    let redis = OwnRedis::start();
    let service = start_cluster(&[("SWITCHBOARD__REDIS__URL", &redis.url())]).await;
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .key_with("healthy", json!({}))
        .key_with("outage", json!({"limits": {"configPerMinute": LIMIT}}))
        .key_with("after", json!({"limits": {"configPerMinute": LIMIT}}))
        .apply(&service)
        .await;
    let path = organization.path("");
    let urls = service.public_urls();
    let read = async |key: &str, number: usize| {
        let client = Client::new(&urls[number % urls.len()]).with_key(organization.key_text(key));
        let began = Instant::now();
        (client.get(&path).await.status, began.elapsed())
    };
    let mut healthy = Duration::ZERO;
    for number in 0..HEALTHY_READS {
        healthy = healthy.max(read("healthy", number).await.1);
    }
    let stalled = 4 * healthy + STALL;
    redis.kill();
    let mut slow = 0;
    let mut admitted = 0;
    for number in 0..40 {
        let (status, took) = read("outage", number).await;
        assert!([200, 429].contains(&status), "{status}");
        admitted += usize::from(status == 200);
        slow += usize::from(took > stalled);
    }
    assert_eq!(admitted, LIMIT * urls.len());
    assert!(
        slow <= urls.len(),
        "{slow} requests waited for a limiter that is away"
    );
    assert!(fallbacks(&service).await >= 40.0);

    redis.restart();
    eventually("the limiter is asked again", PATIENCE, async || {
        let before = fallbacks(&service).await;
        for url in &urls {
            organization.client_at(url).get(&path).await;
        }
        (fallbacks(&service).await <= before).then_some(())
    })
    .await;
    let mut admitted = 0;
    for number in 0..4 * LIMIT {
        admitted += usize::from(read("after", number).await.0 == 200);
    }
    assert_eq!(admitted, LIMIT, "one window for all ingresses again");
}
