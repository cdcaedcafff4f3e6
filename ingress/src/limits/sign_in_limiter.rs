//! Slows password guesses without locking anybody out: attempts beyond a free number wait, and are
//! then compared like all others.
//!
//! An attempt is counted and waits before its password is checked. A delay after a wrong answer
//! could be cut short by closing the connection; a client that leaves while it waits has guessed
//! nothing. Known and unknown accounts wait alike.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::json;
use switchboard_backends::limiter::RateLimitOutcome;
use switchboard_schemas::network::mask_address;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::site_limiter::SubjectLimiter;
use crate::http::{ApiError, ApiResult, ErrorCode};

/// Delays of the attempts after the free ones; the last one also applies to all later attempts.
const DELAYS_MS: [u64; 5] = [500, 1_000, 2_000, 4_000, 8_000];
/// Attempts of one address that wait or are compared at the same time in one process.
const AT_ONCE_MAX: usize = 16;
/// Prefix lengths of a whole IPv4 address, and of a network that an IPv6 customer gets at most.
const ADDRESS_BITS_V4: u8 = 32;
const SITE_BITS_V6: u8 = 48;
/// Timeout of waiting for one of these places.
const PLACE_WAIT: Duration = Duration::from_secs(20);
const RETRY_AFTER: Duration = Duration::from_millis(DELAYS_MS[DELAYS_MS.len() - 1]);

/// Delays of sign-ins per account and address, and per address.
pub(super) struct SignInLimiter {
    accounts: SubjectLimiter,
    addresses: SubjectLimiter,
    /// Addresses with attempts under way, for IPv6 by site.
    lanes: Mutex<HashMap<String, Arc<AddressLane>>>,
}

struct AddressLane {
    places: Arc<Semaphore>,
    /// Lets one hash of the address compute or queue at a time, so that the queue of all addresses
    /// stays short.
    hashing: tokio::sync::Mutex<()>,
}

/// An attempt of an address. Its drop frees its place.
pub(crate) struct SignInAttempt<'a> {
    limiter: &'a SignInLimiter,
    address: String,
    lane: Arc<AddressLane>,
    place: Option<OwnedSemaphorePermit>,
}

/// Returns the limit of a shared counter that tells each delayed attempt from the next; 0 stays
/// unlimited.
pub(super) const fn counted_attempts(free: u32) -> u32 {
    match free {
        0 => 0,
        _ => free.saturating_add(DELAYS_MS.len() as u32),
    }
}

impl SignInLimiter {
    /// Creates a limiter whose quotas come from [`counted_attempts`].
    pub(super) fn new(accounts: SubjectLimiter, addresses: SubjectLimiter) -> Self {
        Self {
            accounts,
            addresses,
            lanes: Mutex::default(),
        }
    }

    /// Counts an attempt and waits for as long as its predecessors demand. Clients without an
    /// address share one lane and are counted by account only.
    ///
    /// # Errors
    /// Returns `RATE_LIMITED` if the address has too many attempts under way.
    pub(super) async fn begin(
        &self,
        account: &str,
        address: Option<&str>,
    ) -> ApiResult<SignInAttempt<'_>> {
        let mut attempt = self.enter(address.unwrap_or_default());
        let place = Arc::clone(&attempt.lane.places).acquire_owned();
        let Ok(Ok(place)) = tokio::time::timeout(PLACE_WAIT, place).await else {
            return Err(self.reject());
        };
        attempt.place = Some(place);
        let (by_account, by_address) = tokio::join!(
            self.accounts.take_request(Some(account)),
            self.addresses.take_request(address),
        );
        let waits = [
            by_account.map(|verdict| delay(self.accounts.limit(), verdict)),
            by_address.map(|verdict| delay(self.addresses.limit(), verdict)),
        ];
        tokio::time::sleep(waits.into_iter().flatten().max().unwrap_or_default()).await;
        Ok(attempt)
    }

    fn enter(&self, address: &str) -> SignInAttempt<'_> {
        let address = lane_of(address);
        let mut lanes = self.lanes.lock();
        let lane = lanes.entry(address.clone()).or_insert_with(|| {
            Arc::new(AddressLane {
                places: Arc::new(Semaphore::new(AT_ONCE_MAX)),
                hashing: tokio::sync::Mutex::default(),
            })
        });
        SignInAttempt {
            limiter: self,
            lane: Arc::clone(lane),
            address,
            place: None,
        }
    }

    fn reject(&self) -> ApiError {
        let details = json!({ "bucket": self.addresses.count_refusal(), "limit": AT_ONCE_MAX });
        let detail = "too many sign-in attempts at once from this address";
        ApiError::new(ErrorCode::RateLimited, detail)
            .details(details)
            .retry_after(RETRY_AFTER)
    }
}

impl SignInAttempt<'_> {
    /// Runs the comparison of the password after those of the same address.
    pub(crate) async fn compare<T>(&self, comparison: impl Future<Output = T>) -> T {
        let _turn = self.lane.hashing.lock().await;
        comparison.await
    }
}

impl Drop for SignInAttempt<'_> {
    fn drop(&mut self) {
        self.place = None;
        let mut lanes = self.limiter.lanes.lock();
        if let Entry::Occupied(lane) = lanes.entry(std::mem::take(&mut self.address))
            // The map and this attempt.
            && Arc::strong_count(lane.get()) == 2
        {
            lane.remove();
        }
    }
}

/// Returns the address whose attempts share places: that of the whole site for IPv6, because one
/// customer can have thousands of the networks that are counted.
fn lane_of(address: &str) -> String {
    match address.parse() {
        Ok(parsed) => mask_address(parsed, ADDRESS_BITS_V4, SITE_BITS_V6).to_string(),
        Err(_) => address.to_owned(),
    }
}

