//! Rows of the conversation store. Both backends write these texts with these stamps and combine
//! them in the same way.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use switchboard_schemas::{
    client_text::SessionId,
    conversation::{Conversation, ConversationOwner, Message, MessageAuthor, RESERVED_KEYS},
    ids::{ConversationId, MessageId, OrgId},
    lead::LEAD_KEY,
    time::Timestamp,
    turn::Turn,
};

use super::{
    TurnEnd, TurnStart,
    deletion::{HistoryState, Tombstone, moment_behind, places_before},
    listing::ListRow,
    stamp::{TurnPhase, history_stamp, result_stamp},
};
use crate::{
    analytics::facts::{FactWrite, TurnFact},
    error::StoreError,
    json::{decode, encode, malformed},
};

/// Metadata key of the rating, which analytics counts.
const RATING_KEY: &str = "rating";

/// A cell: a JSON text and the stamp that decides between two writes of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StampedCell {
    pub(super) body: String,
    pub(super) stamp: i64,
}

/// The rows that [`super::TurnWriter::begin_turn`] writes.
pub(super) struct StartRows {
    pub(super) org: OrgId,
    pub(super) conversation: ConversationId,
    pub(super) position: i64,
    pub(super) message: StampedCell,
    /// Origin of the conversation, for the turn at position 0 only.
    pub(super) origin: Option<String>,
    /// Entries in the lists, for the turn at position 0 only.
    pub(super) list_row: Option<ListRow>,
    pub(super) progress: StampedCell,
    pub(super) metadata: MetadataChange,
}

/// The rows that [`super::TurnWriter::finish_turn`] writes.
pub(super) struct EndRows {
    pub(super) org: OrgId,
    pub(super) conversation: ConversationId,
    pub(super) reply: MessageId,
    pub(super) message: Option<(i64, StampedCell)>,
    pub(super) progress: StampedCell,
    pub(super) record: StampedCell,
    pub(super) fact: FactWrite,
}

/// Keys to set with their JSON texts, and keys to clear.
pub(super) struct MetadataChange {
    pub(super) at: Timestamp,
    pub(super) set: BTreeMap<String, String>,
    pub(super) cleared: Vec<String>,
}

/// The constants of a conversation, set by its first turn.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConversationOrigin {
    pub(super) session_id: SessionId,
    pub(super) owner: ConversationOwner,
    pub(super) created_at: Timestamp,
    /// Deletion after which the conversation started anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tombstone: Option<Tombstone>,
}

/// The contents of the `origin` cell after a deletion: the tombstone, which a restarted
/// conversation keeps.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DeletionMarker {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    deleted: bool,
    pub(super) tombstone: Option<Tombstone>,
}

/// The progress of a conversation in one cell, so that no reader combines the count of one turn
/// with the reply of another.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TurnProgress {
    pub(super) message_count: u64,
    pub(super) active_message_id: Option<MessageId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) last_reply_id: Option<MessageId>,
    pub(super) updated_at: Timestamp,
}

/// The row of a conversation as read from the store.
pub(super) struct HeadRow {
    pub(super) origin: Option<String>,
    pub(super) progress: Option<String>,
    pub(super) metadata_at: Option<Timestamp>,
    pub(super) metadata: Vec<(String, String)>,
}

