//! Last use of API keys. Requests record it in memory; a background task writes each key at most
//! once a minute, so that no request waits or fails. Uses recorded by a process that crashes are
//! lost.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use switchboard_backends::catalog::KeyUse;
use switchboard_schemas::{api_key::ApiKey, ids::KeyId, time::Timestamp};
use tokio::time::{Instant, sleep, timeout};

use super::AppState;

/// Interval between checks for uses to write.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);
/// Minimum interval between two writes of the same key.
const WRITE_INTERVAL: Duration = Duration::from_secs(60);
/// Timeout of the final write at shutdown.
const LAST_WRITE_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of keys in memory; uses of further keys are not recorded.
const KEYS_MAX: usize = 10_000;

/// Recent uses of keys in this process.
#[derive(Default)]
pub(crate) struct KeyUseLog {
    keys: Mutex<HashMap<KeyId, RecordedUse>>,
}

struct RecordedUse {
    last: KeyUse,
    is_written: bool,
    written_at: Option<Instant>,
}

impl KeyUseLog {
    /// Records that a key is used now.
    pub(crate) fn record_use(&self, key: &ApiKey) {
        let at = Timestamp::now();
        let mut keys = self.keys.lock();
        if let Some(noted) = keys.get_mut(&key.id) {
            noted.last.at = at;
            noted.is_written = false;
        } else if keys.len() < KEYS_MAX {
            let last = KeyUse {
                org_id: key.org_id.clone(),
                key_id: key.id.clone(),
                at,
            };
            keys.insert(
                key.id.clone(),
                RecordedUse {
                    last,
                    is_written: false,
                    written_at: None,
                },
            );
        }
    }

    /// Returns the uses to write and marks them as written. Removes keys that were not used for a
    /// while.
    fn take_due(&self, now: Instant, all: bool) -> Vec<KeyUse> {
        let mut keys = self.keys.lock();
        let rests = |noted: &RecordedUse| {
            noted
                .written_at
                .is_some_and(|at| now.duration_since(at) < WRITE_INTERVAL)
        };
        keys.retain(|_, noted| !noted.is_written || rests(noted));
        let due = keys
            .values_mut()
            .filter(|noted| !noted.is_written && (all || !rests(noted)));
        due.map(|noted| {
            (noted.is_written, noted.written_at) = (true, Some(now));
            noted.last.clone()
        })
        .collect()
    }
}

/// Writes recorded uses periodically; never returns.
pub(crate) async fn write_periodically(state: &AppState) {
    loop {
        sleep(LOOK_INTERVAL).await;
        write_due(state, false).await;
    }
}

/// Writes the remaining uses at shutdown.
pub(crate) async fn write_remaining(state: &AppState) {
    let _ = timeout(LAST_WRITE_TIMEOUT, write_due(state, true)).await;
}

async fn write_due(state: &AppState, all: bool) {
    let due = state.key_uses.take_due(Instant::now(), all);
    if due.is_empty() {
        return;
    }
    // Not retried: the next use is recorded again, so that at most a minute is lost.
    if let Err(error) = state.backends.catalog.record_key_uses(&due).await {
        tracing::debug!(%error, "key uses not written");
    }
}

#[cfg(test)]
mod tests {
    use switchboard_schemas::{
        api_key::KeyLimits,
        ids::{KeyId, OrgId},
    };

    use super::*;
    use crate::testing::secret;

    fn key(number: i64) -> ApiKey {
        let org_id = OrgId::derive(&secret(), "acme");
        ApiKey {
            id: KeyId::derive(&secret(), &org_id, "site", number),
            org_id,
            name: "site".into(),
            scopes: Vec::new(),
            expires_at: None,
            limits: KeyLimits::default(),
            last_four: "abcd".into(),
            created_at: Timestamp::from_micros(1),
        }
    }

    #[test]
    fn key_use_is_written_once_a_minute_and_at_the_end() {
        let (uses, start) = (KeyUseLog::default(), Instant::now());
        let mut written = 0;
        for second in 0..150 {
            uses.record_use(&key(1));
            written += uses
                .take_due(start + Duration::from_secs(second), false)
                .len();
        }
        assert_eq!(written, 3);
        assert_eq!(
            uses.take_due(start + Duration::from_secs(151), true).len(),
            1,
            "uses since the last write"
        );
        assert_eq!(
            uses.take_due(start + Duration::from_secs(152), true).len(),
            0
        );
    }

    #[test]
    fn recorded_uses_are_bounded_and_dropped_after_writing() {
        let (uses, start) = (KeyUseLog::default(), Instant::now());
        for number in 0..=i64::try_from(KEYS_MAX).unwrap() {
            uses.record_use(&key(number));
        }
        assert_eq!(uses.take_due(start, false).len(), KEYS_MAX);
        assert_eq!(uses.take_due(start + WRITE_INTERVAL, false).len(), 0);
        assert!(uses.keys.lock().is_empty());
    }
}
