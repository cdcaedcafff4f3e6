//! Who of a team answers: continuity first, then the team's strategy, then its default agent. Pure.

use switchboard_backends::relay::Decision;
use switchboard_schemas::{ids::AgentId, team::RoutingStrategy};

use super::lexical::{self, Fit, Profile};

/// Fit from which a member matches: one telling word, or two that are half sure.
const MATCH_MIN: f64 = 0.9;
/// Fit from which a running conversation goes to another member: more than one word can mean by chance.
const CHANGE_MIN: f64 = 1.5;
/// How much better than its present member the other one must be.
const CHANGE_FACTOR: f64 = 2.0;

/// A member that can answer.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    /// Agent.
    pub(super) agent_id: AgentId,
    /// Its name.
    pub(super) name: String,
    /// What it is.
    pub(super) description: String,
    /// What the team says of it.
    pub(super) specialization: String,
}

/// Who could answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Candidates {
    /// Members, in the order of the team.
    pub(super) members: Vec<Candidate>,
    /// Answers when no member matches.
    pub(super) default_agent: Option<AgentId>,
}

/// What is still to be found out before a decision can be made.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// It is made.
    Made(Decision),
    /// The members take turns; the number says whose it is.
    NextInTurn,
    /// Any member.
    Any,
    /// Nobody can answer.
    Nobody,
}

/// Chooses for `message`, which follows one that `last` answered.
pub(super) fn choose(
    strategy: RoutingStrategy,
    candidates: &Candidates,
    last: Option<&AgentId>,
    message: &str,
) -> Choice {
    let current = candidates.members.iter().position(|member| Some(&member.agent_id) == last);
    match strategy {
        _ if candidates.members.is_empty() => fallback(candidates),
        RoutingStrategy::Intent => by_intent(candidates, current, message),
        RoutingStrategy::RoundRobin | RoutingStrategy::Random if current.is_some() => {
            current.map_or(Choice::Nobody, |current| stay(&candidates.members[current]))
        }
        RoutingStrategy::RoundRobin => Choice::NextInTurn,
        RoutingStrategy::Random => Choice::Any,
    }
}

/// The member that a number points to.
pub(super) fn by_number(candidates: &Candidates, number: u64, reason: &str) -> Option<Decision> {
    let count = u64::try_from(candidates.members.len()).ok()?;
    let index = usize::try_from(number.checked_rem(count)?).ok()?;
    Some(decision(&candidates.members[index].agent_id, reason.to_owned()))
}

fn by_intent(candidates: &Candidates, current: Option<usize>, message: &str) -> Choice {
    let members = &candidates.members;
    let fits = lexical::fits(message, &members.iter().map(Candidate::profile).collect::<Vec<_>>());
    // Of equal fits the first member's, so that a repeat decides alike.
    let better = |best: usize, index: usize| if fits[index].score > fits[best].score { index } else { best };
    let best = (0..members.len()).fold(0, better);
    match current {
        Some(current) if !is_clear_change(&fits[current], &fits[best]) => stay(&members[current]),
        Some(_) => made(&members[best].agent_id, format!("topic change: {}", topics(&fits[best]))),
        None if fits[best].score >= MATCH_MIN => made(&members[best].agent_id, topics(&fits[best])),
        None => fallback(candidates),
    }
}

/// Short answers, names of places and thanks share a word with a member at most by chance; they change nothing.
fn is_clear_change(current: &Fit, best: &Fit) -> bool {
    best.score >= CHANGE_MIN && best.score >= CHANGE_FACTOR * current.score
}

fn fallback(candidates: &Candidates) -> Choice {
    match (&candidates.default_agent, candidates.members.first()) {
        (Some(agent_id), _) => made(agent_id, "no member matches: the default agent answers".to_owned()),
        (None, Some(first)) => made(&first.agent_id, "no member matches: the first member answers".to_owned()),
        (None, None) => Choice::Nobody,
    }
}

fn stay(member: &Candidate) -> Choice {
    made(&member.agent_id, format!("continues the conversation with {}", member.name))
}

fn topics(fit: &Fit) -> String {
    format!("asks about {}", fit.topics.join(", "))
}

fn made(agent_id: &AgentId, reason: String) -> Choice {
    Choice::Made(decision(agent_id, reason))
}

