//! Advisory locks between processes, for changes that the store cannot compare and swap. A lock
//! whose holder died expires quickly.

use std::time::Duration;

use switchboard_schemas::{ids::RequestId, time::Timestamp};

use super::AppState;

/// Lifetime of a lock; longer than any write may take.
const LOCK_LIFETIME: Duration = Duration::from_secs(5);
/// Interval between attempts to acquire a lock that another holds.
pub(crate) const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(50);
const SEPARATOR: char = ' ';

/// Result of trying to acquire a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdvisoryLock {
    /// This request holds the lock.
    Acquired,
    /// Another request holds the lock.
    HeldByOther,
    /// The lock service is unavailable. Proceed; concurrent writers are detected only by version.
    Unavailable,
}

/// Tries to acquire the lock named `change`, unless another request acquired it recently.
pub(crate) async fn try_acquire_lock(
    state: &AppState,
    change: &str,
    nonce: &RequestId,
) -> AdvisoryLock {
    let now = Timestamp::now();
    let own = format!("{}{SEPARATOR}{nonce}", now.micros());
    match state.backends.relay.remember(change, &own).await {
        Ok(noted) if is_recent_note_of_another(&noted, now, nonce) => AdvisoryLock::HeldByOther,
        Ok(_) => AdvisoryLock::Acquired,
        Err(error) => {
            tracing::warn!(%error, "a change is made without asking other processes");
            AdvisoryLock::Unavailable
        }
    }
}

fn is_recent_note_of_another(noted: &str, now: Timestamp, nonce: &RequestId) -> bool {
    let Some((at, owner)) = noted.split_once(SEPARATOR) else {
        return false;
    };
    let at = Timestamp::from_micros(at.parse().unwrap_or_default());
    owner != nonce.as_str() && u128::from(now.millis_since(at)) < LOCK_LIFETIME.as_millis()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_holds_others_up_only_for_as_long_as_a_write_may_take() {
        let (own, other) = (RequestId::random(), RequestId::random());
        let noted = format!("1000000 {other}");
        let seconds = |seconds: i64| Timestamp::from_micros(1_000_000 + seconds * 1_000_000);
        assert!(is_recent_note_of_another(&noted, seconds(1), &own));
        assert!(!is_recent_note_of_another(&noted, seconds(1), &other));
        assert!(!is_recent_note_of_another(&noted, seconds(5), &own));
    }
}
