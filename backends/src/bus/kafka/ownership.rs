//! Which partitions a consumer owns and how far they are; shared by its handle and its poll thread.

use std::{collections::BTreeMap, sync::Mutex};

use crate::bus::{CommitMark, PartitionId, lock::lock};

/// See the module.
#[derive(Default)]
pub(super) struct Ownership {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    owned: BTreeMap<PartitionId, Owned>,
    last_epoch: u64,
}

struct Owned {
    epoch: u64,
    /// The last mark that was given, or else what was committed at the assignment.
    mark: Option<CommitMark>,
    given: bool,
    unwritten: bool,
    paused: bool,
    pause_changed: bool,
    /// Offset of the next record to deliver, once one was delivered.
    position: Option<u64>,
    /// Offset behind the newest record, as of the last statistics.
    end: Option<u64>,
}

/// A mark with its partition.
pub(super) type PartitionMark = (PartitionId, CommitMark);

impl Ownership {
    /// A partition is ours; gives its epoch.
    pub(super) fn assign(&self, partition: PartitionId, committed: Option<CommitMark>) -> u64 {
        let mut state = lock(&self.state);
        state.last_epoch += 1;
        let epoch = state.last_epoch;
        let owned = Owned {
            epoch,
            mark: committed,
            given: false,
            unwritten: false,
            paused: false,
            pause_changed: false,
            position: None,
            end: None,
        };
        state.owned.insert(partition, owned);
        epoch
    }

    /// A partition is ours no longer; gives the last mark, and no later one is taken.
    pub(super) fn revoke(&self, partition: PartitionId) -> Option<PartitionMark> {
        let owned = lock(&self.state).owned.remove(&partition)?;
        owned
            .mark
            .filter(|_| owned.given)
            .map(|mark| (partition, mark))
    }

    /// Every partition that is ours.
    pub(super) fn partitions(&self) -> Vec<PartitionId> {
        lock(&self.state).owned.keys().copied().collect()
    }

    /// Every partition that is to deliver.
    pub(super) fn running(&self) -> Vec<PartitionId> {
        let state = lock(&self.state);
        state
            .owned
            .iter()
            .filter(|(_, owned)| !owned.paused)
            .map(|(partition, _)| *partition)
            .collect()
    }

    /// Epoch of a partition that is ours.
    pub(super) fn epoch(&self, partition: PartitionId) -> Option<u64> {
        lock(&self.state)
            .owned
            .get(&partition)
            .map(|owned| owned.epoch)
    }

    /// Notes that a record goes to the handle; gives the epoch it belongs to.
    pub(super) fn deliver(&self, partition: PartitionId, offset: u64) -> Option<u64> {
        let mut state = lock(&self.state);
        let owned = state.owned.get_mut(&partition)?;
        owned.position = Some(offset + 1);
        Some(owned.epoch)
    }

    /// Notes a mark of an epoch; one of an older epoch is dropped.
    pub(super) fn commit(&self, partition: PartitionId, epoch: u64, mark: CommitMark) {
        if let Some(owned) = lock(&self.state)
            .owned
            .get_mut(&partition)
            .filter(|owned| owned.epoch == epoch)
        {
            owned.mark = Some(mark);
            owned.given = true;
            owned.unwritten = true;
        }
    }

    /// Takes the marks that were not sent yet.
    pub(super) fn take_unwritten(&self) -> Vec<PartitionMark> {
        let mut state = lock(&self.state);
        let unwritten = |(partition, owned): (&PartitionId, &mut Owned)| {
            std::mem::take(&mut owned.unwritten)
                .then(|| Some((*partition, owned.mark.clone()?)))
                .flatten()
        };
        state.owned.iter_mut().filter_map(unwritten).collect()
    }

    /// A commit failed: the newest mark is sent again, if the partition is still ours.
    pub(super) fn write_again(&self, partition: PartitionId) {
        if let Some(owned) = lock(&self.state).owned.get_mut(&partition) {
            owned.unwritten = owned.given;
        }
    }

    /// Asks for a partition to stop or go on.
    pub(super) fn set_paused(&self, partition: PartitionId, paused: bool) {
        if let Some(owned) = lock(&self.state).owned.get_mut(&partition) {
            owned.pause_changed |= owned.paused != paused;
            owned.paused = paused;
        }
    }

    /// Takes what was asked for since the last call.
    pub(super) fn take_pause_changes(&self) -> Vec<(PartitionId, bool)> {
        let mut state = lock(&self.state);
        let changed = |(partition, owned): (&PartitionId, &mut Owned)| {
            std::mem::take(&mut owned.pause_changed).then_some((*partition, owned.paused))
        };
        state.owned.iter_mut().filter_map(changed).collect()
    }

    /// Notes where a partition ends.
    pub(super) fn set_end(&self, partition: PartitionId, end: u64) {
        if let Some(owned) = lock(&self.state).owned.get_mut(&partition) {
            owned.end = Some(end);
        }
    }

    /// Records behind the newest one, where the end is known.
    pub(super) fn lag(&self) -> Vec<(PartitionId, u64)> {
        let lag = |(partition, owned): (&PartitionId, &Owned)| {
            let done = owned
                .mark
                .as_ref()
                .map(|mark| mark.next_offset)
                .or(owned.position)
                .unwrap_or(0);
            Some((*partition, owned.end?.saturating_sub(done)))
        };
        lock(&self.state).owned.iter().filter_map(lag).collect()
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
    fn a_mark_of_an_older_epoch_is_dropped() {
        let ownership = Ownership::default();
        let old = ownership.assign(PARTITION, None);
        ownership.revoke(PARTITION);
        ownership.commit(PARTITION, old, mark(1));
        let new = ownership.assign(PARTITION, None);
        ownership.commit(PARTITION, old, mark(1));
        assert!(new > old && ownership.take_unwritten().is_empty());
    }

    #[test]
    fn a_revoke_gives_the_last_mark_even_if_it_was_sent() {
        let ownership = Ownership::default();
        let epoch = ownership.assign(PARTITION, Some(mark(1)));
        ownership.commit(PARTITION, epoch, mark(2));
        assert_eq!(ownership.take_unwritten(), [(PARTITION, mark(2))]);
        assert_eq!(ownership.revoke(PARTITION), Some((PARTITION, mark(2))));
    }

    #[test]
    fn what_was_committed_by_another_is_not_committed_again() {
        let ownership = Ownership::default();
        ownership.assign(PARTITION, Some(mark(1)));
        ownership.write_again(PARTITION);
        assert!(ownership.take_unwritten().is_empty());
        assert_eq!(ownership.revoke(PARTITION), None);
    }

    #[test]
    fn an_assignment_forgets_an_older_pause() {
        let ownership = Ownership::default();
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
