//! What the store keeps, row by row: both twins write these texts under these stamps and join them the same way.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use switchboard_schemas::{
    client_text::SessionId,
    conversation::{Conversation, ConversationOwner, Message, MessageAuthor, RESERVED_KEYS},
    ids::{ConversationId, MessageId, OrgId},
    time::Timestamp,
    turn::Turn,
};

use super::{
    AcceptedReply, ReplyRecord, ReplyState, TurnEnd, TurnStart,
    deletion::{HistoryState, Tombstone, moment_behind, places_before},
    listing::ListRow,
    stamp::{ACCEPTANCE_STAMP, Phase, history_stamp, result_stamp},
};
use crate::{
    analytics::FactWrite,
    error::StoreError,
    json::{decode, encode, malformed},
};

/// The key of the metadata that figures count.
const RATING_KEY: &str = "rating";

/// One cell: JSON, and the stamp by which it wins or loses against another write of the same cell.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cell {
    pub(super) body: String,
    pub(super) stamp: i64,
}

/// What [`super::Store::begin_turn`] writes.
pub(super) struct StartRows {
    pub(super) org: OrgId,
    pub(super) conversation: ConversationId,
    pub(super) position: i64,
    pub(super) message: Cell,
    /// Of the turn at position 0 only.
    pub(super) origin: Option<String>,
    /// Likewise.
    pub(super) list_row: Option<ListRow>,
    pub(super) progress: Cell,
    pub(super) metadata: MetadataChange,
}

/// What [`super::Store::finish_turn`] writes.
pub(super) struct EndRows {
    pub(super) org: OrgId,
    pub(super) conversation: ConversationId,
    pub(super) reply: MessageId,
    pub(super) message: Option<(i64, Cell)>,
    pub(super) progress: Cell,
    pub(super) record: Cell,
    pub(super) fact: FactWrite,
}

/// What lies under a reply's id: an acceptance until the final state replaces it.
#[derive(Serialize, Deserialize)]
struct ReplyRow {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    accepted: Option<AcceptedReply>,
}

/// Keys that are set, to JSON texts, and keys that are cleared.
pub(super) struct MetadataChange {
    pub(super) at: Timestamp,
    pub(super) set: BTreeMap<String, String>,
    pub(super) cleared: Vec<String>,
}

/// What the first turn says once and for all.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Origin {
    pub(super) session_id: SessionId,
    pub(super) owner: ConversationOwner,
    pub(super) created_at: Timestamp,
    /// The deletion behind which the conversation began anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tombstone: Option<Tombstone>,
}

/// What stands in its place once the conversation is deleted, and, where it began anew, what both have in common.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Grave {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    deleted: bool,
    pub(super) tombstone: Option<Tombstone>,
}

/// How far the conversation is; one cell, so that no reader joins the count of one turn with the reply of another.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Progress {
    pub(super) message_count: u64,
    pub(super) active_message_id: Option<MessageId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) last_reply_id: Option<MessageId>,
    pub(super) updated_at: Timestamp,
}

/// A conversation's row as it is read.
pub(super) struct HeadRow {
    pub(super) origin: Option<String>,
    pub(super) progress: Option<String>,
    pub(super) metadata_at: Option<Timestamp>,
    pub(super) metadata: Vec<(String, String)>,
}

impl StartRows {
    pub(super) fn of(start: &TurnStart) -> Result<Self, StoreError> {
        let turn = &start.turn;
        let tombstone = start.tombstone.as_ref();
        let stamp = history_stamp(
            places_before(tombstone) + start.position,
            Phase::Begin,
            start.attempt,
        );
        let origin = Origin {
            session_id: turn.session_id.clone(),
            owner: start.owner.clone(),
            created_at: turn.accepted_at,
            tombstone: start.tombstone.clone(),
        };
        let progress = Progress {
            message_count: start.position + 1,
            active_message_id: Some(turn.reply_id()),
            last_reply_id: None,
            updated_at: turn.accepted_at,
        };
        Ok(Self {
            org: turn.org_id.clone(),
            conversation: turn.conversation_id.clone(),
            position: column(start.position)?,
            message: Cell {
                body: encode(&user_message(start))?,
                stamp,
            },
            origin: if start.position == 0 {
                Some(encode(&origin)?)
            } else {
                None
            },
            list_row: (start.position == 0).then(|| ListRow::of(&start.owner, turn.accepted_at)),
            progress: Cell {
                body: encode(&progress)?,
                stamp,
            },
            metadata: MetadataChange::new(
                &visitor_metadata(turn)?,
                moment_behind(tombstone, turn.accepted_at),
            )?,
        })
    }
}