impl StartRows {
    pub(super) fn from_start(start: &TurnStart) -> Result<Self, StoreError> {
        let turn = &start.turn;
        let tombstone = start.tombstone.as_ref();
        let stamp = history_stamp(
            places_before(tombstone) + start.position,
            TurnPhase::Begin,
            start.attempt,
        );
        let origin = ConversationOrigin {
            session_id: turn.session_id.clone(),
            owner: start.owner.clone(),
            created_at: turn.accepted_at,
            tombstone: start.tombstone.clone(),
        };
        let progress = TurnProgress {
            message_count: start.position + 1,
            active_message_id: Some(turn.reply_id()),
            last_reply_id: None,
            updated_at: turn.accepted_at,
        };
        Ok(Self {
            org: turn.org_id.clone(),
            conversation: turn.conversation_id.clone(),
            position: position_column(start.position)?,
            message: StampedCell {
                body: encode(&user_message(start))?,
                stamp,
            },
            origin: if start.position == 0 {
                Some(encode(&origin)?)
            } else {
                None
            },
            list_row: (start.position == 0).then(|| ListRow::new(&start.owner, turn.accepted_at)),
            progress: StampedCell {
                body: encode(&progress)?,
                stamp,
            },
            metadata: MetadataChange::new(
                &turn_metadata(turn)?,
                moment_behind(tombstone, start.metadata_at),
            )?,
        })
    }
}

impl EndRows {
    pub(super) fn from_end(end: &TurnEnd) -> Result<Self, StoreError> {
        let place = places_before(end.tombstone.as_ref()) + end.record.user_position;
        let stamp = history_stamp(place, TurnPhase::End, end.attempt);
        let progress = TurnProgress {
            message_count: end.record.message_count(),
            active_message_id: None,
            last_reply_id: Some(end.user_message_id.reply()),
            updated_at: end.record.finished_at,
        };
        let message = match &end.message {
            Some(message) => Some((
                position_column(message.position)?,
                StampedCell {
                    body: encode(message)?,
                    stamp,
                },
            )),
            None => None,
        };
        let record_stamp = result_stamp(end.accepted_at, end.attempt);
        Ok(Self {
            org: end.org_id.clone(),
            conversation: end.user_message_id.conversation(),
            reply: end.user_message_id.reply(),
            message,
            progress: StampedCell {
                body: encode(&progress)?,
                stamp,
            },
            record: StampedCell {
                body: encode(&end.record)?,
                stamp: record_stamp,
            },
            fact: FactWrite::of_turn(
                &end.user_message_id,
                end.accepted_at,
                &turn_fact(end),
                record_stamp,
            )?,
        })
    }
}

/// Returns the fact of a finished turn.
fn turn_fact(end: &TurnEnd) -> TurnFact {
    let (record, has_text) = (&end.record, end.record.position.is_some());
    TurnFact {
        opens: (record.user_position == 0).then(|| end.user_message_id.conversation()),
        agent_id: end.agent_id.clone(),
        team_id: end.team_id.clone(),
        status: record.end.status,
        response_time_ms: has_text.then_some(record.end.response_time_ms),
        first_text_ms: record.first_text_ms.filter(|_| has_text),
        usage: record.end.usage,
    }
}

impl MetadataChange {
    pub(super) fn new(changes: &Map<String, Value>, at: Timestamp) -> Result<Self, StoreError> {
        let mut change = Self {
            at,
            set: BTreeMap::new(),
            cleared: Vec::new(),
        };
        for (key, value) in changes {
            if value.is_null() {
                change.cleared.push(key.clone());
            } else {
                change.set.insert(key.clone(), encode(value)?);
            }
        }
        Ok(change)
    }

    /// Returns the changes of the facts about rating and lead, counted on the day the conversation
    /// began.
    pub(super) fn facts(&self, id: &ConversationId, began_at: Timestamp) -> Vec<FactWrite> {
        let value_of = |name: &str| {
            let is_cleared = || self.cleared.iter().any(|key| key == name);
            let value = self.set.get(name);
            (value.is_some() || is_cleared()).then_some(value)
        };
        let rating =
            value_of(RATING_KEY).map(|rating| FactWrite::of_rating(id, began_at, rating, self.at));
        let lead = value_of(LEAD_KEY)
            .map(|lead| FactWrite::of_lead(id, began_at, lead.is_some(), self.at));
        rating.into_iter().chain(lead).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.set.is_empty() && self.cleared.is_empty()
    }
}

