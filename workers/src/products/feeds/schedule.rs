//! Due times of feeds, and the claim of one process to each fetch. The name of a claim follows from
//! the previous fetch, and the process that records it first makes the fetch.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use switchboard_backends::{
    products::{FeedRefresh, ProductsStatus},
    relay::{KeyValueMemory, RelayError},
};
use switchboard_schemas::{
    agent::ProductFeed,
    ids::{AgentId, RequestId},
    time::{Timestamp, whole_millis},
};

/// Pause after the end of a failed fetch. Without it, a feed that hangs until its timeout would be
/// due again at once.
const RETRY_AFTER: Duration = Duration::from_secs(5 * 60);
const SECONDS_PER_MINUTE: u64 = 60;
const SEPARATOR: char = ' ';

/// Returns the time since which a feed is due; none if it is not due yet.
pub(super) fn due_since(
    status: &ProductsStatus,
    feed: &ProductFeed,
    now: Timestamp,
) -> Option<Timestamp> {
    let Some(last) = last_of(status, feed) else {
        return Some(Timestamp::default());
    };
    let due = match last.error {
        None => last.attempted_at.after(Duration::from_secs(
            u64::from(feed.every_minutes) * SECONDS_PER_MINUTE,
        )),
        Some(_) => last
            .ended_at
            .unwrap_or(last.attempted_at)
            .after(RETRY_AFTER),
    };
    match status
        .asked_at
        .filter(|asked_at| *asked_at > last.attempted_at)
    {
        Some(asked_at) => Some(asked_at.min(due)),
        None => Some(due).filter(|due| *due <= now),
    }
}

/// Returns the last fetch of this feed's URL.
pub(super) fn last_of<'a>(
    status: &'a ProductsStatus,
    feed: &ProductFeed,
) -> Option<&'a FeedRefresh> {
    status
        .refresh
        .as_ref()
        .filter(|refresh| refresh.url == feed.url)
}

/// A fetch that a process wants to make.
pub(super) struct FetchAttempt<'a> {
    pub(super) agent: &'a AgentId,
    pub(super) feed: &'a ProductFeed,
    pub(super) status: &'a ProductsStatus,
    pub(super) due_since: Timestamp,
    /// Longest time that a fetch takes.
    pub(super) time_max: Duration,
}

