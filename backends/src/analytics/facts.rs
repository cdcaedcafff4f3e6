//! The facts that are noted: one of each turn, one of each conversation that is rated. They hold no text, and nothing of a
//! visitor but the id of the conversation.

use serde::{Deserialize, Serialize};
use switchboard_schemas::{
    conversation::{ReplyStatus, TokenUsage},
    day::{Day, hour_of},
    ids::{AgentId, ConversationId, MessageId, TeamId},
    time::Timestamp,
};

use crate::{
    error::StoreError,
    json::{decode, encode},
    store::TurnEnd,
};

/// What is counted of a turn: a message and its reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnFact {
    /// The conversation, if this is its first turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opens: Option<ConversationId>,
    /// Who answered; none when nobody could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The team that was addressed, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team_id: Option<TeamId>,
    /// How the reply ended.
    pub status: ReplyStatus,
    /// Milliseconds from acceptance to the end, of a reply with text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_time_ms: Option<u64>,
    /// Milliseconds from acceptance to the first text, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_text_ms: Option<u64>,
    /// Tokens used.
    pub usage: TokenUsage,
}

/// A fact as it lies there, under the id of a reply or of a rated conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactRow {
    /// What it is about.
    pub id: String,
    /// JSON; none: cleared.
    pub body: Option<String>,
}

/// A fact that is read.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum AnalyticsFact {
    /// Of a turn.
    Turn(Box<TurnFact>),
    /// The last rating of a conversation.
    Rating(ConversationId, f64),
}

/// A fact to be written. It lies in the hour of the acceptance of its turn, or of its conversation's first one, which no
/// repeat moves; an hour is what a partition of the production twin holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FactWrite {
    pub(crate) hour: i64,
    pub(crate) id: String,
    /// None: cleared.
    pub(crate) body: Option<String>,
    pub(crate) stamp: i64,
}

impl FactWrite {
    /// The fact of a turn that ends, under the stamp of its reply's record.
    pub(crate) fn of_turn(end: &TurnEnd, stamp: i64) -> Result<Self, StoreError> {
        let (record, has_text) = (&end.record, end.record.position.is_some());
        let fact = TurnFact {
            opens: (record.user_position == 0).then(|| end.user_message_id.conversation()),
            agent_id: end.agent_id.clone(),
            team_id: end.team_id.clone(),
            status: record.end.status,
            response_time_ms: has_text.then_some(record.end.response_time_ms),
            first_text_ms: record.first_text_ms.filter(|_| has_text),
            usage: record.end.usage,
        };
        let id = end.user_message_id.reply().to_string();
        Ok(Self {
            hour: hour_of(end.accepted_at),
            id,
            body: Some(encode(&fact)?),
            stamp,
        })
    }

    /// No fact of the turn of a message that was accepted then: it was deleted.
    pub(crate) fn without_turn(
        user_message: &MessageId,
        accepted_at: Timestamp,
        stamp: i64,
    ) -> Self {
        Self {
            hour: hour_of(accepted_at),
            id: user_message.reply().to_string(),
            body: None,
            stamp,
        }
    }

    /// The rating of a conversation that began then, as its metadata has it; none when it was cleared.
    pub(crate) fn of_rating(
        id: &ConversationId,
        began_at: Timestamp,
        body: Option<&String>,
        at: Timestamp,
    ) -> Self {
        Self {
            hour: hour_of(began_at),
            id: id.to_string(),
            body: body.cloned(),
            stamp: at.micros(),
        }
    }

    pub(crate) const fn day(&self) -> Day {
        Day::of_hour(self.hour)
    }
}

impl FactRow {
    pub(super) fn read(&self) -> Result<Option<AnalyticsFact>, StoreError> {
        let Some(body) = &self.body else {
            return Ok(None);
        };
        Ok(Some(match self.id.parse::<ConversationId>() {
            Ok(conversation) => AnalyticsFact::Rating(conversation, decode(body)?),
            Err(_) => AnalyticsFact::Turn(Box::new(decode(body)?)),
        }))
    }
}
