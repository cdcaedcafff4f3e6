//! The deletion of a conversation: which stamps it covers, and what lies elsewhere and goes with it. Pure; both twins walk
//! the same way.
//!
//! A session's conversation has one id for ever, so that a visitor who comes back begins it anew under the same one. Its
//! stamps then lie behind those of everything that was deleted: whatever a worker of the old life still writes loses.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use switchboard_schemas::{
    conversation::{Message, MessageAuthor},
    ids::{AgentId, ConversationId, EventId, MessageId, OrgId},
    time::Timestamp,
};

use super::{
    rows::Origin,
    stamp::{Phase, history_stamp, result_stamp},
};
use crate::{analytics::FactWrite, error::StoreError, json::decode};

/// Messages that a deletion holds in memory at once.
pub(super) const DELETED_AT_ONCE: u64 = 100;
/// Places that a life of a conversation uses up beside its counted messages: a turn that was not counted has two.
const PLACES_UNCOUNTED: u64 = 2;

/// A wish to delete a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationDeletion {
    /// Tenant.
    pub org_id: OrgId,
    /// The conversation.
    pub conversation_id: ConversationId,
    /// Names the deletion, so that a repeat is known.
    pub event_id: EventId,
    /// When it is done.
    pub at: Timestamp,
}

/// What the next turn of a conversation stands on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryState {
    /// Messages in its history; none where it never began or was deleted.
    pub message_count: u64,
    /// Its last deletion.
    pub tombstone: Option<Tombstone>,
}

/// What stays of a deleted conversation, and is known of it when it begins anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tombstone {
    /// The deletion.
    pub event_id: EventId,
    /// Places in the order of writes that were used up before.
    pub places: u64,
    /// Positions of the life that was deleted.
    pub positions: u64,
    /// No change of metadata up to this moment counts.
    pub at: Timestamp,
}

/// What belongs to some messages and lies elsewhere.
#[derive(Debug, Default)]
pub(super) struct Belongings {
    /// Replies, each with the stamp that covers its record.
    pub(super) replies: Vec<(MessageId, i64)>,
    /// Who answered.
    pub(super) agents: BTreeSet<AgentId>,
    /// What was counted of their turns, cleared.
    pub(super) facts: Vec<FactWrite>,
}

impl Tombstone {
    /// Over a conversation of so many messages.
    pub(super) fn over(
        standing: &HistoryState,
        deletion: &ConversationDeletion,
        metadata_at: Option<Timestamp>,
    ) -> Self {
        let positions = standing.message_count + PLACES_UNCOUNTED;
        Self {
            event_id: deletion.event_id.clone(),
            places: places_before(standing.tombstone.as_ref()) + positions,
            positions,
            at: deletion.at.max(metadata_at.unwrap_or_default()),
        }
    }

    /// Covers every write of the turns before, and none behind it.
    pub(super) fn stamp(&self) -> i64 {
        history_stamp(self.places, Phase::Begin, 0) - 1
    }
}

/// The moment of a change, behind a deletion that a slower clock saw later.
pub(super) fn moment_behind(tombstone: Option<&Tombstone>, at: Timestamp) -> Timestamp {
    tombstone.map_or(at, |tombstone| {
        at.max(Timestamp::from_micros(tombstone.at.micros() + 1))
    })
}

/// Places that were used up before the first turn of this life.
pub(super) fn places_before(tombstone: Option<&Tombstone>) -> u64 {
    tombstone.map_or(0, |tombstone| tombstone.places)
}

/// No rating of the deleted life counts.
pub(super) fn unrated(id: &ConversationId, origin: &Origin, tombstone: &Tombstone) -> FactWrite {
    FactWrite::of_rating(id, origin.created_at, None, tombstone.at)
}

/// What belongs to these messages.
pub(super) fn belongings(bodies: &[String], at: Timestamp) -> Result<Belongings, StoreError> {
    let mut found = Belongings::default();
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
            event_id: EventId::of("a", "b"),
            at: Timestamp::from_micros(7),
        }
    }

    proptest! {
        #[test]
        fn a_tombstone_covers_every_write_before_it_and_none_behind_it(
            count in 0u64..1 << 32, again in 0u64..1 << 32, attempt: u32,
        ) {
            let first = Tombstone::over(&HistoryState { message_count: count, tombstone: None }, &deletion(), None);
            // The last turn that can have been begun stands behind the counted ones.
            prop_assert!(history_stamp(count, Phase::End, attempt) < first.stamp());
            prop_assert!(first.stamp() < history_stamp(first.places, Phase::Begin, 0));
            let standing = HistoryState { message_count: again, tombstone: Some(first.clone()) };
            let second = Tombstone::over(&standing, &deletion(), None);
            prop_assert!(history_stamp(first.places + again, Phase::End, attempt) < second.stamp());
            prop_assert!(second.stamp() < history_stamp(second.places, Phase::Begin, 0));
        }
    }

    #[test]
    fn a_change_behind_a_deletion_counts_though_its_clock_is_behind() {
        let tombstone = Tombstone::over(
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