/// Returns the delay of an attempt that a counter with `limit` decided about.
fn delay(limit: u32, verdict: RateLimitOutcome) -> Duration {
    let left = if verdict.admitted {
        verdict.remaining
    } else {
        0
    };
    // Attempts beyond the free ones, this one included.
    let free = limit.saturating_sub(DELAYS_MS.len() as u32);
    let delayed = limit.saturating_sub(left).saturating_sub(free) as usize;
    let delay = delayed
        .checked_sub(1)
        .and_then(|index| DELAYS_MS.get(index));
    Duration::from_millis(delay.copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, future::join_all};
    use prometheus::{IntCounter, IntCounterVec, Opts};
    use switchboard_backends::limiter::{RequestQuota, embedded::EmbeddedLimiter};
    use tokio::time::Instant;

    use super::*;
    use crate::limits::{SIGN_IN_WINDOW, shared_limiter::SharedLimiter};

    fn limiter(account: u32, address: u32) -> SignInLimiter {
        let fallbacks = IntCounter::new("fallbacks", "test").unwrap();
        let refusals = IntCounterVec::new(Opts::new("refusals", "test"), &["bucket"]).unwrap();
        let shared = Arc::new(SharedLimiter::new(
            Arc::new(EmbeddedLimiter::new()),
            fallbacks,
        ));
        let subjects = |name, free| {
            let quota = RequestQuota {
                limit: counted_attempts(free),
                window: SIGN_IN_WINDOW,
            };
            SubjectLimiter::new(name, quota, &shared, &refusals)
        };
        SignInLimiter::new(subjects("account", account), subjects("address", address))
    }

    /// Returns the milliseconds that an attempt waited.
    async fn waited(limiter: &SignInLimiter, account: &str, address: Option<&str>) -> u128 {
        let began = Instant::now();
        limiter.begin(account, address).await.unwrap();
        began.elapsed().as_millis()
    }

    #[tokio::test(start_paused = true)]
    async fn delay_doubles_up_to_eight_seconds() {
        let limiter = limiter(2, 0);
        for expected in [0, 0, 500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000] {
            let waited = waited(&limiter, "ada", Some("a")).await;
            assert!((expected..expected + 2).contains(&waited), "{waited} ms");
        }
        assert_eq!(waited(&limiter, "bob", Some("a")).await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn address_is_delayed_for_any_account() {
        let limiter = limiter(0, 1);
        assert_eq!(waited(&limiter, "ada", Some("a")).await, 0);
        assert!(waited(&limiter, "bob", Some("a")).await >= 500);
        assert_eq!(waited(&limiter, "bob", Some("b")).await, 0);
        for _ in 0..3 {
            assert_eq!(waited(&limiter, "ada", None).await, 0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_of_one_address_have_sixteen_places() {
        let limiter = limiter(0, 0);
        let held = join_all((0..AT_ONCE_MAX).map(|_| limiter.begin("ada", Some("a")))).await;
        let began = Instant::now();
        let refused = limiter.begin("ada", Some("a")).await.err().unwrap();
        assert!(began.elapsed() >= PLACE_WAIT);
        assert_eq!(refused.into_parts().retry_after, Some(RETRY_AFTER));
        assert!(limiter.begin("ada", Some("b")).await.is_ok());
        drop(held);
        assert!(limiter.begin("ada", Some("a")).await.is_ok());
        assert!(limiter.lanes.lock().is_empty(), "a lane is left");
    }

    #[tokio::test(start_paused = true)]
    async fn networks_of_one_ipv6_site_share_places() {
        let limiter = limiter(0, 0);
        let address = |site: usize, network: usize| format!("2001:db8:{site}:{network}::");
        let networks: Vec<_> = (0..AT_ONCE_MAX)
            .map(|network| address(1, network))
            .collect();
        let held = networks
            .iter()
            .map(|network| limiter.begin("ada", Some(network)));
        let held = join_all(held).await;
        assert!(
            limiter
                .begin("ada", Some(&address(1, 99)))
                .now_or_never()
                .is_none()
        );
        assert!(limiter.begin("ada", Some(&address(2, 0))).await.is_ok());
        drop(held);
        assert!(limiter.lanes.lock().is_empty(), "a lane is left");
    }

    #[tokio::test(start_paused = true)]
    async fn attempt_that_leaves_frees_its_place() {
        let limiter = limiter(1, 0);
        drop(limiter.begin("ada", Some("a")).await);
        for _ in 0..2 * AT_ONCE_MAX {
            assert!(limiter.begin("ada", Some("a")).now_or_never().is_none());
        }
        assert!(limiter.lanes.lock().is_empty(), "a lane is left");
        let held = join_all((0..AT_ONCE_MAX).map(|_| limiter.begin("ada", Some("b")))).await;
        assert!(limiter.begin("ada", Some("b")).now_or_never().is_none());
        assert_eq!(limiter.lanes.lock().len(), 1);
        drop(held);
        assert!(limiter.lanes.lock().is_empty(), "a lane is left");
    }

    #[tokio::test(start_paused = true)]
    async fn comparisons_of_one_address_take_turns() {
        let limiter = limiter(0, 0);
        let began = Instant::now();
        let compare = async |address| {
            let attempt = limiter.begin("ada", Some(address)).await.unwrap();
            let comparison = async { tokio::time::sleep(Duration::from_millis(10)).await };
            attempt.compare(comparison).await;
            began.elapsed().as_millis()
        };
        let ended = join_all(["a", "a", "a", "b"].map(compare)).await;
        assert!(ended[2] >= 30 && ended[3] < 20, "{ended:?}");
    }
}
