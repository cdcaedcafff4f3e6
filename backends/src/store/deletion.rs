//! The deletion of a conversation as pure functions: the stamps that it covers and the data stored
//! elsewhere. Both backends use them.
//!
//! The conversation of a session always has the same id, so that a returning visitor starts it anew
//! under that id. Its stamps are then above those of all deleted data, and late writes of an
//! earlier worker lose.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use switchboard_schemas::{
    conversation::{Message, MessageAuthor},
    ids::{AgentId, ConversationId, EventId, MessageId, OrgId},
    time::Timestamp,
};

use super::{
    rows::ConversationOrigin,
    stamp::{TurnPhase, history_stamp, result_stamp},
};
use crate::{analytics::facts::FactWrite, error::StoreError, json::decode};

/// Maximum number of messages that a deletion holds in memory.
pub(super) const DELETED_AT_ONCE: u64 = 100;
/// Number of stamp positions used by a conversation beside its counted messages: an uncounted turn
/// has two.
const PLACES_UNCOUNTED: u64 = 2;

/// A request to delete a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationDeletion {
    /// Organization that owns the conversation.
    pub org_id: OrgId,
    /// Id of the conversation.
    pub conversation_id: ConversationId,
    /// Event id of the deletion, by which a repeat is recognized.
    pub event_id: EventId,
    /// Time of the deletion.
    pub at: Timestamp,
}

/// The state of a conversation that its next turn builds on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryState {
    /// Number of messages in the history; zero if it never began or was deleted.
    pub message_count: u64,
    /// Last deletion of the conversation.
    pub tombstone: Option<Tombstone>,
}

impl HistoryState {
    /// Returns the position of the first of the latest `messages_max` messages.
    pub(super) fn latest(&self, messages_max: u32) -> u64 {
        self.message_count.saturating_sub(messages_max.into())
    }
}

/// The remains of a deleted conversation, known when it starts anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tombstone {
    /// Event id of the deletion.
    pub event_id: EventId,
    /// Number of stamp positions used before.
    pub places: u64,
    /// Number of positions of the deleted history.
    pub positions: u64,
    /// Changes of metadata up to this time have no effect.
    pub at: Timestamp,
}

/// Data of messages that is stored elsewhere.
#[derive(Debug, Default)]
pub(super) struct RelatedData {
    /// Replies, each with the stamp that covers its record.
    pub(super) replies: Vec<(MessageId, i64)>,
    /// Agents that replied.
    pub(super) agents: BTreeSet<AgentId>,
    /// Facts of their turns, cleared.
    pub(super) facts: Vec<FactWrite>,
}

impl Tombstone {
    /// Creates the tombstone of a conversation with `positions` messages.
    pub(super) fn new(
        history: &HistoryState,
        deletion: &ConversationDeletion,
        metadata_at: Option<Timestamp>,
    ) -> Self {
        let positions = history.message_count + PLACES_UNCOUNTED;
        Self {
            event_id: deletion.event_id.clone(),
            places: places_before(history.tombstone.as_ref()) + positions,
            positions,
            at: deletion.at.max(metadata_at.unwrap_or_default()),
        }
    }

    /// Returns the stamp that covers every write of earlier turns and none of later ones.
    pub(super) fn stamp(&self) -> i64 {
        history_stamp(self.places, TurnPhase::Begin, 0) - 1
    }
}

/// Returns the time of a change, moved after a deletion that a faster clock recorded.
pub(super) fn moment_behind(tombstone: Option<&Tombstone>, at: Timestamp) -> Timestamp {
    tombstone.map_or(at, |tombstone| {
        at.max(Timestamp::from_micros(tombstone.at.micros() + 1))
    })
}

/// Returns the number of stamp positions used before the first turn of this history.
pub(super) fn places_before(tombstone: Option<&Tombstone>) -> u64 {
    tombstone.map_or(0, |tombstone| tombstone.places)
}

/// Returns the writes that clear the rating and the lead of the deleted history.
pub(super) fn cleared_facts(
    id: &ConversationId,
    origin: &ConversationOrigin,
    tombstone: &Tombstone,
) -> [FactWrite; 2] {
    [
        FactWrite::of_rating(id, origin.created_at, None, tombstone.at),
        FactWrite::of_lead(id, origin.created_at, false, tombstone.at),
    ]
}

/// Returns the data that is stored elsewhere for these messages.
pub(super) fn related_data(bodies: &[String], at: Timestamp) -> Result<RelatedData, StoreError> {
    let mut found = RelatedData::default();
    for body in bodies {
        let message: Message = decode(body)?;
        match message.author {
            MessageAuthor::User => {
                let stamp = result_stamp(message.created_at, u32::MAX).max(at.micros());
                found.facts.push(FactWrite::without_turn(
                    &message.id,
                    message.created_at,
                    stamp,
                ));
                found.replies.push((message.id.reply(), stamp));
            }
            MessageAuthor::Assistant(facts) => {
                found.agents.insert(facts.agent_id);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn deletion() -> ConversationDeletion {
        ConversationDeletion {
            org_id: "org_00000000000000000000000000".parse().unwrap(),
            conversation_id: "conv_00000000000000000000000000".parse().unwrap(),
            event_id: EventId::derive("a", "b"),
            at: Timestamp::from_micros(7),
        }
    }

    proptest! {
        #[test]
        fn tombstone_covers_earlier_writes_and_no_later_ones(
            count in 0u64..1 << 32, again in 0u64..1 << 32, attempt: u32,
        ) {
            let first = Tombstone::new(&HistoryState { message_count: count, tombstone: None }, &deletion(), None);
            // The last turn that can have been begun stands behind the counted ones.
            prop_assert!(history_stamp(count, TurnPhase::End, attempt) < first.stamp());
            prop_assert!(first.stamp() < history_stamp(first.places, TurnPhase::Begin, 0));
            let history = HistoryState { message_count: again, tombstone: Some(first.clone()) };
            let second = Tombstone::new(&history, &deletion(), None);
            prop_assert!(history_stamp(first.places + again, TurnPhase::End, attempt) < second.stamp());
            prop_assert!(second.stamp() < history_stamp(second.places, TurnPhase::Begin, 0));
        }
    }

    #[test]
    fn change_after_a_deletion_wins_despite_a_slow_clock() {
        let tombstone = Tombstone::new(
            &HistoryState::default(),
            &deletion(),
            Some(Timestamp::from_micros(9)),
        );
        assert_eq!(tombstone.at.micros(), 9);
        assert_eq!(
            moment_behind(Some(&tombstone), Timestamp::from_micros(3)).micros(),
            10
        );
        assert_eq!(
            moment_behind(Some(&tombstone), Timestamp::from_micros(30)).micros(),
            30
        );
        assert_eq!(moment_behind(None, Timestamp::from_micros(3)).micros(), 3);
    }
}
