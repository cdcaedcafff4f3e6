//! Whose turn it is in a team, whose members come and go. Pure; `decide_in_turn.lua` has the same rule, line for line.
//!
//! After each turn the counts of those who could answer differ by at most one. Who was away keeps its count, but comes back
//! at most level with the others: turns that were missed are not made up for, and neither are those that were had alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use switchboard_schemas::ids::AgentId;

use super::ABSENT_MEMBERS_MAX;

/// The turns of a team.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Rotation {
    /// How many were taken.
    turns: u64,
    members: BTreeMap<AgentId, Place>,
}

/// A member's place.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Place {
    count: u64,
    /// The turn in which it could last answer.
    seen: u64,
    /// The turn that it last took; 0 for none.
    took: u64,
}

impl Rotation {
    /// Chooses among `members`, in the team's order, and counts the turn; none of nobody.
    pub(super) fn next(&mut self, members: &[AgentId]) -> Option<AgentId> {
        let least = self.least(members);
        self.turns += 1;
        for member in members {
            let new = Place {
                count: least,
                ..Place::default()
            };
            let place = self.members.entry(member.clone()).or_insert(new);
            place.count = place.count.clamp(least, least + 1);
            place.seen = self.turns;
        }
        // The first of equals. Who had its turn longest ago is before those who are level with it by having been away.
        let chosen = members.iter().min_by_key(|member| {
            self.members
                .get(member)
                .map(|place| (place.count, place.took))
        })?;
        if let Some(place) = self.members.get_mut(chosen) {
            place.count += 1;
            place.took = self.turns;
        }
        self.forget_the_longest_away();
        Some(chosen.clone())
    }

    /// What newcomers start with: the least count of those who could answer in the turn before too.
    fn least(&self, members: &[AgentId]) -> u64 {
        let known = || members.iter().filter_map(|member| self.members.get(member));
        let stayed = known()
            .filter(|place| place.seen == self.turns)
            .map(|place| place.count)
            .min();
        stayed
            .or_else(|| known().map(|place| place.count).min())
            .unwrap_or_default()
    }

    fn forget_the_longest_away(&mut self) {
        let away = self
            .members
            .iter()
            .filter(|(_, place)| place.seen < self.turns);
        let mut away: Vec<_> = away
            .map(|(id, place)| (std::cmp::Reverse(place.seen), id.clone()))
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
    fn absent_members_are_remembered_up_to_a_bound_latest_first() {
        let (mut rotation, team) = (Rotation::default(), agents(3 * ABSENT_MEMBERS_MAX));
        for member in &team {
            rotation.next(std::slice::from_ref(member));
        }
        assert_eq!(rotation.members.len(), ABSENT_MEMBERS_MAX + 1);
        assert!(
            team[team.len() - ABSENT_MEMBERS_MAX - 1..]
                .iter()
                .all(|member| rotation.members.contains_key(member))
        );
    }

    #[test]
    fn of_nobody_it_is_nobodys_turn() {
        assert_eq!(Rotation::default().next(&[]), None);
    }
}
