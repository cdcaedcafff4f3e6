//! Consumer groups of the embedded bus: who owns which partition, and how far each group is.
//!
//! Everything happens under one lock at once, so a partition has at most one owner at any time. A member learns of
//! it from its mailbox; what it was told and has not read yet is corrected instead of added to, which bounds the mailbox.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex},
};

use switchboard_schemas::topics::Topic;
use tokio::sync::Notify;

use super::{assignment, file::GroupMark};
use crate::bus::{BusEvent, CommitMark, PartitionId, lock::lock};

/// All groups of this process.
#[derive(Default)]
pub(super) struct Groups {
    groups: Mutex<HashMap<String, Group>>,
}

#[derive(Default)]
struct Group {
    members: BTreeMap<u64, Member>,
    owners: BTreeMap<PartitionId, Owner>,
    marks: HashMap<PartitionId, CommitMark>,
    unwritten: HashSet<PartitionId>,
    last_member: u64,
    last_epoch: u64,
}

struct Member {
    topics: Vec<Topic>,
    mailbox: Arc<Mailbox>,
}

#[derive(Clone, Copy)]
struct Owner {
    member: u64,
    epoch: u64,
}

/// A place in a group.
pub(super) struct Seat {
    /// Name of the group.
    pub(super) group: String,
    /// Number of the member.
    pub(super) member: u64,
    /// Where it learns what changed.
    pub(super) mailbox: Arc<Mailbox>,
}

/// What a member has not been told yet.
#[derive(Default)]
pub(super) struct Mailbox {
    events: Mutex<VecDeque<BusEvent>>,
    /// Rung for an event and for a new record of an owned partition; a ring is kept until somebody waits.
    pub(super) bell: Notify,
}

impl Groups {
    /// Adds a member. `stored` are the marks in the file; they count only if the group is not in memory yet.
    pub(super) fn join(
        &self,
        group: &str,
        topics: &[Topic],
        stored: HashMap<PartitionId, CommitMark>,
        partitions: &[PartitionId],
    ) -> Seat {
        let mut groups = lock(&self.groups);
        let state = groups.entry(group.to_owned()).or_insert_with(|| Group {
            marks: stored,
            ..Group::default()
        });
        state.last_member += 1;
        let (member, mailbox) = (state.last_member, Arc::new(Mailbox::default()));
        state.members.insert(
            member,
            Member {
                topics: topics.to_vec(),
                mailbox: mailbox.clone(),
            },
        );
        state.rebalance(partitions);
        Seat {
            group: group.to_owned(),
            member,
            mailbox,
        }
    }

    /// Removes a member; the others take over its partitions.
    pub(super) fn leave(&self, seat: &Seat, partitions: &[PartitionId]) {
        if let Some(state) = lock(&self.groups).get_mut(&seat.group) {
            state.members.remove(&seat.member);
            state.rebalance(partitions);
        }
    }

    /// Notes a mark, unless the partition has another owner or another epoch by now.
    pub(super) fn commit(&self, seat: &Seat, partition: PartitionId, epoch: u64, mark: CommitMark) {
        let mut groups = lock(&self.groups);
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

    /// The mark of a partition.
    pub(super) fn mark(&self, group: &str, partition: PartitionId) -> Option<CommitMark> {
        lock(&self.groups)
            .get(group)?
            .marks
            .get(&partition)
            .cloned()
    }

    /// Takes the marks that are not in the file yet.
    pub(super) fn take_unwritten(&self) -> Vec<GroupMark> {
        let mut taken = Vec::new();
        for (name, state) in lock(&self.groups).iter_mut() {
            let partitions = std::mem::take(&mut state.unwritten);
            let marks = partitions
                .into_iter()
                .filter_map(|partition| Some((partition, state.marks.get(&partition)?)));
            taken.extend(marks.map(|(partition, mark)| (name.clone(), partition, mark.clone())));
        }
        taken
    }

    /// Gives marks back that could not be written; a newer one of the same partition is written instead.
    pub(super) fn put_back(&self, marks: Vec<GroupMark>) {
        let mut groups = lock(&self.groups);
        for (group, partition, _) in marks {
            groups.entry(group).or_default().unwritten.insert(partition);
        }
    }

    /// Wakes the owners of partitions that have new records.
    pub(super) fn ring(&self, partitions: &HashSet<PartitionId>) {
        for state in lock(&self.groups).values() {
            let owners = partitions
                .iter()
                .filter_map(|partition| state.owners.get(partition));
            owners
                .filter_map(|owner| state.members.get(&owner.member))
                .for_each(|member| member.mailbox.bell.notify_one());
        }
    }

    /// Names of the groups that have members.
    pub(super) fn alive(&self) -> HashSet<String> {
        let groups = lock(&self.groups);
        groups
            .iter()
            .filter(|(_, state)| !state.members.is_empty())
            .map(|(name, _)| name.clone())
            .collect()
    }
}

impl Group {
    /// Only partitions that change hands are revoked, and all of them before any is assigned.
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
                self.owners.insert(partition, Owner { member, epoch });
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

impl Mailbox {
    /// The oldest event.
    pub(super) fn pop(&self) -> Option<BusEvent> {
        lock(&self.events).pop_front()
    }

    fn push(&self, event: BusEvent) {
        lock(&self.events).push_back(event);
        self.bell.notify_one();
    }

    fn revoke(&self, lost: PartitionId) {
        let mut events = lock(&self.events);
        let unread = |event: &BusEvent| matches!(event, BusEvent::Assigned { partition, .. } if *partition == lost);
        if events.iter().any(unread) {
            events.retain(|event| !unread(event));
        } else {
            events.push_back(BusEvent::Revoked { partition: lost });
        }
        self.bell.notify_one();
    }
}