fn decision(agent_id: &AgentId, reason: String) -> Decision {
    Decision { agent_id: agent_id.clone(), reason }
}

impl Candidate {
    fn profile(&self) -> Profile<'_> {
        Profile { name: &self.name, description: &self.description, specialization: &self.specialization }
    }
}

#[cfg(test)]
mod tests {
    use switchboard_schemas::{ids::OrgId, secret::InstallationSecret};

    use super::*;

    fn agent(slug: &str) -> AgentId {
        let secret = InstallationSecret::from_bytes([1; 32]);
        AgentId::derive(&secret, &OrgId::derive(&secret, "o"), slug)
    }

    fn member(slug: &str, specialization: &str) -> Candidate {
        Candidate {
            agent_id: agent(slug),
            name: slug.to_owned(),
            description: String::new(),
            specialization: specialization.to_owned(),
        }
    }

    fn desk() -> Candidates {
        Candidates {
            members: vec![
                member("billing", "Invoices, refunds, payments and billing questions"),
                member("technical", "Technical problems, crashes, installation and error messages"),
            ],
            default_agent: Some(agent("general")),
        }
    }

    fn intent(last: Option<&str>, message: &str) -> Decision {
        let last = last.map(agent);
        match choose(RoutingStrategy::Intent, &desk(), last.as_ref(), message) {
            Choice::Made(decision) => decision,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_first_message_goes_to_the_member_that_matches_and_says_by_what() {
        let decision = intent(None, "I want a refund for my last invoice");
        assert_eq!(decision.agent_id, agent("billing"));
        assert!(
            decision.reason.starts_with("asks about ") && decision.reason.contains("refunds"),
            "{}",
            decision.reason
        );
    }

    #[test]
    fn short_answers_numbers_thanks_and_places_stay() {
        for message in
            ["thanks", "42", "yes please", "Berlin", "and how long does it take?", "my order 1234-X", "error"]
        {
            assert_eq!(intent(Some("billing"), message).agent_id, agent("billing"), "{message}");
        }
    }

    #[test]
    fn a_clear_change_of_topic_moves_and_says_so() {
        let decision = intent(Some("billing"), "Something else: the installation crashes with an error message");
        assert_eq!(decision.agent_id, agent("technical"));
        assert!(decision.reason.starts_with("topic change: "), "{}", decision.reason);
        let both = "the refund of my invoice crashes with an error";
        assert_eq!(intent(Some("billing"), both).agent_id, agent("billing"), "both topics are no clear change");
    }

    #[test]
    fn what_matches_nobody_goes_to_the_default_agent_and_a_later_match_to_its_member() {
        assert_eq!(intent(None, "xylophone zebra quartz").agent_id, agent("general"));
        assert_eq!(intent(Some("general"), "I want a refund").agent_id, agent("billing"));
        assert_eq!(intent(Some("somebody who left"), "thanks").agent_id, agent("general"));
    }

    #[test]
    fn without_members_the_default_agent_answers_whatever_the_strategy_and_without_it_nobody() {
        for strategy in [RoutingStrategy::Intent, RoutingStrategy::RoundRobin, RoutingStrategy::Random] {
            let mut candidates = Candidates { members: Vec::new(), ..desk() };
            assert!(matches!(choose(strategy, &candidates, None, "hi"), Choice::Made(_)));
            candidates.default_agent = None;
            assert_eq!(choose(strategy, &candidates, None, "hi"), Choice::Nobody);
        }
    }

    #[test]
    fn turns_and_chance_are_for_new_conversations_only() {
        let last = agent("technical");
        for strategy in [RoutingStrategy::RoundRobin, RoutingStrategy::Random] {
            assert!(!matches!(choose(strategy, &desk(), None, "hi"), Choice::Made(_)));
            let Choice::Made(decision) = choose(strategy, &desk(), Some(&last), "a refund") else { panic!("no stay") };
            assert_eq!(decision.agent_id, last);
        }
    }

    #[test]
    fn numbers_in_a_row_share_the_messages_evenly() {
        let chosen: Vec<_> = (0..7).map(|number| by_number(&desk(), number, "turn").unwrap().agent_id).collect();
        let billing = chosen.iter().filter(|id| **id == agent("billing")).count();
        assert_eq!(billing, 4);
        assert_eq!(by_number(&Candidates::default(), 1, "turn"), None);
    }
}