impl EndRows {
    pub(super) fn of(end: &TurnEnd) -> Result<Self, StoreError> {
        let place = places_before(end.tombstone.as_ref()) + end.record.user_position;
        let stamp = history_stamp(place, Phase::End, end.attempt);
        let progress = Progress {
            message_count: end.record.message_count(),
            active_message_id: None,
            last_reply_id: Some(end.user_message_id.reply()),
            updated_at: end.record.finished_at,
        };
        let message = match &end.message {
            Some(message) => Some((
                column(message.position)?,
                Cell {
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
            progress: Cell {
                body: encode(&progress)?,
                stamp,
            },
            record: Cell {
                body: encode(&end.record)?,
                stamp: record_stamp,
            },
            fact: FactWrite::of_turn(end, record_stamp)?,
        })
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

    /// What it says of the rating, for the figures of when the conversation began.
    pub(super) fn rating(&self, id: &ConversationId, began_at: Timestamp) -> Option<FactWrite> {
        let rating = self.set.get(RATING_KEY);
        let says = rating.is_some() || self.cleared.iter().any(|key| key == RATING_KEY);
        says.then(|| FactWrite::of_rating(id, began_at, rating, self.at))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.set.is_empty() && self.cleared.is_empty()
    }
}

/// The head of a deleted conversation: its origin, and its progress.
pub(super) fn buried(tombstone: &Tombstone) -> Result<(String, Cell), StoreError> {
    let grave = Grave {
        deleted: true,
        tombstone: Some(tombstone.clone()),
    };
    let progress = Progress {
        message_count: 0,
        active_message_id: None,
        last_reply_id: None,
        updated_at: tombstone.at,
    };
    Ok((
        encode(&grave)?,
        Cell {
            body: encode(&progress)?,
            stamp: tombstone.stamp(),
        },
    ))
}

impl HeadRow {
    /// What the first turn said, while the conversation is there.
    pub(super) fn origin(&self) -> Result<Option<Origin>, StoreError> {
        match &self.origin {
            Some(origin) if !self.grave()?.deleted => decode(origin).map(Some),
            _ => Ok(None),
        }
    }

    /// The last deletion, if there was one.
    pub(super) fn grave(&self) -> Result<Grave, StoreError> {
        self.origin
            .as_deref()
            .map_or_else(|| Ok(Grave::default()), decode)
    }

    /// What the next turn stands on.
    pub(super) fn history_state(&self) -> Result<HistoryState, StoreError> {
        let progress: Option<Progress> = self.progress.as_deref().map(decode).transpose()?;
        let message_count = progress.map_or(0, |progress| progress.message_count);
        Ok(HistoryState {
            message_count,
            tombstone: self.grave()?.tombstone,
        })
    }

    /// The conversation, once its first turn has begun.
    pub(super) fn conversation(
        self,
        org: OrgId,
        id: ConversationId,
    ) -> Result<Option<Conversation>, StoreError> {
        let (Some(origin), Some(progress)) = (self.origin()?, self.progress) else {
            return Ok(None);
        };
        let progress: Progress = decode(&progress)?;
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

/// The row that [`super::Store::accept`] writes.
pub(super) fn accepted_cell(accepted: &AcceptedReply) -> Result<Cell, StoreError> {
    let row = ReplyRow {
        accepted: Some(accepted.clone()),
    };
    Ok(Cell {
        body: encode(&row)?,
        stamp: ACCEPTANCE_STAMP,
    })
}

/// What a row under a reply's id says.
pub(super) fn known_reply(body: &str) -> Result<ReplyState, StoreError> {
    match decode::<ReplyRow>(body)?.accepted {
        Some(accepted) => Ok(ReplyState::Accepted(accepted)),
        None => decode::<ReplyRecord>(body).map(|record| ReplyState::Final(Box::new(record))),
    }
}

/// Counted messages of a page, if all of them are there: positions from the first value up to, not with, the second.
pub(super) fn page_range(from: u64, limit: u32, message_count: u64) -> Option<(u64, u64)> {
    let end = from.saturating_add(u64::from(limit)).min(message_count);
    (from < end).then_some((from, end))
}

/// The messages of a page, of which none may be missing.
pub(super) fn read_page(
    bodies: &[String],
    (from, end): (u64, u64),
) -> Result<Vec<Message>, StoreError> {
    if bodies.len() as u64 != end - from {
        // In another data centre the row may travel longer than the head that counts it.
        return Err(StoreError::Unavailable(
            "a counted message has not arrived".into(),
        ));
    }
    bodies.iter().map(|body| decode(body)).collect()
}

/// Conversations by the moment that stands beside each, the latest first.
pub(super) fn latest_first(
    mut links: Vec<(String, i64)>,
) -> Result<Vec<ConversationId>, StoreError> {
    links.sort_unstable_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
    let ids = links.into_iter().map(|(id, _)| id.parse());
    ids.collect::<Result<_, _>>()
        .map_err(|_| StoreError::Malformed("a linked conversation has no id".into()))
}

/// A position as a column of the database.
pub(super) fn column(position: u64) -> Result<i64, StoreError> {
    i64::try_from(position).map_err(|_| StoreError::Malformed("a position is out of range".into()))
}

fn user_message(start: &TurnStart) -> Message {
    Message {
        id: start.turn.message_id.clone(),
        position: start.position,
        content: start.turn.content.clone(),
        created_at: start.turn.accepted_at,
        author: MessageAuthor::User,
    }
}

/// What a turn says of its visitor; what it does not say stays as it was.
fn visitor_metadata(turn: &Turn) -> Result<Map<String, Value>, StoreError> {
    let mut metadata = turn.metadata.clone();
    metadata.retain(|key, _| !RESERVED_KEYS.contains(&key.as_str()));
    let source = serde_json::to_value(turn.source).map_err(|error| malformed(&error))?;
    let visitor_id = turn.visitor.id.as_ref().map(|id| id.as_str().to_owned());
    let said = [
        ("visitorId", visitor_id.map(Value::from)),
        ("visitorEmail", turn.visitor.email.clone().map(Value::from)),
        ("visitorName", turn.visitor.name.clone().map(Value::from)),
        ("source", Some(source)),
        ("ipAddress", turn.ip_address.clone().map(Value::from)),
    ];
    metadata.extend(
        said.into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?))),
    );
    Ok(metadata)
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
    fn fields_of_a_newer_program_are_ignored_in_every_kept_text() {
        let talk = Talk::new();
        let turn = talk.turn(0, "question");
        let start = StartRows::of(&turn.start(1)).unwrap();
        let end = turn.end(1, replied("answer"));
        let rows = EndRows::of(&end).unwrap();

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
    fn a_malformed_row_is_reported_without_its_text() {
        let error = decode::<Message>("{\"content\": \"private words\"}").unwrap_err();
        assert!(
            matches!(error, StoreError::Malformed(_)) && !error.to_string().contains("private")
        );
    }

    #[test]
    fn failed_reply_has_no_message_and_is_not_counted() {
        let rows = EndRows::of(&Talk::new().turn(4, "question").end(1, failed())).unwrap();
        assert_eq!(rows.message, None);
        assert_eq!(
            decode::<Progress>(&rows.progress.body)
                .unwrap()
                .message_count,
            5
        );
    }
}
