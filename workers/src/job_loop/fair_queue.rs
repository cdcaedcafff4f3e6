//! A queue that serves organizations round-robin, however many entries one of them has.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
};

/// Entries by organization. An organization with entries is in `round_robin` exactly once.
pub(super) struct FairQueue<O, T> {
    entries: HashMap<O, VecDeque<T>>,
    round_robin: VecDeque<O>,
}

impl<O: Clone + Eq + Hash, T> FairQueue<O, T> {
    pub(super) fn new() -> Self {
        Self {
            entries: HashMap::new(),
            round_robin: VecDeque::new(),
        }
    }

    /// Adds an entry behind those of the same organization.
    pub(super) fn push(&mut self, organization: &O, entry: T) {
        if let Some(entries) = self.entries.get_mut(organization) {
            entries.push_back(entry);
            return;
        }
        self.round_robin.push_back(organization.clone());
        let entries = VecDeque::from([entry]);
        self.entries.insert(organization.clone(), entries);
    }

    /// Takes the first entry of the next organization in round-robin order that may start one. The
    /// others keep their turns.
    pub(super) fn pop_where(&mut self, may_start: impl Fn(&O) -> bool) -> Option<T> {
        let place = self.round_robin.iter().position(may_start)?;
        let organization = self.round_robin.remove(place)?;
        let entries = self.entries.get_mut(&organization)?;
        let entry = entries.pop_front();
        if entries.is_empty() {
            self.entries.remove(&organization);
        } else {
            self.round_robin.push_back(organization);
        }
        entry
    }

    /// Keeps the entries for which `wanted` returns true.
    pub(super) fn retain(&mut self, mut wanted: impl FnMut(&T) -> bool) {
        for entries in self.entries.values_mut() {
            entries.retain(&mut wanted);
        }
        self.entries.retain(|_, entries| !entries.is_empty());
        self.round_robin
            .retain(|organization| self.entries.contains_key(organization));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn popped(queue: &mut FairQueue<&str, u32>) -> Vec<u32> {
        std::iter::from_fn(|| queue.pop_where(|_| true)).collect()
    }

    #[test]
    fn skipped_organization_keeps_its_turn() {
        let mut queue = FairQueue::new();
        for (organization, entry) in [("a", 1), ("b", 2), ("b", 3), ("c", 4)] {
            queue.push(&organization, entry);
        }
        let others = |organization: &&str| *organization != "a";
        assert_eq!(queue.pop_where(others), Some(2));
        assert_eq!(popped(&mut queue), [1, 4, 3]);
        assert_eq!(queue.pop_where(|_| false), None);
    }

    #[test]
    fn late_organization_waits_for_one_entry_of_each_other() {
        let mut queue = FairQueue::new();
        for entry in 0..100 {
            queue.push(&"loud", entry);
        }
        queue.push(&"quiet", 1_000);
        queue.push(&"quiet", 1_001);
        assert_eq!(popped(&mut queue)[..5], [0, 1_000, 1, 1_001, 2]);
    }

    #[test]
    fn emptied_organization_leaves_the_rotation() {
        let mut queue = FairQueue::new();
        for (organization, entry) in [("a", 1), ("b", 2), ("a", 3), ("b", 4)] {
            queue.push(&organization, entry);
        }
        queue.retain(|entry| entry % 2 == 1);
        queue.push(&"b", 6);
        assert_eq!(popped(&mut queue), [1, 6, 3]);
    }

    proptest! {
        #[test]
        fn every_entry_is_popped_once_in_the_order_of_its_organization(
            pushed in prop::collection::vec((0_u32..4, any::<bool>()), 0..100),
        ) {
            let (mut queue, mut popped) = (FairQueue::new(), vec![]);
            for (number, (organization, pops)) in pushed.iter().enumerate() {
                queue.push(organization, (*organization, number));
                if *pops {
                    popped.extend(queue.pop_where(|_| true));
                }
            }
            popped.extend(std::iter::from_fn(|| queue.pop_where(|_| true)));
            prop_assert_eq!(popped.len(), pushed.len());
            for organization in 0..4 {
                let own = popped.iter().filter(|(of, _)| *of == organization);
                prop_assert!(own.is_sorted());
            }
        }
    }
}
