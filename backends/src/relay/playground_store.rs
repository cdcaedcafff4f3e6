//! What trials run on, in a process that is ingress and worker at once. Bounded in time and number: a trial is cheap to
//! ask for, and its text can be large.

use std::collections::VecDeque;

use switchboard_schemas::ids::MessageId;

use super::{PLAYGROUND_RUN_TTL, millis, reply_log::Millis};

/// Trials that are kept; the oldest makes room.
const TRIALS_MAX: usize = 64;

/// Trials in the order in which they were asked for.
#[derive(Default)]
pub(super) struct PlaygroundStore {
    trials: VecDeque<PlaygroundRun>,
}

struct PlaygroundRun {
    name: MessageId,
    text: String,
    ends_at: Millis,
}

impl PlaygroundStore {
    /// Keeps `text`.
    pub(super) fn keep(&mut self, now: Millis, name: &MessageId, text: &str) {
        self.sweep(now);
        self.trials.retain(|trial| trial.name != *name);
        if self.trials.len() >= TRIALS_MAX {
            self.trials.pop_front();
        }
        let ends_at = now + millis(PLAYGROUND_RUN_TTL);
        self.trials.push_back(PlaygroundRun {
            name: name.clone(),
            text: text.to_owned(),
            ends_at,
        });
    }

    /// What is kept under this name.
    pub(super) fn read(&mut self, now: Millis, name: &MessageId) -> Option<String> {
        self.sweep(now);
        self.trials
            .iter()
            .find(|trial| trial.name == *name)
            .map(|trial| trial.text.clone())
    }

    fn sweep(&mut self, now: Millis) {
        while self
            .trials
            .front()
            .is_some_and(|trial| trial.ends_at <= now)
        {
            self.trials.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: usize) -> MessageId {
        format!("msg_{}{number:026}", "0".repeat(26))
            .parse()
            .unwrap()
    }

    #[test]
    fn a_trial_ends_with_its_time_and_the_oldest_makes_room() {
        let mut shelf = PlaygroundStore::default();
        for number in 0..=TRIALS_MAX {
            shelf.keep(1, &name(number), "text");
        }
        assert_eq!(
            (shelf.read(1, &name(0)), shelf.trials.len()),
            (None, TRIALS_MAX)
        );
        assert_eq!(
            shelf.read(millis(PLAYGROUND_RUN_TTL), &name(1)).as_deref(),
            Some("text")
        );
        assert_eq!(shelf.read(millis(PLAYGROUND_RUN_TTL) + 1, &name(1)), None);
        assert!(shelf.trials.is_empty());
    }
}