/// Returns the head of a deleted conversation: its origin and its progress.
pub(super) fn tombstone_rows(tombstone: &Tombstone) -> Result<(String, StampedCell), StoreError> {
    let marker = DeletionMarker {
        deleted: true,
        tombstone: Some(tombstone.clone()),
    };
    let progress = TurnProgress {
        message_count: 0,
        active_message_id: None,
        last_reply_id: None,
        updated_at: tombstone.at,
    };
    Ok((
        encode(&marker)?,
        StampedCell {
            body: encode(&progress)?,
            stamp: tombstone.stamp(),
        },
    ))
}

impl HeadRow {
    /// Returns the origin of a conversation that exists.
    pub(super) fn origin(&self) -> Result<Option<ConversationOrigin>, StoreError> {
        match &self.origin {
            Some(origin) if !self.deletion_marker()?.deleted => decode(origin).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns the contents of the `origin` cell that concern deletions.
    pub(super) fn deletion_marker(&self) -> Result<DeletionMarker, StoreError> {
        self.origin
            .as_deref()
            .map_or_else(|| Ok(DeletionMarker::default()), decode)
    }

    /// Returns the state that the next turn builds on.
    pub(super) fn history_state(&self) -> Result<HistoryState, StoreError> {
        let progress: Option<TurnProgress> = self.progress.as_deref().map(decode).transpose()?;
        let message_count = progress.map_or(0, |progress| progress.message_count);
        Ok(HistoryState {
            message_count,
            tombstone: self.deletion_marker()?.tombstone,
        })
    }

    /// Returns the conversation, or `None` before its first turn has begun.
    pub(super) fn conversation(
        self,
        org: OrgId,
        id: ConversationId,
    ) -> Result<Option<Conversation>, StoreError> {
        let (Some(origin), Some(progress)) = (self.origin()?, self.progress) else {
            return Ok(None);
        };
        let progress: TurnProgress = decode(&progress)?;
        let metadata = self
            .metadata
            .into_iter()
            .map(|(key, value)| Ok((key, decode(&value)?)));
        Ok(Some(Conversation {
            id,
            org_id: org,
            session_id: origin.session_id,
            owner: origin.owner,
            message_count: progress.message_count,
            active_message_id: progress.active_message_id,
            last_reply_id: progress.last_reply_id,
            created_at: origin.created_at,
            updated_at: progress
                .updated_at
                .max(self.metadata_at.unwrap_or_default())
                .max(origin.created_at),
            metadata: metadata.collect::<Result<_, StoreError>>()?,
        }))
    }
}

/// Returns the half-open range of positions of a page, limited to counted messages, or `None` if it
/// is empty.
pub(super) fn page_range(from: u64, limit: u32, message_count: u64) -> Option<(u64, u64)> {
    let end = from.saturating_add(u64::from(limit)).min(message_count);
    (from < end).then_some((from, end))
}

/// Parses the messages of a page, none of which may be missing.
pub(super) fn read_page(
    bodies: &[String],
    (from, end): (u64, u64),
) -> Result<Vec<Message>, StoreError> {
    if bodies.len() as u64 != end - from {
        // In another data center the row may arrive later than the head that counts it.
        return Err(StoreError::Unavailable(
            "a counted message has not arrived".into(),
        ));
    }
    bodies.iter().map(|body| decode(body)).collect()
}

/// Sorts conversations by the time beside each, latest first.
pub(super) fn latest_first(
    mut links: Vec<(String, i64)>,
) -> Result<Vec<ConversationId>, StoreError> {
    links.sort_unstable_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
    let ids = links.into_iter().map(|(id, _)| id.parse());
    ids.collect::<Result<_, _>>()
        .map_err(|_| StoreError::Malformed("a linked conversation has no id".into()))
}

/// Converts a position to a database column.
pub(super) fn position_column(position: u64) -> Result<i64, StoreError> {
    i64::try_from(position).map_err(|_| StoreError::Malformed("a position is out of range".into()))
}

fn user_message(start: &TurnStart) -> Message {
    Message {
        id: start.turn.message_id.clone(),
        position: start.position,
        content: start.turn.content.clone(),
        attachments: start.turn.attachments.clone(),
        created_at: start.turn.accepted_at,
        author: MessageAuthor::User,
    }
}

/// Returns the visitor data of a turn as metadata. Missing fields are left unchanged. A lead is a
/// change of its own, because it is counted.
fn turn_metadata(turn: &Turn) -> Result<Map<String, Value>, StoreError> {
    let mut metadata = message_metadata(turn);
    metadata.remove(LEAD_KEY);
    let source = serde_json::to_value(turn.source).map_err(|error| malformed(&error))?;
    metadata.insert("source".to_owned(), source);
    if let Some(address) = &turn.ip_address {
        metadata.insert("ipAddress".to_owned(), address.clone().into());
    }
    Ok(metadata)
}

/// Returns the metadata that a message brings: the client's own keys and the visitor fields.
pub fn message_metadata(turn: &Turn) -> Map<String, Value> {
    let mut metadata = turn.metadata.clone();
    metadata.retain(|key, _| !RESERVED_KEYS.contains(&key.as_str()));
    let visitor_id = turn.visitor.id.as_ref().map(|id| id.as_str().to_owned());
    let said = [
        ("visitorId", visitor_id),
        ("visitorEmail", turn.visitor.email.clone()),
        ("visitorName", turn.visitor.name.clone()),
    ];
    metadata.extend(
        said.into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?.into()))),
    );
    if let Some(lead) = &turn.visitor.lead {
        metadata.insert(LEAD_KEY.to_owned(), json!(lead));
    }
    metadata
}

