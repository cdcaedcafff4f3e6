//! The recorded facts: one for each turn, and one for the rating and one for the lead of a
//! conversation. They contain no text, and of the visitor only the conversation id.

use serde::{Deserialize, Serialize};
use switchboard_schemas::{
    conversation::{ReplyStatus, TokenUsage},
    day::{UtcDay, hour_of},
    ids::{AgentId, ConversationId, MessageId, TeamId},
    time::Timestamp,
};

use crate::{
    error::StoreError,
    json::{decode, encode},
};

/// End of the id of a lead's fact, behind the id of its conversation.
const LEAD_SUFFIX: &str = ".lead";

/// The counted facts about a turn, a message and its reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnFact {
    /// Id of the conversation, if this is its first turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opens: Option<ConversationId>,
    /// Agent that replied; `None` if no agent could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Team to which the message was addressed, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team_id: Option<TeamId>,
    /// Final state of the reply.
    pub status: ReplyStatus,
    /// Milliseconds from acceptance to the end, for replies with text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_time_ms: Option<u64>,
    /// Milliseconds from acceptance to the first text, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_text_ms: Option<u64>,
    /// Tokens read and generated.
    pub usage: TokenUsage,
}

/// A stored fact with the id of its reply or rated conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactRow {
    /// Id of the turn or conversation.
    pub id: String,
    /// JSON of the fact; `None` if it was cleared.
    pub body: Option<String>,
}

/// A parsed fact.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum AnalyticsFact {
    /// A fact about a turn.
    Turn(Box<TurnFact>),
    /// The last rating of a conversation.
    Rating(ConversationId, f64),
    /// A conversation with a lead.
    Lead(ConversationId),
}

/// A fact to write. It belongs to the hour in which its turn, or the first turn of its
/// conversation, was accepted, which no retry changes. An hour of an organization is one partition
/// in Scylla.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FactWrite {
    pub(crate) hour: i64,
    pub(crate) id: String,
    /// JSON of the fact; `None` clears it.
    pub(crate) body: Option<String>,
    pub(crate) stamp: i64,
}

impl FactWrite {
    /// Creates the write of a turn's fact, with the stamp of its reply record.
    pub(crate) fn of_turn(
        user_message: &MessageId,
        accepted_at: Timestamp,
        fact: &TurnFact,
        stamp: i64,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            hour: hour_of(accepted_at),
            id: user_message.reply().to_string(),
            body: Some(encode(fact)?),
            stamp,
        })
    }

    /// Creates the write that removes the fact of a deleted turn.
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

    /// Creates the rating fact of a conversation from its metadata; a cleared rating clears the
    /// fact.
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

    /// Creates the fact that a conversation has a lead, or removes it.
    pub(crate) fn of_lead(
        id: &ConversationId,
        began_at: Timestamp,
        is_captured: bool,
        at: Timestamp,
    ) -> Self {
        Self {
            hour: hour_of(began_at),
            id: format!("{id}{LEAD_SUFFIX}"),
            body: is_captured.then(|| "true".to_owned()),
            stamp: at.micros(),
        }
    }

    pub(crate) const fn day(&self) -> UtcDay {
        UtcDay::of_hour(self.hour)
    }
}

impl FactRow {
    pub(super) fn read(&self) -> Result<Option<AnalyticsFact>, StoreError> {
        let Some(body) = &self.body else {
            return Ok(None);
        };
        if let Some(id) = self.id.strip_suffix(LEAD_SUFFIX) {
            let malformed = |_| StoreError::Malformed("a lead of no conversation".into());
            return Ok(Some(AnalyticsFact::Lead(id.parse().map_err(malformed)?)));
        }
        Ok(Some(match self.id.parse::<ConversationId>() {
            Ok(conversation) => AnalyticsFact::Rating(conversation, decode(body)?),
            Err(_) => AnalyticsFact::Turn(Box::new(decode(body)?)),
        }))
    }
}
