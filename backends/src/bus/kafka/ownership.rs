//! Partitions of a consumer and their progress, shared by its handle and its poll thread.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use crate::bus::{CommitMark, PartitionId};

/// Time after an assignment at which its newest mark is committed once more. A commit that found no
/// coordinator is written by librdkafka up to a session timeout later, also over a newer one.
const REWRITE_DELAY: Duration = Duration::from_secs(15);

/// The partitions that a consumer owns.
#[derive(Default)]
pub(super) struct PartitionOwnership {
    state: Mutex<OwnershipState>,
}

#[derive(Default)]
struct OwnershipState {
    owned: BTreeMap<PartitionId, PartitionProgress>,
    last_epoch: u64,
}

struct PartitionProgress {
    epoch: u64,
    /// Last recorded mark, or the committed one of the assignment.
    mark: Option<CommitMark>,
    /// True if this owner recorded the mark, or committed it again.
    given: bool,
    unwritten: bool,
    /// Time at which the mark is committed again; none once that is done.
    rewrite_at: Option<Instant>,
    paused: bool,
    pause_changed: bool,
    /// Offset of the next record to deliver, once one was delivered.
    position: Option<u64>,
    /// Offset after the newest record, from the last statistics.
    end: Option<u64>,
}

/// A mark with its partition.
pub(super) type PartitionMark = (PartitionId, CommitMark);

impl PartitionOwnership {
    /// Adds an assigned partition and returns its epoch.
    pub(super) fn assign(&self, partition: PartitionId, committed: Option<CommitMark>) -> u64 {
        let mut state = self.state.lock();
        state.last_epoch += 1;
        let epoch = state.last_epoch;
        let owned = PartitionProgress {
            epoch,
            mark: committed,
            given: false,
            unwritten: false,
            rewrite_at: Some(Instant::now() + REWRITE_DELAY),
            paused: false,
            pause_changed: false,
            position: None,
            end: None,
        };
        state.owned.insert(partition, owned);
        epoch
    }

    /// Removes a revoked partition and returns its last mark. No later mark is accepted.
    pub(super) fn revoke(&self, partition: PartitionId) -> Option<PartitionMark> {
        let owned = self.state.lock().owned.remove(&partition)?;
        owned
            .mark
            .filter(|_| owned.given)
            .map(|mark| (partition, mark))
    }

    /// Returns all owned partitions.
    pub(super) fn partitions(&self) -> Vec<PartitionId> {
        self.state.lock().owned.keys().copied().collect()
    }

    /// Returns the owned partitions that are not paused.
    pub(super) fn running(&self) -> Vec<PartitionId> {
        let state = self.state.lock();
        state
            .owned
            .iter()
            .filter(|(_, owned)| !owned.paused)
            .map(|(partition, _)| *partition)
            .collect()
    }

    /// Returns the epoch of an owned partition.
    pub(super) fn epoch(&self, partition: PartitionId) -> Option<u64> {
        self.state
            .lock()
            .owned
            .get(&partition)
            .map(|owned| owned.epoch)
    }

    /// Records the delivery of a record and returns its epoch.
    pub(super) fn deliver(&self, partition: PartitionId, offset: u64) -> Option<u64> {
        let mut state = self.state.lock();
        let owned = state.owned.get_mut(&partition)?;
        owned.position = Some(offset + 1);
        Some(owned.epoch)
    }

    /// Records a mark; one of an older epoch is dropped.
    pub(super) fn commit(&self, partition: PartitionId, epoch: u64, mark: CommitMark) {
        if let Some(owned) = self
            .state
            .lock()
            .owned
            .get_mut(&partition)
            .filter(|owned| owned.epoch == epoch)
        {
            owned.mark = Some(mark);
            owned.given = true;
            owned.unwritten = true;
        }
    }

    /// Takes the marks that were not committed yet at `now`, or have to be committed again.
    pub(super) fn take_unwritten(&self, now: Instant) -> Vec<PartitionMark> {
        let mut state = self.state.lock();
        let unwritten = |(partition, owned): (&PartitionId, &mut PartitionProgress)| {
            let is_rewrite = owned.rewrite_at.take_if(|at| *at <= now).is_some();
            owned.given |= is_rewrite;
            (std::mem::take(&mut owned.unwritten) || is_rewrite)
                .then(|| Some((*partition, owned.mark.clone()?)))
                .flatten()
        };
        state.owned.iter_mut().filter_map(unwritten).collect()
    }