#[cfg(test)]
mod tests {
    use super::{
        super::conformance::{Talk, failed, replied},
        *,
    };

    fn with_newer_fields(text: &str) -> String {
        let mut value: Map<String, Value> = serde_json::from_str(text).unwrap();
        value.insert(
            "aFieldOfANewerProgram".into(),
            serde_json::json!({"deep": [1, null]}),
        );
        serde_json::to_string(&value).unwrap()
    }

    #[test]
    fn unknown_fields_are_ignored_in_every_stored_text() {
        let talk = Talk::new();
        let turn = talk.turn(0, "question");
        let start = StartRows::from_start(&turn.start(1)).unwrap();
        let end = turn.end(1, replied("answer"));
        let rows = EndRows::from_end(&end).unwrap();

        let head = HeadRow {
            origin: start.origin.as_deref().map(with_newer_fields),
            progress: Some(with_newer_fields(&rows.progress.body)),
            metadata_at: None,
            metadata: Vec::new(),
        };
        assert_eq!(
            head.conversation(talk.org, talk.id)
                .unwrap()
                .unwrap()
                .message_count,
            2
        );
        let message: Message = decode(&with_newer_fields(&rows.message.unwrap().1.body)).unwrap();
        assert_eq!(Some(message), end.message);
        let record: super::super::ReplyRecord =
            decode(&with_newer_fields(&rows.record.body)).unwrap();
        assert_eq!(record, end.record);
    }

    #[test]
    fn malformed_row_is_reported_without_its_text() {
        let error = decode::<Message>("{\"content\": \"private words\"}").unwrap_err();
        assert!(
            matches!(error, StoreError::Malformed(_)) && !error.to_string().contains("private")
        );
    }

    #[test]
    fn failed_reply_has_no_message_and_is_not_counted() {
        let rows = EndRows::from_end(&Talk::new().turn(4, "question").end(1, failed())).unwrap();
        assert_eq!(rows.message, None);
        assert_eq!(
            decode::<TurnProgress>(&rows.progress.body)
                .unwrap()
                .message_count,
            5
        );
    }
}
