//! Choice of an agent by the team's strategy, as far as it needs no comparison with the message.
//! Pure functions.

use switchboard_backends::relay::{RoundRobinOffer, RoutingDecision};
use switchboard_schemas::{
    ids::{AgentId, TeamId},
    routing::{MemberScore, RoutingFacts, RoutingStage},
    team::RoutingStrategy,
    time::whole_millis,
};

use super::{
    candidates::RoutingCandidates,
    intent::{ConversationHolder, IntentDecision},
};

/// Factor from a score to the recorded thousandths.
const PERMILLE: f32 = 1000.0;

/// The next step towards a routing decision.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RoutingStep {
    /// The decision is made.
    Decided(RoutingDecision),
    /// Compare the members with the message.
    ByIntent(ConversationHolder),
    /// Take the next member of the rotation, which the relay counts.
    RoundRobin,
    /// Take any of the members.
    Random,
    /// Fail, because no agent can answer.
    NoAgent,
}

/// Returns the next step for a message after one that `last` answered.
pub(crate) fn choose_agent(
    strategy: RoutingStrategy,
    candidates: &RoutingCandidates,
    last: Option<&AgentId>,
) -> RoutingStep {
    let current = current_holder(candidates, last);
    match (strategy, current) {
        _ if candidates.members.is_empty() => default_decision(candidates, "no member can answer")
            .map_or(RoutingStep::NoAgent, RoutingStep::Decided),
        (RoutingStrategy::Intent, current) => RoutingStep::ByIntent(current),
        (
            RoutingStrategy::RoundRobin | RoutingStrategy::Random,
            ConversationHolder::Member(member),
        ) => {
            let member = &candidates.members[member];
            RoutingStep::Decided(decision_by_strategy(
                &member.agent_id,
                format!("continues the conversation with {}", member.name),
            ))
        }
        (RoutingStrategy::RoundRobin, _) => RoutingStep::RoundRobin,
        (RoutingStrategy::Random, _) => RoutingStep::Random,
    }
}

/// Returns the members among which the rotation of `team` chooses.
pub(super) fn round_robin_offer(candidates: &RoutingCandidates, team: &TeamId) -> RoundRobinOffer {
    RoundRobinOffer {
        team: team.clone(),
        members: candidates
            .members
            .iter()
            .map(|member| member.agent_id.clone())
            .collect(),
        reason: "next in turn".to_owned(),
        facts: Some(strategy_facts()),
    }
}

/// Returns a decision for the member that `number` maps to; none if there are no members.
pub(super) fn member_by_number(
    candidates: &RoutingCandidates,
    number: u64,
    reason: &str,
) -> Option<RoutingDecision> {
    let count = u64::try_from(candidates.members.len()).ok()?;
    let index = usize::try_from(number.checked_rem(count)?).ok()?;
    Some(decision_by_strategy(
        &candidates.members[index].agent_id,
        reason.to_owned(),
    ))
}

/// Returns the routing decision with the facts of a decision by intent; none if no agent can
/// answer.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "scores lie between 0 and 1"
)]
pub(crate) fn decision_by_intent(
    candidates: &RoutingCandidates,
    decided: IntentDecision,
) -> Option<RoutingDecision> {
    let score = |(member, share): (&super::candidates::RoutingCandidate, &f32)| MemberScore {
        agent_id: member.agent_id.clone(),
        permille: (share.clamp(0.0, 1.0) * PERMILLE).round() as u16,
    };
    let scores = candidates
        .members
        .iter()
        .zip(&decided.scores)
        .map(score)
        .collect();
    let took_ms = whole_millis(decided.took);
    let facts = RoutingFacts {
        stage: decided.stage,
        took_ms,
        scores,
    };
    let made = match decided.member {
        Some(member) => decision_by_strategy(&candidates.members[member].agent_id, decided.reason),
        None => default_decision_with_reason(candidates, decided.reason)?,
    };
    Some(RoutingDecision {
        facts: Some(facts),
        ..made
    })
}

fn current_holder(candidates: &RoutingCandidates, last: Option<&AgentId>) -> ConversationHolder {
    let member = candidates
        .members
        .iter()
        .position(|member| Some(&member.agent_id) == last);
    let is_default = last.is_some() && candidates.default_agent.as_ref() == last;
    match member {
        Some(member) => ConversationHolder::Member(member),
        None if is_default => ConversationHolder::Default,
        None => ConversationHolder::Nobody,
    }
}

fn default_decision(candidates: &RoutingCandidates, why: &str) -> Option<RoutingDecision> {
    default_decision_with_reason(candidates, format!("{why}: the default agent answers"))
}