    /// Schedules the newest mark again after a failed commit, if the partition is still owned.
    pub(super) fn write_again(&self, partition: PartitionId) {
        if let Some(owned) = self.state.lock().owned.get_mut(&partition) {
            owned.unwritten = owned.given;
        }
    }

    /// Requests that a partition pauses or resumes.
    pub(super) fn set_paused(&self, partition: PartitionId, paused: bool) {
        if let Some(owned) = self.state.lock().owned.get_mut(&partition) {
            owned.pause_changed |= owned.paused != paused;
            owned.paused = paused;
        }
    }

    /// Takes the requests since the last call.
    pub(super) fn take_pause_changes(&self) -> Vec<(PartitionId, bool)> {
        let mut state = self.state.lock();
        let changed = |(partition, owned): (&PartitionId, &mut PartitionProgress)| {
            std::mem::take(&mut owned.pause_changed).then_some((*partition, owned.paused))
        };
        state.owned.iter_mut().filter_map(changed).collect()
    }

    /// Records the end offset of a partition.
    pub(super) fn set_end(&self, partition: PartitionId, end: u64) {
        if let Some(owned) = self.state.lock().owned.get_mut(&partition) {
            owned.end = Some(end);
        }
    }

    /// Returns the number of undelivered records of partitions whose end is known.
    pub(super) fn lag(&self) -> Vec<(PartitionId, u64)> {
        let lag = |(partition, owned): (&PartitionId, &PartitionProgress)| {
            let done = owned
                .mark
                .as_ref()
                .map(|mark| mark.next_offset)
                .or(owned.position)
                .unwrap_or(0);
            Some((*partition, owned.end?.saturating_sub(done)))
        };
        self.state.lock().owned.iter().filter_map(lag).collect()
    }
}

#[cfg(test)]
mod tests {
    use switchboard_schemas::topics::Topic;

    use super::*;

    const PARTITION: PartitionId = PartitionId {
        topic: Topic::Jobs,
        number: 0,
    };

    fn mark(next_offset: u64) -> CommitMark {
        CommitMark {
            next_offset,
            finished: String::new(),
        }
    }

    #[test]
    fn mark_of_an_older_epoch_is_dropped() {
        let ownership = PartitionOwnership::default();
        let old = ownership.assign(PARTITION, None);
        ownership.revoke(PARTITION);
        ownership.commit(PARTITION, old, mark(1));
        let new = ownership.assign(PARTITION, None);
        ownership.commit(PARTITION, old, mark(1));
        assert!(new > old && ownership.take_unwritten(Instant::now()).is_empty());
    }

    #[test]
    fn revocation_returns_the_last_mark_even_if_sent() {
        let ownership = PartitionOwnership::default();
        let epoch = ownership.assign(PARTITION, Some(mark(1)));
        ownership.commit(PARTITION, epoch, mark(2));
        assert_eq!(
            ownership.take_unwritten(Instant::now()),
            [(PARTITION, mark(2))]
        );
        assert_eq!(ownership.revoke(PARTITION), Some((PARTITION, mark(2))));
    }

    #[test]
    fn committed_mark_of_another_owner_is_not_repeated() {
        let ownership = PartitionOwnership::default();
        ownership.assign(PARTITION, Some(mark(1)));
        ownership.write_again(PARTITION);
        assert!(ownership.take_unwritten(Instant::now()).is_empty());
        assert_eq!(ownership.revoke(PARTITION), None);
    }

    #[test]
    fn mark_is_committed_again_after_a_late_commit_could_arrive() {
        let ownership = PartitionOwnership::default();
        ownership.assign(PARTITION, Some(mark(1)));
        let due = Instant::now() + REWRITE_DELAY;
        assert_eq!(ownership.take_unwritten(due), [(PARTITION, mark(1))]);
        assert!(ownership.take_unwritten(due).is_empty());
        ownership.write_again(PARTITION);
        assert_eq!(ownership.take_unwritten(due), [(PARTITION, mark(1))]);
    }

    #[test]
    fn assignment_resets_an_older_pause() {
        let ownership = PartitionOwnership::default();
        ownership.assign(PARTITION, None);
        ownership.set_paused(PARTITION, true);
        assert!(ownership.running().is_empty());
        ownership.assign(PARTITION, None);
        assert_eq!(
            (ownership.running(), ownership.take_pause_changes()),
            (vec![PARTITION], vec![])
        );
    }
}
