//! The slots in which jobs run, shared between organizations by weight. Pure.
//!
//! An organization may run more jobs the more slots are free. Alone it fills three quarters of
//! them, so that another one starts at once; several share them by weight, and what one does not
//! use the others get. Nothing is taken back from a job that runs.

use std::collections::HashMap;

use switchboard_schemas::ids::OrgId;

/// Jobs that an organization of weight 1 may run for each slot that stays free.
const JOBS_PER_FREE_SLOT: usize = 3;

/// The slots of one kind.
pub(super) struct SharedSlots {
    max: usize,
    running: usize,
    /// Running jobs of the organizations that have any; of unreadable records under `None`.
    by_organization: HashMap<Option<OrgId>, usize>,
}

impl SharedSlots {
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            running: 0,
            by_organization: HashMap::new(),
        }
    }

    pub(super) const fn are_full(&self) -> bool {
        self.running >= self.max
    }

    /// Returns true if a job of the organization may start. One that runs nothing may as long as a
    /// slot is free.
    pub(super) fn may_take(&self, organization: &Option<OrgId>, weight: usize) -> bool {
        let Some(left) = self.max.checked_sub(self.running + 1) else {
            return false;
        };
        let own = self.by_organization.get(organization).copied();
        own.is_none_or(|own| own < JOBS_PER_FREE_SLOT * weight * left)
    }

    pub(super) fn take(&mut self, organization: &Option<OrgId>) {
        self.running += 1;
        *self
            .by_organization
            .entry(organization.clone())
            .or_default() += 1;
    }

    pub(super) fn free(&mut self, organization: &Option<OrgId>) {
        let Some(own) = self.by_organization.get_mut(organization) else {
            return;
        };
        *own -= 1;
        if *own == 0 {
            self.by_organization.remove(organization);
        }
        self.running -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;
    use switchboard_schemas::secret::InstallationSecret;

    use super::*;

    fn org(name: usize) -> Option<OrgId> {
        let secret = InstallationSecret::from_bytes([7; 32]);
        Some(OrgId::derive(&secret, &name.to_string()))
    }

    /// Lets organizations with these weights start jobs in turn, while the oldest jobs end, and
    /// returns the numbers of running ones.
    fn settled(max: usize, weights: &[usize]) -> Vec<usize> {
        let (mut slots, mut running) = (SharedSlots::new(max), VecDeque::new());
        for step in 0..20 * max {
            for (name, weight) in weights.iter().enumerate() {
                if slots.may_take(&org(name), *weight) {
                    slots.take(&org(name));
                    running.push_back(name);
                }
            }
            if step > max
                && step < 19 * max
                && let Some(ended) = running.pop_front()
            {
                slots.free(&org(ended));
            }
        }
        let count = |name| running.iter().filter(|of| **of == name).count();
        (0..weights.len()).map(count).collect()
    }

    #[test]
    fn one_organization_leaves_slots_free() {
        for (max, expected) in [(1, 1), (2, 1), (4, 3), (64, 48), (256, 192)] {
            assert_eq!(settled(max, &[1]), [expected], "of {max}");
        }
    }

    #[test]
    fn organizations_share_slots_by_weight() {
        assert_eq!(settled(70, &[1, 1]), [30, 30]);
        assert_eq!(settled(4, &[1, 1, 1, 1]), [1, 1, 1, 1]);
        let weighted = settled(130, &[1, 3]);
        assert!(
            (28..34).contains(&weighted[0]) && (85..93).contains(&weighted[1]),
            "{weighted:?}"
        );
    }

    proptest! {
        #[test]
        fn newcomer_starts_while_a_slot_is_free(
            max in 1_usize..20,
            steps in prop::collection::vec((0_usize..4, 1_usize..4, any::<bool>()), 0..100),
        ) {
            let mut slots = SharedSlots::new(max);
            for (name, weight, ends) in steps {
                if ends {
                    slots.free(&org(name));
                } else if slots.may_take(&org(name), weight) {
                    slots.take(&org(name));
                }
                prop_assert!(slots.running <= max);
                prop_assert_eq!(slots.by_organization.values().sum::<usize>(), slots.running);
                prop_assert_eq!(slots.may_take(&org(9), 1), slots.running < max);
            }
        }
    }
}
