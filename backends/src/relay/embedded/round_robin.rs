//! Round robin among the members of a team, as a pure state machine. `choose_round_robin.lua`
//! implements the same rule.
//!
//! After each turn the counts of the offered members differ by at most one. An absent member keeps
//! its count within the range of the others when it returns: missed turns are not made up for, and
//! neither are turns taken while others were absent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use switchboard_schemas::ids::AgentId;

use crate::relay::ABSENT_MEMBERS_MAX;

/// The turns of one team.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct RoundRobin {
    /// Number of turns so far.
    turns: u64,
    members: BTreeMap<AgentId, MemberTurns>,
}

/// The turns of one member.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct MemberTurns {
    count: u64,
    /// Last turn in which the member was offered.
    seen: u64,
    /// Last turn that the member took; 0 if none.
    took: u64,
}

impl RoundRobin {
    /// Chooses one of `members`, given in the team's order, and counts the turn. Returns `None`
    /// without members.
    pub(super) fn next(&mut self, members: &[AgentId]) -> Option<AgentId> {
        let least = self.lowest_count(members);
        self.turns += 1;
        for member in members {
            let new = MemberTurns {
                count: least,
                ..MemberTurns::default()
            };
            let turns = self.members.entry(member.clone()).or_insert(new);
            turns.count = turns.count.clamp(least, least + 1);
            turns.seen = self.turns;
        }
        // The first of equals. Of equal counts, the member whose turn was longest ago comes first.
        let chosen = members.iter().min_by_key(|member| {
            self.members
                .get(member)
                .map(|turns| (turns.count, turns.took))
        })?;
        if let Some(turns) = self.members.get_mut(chosen) {
            turns.count += 1;
            turns.took = self.turns;
        }
        self.forget_longest_absent();
        Some(chosen.clone())
    }

    /// Returns the count of a new member: the lowest count of those that were also offered in the
    /// turn before.
    fn lowest_count(&self, members: &[AgentId]) -> u64 {
        let known = || members.iter().filter_map(|member| self.members.get(member));
        let stayed = known()
            .filter(|turns| turns.seen == self.turns)
            .map(|turns| turns.count)
            .min();
        stayed
            .or_else(|| known().map(|turns| turns.count).min())
            .unwrap_or_default()
    }

    fn forget_longest_absent(&mut self) {
        let away = self
            .members
            .iter()
            .filter(|(_, turns)| turns.seen < self.turns);
        let mut away: Vec<_> = away
            .map(|(id, turns)| (std::cmp::Reverse(turns.seen), id.clone()))
            .collect();
        away.sort_unstable();
        for (_, id) in away.into_iter().skip(ABSENT_MEMBERS_MAX) {
            self.members.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use switchboard_schemas::{ids::OrgId, secret::InstallationSecret};

    use super::*;

    fn agents(count: usize) -> Vec<AgentId> {
        let secret = InstallationSecret::from_bytes([1; 32]);
        let org = OrgId::derive(&secret, "o");
        (0..count)
            .map(|number| AgentId::derive(&secret, &org, &number.to_string()))
            .collect()
    }

    #[test]
    fn counts_of_the_latest_absent_members_are_kept() {
        let (mut round_robin, team) = (RoundRobin::default(), agents(3 * ABSENT_MEMBERS_MAX));
        for member in &team {
            round_robin.next(std::slice::from_ref(member));
        }
        assert_eq!(round_robin.members.len(), ABSENT_MEMBERS_MAX + 1);
        assert!(
            team[team.len() - ABSENT_MEMBERS_MAX - 1..]
                .iter()
                .all(|member| round_robin.members.contains_key(member))
        );
    }

    #[test]
    fn round_robin_without_members_chooses_none() {
        assert_eq!(RoundRobin::default().next(&[]), None);
    }
}
