//! Cached values that are read again before they are too old, once for all concurrent callers, and
//! served for a while if that fails.

use std::{
    hash::Hash,
    sync::Arc,
    time::{Duration, Instant},
};

use moka::future::Cache;
use tokio::sync::Mutex;

use crate::error::StoreError;

/// Maximum age of a value served without another read. Together with the read, a change takes
/// effect within 2 s.
pub(super) const FRESH: Duration = Duration::from_millis(1500);
/// Maximum age of a value served while it cannot be read again.
pub(super) const STALE_MAX: Duration = Duration::from_secs(60);
/// Maximum number of cached values of one kind. Guessed ids fill the cache with absences;
/// frequently used values stay.
const VALUES_MAX: u64 = 10_000;
/// Time after which unused values are dropped from memory.
const IDLE_MAX: Duration = Duration::from_secs(600);

/// A monotonic clock; tests set their own.
pub(super) type CacheClock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// Cached values of one kind. A known absence is a value too.
#[derive(Clone)]
pub(super) struct FreshValues<K, V> {
    slots: Cache<K, Arc<Mutex<CachedValue<V>>>>,
    clock: CacheClock,
}

/// A cached value. Its lock is held during a read, so that concurrent callers wait for that read
/// and share it.
struct CachedValue<V> {
    value: Option<Arc<V>>,
    /// Start of the read of `value`; `None` before the first successful one.
    read_at: Option<Instant>,
    /// Time until which `value` is served without another read.
    served_until: Option<Instant>,
    failure: Option<(Instant, StoreError)>,
}

impl<V> CachedValue<V> {
    fn is_fresh(&self, now: Instant) -> bool {
        self.served_until.is_some_and(|end| now < end)
    }

    /// Returns the error of a read that failed after this caller arrived, whose result the caller
    /// shares.
    fn failure_since(&self, came: Instant) -> Option<StoreError> {
        self.failure
            .as_ref()
            .filter(|(at, _)| *at > came)
            .map(|(_, error)| error.clone())
    }

    fn keep_value(&mut self, value: Option<V>, read_at: Instant) {
        self.value = value.map(Arc::new);
        self.read_at = Some(read_at);
        self.served_until = Some(read_at + FRESH);
        self.failure = None;
    }

    /// Serves the old value for as long as a fresh one, so that an unavailable store is not asked
    /// on every request.
    fn keep_stale(&mut self, error: StoreError, now: Instant) -> Result<(), StoreError> {
        let until = now + FRESH;
        let young = self
            .read_at
            .is_some_and(|read_at| until <= read_at + STALE_MAX);
        if young && matches!(error, StoreError::Unavailable(_)) {
            self.served_until = Some(until);
            return Ok(());
        }
        self.failure = Some((now, error.clone()));
        Err(error)
    }
}

impl<K, V> FreshValues<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    pub(super) fn new(clock: &CacheClock) -> Self {
        let slots = Cache::builder()
            .max_capacity(VALUES_MAX)
            .time_to_idle(IDLE_MAX)
            .build();
        Self {
            slots,
            clock: Arc::clone(clock),
        }
    }

    /// Returns the value of `key` from the cache or from `read`.
    pub(super) async fn get(
        &self,
        key: K,
        read: impl Future<Output = Result<Option<V>, StoreError>> + Send,
    ) -> Result<Option<Arc<V>>, StoreError> {
        let came = (self.clock)();
        let empty = CachedValue {
            value: None,
            read_at: None,
            served_until: None,
            failure: None,
        };
        let slot = self
            .slots
            .get_with(key, async { Arc::new(Mutex::new(empty)) })
            .await;
        let mut slot = slot.lock().await;
        if slot.is_fresh((self.clock)()) {
            return Ok(slot.value.clone());
        }
        if let Some(error) = slot.failure_since(came) {
            return Err(error);
        }
        let began = (self.clock)();
        match read.await {
            Ok(value) => slot.keep_value(value, began),
            Err(error) => slot.keep_stale(error, (self.clock)())?,
        }
        Ok(slot.value.clone())
    }
}
