//! Who of a team answers. Pure.

use switchboard_schemas::{agent::Status, ids::AgentId};

/// Someone who could answer, in the order of preference.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    /// Agent.
    pub(super) agent_id: AgentId,
    /// Whether the team names it for what no member matches.
    pub(super) is_default: bool,
    /// Its state; none when it is gone or another organization's.
    pub(super) status: Option<Status>,
    /// Whether the public API reaches it.
    pub(super) public: bool,
}

/// A decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// Agent.
    pub(super) agent_id: AgentId,
    /// Why, in words a customer can read.
    pub(super) reason: &'static str,
}

/// The default agent if it is active, else the first active public member. Where none can answer, the first that still
/// exists is named all the same: the inference worker then ends the turn visibly.
pub(super) fn choose(candidates: &[Candidate]) -> Option<Choice> {
    let active = |candidate: &&Candidate| candidate.status == Some(Status::Active);
    let able = candidates.iter().filter(active).find(|candidate| candidate.is_default || candidate.public);
    let chosen = able.or_else(|| candidates.iter().find(|candidate| candidate.status.is_some()));
    let chosen = chosen.or_else(|| candidates.first())?;
    let reason = if chosen.is_default { "default agent" } else { "first available member" };
    Some(Choice { agent_id: chosen.agent_id.clone(), reason })
}

#[cfg(test)]
mod tests {
    use switchboard_schemas::{ids::OrgId, secret::InstallationSecret};

    use super::*;

    fn candidate(slug: &str, is_default: bool, status: Option<Status>, public: bool) -> Candidate {
        let secret = InstallationSecret::from_bytes([1; 32]);
        let agent_id = AgentId::derive(&secret, &OrgId::derive(&secret, "o"), slug);
        Candidate { agent_id, is_default, status, public }
    }

    fn chosen(candidates: &[Candidate]) -> Option<usize> {
        let choice = choose(candidates)?;
        candidates.iter().position(|candidate| candidate.agent_id == choice.agent_id)
    }

    #[test]
    fn the_default_agent_answers_when_it_is_active() {
        let team =
            [candidate("d", true, Some(Status::Active), false), candidate("m", false, Some(Status::Active), true)];
        assert_eq!(chosen(&team), Some(0));
        assert_eq!(choose(&team).unwrap().reason, "default agent");
    }

    #[test]
    fn without_it_the_first_active_public_member_answers() {
        let team = [
            candidate("d", true, Some(Status::Inactive), true),
            candidate("a", false, Some(Status::Draft), true),
            candidate("b", false, Some(Status::Active), false),
            candidate("c", false, Some(Status::Active), true),
        ];
        assert_eq!(chosen(&team), Some(3));
    }

    #[test]
    fn a_team_of_nobody_has_no_choice() {
        assert_eq!(choose(&[]), None);
        assert_eq!(
            chosen(&[candidate("gone", false, None, false), candidate("off", false, Some(Status::Inactive), true)]),
            Some(1)
        );
    }
}
