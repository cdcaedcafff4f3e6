//! Totals: sums of facts by agent and team; the reader counts them by hour and day.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};
use switchboard_schemas::{
    conversation::ReplyStatus,
    ids::{AgentId, ConversationId, TeamId},
};

use super::{
    facts::{AnalyticsFact, TurnFact},
    histogram::DurationHistogram,
};

/// Parts of one point, in which fractional ratings are counted.
pub const RATING_PARTS: u32 = 100;

/// A group of messages: the agent that replied and the addressed team.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TotalsGroup {
    /// Agent that replied; `None` if no agent could.
    pub agent_id: Option<AgentId>,
    /// Addressed team; `None` for a message to an agent.
    pub team_id: Option<TeamId>,
}

/// The totals of a group, or of several groups together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageTotals {
    /// Number of conversations that began, counted by their first message.
    pub conversations: u64,
    /// Number of replies that the provider finished.
    pub completed: u64,
    /// Number of replies that ended early.
    pub incomplete: u64,
    /// Number of replies that failed without text.
    pub failed: u64,
    /// Number of canceled replies.
    pub cancelled: u64,
    /// Tokens of all prompts.
    pub prompt_tokens: u64,
    /// Tokens of all replies.
    pub completion_tokens: u64,
    /// Number of replies with estimated token counts.
    pub estimated: u64,
    /// Durations from acceptance to the end, for replies with text.
    pub response_time: DurationHistogram,
    /// Durations from acceptance to the first text, where known.
    pub first_text: DurationHistogram,
    /// Counts of the ratings of conversations that began, by rating in hundredths.
    pub ratings: BTreeMap<u64, u64>,
    /// Number of conversations that began and have a lead.
    #[serde(default)]
    pub leads: u64,
}

/// Totals of a period by group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupedTotals(pub BTreeMap<TotalsGroup, UsageTotals>);

impl UsageTotals {
    /// Returns the number of visitor messages; each has one reply.
    pub const fn messages(&self) -> u64 {
        self.completed + self.incomplete + self.failed + self.cancelled
    }

    /// Returns the number of rated conversations.
    pub fn rated(&self) -> u64 {
        self.ratings.values().sum()
    }

    /// Returns the average rating in hundredths, or `None` without ratings.
    pub fn average_rating(&self) -> Option<u64> {
        let sum: u64 = self
            .ratings
            .iter()
            .map(|(rating, count)| rating * count)
            .sum();
        let count = self.rated();
        (sum + count / 2).checked_div(count)
    }

    /// Adds other totals to these.
    pub fn merge(&mut self, other: &Self) {
        self.conversations += other.conversations;
        self.completed += other.completed;
        self.incomplete += other.incomplete;
        self.failed += other.failed;
        self.cancelled += other.cancelled;
        self.prompt_tokens += other.prompt_tokens;
        self.completion_tokens += other.completion_tokens;
        self.estimated += other.estimated;
        self.leads += other.leads;
        self.response_time.merge(&other.response_time);
        self.first_text.merge(&other.first_text);
        for (rating, count) in &other.ratings {
            *self.ratings.entry(*rating).or_default() += count;
        }
    }

    fn add(&mut self, turn: &TurnFact, rating: Option<f64>) {
        self.conversations += u64::from(turn.opens.is_some());
        match turn.status {
            ReplyStatus::Completed => self.completed += 1,
            ReplyStatus::Incomplete => self.incomplete += 1,
            ReplyStatus::Cancelled => self.cancelled += 1,
            // A turn is recorded at its end, so that the last three states cannot occur.
            ReplyStatus::Failed
            | ReplyStatus::Queued
            | ReplyStatus::Routing
            | ReplyStatus::InProgress => {
                self.failed += 1;
            }
        }
        self.prompt_tokens += turn.usage.prompt_tokens;
        self.completion_tokens += turn.usage.completion_tokens;
        self.estimated += u64::from(turn.usage.estimated);
        turn.response_time_ms
            .into_iter()
            .for_each(|ms| self.response_time.add(ms));
        turn.first_text_ms
            .into_iter()
            .for_each(|ms| self.first_text.add(ms));
        if let Some(rating) = rating {
            *self.ratings.entry(in_hundredths(rating)).or_default() += 1;
        }
    }
}

impl GroupedTotals {
    /// Adds the totals of another period.
    pub fn merge(&mut self, other: Self) {
        for (group, totals) in other.0 {
            self.0.entry(group).or_default().merge(&totals);
        }
    }
}

/// The sum of the facts of an hour. A rating or a lead belongs to the group of its conversation's
/// first message, which is in the same hour, and counts once that message has its reply.
#[derive(Default)]
pub(super) struct HourCounter {
    ratings: HashMap<ConversationId, f64>,
    leads: HashSet<ConversationId>,
    totals: GroupedTotals,
}

impl HourCounter {
    /// Adds a fact. Facts must come in the order of their ids, which puts the ratings and leads of
    /// an hour before its turns; a later one is lost.
    pub(super) fn add(&mut self, fact: AnalyticsFact) {
        match fact {
            AnalyticsFact::Rating(conversation, rating) => {
                self.ratings.insert(conversation, rating);
            }
            AnalyticsFact::Lead(conversation) => {
                self.leads.insert(conversation);
            }
            AnalyticsFact::Turn(turn) => {
                let opened = turn.opens.as_ref();
                let rating = opened.and_then(|opened| self.ratings.get(opened)).copied();
                let has_lead = opened.is_some_and(|opened| self.leads.contains(opened));
                let group = TotalsGroup {
                    agent_id: turn.agent_id.clone(),
                    team_id: turn.team_id.clone(),
                };
                let totals = self.totals.0.entry(group).or_default();
                totals.add(&turn, rating);
                totals.leads += u64::from(has_lead);
            }
        }
    }

    pub(super) fn finish(self) -> GroupedTotals {
        self.totals
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rating is a number from 1 to 5"
)]
fn in_hundredths(rating: f64) -> u64 {
    (rating * f64::from(RATING_PARTS)).round() as u64
}
