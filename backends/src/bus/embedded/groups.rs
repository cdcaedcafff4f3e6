//! Consumer groups of the embedded bus: owners of partitions and committed marks.
//!
//! All changes happen under one lock, so that a partition has at most one owner at any time. A
//! member learns of changes from its mailbox. Undelivered events are corrected instead of appended
//! to, which bounds the mailbox.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    sync::Arc,
};

use parking_lot::Mutex;
use switchboard_schemas::topics::Topic;
use tokio::sync::Notify;

use super::{assignment, file::GroupMark};
use crate::bus::{BusEvent, CommitMark, PartitionId};

/// All groups of this process.
#[derive(Default)]
pub(super) struct ConsumerGroups {
    groups: Mutex<HashMap<String, GroupState>>,
}

#[derive(Default)]
struct GroupState {
    members: BTreeMap<u64, GroupMember>,
    owners: BTreeMap<PartitionId, PartitionOwner>,
    marks: HashMap<PartitionId, CommitMark>,
    unwritten: HashSet<PartitionId>,
    last_member: u64,
    last_epoch: u64,
}

struct GroupMember {
    topics: Vec<Topic>,
    mailbox: Arc<EventMailbox>,
}

#[derive(Clone, Copy)]
struct PartitionOwner {
    member: u64,
    epoch: u64,
}

/// A member of a group.
pub(super) struct MemberSeat {
    /// Name of the group.
    pub(super) group: String,
    /// Number of the member.
    pub(super) member: u64,
    /// Mailbox in which the member receives its events.
    pub(super) mailbox: Arc<EventMailbox>,
}

/// The undelivered events of a member.
#[derive(Default)]
pub(super) struct EventMailbox {
    events: Mutex<VecDeque<BusEvent>>,
    /// Notified of an event and of a new record in an owned partition; a notification is kept until
    /// the member waits.
    pub(super) bell: Notify,
}

impl ConsumerGroups {
    /// Adds a member. `stored` are the marks in the file, used only if the group is not in memory
    /// yet.
    pub(super) fn join(
        &self,
        group: &str,
        topics: &[Topic],
        stored: HashMap<PartitionId, CommitMark>,
        partitions: &[PartitionId],
    ) -> MemberSeat {
        let mut groups = self.groups.lock();
        let state = groups
            .entry(group.to_owned())
            .or_insert_with(|| GroupState {
                marks: stored,
                ..GroupState::default()
            });
        state.last_member += 1;
        let (member, mailbox) = (state.last_member, Arc::new(EventMailbox::default()));
        state.members.insert(
            member,
            GroupMember {
                topics: topics.to_vec(),
                mailbox: mailbox.clone(),
            },
        );
        state.rebalance(partitions);
        MemberSeat {
            group: group.to_owned(),
            member,
            mailbox,
        }
    }

    /// Removes a member; the others take over its partitions.
    pub(super) fn leave(&self, seat: &MemberSeat, partitions: &[PartitionId]) {
        if let Some(state) = self.groups.lock().get_mut(&seat.group) {
            state.members.remove(&seat.member);
            state.rebalance(partitions);
        }
    }

    /// Records a mark, unless the partition has another owner or another epoch by now.
    pub(super) fn commit(
        &self,
        seat: &MemberSeat,
        partition: PartitionId,
        epoch: u64,
        mark: CommitMark,
    ) {
        let mut groups = self.groups.lock();
        let Some(state) = groups.get_mut(&seat.group) else {
            return;
        };
        let owned = state
            .owners
            .get(&partition)
            .is_some_and(|owner| owner.member == seat.member && owner.epoch == epoch);
        if owned {
            state.marks.insert(partition, mark);
            state.unwritten.insert(partition);
        }
    }

    /// Returns the mark of a partition.
    pub(super) fn mark(&self, group: &str, partition: PartitionId) -> Option<CommitMark> {
        self.groups
            .lock()
            .get(group)?
            .marks
            .get(&partition)
            .cloned()
    }

    /// Takes the marks that are not in the file yet.
    pub(super) fn take_unwritten(&self) -> Vec<GroupMark> {
        let mut taken = Vec::new();
        for (name, state) in self.groups.lock().iter_mut() {
            let partitions = std::mem::take(&mut state.unwritten);
            let marks = partitions
                .into_iter()
                .filter_map(|partition| Some((partition, state.marks.get(&partition)?)));
            taken.extend(marks.map(|(partition, mark)| (name.clone(), partition, mark.clone())));
        }
        taken
    }

    /// Returns marks that could not be written. A newer mark of the same partition is kept instead.
    pub(super) fn put_back(&self, marks: Vec<GroupMark>) {
        let mut groups = self.groups.lock();
        for (group, partition, _) in marks {
            groups.entry(group).or_default().unwritten.insert(partition);
        }
    }

    /// Notifies the owners of partitions with new records.
    pub(super) fn ring(&self, partitions: &HashSet<PartitionId>) {
        for state in self.groups.lock().values() {
            let owners = partitions
                .iter()
                .filter_map(|partition| state.owners.get(partition));
            owners
                .filter_map(|owner| state.members.get(&owner.member))
                .for_each(|member| member.mailbox.bell.notify_one());
        }
    }

    /// Returns the names of the groups that have members.
    pub(super) fn alive(&self) -> HashSet<String> {
        let groups = self.groups.lock();
        groups
            .iter()
            .filter(|(_, state)| !state.members.is_empty())
            .map(|(name, _)| name.clone())
            .collect()
    }
}

impl GroupState {
    /// Reassigns partitions. Only partitions that change owners are revoked, all of them before any
    /// is assigned.
    fn rebalance(&mut self, partitions: &[PartitionId]) {
        let interests = self
            .members
            .iter()
            .map(|(member, state)| (*member, state.topics.as_slice()))
            .collect();
        let current = self
            .owners
            .iter()
            .map(|(partition, owner)| (*partition, owner.member))
            .collect();
        let target = assignment::sticky(partitions, &interests, &current);
        for (partition, member) in &current {
            if target.get(partition) != Some(member) {
                self.owners.remove(partition);
                self.members
                    .get(member)
                    .inspect(|state| state.mailbox.revoke(*partition));
            }
        }
        for (partition, member) in target {
            if !self.owners.contains_key(&partition) {
                self.last_epoch += 1;
                let epoch = self.last_epoch;
                self.owners
                    .insert(partition, PartitionOwner { member, epoch });
                let committed = self.marks.get(&partition).cloned();
                let event = BusEvent::Assigned {
                    partition,
                    epoch,
                    committed,
                };
                self.members
                    .get(&member)
                    .inspect(|state| state.mailbox.push(event));
            }
        }
    }
}

impl EventMailbox {
    /// Removes and returns the oldest event.
    pub(super) fn pop(&self) -> Option<BusEvent> {
        self.events.lock().pop_front()
    }

    fn push(&self, event: BusEvent) {
        self.events.lock().push_back(event);
        self.bell.notify_one();
    }

    fn revoke(&self, lost: PartitionId) {
        let mut events = self.events.lock();
        let unread = |event: &BusEvent| matches!(event, BusEvent::Assigned { partition, .. } if *partition == lost);
        if events.iter().any(unread) {
            events.retain(|event| !unread(event));
        } else {
            events.push_back(BusEvent::Revoked { partition: lost });
        }
        self.bell.notify_one();
    }
}
