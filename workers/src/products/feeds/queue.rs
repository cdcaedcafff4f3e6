//! The order of due feeds if more are due than one process fetches at once: organizations with
//! fewer running fetches first, then the feed that has been due longest.

use std::collections::HashMap;

use switchboard_backends::products::ProductsStatus;
use switchboard_schemas::{agent::Agent, ids::OrgId, time::Timestamp};

/// A feed that is due, with the state of its agent.
pub(super) struct DueFeed {
    pub(super) agent: Box<Agent>,
    pub(super) status: ProductsStatus,
    pub(super) since: Timestamp,
}

/// The waiting feeds, and the number of running fetches of each organization.
pub(super) struct FeedQueue {
    waiting: Vec<DueFeed>,
    running: HashMap<OrgId, usize>,
    of_one_max: usize,
}

impl FeedQueue {
    /// Creates a queue for `places` slots, some of which are `running` fetches of these
    /// organizations. If `others` have feeds too, no organization takes all slots, because the next
    /// due feed may belong to another one.
    pub(super) fn new<'a>(
        waiting: Vec<DueFeed>,
        running: impl Iterator<Item = &'a OrgId>,
        places: usize,
        others: bool,
    ) -> Self {
        let mut counted = HashMap::new();
        for org in running {
            *counted.entry(org.clone()).or_default() += 1;
        }
        let of_one_max = if others {
            places.saturating_sub(1).max(1)
        } else {
            places
        };
        Self {
            waiting,
            running: counted,
            of_one_max,
        }
    }

    /// Removes and returns the next feed to fetch; none if all waiting feeds must wait for a slot.
    pub(super) fn next(&mut self) -> Option<DueFeed> {
        let waiting = self
            .waiting
            .iter()
            .enumerate()
            .map(|(index, due)| (self.running_count(&due.agent.org_id), due.since, index));
        let (_, _, index) = waiting
            .filter(|(running, ..)| *running < self.of_one_max)
            .min()?;
        Some(self.waiting.remove(index))
    }

    /// Counts one more running fetch of an organization.
    pub(super) fn count_running(&mut self, org: &OrgId) {
        *self.running.entry(org.clone()).or_default() += 1;
    }

    fn running_count(&self, org: &OrgId) -> usize {
        self.running.get(org).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use switchboard_schemas::{agent::AgentSettings, ids::AgentId, secret::InstallationSecret};

    use super::*;

    fn org(name: &str) -> OrgId {
        OrgId::derive(&InstallationSecret::from_bytes([7; 32]), name)
    }

    fn due(org_name: &str, since: i64) -> DueFeed {
        let slug = format!("{org_name}-{since}");
        let agent = Agent {
            id: AgentId::derive(
                &InstallationSecret::from_bytes([7; 32]),
                &org(org_name),
                &slug,
            ),
            org_id: org(org_name),
            name: slug.clone(),
            slug,
            provider: None,
            fallback_provider: None,
            settings: AgentSettings::default(),
        };
        DueFeed {
            agent: Box::new(agent),
            status: ProductsStatus::default(),
            since: Timestamp::from_micros(since),
        }
    }

    fn order(waiting: Vec<DueFeed>, running: &[&str], places: usize, others: bool) -> Vec<String> {
        let running: Vec<OrgId> = running.iter().map(|name| org(name)).collect();
        let mut queue = FeedQueue::new(waiting, running.iter(), places, others);
        std::iter::from_fn(|| {
            let next = queue.next()?;
            queue.count_running(&next.agent.org_id);
            Some(next.agent.slug)
        })
        .collect()
    }

    #[test]
    fn longest_due_feed_goes_first() {
        assert_eq!(
            order(vec![due("a", 9), due("a", 0), due("a", 5)], &[], 4, false),
            ["a-0", "a-5", "a-9"]
        );
    }

    #[test]
    fn organizations_alternate_despite_one_with_many_feeds() {
        let waiting = vec![
            due("a", 1),
            due("a", 2),
            due("a", 3),
            due("b", 8),
            due("c", 9),
        ];
        assert_eq!(
            order(waiting, &["b"], 4, true),
            ["a-1", "c-9", "a-2", "b-8", "a-3"]
        );
    }

    #[test]
    fn organization_leaves_a_slot_for_others() {
        let waiting = || (1..=4).map(|since| due("a", since)).collect();
        assert_eq!(order(waiting(), &["a"], 3, true), ["a-1"]);
        assert_eq!(order(waiting(), &["a"], 3, false), ["a-1", "a-2"]);
        assert_eq!(order(waiting(), &[], 1, true), ["a-1"]);
    }
}
