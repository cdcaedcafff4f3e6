//! Turns: the writes that start and end them.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use switchboard_schemas::{
    conversation::{ConversationOwner, Message},
    ids::{AgentId, MessageId, OrgId, TeamId},
    reply_event::ReplyEnd,
    time::Timestamp,
    turn::Turn,
};

use super::{ReplyRecord, deletion::Tombstone};
use crate::error::StoreError;

/// Writes of turns.
///
/// # Contract
/// - **Attempts**: of two different writes of the same turn the higher attempt wins, in any order
///   of arrival.
/// - **Order**: one worker at a time writes the turns of a conversation. Between two that may write
///   the same turn, [`settle_turn`](Self::settle_turn) decides, and nothing else does.
/// - **Lists**: a conversation is listed from its first turn on.
#[async_trait]
pub trait TurnWriter: Send + Sync {
    /// Starts a turn: creates the conversation if it is the first one, stores and counts the user
    /// message at its position, records the active reply and merges the visitor data into the
    /// metadata.
    async fn begin_turn(&self, start: &TurnStart) -> Result<(), StoreError>;

    /// Ends a turn: stores the reply, if it has text, and its record, counts it (also for
    /// [`crate::analytics`]) and clears the active reply.
    async fn finish_turn(&self, end: &TurnEnd) -> Result<(), StoreError>;

    /// Decides between ends of one turn that the relay could not decide between: the first one
    /// stays for a day. Returns the one that stays, which still has to be stored with
    /// [`finish_turn`](Self::finish_turn).
    async fn settle_turn(&self, end: &TurnEnd) -> Result<TurnEnd, StoreError>;

    /// Decides like [`settle_turn`](Self::settle_turn) for a reply that was cancelled before any
    /// attempt, whose turn is not known. Returns `false` if another end was settled first.
    async fn settle_cancellation(
        &self,
        org: &OrgId,
        reply: &MessageId,
        end: &ReplyEnd,
    ) -> Result<bool, StoreError>;
}

/// The start of a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnStart {
    /// The user message and its context.
    pub turn: Turn,
    /// Agent or team of the conversation.
    pub owner: ConversationOwner,
    /// Position of the user message.
    pub position: u64,
    /// Deletion after which the conversation started anew, if any.
    pub tombstone: Option<Tombstone>,
    /// Time of the metadata that the message brings, which must be later than that of every change
    /// before.
    pub metadata_at: Timestamp,
    /// Attempt that writes.
    pub attempt: u32,
}

/// The end of a turn in its final state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnEnd {
    /// Organization that owns the conversation.
    pub org_id: OrgId,
    /// Time at which the turn was accepted; with the attempt it decides which write wins.
    pub accepted_at: Timestamp,
    /// Deletion after which the conversation started anew, as at the start of the turn.
    pub tombstone: Option<Tombstone>,
    /// Attempt that writes.
    pub attempt: u32,
    /// Id of the user message.
    pub user_message_id: MessageId,
    /// Agent that replied; `None` if no agent could.
    pub agent_id: Option<AgentId>,
    /// Team to which the message was addressed, if any.
    pub team_id: Option<TeamId>,
    /// Assistant message, if it has text.
    pub message: Option<Message>,
    /// Record stored under the id of the reply.
    pub record: ReplyRecord,
}

/// End of a turn as it was settled.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum SettledTurn {
    Ended(Box<TurnEnd>),
    Cancelled { cancelled: ReplyEnd },
}

impl SettledTurn {
    /// Returns the settled end of the turn that ended as `own` in this attempt.
    pub(super) fn end_of(self, own: &TurnEnd) -> TurnEnd {
        match self {
            Self::Ended(end) => *end,
            Self::Cancelled { cancelled } => TurnEnd {
                message: None,
                record: ReplyRecord {
                    position: None,
                    head: None,
                    end: cancelled,
                    first_text_ms: None,
                    ..own.record.clone()
                },
                ..own.clone()
            },
        }
    }

    pub(super) const fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled { .. })
    }
}