impl FetchAttempt<'_> {
    /// Returns true if this process has the claim to the fetch. The claim of a process that died
    /// blocks others for at most twice `time_max`.
    pub(super) async fn claim_fetch(
        &self,
        relay: &dyn KeyValueMemory,
        process: &RequestId,
    ) -> Result<bool, RelayError> {
        let now = Timestamp::now();
        let current = self.time_slot(now);
        // A process that claimed the previous slot at its end may still be fetching.
        for slot in [current.checked_sub(1), Some(current)]
            .into_iter()
            .flatten()
        {
            let own = format!("{}{SEPARATOR}{process}", now.micros());
            let noted = relay.get_or_insert(&self.claim_name(slot), &own).await?;
            if noted != own && (is_recent(&noted, now, self.time_max) || slot == current) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn time_slot(&self, now: Timestamp) -> u64 {
        now.millis_since(self.due_since) / whole_millis(self.time_max * 2).max(1)
    }

    fn claim_name(&self, slot: u64) -> String {
        let mut hasher = DefaultHasher::new();
        self.feed.url.hash(&mut hasher);
        // The last fetch of any URL counts, so that a URL that was changed and changed back is
        // fetched again.
        let last = self
            .status
            .refresh
            .as_ref()
            .map_or(0, |last| last.attempted_at.micros());
        let asked = self.status.asked_at.map_or(0, Timestamp::micros);
        format!(
            "product-feed:{}:{:x}:{last}:{asked}:{slot}",
            self.agent,
            hasher.finish()
        )
    }
}

fn is_recent(noted: &str, now: Timestamp, time_max: Duration) -> bool {
    let at = noted
        .split(SEPARATOR)
        .next()
        .and_then(|at| at.parse().ok())
        .unwrap_or_default();
    now.millis_since(Timestamp::from_micros(at)) < whole_millis(time_max)
}

#[cfg(test)]
mod tests {
    use switchboard_backends::{
        products::replacement::ReplacementConsent, relay::embedded::EmbeddedRelay,
    };
    use switchboard_schemas::{agent::FeedFormat, ids::OrgId, secret::InstallationSecret};

    use super::*;

    const MINUTE: i64 = 60_000_000;

    fn feed(url: &str) -> ProductFeed {
        ProductFeed {
            url: url.into(),
            every_minutes: 10,
            format: FeedFormat::Auto,
        }
    }

    fn fetched(at: i64, error: Option<&str>) -> ProductsStatus {
        let refresh = FeedRefresh {
            url: "https://a.example".into(),
            attempted_at: Timestamp::from_micros(at),
            ended_at: Some(Timestamp::from_micros(at + MINUTE)),
            succeeded_at: None,
            error: error.map(Into::into),
            etag: None,
            last_modified: None,
            consent: ReplacementConsent::default(),
        };
        ProductsStatus {
            kept: None,
            refresh: Some(refresh),
            asked_at: None,
        }
    }

    #[test]
    fn feed_is_due_when_new_old_failed_or_requested() {
        let is_due = |status: &ProductsStatus, url: &str, minutes: i64| {
            due_since(status, &feed(url), Timestamp::from_micros(minutes * MINUTE)).is_some()
        };
        let (fine, failed) = (
            fetched(100 * MINUTE, None),
            fetched(100 * MINUTE, Some("away")),
        );
        let asked = ProductsStatus {
            asked_at: Some(Timestamp::from_micros(101 * MINUTE)),
            ..fine.clone()
        };
        let asked_before = ProductsStatus {
            asked_at: Some(Timestamp::from_micros(99 * MINUTE)),
            ..fine.clone()
        };
        for (status, url, minutes, expected) in [
            (&ProductsStatus::default(), "https://a.example", 101, true),
            (&fine, "https://a.example", 109, false),
            (&fine, "https://a.example", 110, true),
            (&fine, "https://b.example", 101, true),
            (&failed, "https://a.example", 105, false),
            (&failed, "https://a.example", 106, true),
            (&asked, "https://a.example", 101, true),
            (&asked_before, "https://a.example", 101, false),
        ] {
            assert_eq!(
                is_due(status, url, minutes),
                expected,
                "{status:?} {url} {minutes}"
            );
        }
    }

    #[test]
    fn failed_feed_is_retried_after_five_minutes() {
        let every_minute = ProductFeed {
            every_minutes: 1,
            ..feed("https://a.example")
        };
        let status = fetched(100 * MINUTE, Some("the feed did not arrive in time"));
        for (minutes, expected) in [(102, None), (105, None), (106, Some(106)), (110, Some(106))] {
            let since = due_since(
                &status,
                &every_minute,
                Timestamp::from_micros(minutes * MINUTE),
            );
            assert_eq!(
                since,
                expected.map(|due: i64| Timestamp::from_micros(due * MINUTE)),
                "{minutes}"
            );
        }
    }

    #[tokio::test]
    async fn fetch_is_taken_over_from_a_dead_process() {
        let relay = EmbeddedRelay::open(None).unwrap();
        let secret = InstallationSecret::from_bytes([1; 32]);
        let agent = AgentId::derive(&secret, &OrgId::derive(&secret, "acme"), "shop");
        let (feed, status) = (feed("https://a.example"), ProductsStatus::default());
        let attempt = |time_max, due_since| FetchAttempt {
            agent: &agent,
            feed: &feed,
            status: &status,
            due_since,
            time_max,
        };
        let long = attempt(Duration::from_secs(60), Timestamp::now());
        let mut takers = 0;
        for _ in 0..10 {
            takers += usize::from(
                long.claim_fetch(&relay, &RequestId::random())
                    .await
                    .unwrap(),
            );
        }
        assert_eq!(takers, 1);

        // A fetch without duration counts as lost in the next slot.
        let relay = EmbeddedRelay::open(None).unwrap();
        let short = attempt(Duration::from_millis(5), Timestamp::now());
        assert!(
            short
                .claim_fetch(&relay, &RequestId::random())
                .await
                .unwrap()
        );
        let deadline = std::time::Instant::now() + Duration::from_secs(5);
        while !short
            .claim_fetch(&relay, &RequestId::random())
            .await
            .unwrap()
        {
            assert!(
                std::time::Instant::now() < deadline,
                "the fetch was not taken over"
            );
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}
