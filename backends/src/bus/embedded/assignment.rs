//! Assignment of partitions to the members of a group, in even shares and with as few moves as
//! possible.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

use switchboard_schemas::topics::Topic;

use crate::bus::PartitionId;

/// Returns the owner of each partition that any member has subscribed to.
pub(super) fn sticky(
    partitions: &[PartitionId],
    interests: &BTreeMap<u64, &[Topic]>,
    current: &BTreeMap<PartitionId, u64>,
) -> BTreeMap<PartitionId, u64> {
    let mut target = BTreeMap::new();
    for topic in Topic::ALL {
        let members: Vec<u64> = interests
            .iter()
            .filter(|(_, topics)| topics.contains(&topic))
            .map(|(member, _)| *member)
            .collect();
        let of_topic: Vec<PartitionId> = partitions
            .iter()
            .copied()
            .filter(|id| id.topic == topic)
            .collect();
        if !members.is_empty() {
            share(&of_topic, members, current, &mut target);
        }
    }
    target
}

fn share(
    partitions: &[PartitionId],
    mut members: Vec<u64>,
    current: &BTreeMap<PartitionId, u64>,
    target: &mut BTreeMap<PartitionId, u64>,
) {
    let held = |member: &u64| {
        partitions
            .iter()
            .filter(|partition| current.get(partition) == Some(member))
            .count()
    };
    // The members with most partitions may keep one more if the shares do not divide evenly.
    members.sort_by_key(|member| (Reverse(held(member)), *member));
    let (share, more) = (
        partitions.len() / members.len(),
        partitions.len() % members.len(),
    );
    let mut room: HashMap<u64, usize> = members
        .iter()
        .enumerate()
        .map(|(rank, member)| (*member, share + usize::from(rank < more)))
        .collect();

    let mut free = Vec::new();
    for partition in partitions {
        match current
            .get(partition)
            .and_then(|owner| Some((owner, room.get_mut(owner)?)))
        {
            Some((owner, left)) if *left > 0 => {
                *left -= 1;
                target.insert(*partition, *owner);
            }
            _ => free.push(*partition),
        }
    }
    let seats = members
        .iter()
        .flat_map(|member| std::iter::repeat_n(*member, room.get(member).copied().unwrap_or(0)));
    target.extend(free.into_iter().zip(seats));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(count: u32) -> Vec<PartitionId> {
        (0..count)
            .map(|number| PartitionId {
                topic: Topic::Jobs,
                number,
            })
            .collect()
    }

    fn after(members: &[u64], current: &BTreeMap<PartitionId, u64>) -> BTreeMap<PartitionId, u64> {
        let interests = members
            .iter()
            .map(|member| (*member, &[Topic::Jobs][..]))
            .collect();
        sticky(&jobs(7), &interests, current)
    }

    fn shares(target: &BTreeMap<PartitionId, u64>) -> Vec<usize> {
        let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
        target
            .values()
            .for_each(|member| *counts.entry(*member).or_default() += 1);
        let mut sizes: Vec<usize> = counts.into_values().collect();
        sizes.sort_unstable();
        sizes
    }

    #[test]
    fn partitions_are_shared_evenly_with_minimal_moves() {
        let alone = after(&[1], &BTreeMap::new());
        assert_eq!(shares(&alone), [7]);
        let two = after(&[1, 2], &alone);
        assert_eq!(shares(&two), [3, 4]);
        assert_eq!(
            alone
                .iter()
                .filter(|(partition, owner)| two[partition] != **owner)
                .count(),
            3
        );
        let three = after(&[1, 2, 3], &two);
        assert_eq!(shares(&three), [2, 2, 3]);
        assert_eq!(
            two.iter()
                .filter(|(partition, owner)| three[partition] != **owner)
                .count(),
            2
        );
        let left = after(&[2, 3], &three);
        assert_eq!(shares(&left), [3, 4]);
        assert!(
            three
                .iter()
                .filter(|(_, owner)| **owner != 1)
                .all(|(partition, owner)| left[partition] == *owner)
        );
    }

    #[test]
    fn member_receives_only_subscribed_topics() {
        let interests = BTreeMap::from([(1, &[Topic::Route][..])]);
        assert!(sticky(&jobs(3), &interests, &BTreeMap::new()).is_empty());
    }

    #[test]
    fn surplus_members_receive_no_partition() {
        let members: Vec<u64> = (1..=9).collect();
        assert_eq!(shares(&after(&members, &BTreeMap::new())), [1; 7]);
    }
}
