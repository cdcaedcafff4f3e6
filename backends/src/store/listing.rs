//! Lists of conversations, latest first: queries and rows of both backends.
//!
//! A conversation is listed by its start time, which never changes, so that it is written once and
//! no list moves under a reader. It is part of its organization's list and of that of its agent or
//! team.

use switchboard_schemas::{
    conversation::ConversationOwner,
    ids::{ConversationId, OrgId},
    time::Timestamp,
};

use crate::error::StoreError;

/// Name of the list with all conversations of an organization; other lists are named by an agent or
/// team id.
const ALL: &str = "";
/// Length of a list partition in Scylla, in microseconds.
const DAY_MICROS: i64 = 24 * 60 * 60 * 1_000_000;

/// A query for a part of a list of conversations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// Only conversations with this agent or team.
    pub owner: Option<ConversationOwner>,
    /// Only conversations that began at this time or later.
    pub since: Option<Timestamp>,
    /// Only conversations after this position of the list.
    pub behind: Option<ListCursor>,
    /// Maximum number of conversations.
    pub limit: u32,
}

/// A position between two conversations of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListCursor {
    /// Start time of the last conversation before the position.
    pub began_at: Timestamp,
    /// Id of the last conversation before the position, among those with the same start time.
    pub id: Option<ConversationId>,
}

/// A conversation in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedConversation {
    /// Time at which its first message was accepted.
    pub began_at: Timestamp,
    /// Id of the conversation.
    pub id: ConversationId,
}

/// The list entries of a new conversation.
pub(super) struct ListRow {
    pub(super) began_at: i64,
    pub(super) lists: [String; 2],
}

impl ListRow {
    pub(super) fn new(owner: &ConversationOwner, began_at: Timestamp) -> Self {
        Self {
            began_at: began_at.micros(),
            lists: [ALL.to_owned(), list_of(owner).to_owned()],
        }
    }
}

/// A query in terms of columns.
pub(super) struct ListRange {
    pub(super) org: OrgId,
    pub(super) list: String,
    pub(super) since: i64,
    /// Exclusive start of the range.
    pub(super) behind: (i64, String),
    pub(super) limit: u32,
}

impl ListRange {
    pub(super) fn from_query(org: &OrgId, query: &ListQuery) -> Self {
        let behind = query
            .behind
            .as_ref()
            .map_or((i64::MAX, String::new()), |place| {
                (
                    place.began_at.micros(),
                    place
                        .id
                        .as_ref()
                        .map(ToString::to_string)
                        .unwrap_or_default(),
                )
            });
        Self {
            org: org.clone(),
            list: query.owner.as_ref().map_or(ALL, list_of).to_owned(),
            since: query.since.map_or(i64::MIN, Timestamp::micros),
            behind,
            limit: query.limit,
        }
    }
}

/// Parses a row of a list.
pub(super) fn parse_listed(
    (began_at, id): (i64, String),
) -> Result<ListedConversation, StoreError> {
    let id = id
        .parse()
        .map_err(|_| StoreError::Malformed("a listed conversation has no id".into()))?;
    Ok(ListedConversation {
        began_at: Timestamp::from_micros(began_at),
        id,
    })
}

/// Returns the number of the list partition of a time.
pub(super) const fn day_of(micros: i64) -> i64 {
    micros.div_euclid(DAY_MICROS)
}

fn list_of(owner: &ConversationOwner) -> &str {
    match owner {
        ConversationOwner::Agent(agent) => agent.as_str(),
        ConversationOwner::Team(team) => team.as_str(),
    }
}
