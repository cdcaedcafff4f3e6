//! Lists of conversations, latest first: which of them, and the rows under which both twins find them.
//!
//! A conversation is listed where it began, which never changes, so that it is written once and no list moves under a
//! reader. It stands in its organization's list and in that of its agent or team.

use switchboard_schemas::{
    conversation::ConversationOwner,
    ids::{ConversationId, OrgId},
    time::Timestamp,
};

use crate::error::StoreError;

/// The list of all conversations of an organization; the others bear the id of an agent or a team.
const ALL: &str = "";
/// Length of the buckets of the production twin.
const DAY_MICROS: i64 = 24 * 60 * 60 * 1_000_000;

/// Part of a list of conversations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// Only those with this agent or team.
    pub owner: Option<ConversationOwner>,
    /// Only those that began at this moment or after it.
    pub since: Option<Timestamp>,
    /// Only those behind this place of the list.
    pub behind: Option<ListCursor>,
    /// How many at most.
    pub limit: u32,
}

/// A place between two conversations of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListCursor {
    /// Behind those that began at this moment or after it …
    pub began_at: Timestamp,
    /// … but, of those that began at this very moment, only behind this one and those before it.
    pub id: Option<ConversationId>,
}

/// A conversation in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedConversation {
    /// When its first message was accepted.
    pub began_at: Timestamp,
    /// Which it is.
    pub id: ConversationId,
}

/// A conversation that begins, as its lists take it.
pub(super) struct ListRow {
    pub(super) began_at: i64,
    pub(super) lists: [String; 2],
}

impl ListRow {
    pub(super) fn of(owner: &ConversationOwner, began_at: Timestamp) -> Self {
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
    /// Exclusive.
    pub(super) behind: (i64, String),
    pub(super) limit: u32,
}

impl ListRange {
    pub(super) fn of(org: &OrgId, query: &ListQuery) -> Self {
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

/// A row as it is read.
pub(super) fn listed((began_at, id): (i64, String)) -> Result<ListedConversation, StoreError> {
    let id = id
        .parse()
        .map_err(|_| StoreError::Malformed("a listed conversation has no id".into()))?;
    Ok(ListedConversation {
        began_at: Timestamp::from_micros(began_at),
        id,
    })
}

/// The bucket of a moment.
pub(super) const fn day_of(micros: i64) -> i64 {
    micros.div_euclid(DAY_MICROS)
}

fn list_of(owner: &ConversationOwner) -> &str {
    match owner {
        ConversationOwner::Agent(agent) => agent.as_str(),
        ConversationOwner::Team(team) => team.as_str(),
    }
}
