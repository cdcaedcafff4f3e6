//! Last uses of API keys, and of the widget on pages. Requests record them in memory; a background
//! task writes each at most once a minute, so that no request waits or fails. Uses recorded by a
//! process that crashes are lost.

use std::{collections::HashMap, hash::Hash, time::Duration};

use parking_lot::Mutex;
use switchboard_backends::catalog::{KeyUse, PageSighting};
use switchboard_schemas::{
    ids::{AgentId, KeyId, OrgId},
    time::Timestamp,
};
use tokio::time::{Instant, sleep, timeout};

use super::AppState;

/// Interval between checks for uses to write.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);
/// Minimum interval between two writes of the same use.
const WRITE_INTERVAL: Duration = Duration::from_secs(60);
/// Timeout of the final write at shutdown.
const LAST_WRITE_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of uses of a kind in memory; further ones are not recorded.
const USES_MAX: usize = 10_000;

/// Recent uses in this process.
#[derive(Default)]
pub(crate) struct RecentUses {
    pub(crate) keys: UseLog<(OrgId, KeyId)>,
    /// Starts of an agent's widget on pages of an origin.
    pub(crate) pages: UseLog<(OrgId, AgentId, String)>,
}

/// Recent uses of one kind of thing.
pub(crate) struct UseLog<K> {
    uses: Mutex<HashMap<K, RecordedUse>>,
}

struct RecordedUse {
    at: Timestamp,
    is_written: bool,
    written_at: Option<Instant>,
}

impl<K> Default for UseLog<K> {
    fn default() -> Self {
        Self {
            uses: Mutex::default(),
        }
    }
}

impl<K: Clone + Eq + Hash> UseLog<K> {
    /// Records a use now.
    pub(crate) fn record(&self, used: K) {
        let at = Timestamp::now();
        let mut uses = self.uses.lock();
        if let Some(noted) = uses.get_mut(&used) {
            (noted.at, noted.is_written) = (at, false);
        } else if uses.len() < USES_MAX {
            let noted = RecordedUse {
                at,
                is_written: false,
                written_at: None,
            };
            uses.insert(used, noted);
        }
    }

    /// Returns the uses to write and marks them as written. Removes those that were not repeated
    /// for a while.
    fn take_due(&self, now: Instant, all: bool) -> Vec<(K, Timestamp)> {
        let mut uses = self.uses.lock();
        let rests = |noted: &RecordedUse| {
            noted
                .written_at
                .is_some_and(|at| now.duration_since(at) < WRITE_INTERVAL)
        };
        uses.retain(|_, noted| !noted.is_written || rests(noted));
        let due = uses
            .iter_mut()
            .filter(|(_, noted)| !noted.is_written && (all || !rests(noted)));
        due.map(|(used, noted)| {
            (noted.is_written, noted.written_at) = (true, Some(now));
            (used.clone(), noted.at)
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
    let (uses, catalog, now) = (&state.recent_uses, &state.backends.catalog, Instant::now());
    let keys = uses.keys.take_due(now, all).into_iter();
    let keys = keys.map(|((org_id, key_id), at)| KeyUse { org_id, key_id, at });
    let keys: Vec<KeyUse> = keys.collect();
    // Not retried: the next use is recorded again, so that at most a minute is lost.
    if !keys.is_empty()
        && let Err(error) = catalog.record_key_uses(&keys).await
    {
        tracing::debug!(%error, "key uses not written");
    }
    for ((org_id, agent_id, origin), at) in uses.pages.take_due(now, all) {
        let page = PageSighting {
            org_id,
            agent_id,
            origin,
            at,
        };
        if let Err(error) = catalog.record_page(&page).await {
            tracing::debug!(%error, "page of a widget not written");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_is_written_once_a_minute_and_at_the_end() {
        let (uses, start) = (UseLog::default(), Instant::now());
        let mut written = 0;
        for second in 0..150 {
            uses.record("key");
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
        let (uses, start) = (UseLog::default(), Instant::now());
        for number in 0..=USES_MAX {
            uses.record(number);
        }
        assert_eq!(uses.take_due(start, false).len(), USES_MAX);
        assert_eq!(uses.take_due(start + WRITE_INTERVAL, false).len(), 0);
        assert!(uses.uses.lock().is_empty());
    }
}
