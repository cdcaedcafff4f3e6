//! Puts shares, continuity and a model's opinion together, and says why in words a customer can read. Pure.

use super::{
    Current, Question,
    continuity::{self, Turn, UNSURE_MIN},
    evidence::{Findings, Ground},
    second_opinion::Opinion,
};

pub(crate) use switchboard_schemas::routing::RoutingStage as Stage;

/// Share from which the local stage needs no second opinion.
const SURE_MIN: f32 = 0.6;
/// The same where there are only words: they mislead more often than their share says.
const SURE_WORDS_MIN: f32 = 0.8;

/// A message that is made like a change is one, though it fits whoever has the conversation up to twice as well: it often
/// goes on about the same things.
const RIVAL_SHARE: f32 = 0.5;

/// Everything that the verdict stands on.
pub(super) struct Situation<'a> {
    /// What was asked.
    pub(super) question: &'a Question<'a>,
    /// The message, cut to what is looked at.
    pub(super) message: &'a str,
    /// What was found.
    pub(super) findings: &'a Findings,
    /// Of each member, and last of nobody.
    pub(super) shares: &'a [f32],
}

/// Who answers, and why.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Verdict {
    /// The member; none for the default agent.
    pub(super) member: Option<usize>,
    /// Which stage decided.
    pub(super) stage: Stage,
    /// Why.
    pub(super) reason: String,
    /// Whether a model is worth asking.
    pub(super) unsure: bool,
}

impl Situation<'_> {
    /// What can be told without a model.
    pub(super) fn local(&self) -> Verdict {
        let best = self.best(None);
        match self.question.current {
            Current::Nobody => match best {
                Some(best) if self.shares[best] >= self.nobody() && self.has_ground(best) => {
                    self.first(best)
                }
                _ => self.default(
                    "no member matches",
                    self.local_stage(),
                    self.nobody() < self.sure_min(),
                ),
            },
            Current::Member(current) => self.going_on(Some(current), self.best(Some(current))),
            Current::Default => self.going_on(None, best),
        }
    }

    /// What a model's opinion makes of it.
    pub(super) fn after(&self, opinion: Opinion) -> Verdict {
        let current = self.question.current;
        match opinion {
            Opinion::Member(member) if current == Current::Member(member) => {
                self.stay(Some(member), Stage::Model, false)
            }
            Opinion::Member(member) => {
                let why = format!("is a matter for {}", self.name(member));
                self.to(member, Stage::Model, &why, false)
            }
            Opinion::Nobody => match current {
                Current::Member(member) => self.stay(Some(member), Stage::Model, false),
                Current::Default => self.stay(None, Stage::Model, false),
                Current::Nobody => self.default("no member matches", Stage::Model, false),
            },
        }
    }

    fn first(&self, best: usize) -> Verdict {
        let sure = self.shares[best] >= self.sure_min();
        self.to(best, self.local_stage(), &self.why(best), !sure)
    }

    fn going_on(&self, current: Option<usize>, other: Option<usize>) -> Verdict {
        let Some(other) = other else {
            return self.stay(current, Stage::Continuity, false);
        };
        if !self.question.may_change {
            let verdict = self.stay(current, Stage::Continuity, false);
            return Verdict {
                reason: format!("{} for now: it changed hands often", verdict.reason),
                ..verdict
            };
        }
        let present = current.map_or_else(|| self.nobody(), |current| self.shares[current]);
        let turn = Turn {
            message: self.message,
            agent_said: self.question.agent_said,
            with_default: current.is_none(),
            names_present: current.is_some_and(|current| !self.findings.topics[current].is_empty()),
            present,
            other: self.shares[other],
        };
        let chance = continuity::chance_of_change(&turn);
        let is_rival = self.shares[other] > present * RIVAL_SHARE && self.has_ground(other);
        // The default agent has nothing of its own to be left: what is surely a member's goes there sooner.
        let leaves_default =
            current.is_none() && chance >= UNSURE_MIN && self.shares[other] >= self.sure_min();
        if (chance >= continuity::changed_min(&turn) && is_rival) || leaves_default {
            return self.to(
                other,
                self.local_stage(),
                &self.why(other),
                self.shares[other] < self.sure_min(),
            );
        }
        self.stay(current, Stage::Continuity, chance >= UNSURE_MIN)
    }

    fn sure_min(&self) -> f32 {
        if self.findings.ground == Ground::Words {
            SURE_WORDS_MIN
        } else {
            SURE_MIN
        }
    }

    /// Without vectors, what shares nothing with a member is not its matter, however the shares fall.
    fn has_ground(&self, member: usize) -> bool {
        let evidence = &self.findings.members[member];
        self.findings.ground != Ground::Words
            || evidence.words + evidence.concepts + evidence.english + evidence.said > 0.0
    }

    fn best(&self, except: Option<usize>) -> Option<usize> {
        let members = (0..self.question.members.len()).filter(|member| Some(*member) != except);
        // Of equal shares the first member's, so that a repeat decides alike.
        members.reduce(|best, member| {
            if self.shares[member] > self.shares[best] {
                member
            } else {
                best
            }
        })
    }

    fn nobody(&self) -> f32 {
        self.shares.last().copied().unwrap_or_default()
    }

    fn to(&self, member: usize, stage: Stage, why: &str, unsure: bool) -> Verdict {
        let change = if self.question.current == Current::Nobody {
            ""
        } else {
            "topic change: "
        };
        Verdict {
            member: Some(member),
            stage,
            reason: format!("{change}{why}{}", by(stage)),
            unsure,
        }
    }

    fn stay(&self, member: Option<usize>, stage: Stage, unsure: bool) -> Verdict {
        let with = member.map_or("the default agent", |member| self.name(member));
        Verdict {
            member,
            stage,
            reason: format!("continues the conversation with {with}{}", by(stage)),
            unsure,
        }
    }

    fn default(&self, why: &str, stage: Stage, unsure: bool) -> Verdict {
        Verdict {
            member: None,
            stage,
            reason: format!("{why}{}: the default agent answers", by(stage)),
            unsure,
        }
    }

    fn why(&self, member: usize) -> String {
        let topics = &self.findings.topics[member];
        match (topics.is_empty(), self.findings.ground) {
            (false, _) => format!("asks about {}", topics.join(", ")),
            (true, Ground::Words) => format!("comes closest to {}", self.name(member)),
            (true, _) => format!("means what {} answers", self.name(member)),
        }
    }

    fn local_stage(&self) -> Stage {
        if self.findings.ground == Ground::Words {
            Stage::Words
        } else {
            Stage::Meaning
        }
    }

    fn name(&self, member: usize) -> &str {
        &self.question.members[member].name
    }
}

/// Says which stage decided; that a conversation goes on says it by itself.
const fn by(stage: Stage) -> &'static str {
    match stage {
        Stage::Words => " (by words)",
        Stage::Meaning => " (by meaning)",
        Stage::Model => " (by a model)",
        Stage::Continuity | Stage::Strategy => "",
    }
}
