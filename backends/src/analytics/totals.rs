//! Facts, added up.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use switchboard_schemas::{
    conversation::ReplyStatus,
    ids::{AgentId, ConversationId, TeamId},
};

use super::{
    facts::{AnalyticsFact, TurnFact},
    histogram::DurationHistogram,
};

/// Ratings may have fractions; this many parts of one are told apart.
const PARTS_OF_RATING: f64 = 100.0;

/// By whom a message was answered, and which team it was sent to.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TotalsGroup {
    /// None when nobody could answer.
    pub agent_id: Option<AgentId>,
    /// None for a message to an agent.
    pub team_id: Option<TeamId>,
}

/// The figures of a group, or of several together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DailyTotals {
    /// Conversations that began, by their first message.
    pub conversations: u64,
    /// Replies that the provider finished.
    pub completed: u64,
    /// Replies that were broken off.
    pub incomplete: u64,
    /// Messages that got no text.
    pub failed: u64,
    /// Replies that were stopped.
    pub cancelled: u64,
    /// Tokens read.
    pub prompt_tokens: u64,
    /// Tokens written.
    pub completion_tokens: u64,
    /// Replies whose tokens are estimates.
    pub estimated: u64,
    /// From acceptance to the end, of replies with text.
    pub response_time: DurationHistogram,
    /// From acceptance to the first text, where it is known.
    pub first_text: DurationHistogram,
    /// Ratings of conversations that began, in hundredths, with how many there are of each.
    pub ratings: BTreeMap<u64, u64>,
}

/// The figures of a time, by group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupedTotals(pub BTreeMap<TotalsGroup, DailyTotals>);

impl DailyTotals {
    /// Messages of visitors; each has one reply.
    pub const fn messages(&self) -> u64 {
        self.completed + self.incomplete + self.failed + self.cancelled
    }

    /// How many conversations were rated.
    pub fn rated(&self) -> u64 {
        self.ratings.values().sum()
    }

    /// Their average rating in hundredths; none without any.
    pub fn average_rating(&self) -> Option<u64> {
        let sum: u64 = self
            .ratings
            .iter()
            .map(|(rating, count)| rating * count)
            .sum();
        let count = self.rated();
        (sum + count / 2).checked_div(count)
    }

    /// Adds another one to it.
    pub fn merge(&mut self, other: &Self) {
        self.conversations += other.conversations;
        self.completed += other.completed;
        self.incomplete += other.incomplete;
        self.failed += other.failed;
        self.cancelled += other.cancelled;
        self.prompt_tokens += other.prompt_tokens;
        self.completion_tokens += other.completion_tokens;
        self.estimated += other.estimated;
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
            // A turn is noted at its end; no other state is one.
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
    /// Adds those of another time.
    pub fn merge(&mut self, other: Self) {
        for (group, tally) in other.0 {
            self.0.entry(group).or_default().merge(&tally);
        }
    }
}

/// Adds up the facts of an hour. A rating belongs to the group of its conversation's first message, which lies in the
/// same hour, and counts once that has its reply.
#[derive(Default)]
pub(super) struct HourlyTotals {
    ratings: HashMap<ConversationId, f64>,
    tallies: GroupedTotals,
}

impl HourlyTotals {
    /// Adds a fact; ratings come first, as their ids do.
    pub(super) fn add(&mut self, fact: AnalyticsFact) {
        match fact {
            AnalyticsFact::Rating(conversation, rating) => {
                self.ratings.insert(conversation, rating);
            }
            AnalyticsFact::Turn(turn) => {
                let rating = turn
                    .opens
                    .as_ref()
                    .and_then(|opened| self.ratings.get(opened))
                    .copied();
                let group = TotalsGroup {
                    agent_id: turn.agent_id.clone(),
                    team_id: turn.team_id.clone(),
                };
                self.tallies.0.entry(group).or_default().add(&turn, rating);
            }
        }
    }

    pub(super) fn finish(self) -> GroupedTotals {
        self.tallies
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rating is a number from 1 to 5"
)]
fn in_hundredths(rating: f64) -> u64 {
    (rating * PARTS_OF_RATING).round() as u64
}
