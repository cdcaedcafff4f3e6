//! Values that are read again before they are too old, once for all who wait, and kept for a while when that fails.

use std::{
    hash::Hash,
    sync::Arc,
    time::{Duration, Instant},
};

use moka::future::Cache;
use tokio::sync::Mutex;

use crate::error::StoreError;

/// A value that was read less than this ago is served from memory: with the read itself, a change is live within 2 s.
pub(super) const FRESH: Duration = Duration::from_millis(1500);
/// Oldest value that is served while it cannot be read again.
pub(super) const STALE_MAX: Duration = Duration::from_secs(60);
/// Values of one kind in memory. Guessed ids fill it with absences; the cache keeps what is asked for often.
const VALUES_MAX: u64 = 10_000;
/// What nobody asks for goes out of memory.
const IDLE_MAX: Duration = Duration::from_secs(600);

/// A clock that only goes forward; tests set their own.
pub(super) type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// Values of one kind; what is known to be absent is a value as well.
#[derive(Clone)]
pub(super) struct Fresh<K, V> {
    slots: Cache<K, Arc<Mutex<Slot<V>>>>,
    clock: Clock,
}

/// The lock is held while the value is read, so that those who ask meanwhile wait for that read and share it.
struct Slot<V> {
    value: Option<Arc<V>>,
    /// When the read of `value` began; none before the first one that succeeded.
    read_at: Option<Instant>,
    /// Until when `value` is served without another read.
    served_until: Option<Instant>,
    failure: Option<(Instant, StoreError)>,
}

impl<V> Slot<V> {
    fn is_fresh(&self, now: Instant) -> bool {
        self.served_until.is_some_and(|end| now < end)
    }

    /// A failure that happened after this caller came: it waited for that read and shares its end.
    fn failure_since(&self, came: Instant) -> Option<StoreError> {
        self.failure
            .as_ref()
            .filter(|(at, _)| *at > came)
            .map(|(_, error)| copy(error))
    }

    fn keep(&mut self, value: Option<V>, read_at: Instant) {
        self.value = value.map(Arc::new);
        self.read_at = Some(read_at);
        self.served_until = Some(read_at + FRESH);
        self.failure = None;
    }

    /// Serves the old value for as long as a fresh one, so that an absent store is not asked on every request.
    fn keep_stale(&mut self, error: StoreError, now: Instant) -> Result<(), StoreError> {
        let until = now + FRESH;
        let young = self
            .read_at
            .is_some_and(|read_at| until <= read_at + STALE_MAX);
        if young && matches!(error, StoreError::Unavailable(_)) {
            self.served_until = Some(until);
            return Ok(());
        }
        self.failure = Some((now, copy(&error)));
        Err(error)
    }
}

impl<K, V> Fresh<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    pub(super) fn new(clock: &Clock) -> Self {
        let slots = Cache::builder()
            .max_capacity(VALUES_MAX)
            .time_to_idle(IDLE_MAX)
            .build();
        Self {
            slots,
            clock: Arc::clone(clock),
        }
    }

    /// Whether `key` had a value when it was last read, not long ago; reads nothing.
    pub(super) async fn knows(&self, key: &K) -> bool {
        let Some(slot) = self.slots.get(key).await else {
            return false;
        };
        let slot = slot.lock().await;
        slot.value.is_some()
            && slot
                .read_at
                .is_some_and(|read_at| (self.clock)() <= read_at + STALE_MAX)
    }

    /// The value of `key`, from memory or by `read`.
    pub(super) async fn get(
        &self,
        key: K,
        read: impl Future<Output = Result<Option<V>, StoreError>> + Send,
    ) -> Result<Option<Arc<V>>, StoreError> {
        let came = (self.clock)();
        let empty = Slot {
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
            Ok(value) => slot.keep(value, began),
            Err(error) => slot.keep_stale(error, (self.clock)())?,
        }
        Ok(slot.value.clone())
    }
}

fn copy(error: &StoreError) -> StoreError {
    match error {
        StoreError::Unavailable(text) => StoreError::Unavailable(text.clone()),
        StoreError::Malformed(text) => StoreError::Malformed(text.clone()),
    }
}
