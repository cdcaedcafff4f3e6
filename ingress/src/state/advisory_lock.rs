//! Advisory locks between processes, for changes that the store cannot compare and swap. A lock
//! whose holder died expires quickly.

use std::{fmt, time::Duration};

use switchboard_schemas::time::Timestamp;

use super::AppState;

/// Lifetime of a lock; longer than any write may take.
const LOCK_LIFETIME: Duration = Duration::from_secs(5);
/// Interval between attempts to acquire a lock that another holds.
pub(crate) const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The stored record of a held lock: microseconds and owner, separated by a space.
#[derive(Debug)]
struct LockRecord {
    acquired_at: Timestamp,
    owner: String,
}

impl LockRecord {
    fn parse(text: &str) -> Option<Self> {
        let (micros, owner) = text.split_once(' ')?;
        Some(Self {
            acquired_at: Timestamp::from_micros(micros.parse().ok()?),
            owner: owner.to_owned(),
        })
    }
}

impl fmt::Display for LockRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.acquired_at.micros(), self.owner)
    }
}

/// Result of trying to acquire a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockAttempt {
    /// This owner holds the lock.
    Acquired,
    /// Another owner holds the lock.
    HeldByOther,
    /// The lock service is unavailable. Proceed; concurrent writers are detected only by version.
    Unavailable,
}

/// Tries to acquire the lock of this name for `owner`, a request or a process, unless another owner
/// acquired it recently.
pub(crate) async fn try_acquire_lock(state: &AppState, name: &str, owner: &str) -> LockAttempt {
    let now = Timestamp::now();
    let own = LockRecord {
        acquired_at: now,
        owner: owner.to_owned(),
    };
    match state
        .backends
        .relay
        .get_or_insert(name, &own.to_string())
        .await
    {
        Ok(stored) if is_held_by_other(&stored, now, owner) => LockAttempt::HeldByOther,
        Ok(_) => LockAttempt::Acquired,
        Err(error) => {
            tracing::warn!(%error, "advisory lock unavailable, change made without it");
            LockAttempt::Unavailable
        }
    }
}

fn is_held_by_other(stored: &str, now: Timestamp, owner: &str) -> bool {
    LockRecord::parse(stored).is_some_and(|record| {
        let age_ms = u128::from(now.millis_since(record.acquired_at));
        record.owner != owner && age_ms < LOCK_LIFETIME.as_millis()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_of_another_owner_expires() {
        let (own, other) = ("one", "another");
        let seconds = |seconds: i64| Timestamp::from_micros(1_000_000 + seconds * 1_000_000);
        let record = LockRecord {
            acquired_at: seconds(0),
            owner: other.to_string(),
        };
        let stored = record.to_string();
        assert!(is_held_by_other(&stored, seconds(1), own));
        assert!(!is_held_by_other(&stored, seconds(1), other));
        assert!(!is_held_by_other(&stored, seconds(5), own));
    }
}
