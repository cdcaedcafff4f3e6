//! The input of playground runs in memory, bounded in time and number because it can be large.

use std::collections::VecDeque;

use switchboard_schemas::{ids::MessageId, time::whole_millis};

use super::frame_log::RelayMillis;
use crate::relay::PLAYGROUND_RUN_TTL;

/// Maximum number of kept runs; a new one replaces the oldest.
const RUNS_MAX: usize = 64;

/// Playground runs in the order of their creation.
#[derive(Default)]
pub(super) struct PlaygroundStore {
    runs: VecDeque<StoredRun>,
}

struct StoredRun {
    run_id: MessageId,
    text: String,
    ends_at: RelayMillis,
}

impl PlaygroundStore {
    /// Stores the input of a run.
    pub(super) fn put(&mut self, now: RelayMillis, run_id: &MessageId, text: &str) {
        self.sweep(now);
        self.runs.retain(|run| run.run_id != *run_id);
        if self.runs.len() >= RUNS_MAX {
            self.runs.pop_front();
        }
        let ends_at = now + whole_millis(PLAYGROUND_RUN_TTL);
        self.runs.push_back(StoredRun {
            run_id: run_id.clone(),
            text: text.to_owned(),
            ends_at,
        });
    }

    /// Returns the input of a run that has not expired.
    pub(super) fn read(&mut self, now: RelayMillis, run_id: &MessageId) -> Option<String> {
        self.sweep(now);
        self.runs
            .iter()
            .find(|run| run.run_id == *run_id)
            .map(|run| run.text.clone())
    }

    fn sweep(&mut self, now: RelayMillis) {
        while self.runs.front().is_some_and(|run| run.ends_at <= now) {
            self.runs.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_id(number: usize) -> MessageId {
        format!("msg_{}{number:026}", "0".repeat(26))
            .parse()
            .unwrap()
    }

    #[test]
    fn playground_run_expires_and_the_oldest_is_evicted() {
        let mut store = PlaygroundStore::default();
        for number in 0..=RUNS_MAX {
            store.put(1, &run_id(number), "text");
        }
        assert_eq!(
            (store.read(1, &run_id(0)), store.runs.len()),
            (None, RUNS_MAX)
        );
        assert_eq!(
            store
                .read(whole_millis(PLAYGROUND_RUN_TTL), &run_id(1))
                .as_deref(),
            Some("text")
        );
        assert_eq!(
            store.read(whole_millis(PLAYGROUND_RUN_TTL) + 1, &run_id(1)),
            None
        );
        assert!(store.runs.is_empty());
    }
}
