//! Combines scores, continuity and the model's decision into a verdict, with a reason in words for
//! a customer. Pure functions.

use super::{
    ConversationHolder, IntentRequest,
    continuity::{CHANGED_MIN, LaterMessage, UNSURE_MIN, chance_of_change},
    model_stage::ModelVerdict,
    scores::MessageFeatures,
};

pub(crate) use switchboard_schemas::routing::RoutingStage as Stage;

/// Score from which the local stage is sure.
const SURE_MIN: f32 = 0.6;
/// The same threshold without embeddings, because words are wrong more often than their score
/// suggests.
const SURE_WORDS_MIN: f32 = 0.8;

/// Everything that a verdict depends on.
pub(super) struct VerdictInput<'a> {
    /// The message to route.
    pub(super) question: &'a IntentRequest<'a>,
    /// The beginning of the message that is compared.
    pub(super) message: &'a str,
    /// The features for each member.
    pub(super) features: &'a MessageFeatures,
    /// Score of each member, and last the score of out of scope.
    pub(super) scores: &'a [f32],
}

/// The agent that answers, with the reason.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RoutingVerdict {
    /// Index of the member; none for the default agent.
    pub(super) member: Option<usize>,
    /// The stage that decided.
    pub(super) stage: Stage,
    /// Reason, in words for a customer.
    pub(super) reason: String,
    /// True if a model should be asked.
    pub(super) unsure: bool,
}

impl VerdictInput<'_> {
    /// Returns the verdict of the local stage. A decision about a message in a language that the
    /// embedding model does not know is unsure, unless the conversation goes on.
    pub(super) fn local(&self) -> RoutingVerdict {
        let verdict = self.decide();
        let is_guess = !self.features.is_known_language && verdict.stage != Stage::Continuity;
        RoutingVerdict {
            unsure: verdict.unsure || is_guess,
            ..verdict
        }
    }

    fn decide(&self) -> RoutingVerdict {
        let best = self.best(None);
        match self.question.current {
            ConversationHolder::Nobody => match best {
                Some(best) if self.scores[best] >= self.nobody() && self.has_ground(best) => {
                    self.matching(best)
                }
                _ => self.default(
                    "no member matches",
                    self.local_stage(),
                    self.nobody() < self.sure_min(),
                ),
            },
            ConversationHolder::Member(current) => {
                self.going_on(Some(current), self.best(Some(current)))
            }
            ConversationHolder::Default => self.going_on(None, best),
        }
    }

    /// Returns the verdict after a model decided.
    pub(super) fn after_model(&self, decided: ModelVerdict) -> RoutingVerdict {
        let current = self.question.current;
        match decided {
            ModelVerdict::Member(member) if current == ConversationHolder::Member(member) => {
                self.stay(Some(member), Stage::Model, false)
            }
            ModelVerdict::Member(member) => {
                let why = format!("belongs to {}", self.name(member));
                self.to(member, Stage::Model, &why, false)
            }
            ModelVerdict::NoMember => match current {
                ConversationHolder::Member(member) => self.stay(Some(member), Stage::Model, false),
                ConversationHolder::Default => self.stay(None, Stage::Model, false),
                ConversationHolder::Nobody => {
                    self.default("no member matches", Stage::Model, false)
                }
            },
        }
    }

    fn matching(&self, member: usize) -> RoutingVerdict {
        let sure = self.scores[member] >= self.sure_min();
        self.to(member, self.local_stage(), &self.why(member), !sure)
    }

    fn going_on(&self, current: Option<usize>, other: Option<usize>) -> RoutingVerdict {
        let Some(other) = other else {
            return self.stay(current, Stage::Continuity, false);
        };
        if !self.question.may_change {
            let verdict = self.stay(current, Stage::Continuity, false);
            return RoutingVerdict {
                reason: format!(
                    "{} for now, because the agent changed often",
                    verdict.reason
                ),
                ..verdict
            };
        }
        let present = current.map_or_else(|| self.nobody(), |current| self.scores[current]);
        let chance = chance_of_change(&LaterMessage {
            message: self.message,
            last_agent_text: self.question.last_agent_text,
            with_default: current.is_none(),
            lead: self.scores[other] - present,
        });
        if chance >= CHANGED_MIN && self.has_ground(other) {
            return self.matching(other);
        }
        self.stay(current, Stage::Continuity, chance >= UNSURE_MIN)
    }

    fn sure_min(&self) -> f32 {
        if self.features.similarities.is_none() {
            SURE_WORDS_MIN
        } else {
            SURE_MIN
        }
    }

    /// Returns false if there are no embeddings and the message has nothing in common with the
    /// member.
    fn has_ground(&self, member: usize) -> bool {
        self.features.similarities.is_some() || self.features.words[member].score > 0.0
    }

    fn best(&self, except: Option<usize>) -> Option<usize> {
        let members = (0..self.question.members.len()).filter(|member| Some(*member) != except);
        // Of equal scores the first member's, so that a redelivered message is decided alike.
        members.reduce(|best, member| {
            if self.scores[member] > self.scores[best] {
                member
            } else {
                best
            }
        })
    }

    fn nobody(&self) -> f32 {
        self.scores.last().copied().unwrap_or_default()
    }

    fn to(&self, member: usize, stage: Stage, why: &str, unsure: bool) -> RoutingVerdict {
        let change = if self.question.current == ConversationHolder::Nobody {
            ""
        } else {
            "topic change: "
        };
        RoutingVerdict {
            member: Some(member),
            stage,
            reason: format!("{change}{why}{}", stage_suffix(stage)),
            unsure,
        }
    }

    fn stay(&self, member: Option<usize>, stage: Stage, unsure: bool) -> RoutingVerdict {
        let with = member.map_or("the default agent", |member| self.name(member));
        RoutingVerdict {
            member,
            stage,
            reason: format!(
                "continues the conversation with {with}{}",
                stage_suffix(stage)
            ),
            unsure,
        }
    }

    fn default(&self, why: &str, stage: Stage, unsure: bool) -> RoutingVerdict {
        RoutingVerdict {
            member: None,
            stage,
            reason: format!("{why}{}: the default agent answers", stage_suffix(stage)),
            unsure,
        }
    }

    fn why(&self, member: usize) -> String {
        let topics = &self.features.words[member].topics;
        if topics.is_empty() {
            format!("means what {} answers", self.name(member))
        } else {
            format!("asks about {}", topics.join(", "))
        }
    }

    fn local_stage(&self) -> Stage {
        if self.features.similarities.is_none() {
            Stage::Words
        } else {
            Stage::Meaning
        }
    }

    fn name(&self, member: usize) -> &str {
        &self.question.members[member].name
    }
}

/// Returns a suffix that names the stage; the reason of continuity needs none.
const fn stage_suffix(stage: Stage) -> &'static str {
    match stage {
        Stage::Words => " (by words)",
        Stage::Meaning => " (by meaning)",
        Stage::Model => " (by a model)",
        Stage::Continuity | Stage::Strategy => "",
    }
}
