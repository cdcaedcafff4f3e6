//! Who of a team answers when the strategy asks for no comparison: the members in turn, or any of them. Pure.

use switchboard_backends::relay::{RoundRobinOffer, RoutingDecision};
use switchboard_schemas::{
    ids::{AgentId, TeamId},
    routing::{MemberScore, RoutingFacts, RoutingStage},
    team::RoutingStrategy,
};

use super::{
    candidates::Candidates,
    intent::{Current, Decided},
};

/// Shares are recorded in thousandths.
const PERMILLE: f32 = 1000.0;

/// What is still to be found out before a decision can be made.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// It is made.
    Made(RoutingDecision),
    /// The members are compared with the message.
    ByIntent(Current),
    /// The members take turns; the relay knows whose it is.
    NextInTurn,
    /// Any member.
    Any,
    /// Nobody can answer.
    Nobody,
}

/// How the agent is chosen for a message that follows one that `last` answered.
pub(crate) fn choose(
    strategy: RoutingStrategy,
    candidates: &Candidates,
    last: Option<&AgentId>,
) -> Choice {
    let current = current(candidates, last);
    match (strategy, current) {
        _ if candidates.members.is_empty() => {
            fallback(candidates, "no member can answer").map_or(Choice::Nobody, Choice::Made)
        }
        (RoutingStrategy::Intent, current) => Choice::ByIntent(current),
        (RoutingStrategy::RoundRobin | RoutingStrategy::Random, Current::Member(member)) => {
            let member = &candidates.members[member];
            Choice::Made(by_strategy(
                &member.agent_id,
                format!("continues the conversation with {}", member.name),
            ))
        }
        (RoutingStrategy::RoundRobin, _) => Choice::NextInTurn,
        (RoutingStrategy::Random, _) => Choice::Any,
    }
}

/// The members for the one whose turn it is in `team`.
pub(super) fn offer(candidates: &Candidates, team: &TeamId) -> RoundRobinOffer {
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

/// The member that a number points to.
pub(super) fn by_number(
    candidates: &Candidates,
    number: u64,
    reason: &str,
) -> Option<RoutingDecision> {
    let count = u64::try_from(candidates.members.len()).ok()?;
    let index = usize::try_from(number.checked_rem(count)?).ok()?;
    Some(by_strategy(
        &candidates.members[index].agent_id,
        reason.to_owned(),
    ))
}

/// The record of what was decided by intent.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "shares lie between 0 and 1"
)]
pub(crate) fn recorded(candidates: &Candidates, decided: Decided) -> Option<RoutingDecision> {
    let score = |(member, share): (&super::candidates::Candidate, &f32)| MemberScore {
        agent_id: member.agent_id.clone(),
        permille: (share.clamp(0.0, 1.0) * PERMILLE).round() as u16,
    };
    let scores = candidates
        .members
        .iter()
        .zip(&decided.scores)
        .map(score)
        .collect();
    let took_ms = u64::try_from(decided.took.as_millis()).unwrap_or(u64::MAX);
    let facts = RoutingFacts {
        stage: decided.stage,
        took_ms,
        scores,
    };
    let made = match decided.member {
        Some(member) => by_strategy(&candidates.members[member].agent_id, decided.reason),
        None => fallback_saying(candidates, decided.reason)?,
    };
    Some(RoutingDecision {
        facts: Some(facts),
        ..made
    })
}

fn current(candidates: &Candidates, last: Option<&AgentId>) -> Current {
    let member = candidates
        .members
        .iter()
        .position(|member| Some(&member.agent_id) == last);
    let is_default = last.is_some() && candidates.default_agent.as_ref() == last;
    match member {
        Some(member) => Current::Member(member),
        None if is_default => Current::Default,
        None => Current::Nobody,
    }
}

fn fallback(candidates: &Candidates, why: &str) -> Option<RoutingDecision> {
    fallback_saying(candidates, format!("{why}: the default agent answers"))
}

fn fallback_saying(candidates: &Candidates, reason: String) -> Option<RoutingDecision> {
    match (&candidates.default_agent, candidates.members.first()) {
        (Some(agent_id), _) => Some(by_strategy(agent_id, reason)),
        (None, Some(first)) => Some(by_strategy(
            &first.agent_id,
            reason.replace("the default agent", "the first member"),
        )),
        (None, None) => None,
    }
}

fn by_strategy(agent_id: &AgentId, reason: String) -> RoutingDecision {
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
    use crate::routing::candidates::Candidate;

    fn agent(slug: &str) -> AgentId {
        let secret = InstallationSecret::from_bytes([1; 32]);
        AgentId::derive(&secret, &OrgId::derive(&secret, "o"), slug)
    }

    fn member(slug: &str) -> Candidate {
        Candidate {
            agent_id: agent(slug),
            slug: slug.to_owned(),
            name: slug.to_owned(),
            description: String::new(),
            specialization: String::new(),
        }
    }

    fn desk() -> Candidates {
        Candidates {
            members: vec![member("billing"), member("technical")],
            default_agent: Some(agent("general")),
            agents: Vec::new(),
        }
    }

    #[test]
    fn without_members_the_default_agent_answers_whatever_the_strategy_and_without_it_nobody() {
        for strategy in [
            RoutingStrategy::Intent,
            RoutingStrategy::RoundRobin,
            RoutingStrategy::Random,
        ] {
            let mut candidates = Candidates {
                members: Vec::new(),
                ..desk()
            };
            assert!(matches!(
                choose(strategy, &candidates, None),
                Choice::Made(_)
            ));
            candidates.default_agent = None;
            assert_eq!(choose(strategy, &candidates, None), Choice::Nobody);
        }
    }

    #[test]
    fn turns_and_chance_are_for_new_conversations_only() {
        let last = agent("technical");
        for strategy in [RoutingStrategy::RoundRobin, RoutingStrategy::Random] {
            assert!(!matches!(choose(strategy, &desk(), None), Choice::Made(_)));
            let Choice::Made(decision) = choose(strategy, &desk(), Some(&last)) else {
                panic!("no stay")
            };
            assert_eq!(decision.agent_id, last);
        }
    }

    #[test]
    fn intent_knows_who_has_the_conversation_and_that_one_who_left_has_it_no_more() {
        for (last, current) in [
            (None, Current::Nobody),
            (Some(agent("technical")), Current::Member(1)),
            (Some(agent("general")), Current::Default),
            (Some(agent("somebody who left")), Current::Nobody),
        ] {
            assert_eq!(
                choose(RoutingStrategy::Intent, &desk(), last.as_ref()),
                Choice::ByIntent(current)
            );
        }
    }

    #[test]
    fn numbers_point_to_each_member_alike_and_to_nobody_of_none() {
        let chosen: Vec<_> = (0..7)
            .map(|number| by_number(&desk(), number, "turn").unwrap().agent_id)
            .collect();
        let billing = chosen.iter().filter(|id| **id == agent("billing")).count();
        assert_eq!(billing, 4);
        assert_eq!(by_number(&Candidates::default(), 1, "turn"), None);
    }

    #[test]
    fn a_decision_is_recorded_with_a_score_for_each_member_and_without_a_default_agent_the_first_member_answers()
     {
        let decided = Decided {
            member: None,
            stage: RoutingStage::Words,
            scores: vec![0.25, 0.5],
            reason: "no member matches: the default agent answers".into(),
            is_guess: false,
            took: Duration::from_millis(3),
        };
        let candidates = Candidates {
            default_agent: None,
            ..desk()
        };
        let decision = recorded(&candidates, decided).unwrap();
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
