//! Partitions of a consumer and their progress, shared by its handle and its poll thread.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use crate::bus::{CommitMark, IncomingRecord, PartitionId};

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
    /// Offset after the newest record at the time of the assignment.
    fresh_from: u64,
    /// Last recorded mark, or the committed one of the assignment.
    mark: Option<CommitMark>,
    /// True if this owner recorded the mark.
    given: bool,
    unwritten: bool,
    paused: bool,
    pause_changed: bool,
    /// Offset of the next record to deliver, once one was delivered.
    position: Option<u64>,
    /// Offset after the newest record, from the last statistics.
    end: Option<u64>,
    /// Time of the assignment, the last delivery, or the last pause or resume.
    idle_since: Instant,
}

/// A partition that is not paused and has delivered nothing for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct IdlePartition {
    pub(super) partition: PartitionId,
    pub(super) epoch: u64,
    /// Offset of the next record to deliver; the first record that still exists may be later.
    pub(super) position: u64,
}

impl PartitionProgress {
    /// Returns the offset of the next record to deliver, as far as it is known.
    fn next_offset(&self) -> u64 {
        let committed = self.mark.as_ref().map(|mark| mark.next_offset);
        self.position.or(committed).unwrap_or(0)
    }
}

/// A mark with its partition.
pub(super) type PartitionMark = (PartitionId, CommitMark);

impl PartitionOwnership {
    /// Adds an assigned partition, whose new records begin at `fresh_from`, and returns its epoch.
    pub(super) fn assign(
        &self,
        partition: PartitionId,
        committed: Option<CommitMark>,
        fresh_from: u64,
    ) -> u64 {
        let mut state = self.state.lock();
        state.last_epoch += 1;
        let epoch = state.last_epoch;
        let owned = PartitionProgress {
            epoch,
            fresh_from,
            mark: committed,
            given: false,
            unwritten: false,
            paused: false,
            pause_changed: false,
            position: None,
            end: None,
            idle_since: Instant::now(),
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

    /// Records the delivery of a record of an owned partition, and returns it with what its
    /// assignment says.
    pub(super) fn deliver(&self, record: IncomingRecord) -> Option<IncomingRecord> {
        let mut state = self.state.lock();
        let owned = state.owned.get_mut(&record.partition)?;
        owned.position = Some(record.offset + 1);
        owned.idle_since = Instant::now();
        Some(IncomingRecord {
            epoch: owned.epoch,
            maybe_repeated: record.offset < owned.fresh_from,
            ..record
        })
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

    /// Takes the marks that are not committed.
    pub(super) fn take_unwritten(&self) -> Vec<PartitionMark> {
        let mut state = self.state.lock();
        let unwritten = |(partition, owned): (&PartitionId, &mut PartitionProgress)| {
            std::mem::take(&mut owned.unwritten)
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

    /// Returns the partitions that are not paused and have delivered nothing for `time`.
    pub(super) fn idle_partitions(&self, time: Duration) -> BTreeSet<IdlePartition> {
        let state = self.state.lock();
        let idle = state
            .owned
            .iter()
            .filter(|(_, owned)| !owned.paused && owned.idle_since.elapsed() >= time);
        idle.map(|(partition, owned)| IdlePartition {
            partition: *partition,
            epoch: owned.epoch,
            position: owned.next_offset(),
        })
        .collect()
    }

    /// Restarts the idle time of all partitions, after none of them was fetched.
    pub(super) fn restart_idle_time(&self) {
        for owned in self.state.lock().owned.values_mut() {
            owned.idle_since = Instant::now();
        }
    }

    /// Requests that a partition pauses or resumes.
    pub(super) fn set_paused(&self, partition: PartitionId, paused: bool) {
        if let Some(owned) = self.state.lock().owned.get_mut(&partition) {
            owned.pause_changed |= owned.paused != paused;
            owned.paused = paused;
            owned.idle_since = Instant::now();
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
        let old = ownership.assign(PARTITION, None, 0);
        ownership.revoke(PARTITION);
        ownership.commit(PARTITION, old, mark(1));
        let new = ownership.assign(PARTITION, None, 0);
        ownership.commit(PARTITION, old, mark(1));
        assert!(new > old && ownership.take_unwritten().is_empty());
    }

    #[test]
    fn revocation_returns_the_last_mark_even_if_sent() {
        let ownership = PartitionOwnership::default();
        let epoch = ownership.assign(PARTITION, Some(mark(1)), 0);
        ownership.commit(PARTITION, epoch, mark(2));
        assert_eq!(ownership.take_unwritten(), [(PARTITION, mark(2))]);
        assert_eq!(ownership.revoke(PARTITION), Some((PARTITION, mark(2))));
    }

    #[test]
    fn committed_mark_of_another_owner_is_not_repeated() {
        let ownership = PartitionOwnership::default();
        ownership.assign(PARTITION, Some(mark(1)), 0);
        ownership.write_again(PARTITION);
        assert!(ownership.take_unwritten().is_empty());
        assert_eq!(ownership.revoke(PARTITION), None);
    }

    #[test]
    fn assignment_resets_an_older_pause() {
        let ownership = PartitionOwnership::default();
        ownership.assign(PARTITION, None, 0);
        ownership.set_paused(PARTITION, true);
        assert!(ownership.running().is_empty());
        ownership.assign(PARTITION, None, 0);
        assert_eq!(
            (ownership.running(), ownership.take_pause_changes()),
            (vec![PARTITION], vec![])
        );
    }
}