fn default_decision_with_reason(
    candidates: &RoutingCandidates,
    reason: String,
) -> Option<RoutingDecision> {
    match (&candidates.default_agent, candidates.members.first()) {
        (Some(agent_id), _) => Some(decision_by_strategy(agent_id, reason)),
        (None, Some(first)) => Some(decision_by_strategy(
            &first.agent_id,
            reason.replace("the default agent", "the first member"),
        )),
        (None, None) => None,
    }
}

fn decision_by_strategy(agent_id: &AgentId, reason: String) -> RoutingDecision {
    RoutingDecision {
        agent_id: agent_id.clone(),
        reason,
        facts: Some(strategy_facts()),
    }
}

const fn strategy_facts() -> RoutingFacts {
    RoutingFacts {
        stage: RoutingStage::Strategy,
        took_ms: 0,
        scores: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use switchboard_schemas::{ids::OrgId, secret::InstallationSecret};

    use super::*;
    use crate::routing::candidates::RoutingCandidate;

    fn agent(slug: &str) -> AgentId {
        let secret = InstallationSecret::from_bytes([1; 32]);
        AgentId::derive(&secret, &OrgId::derive(&secret, "o"), slug)
    }

    fn member(slug: &str) -> RoutingCandidate {
        RoutingCandidate {
            agent_id: agent(slug),
            slug: slug.to_owned(),
            name: slug.to_owned(),
            description: String::new(),
            specialization: String::new(),
        }
    }

    fn desk() -> RoutingCandidates {
        RoutingCandidates {
            members: vec![member("billing"), member("technical")],
            default_agent: Some(agent("general")),
            agents: Vec::new(),
        }
    }

    #[test]
    fn team_without_members_falls_back_to_the_default_agent() {
        for strategy in [
            RoutingStrategy::Intent,
            RoutingStrategy::RoundRobin,
            RoutingStrategy::Random,
        ] {
            let mut candidates = RoutingCandidates {
                members: Vec::new(),
                ..desk()
            };
            assert!(matches!(
                choose_agent(strategy, &candidates, None),
                RoutingStep::Decided(_)
            ));
            candidates.default_agent = None;
            assert_eq!(
                choose_agent(strategy, &candidates, None),
                RoutingStep::NoAgent
            );
        }
    }

    #[test]
    fn rotation_and_chance_apply_to_new_conversations_only() {
        let last = agent("technical");
        for strategy in [RoutingStrategy::RoundRobin, RoutingStrategy::Random] {
            assert!(!matches!(
                choose_agent(strategy, &desk(), None),
                RoutingStep::Decided(_)
            ));
            let RoutingStep::Decided(decision) = choose_agent(strategy, &desk(), Some(&last))
            else {
                panic!("no stay")
            };
            assert_eq!(decision.agent_id, last);
        }
    }

    #[test]
    fn removed_agent_no_longer_holds_a_conversation() {
        for (last, current) in [
            (None, ConversationHolder::Nobody),
            (Some(agent("technical")), ConversationHolder::Member(1)),
            (Some(agent("general")), ConversationHolder::Default),
            (Some(agent("somebody who left")), ConversationHolder::Nobody),
        ] {
            assert_eq!(
                choose_agent(RoutingStrategy::Intent, &desk(), last.as_ref()),
                RoutingStep::ByIntent(current)
            );
        }
    }

    #[test]
    fn numbers_map_to_members_evenly() {
        let chosen: Vec<_> = (0..7)
            .map(|number| member_by_number(&desk(), number, "turn").unwrap().agent_id)
            .collect();
        let billing = chosen.iter().filter(|id| **id == agent("billing")).count();
        assert_eq!(billing, 4);
        assert_eq!(
            member_by_number(&RoutingCandidates::default(), 1, "turn"),
            None
        );
    }

    #[test]
    fn decision_records_scores_and_falls_back_to_the_first_member() {
        let decided = IntentDecision {
            member: None,
            stage: RoutingStage::Words,
            scores: vec![0.25, 0.5],
            reason: "no member matches: the default agent answers".into(),
            is_guess: false,
            took: Duration::from_millis(3),
        };
        let candidates = RoutingCandidates {
            default_agent: None,
            ..desk()
        };
        let decision = decision_by_intent(&candidates, decided).unwrap();
        assert_eq!(decision.agent_id, agent("billing"));
        assert_eq!(
            decision.reason,
            "no member matches: the first member answers"
        );
        let facts = decision.facts.unwrap();
        let scores: Vec<_> = facts
            .scores
            .iter()
            .map(|score| (score.agent_id.clone(), score.permille))
            .collect();
        assert_eq!(
            (scores, facts.took_ms),
            (vec![(agent("billing"), 250), (agent("technical"), 500)], 3)
        );
    }
}
