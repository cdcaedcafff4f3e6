//! Which conversations are meant: the filters of the list, which the export has too.

use serde::Deserialize;
use serde_json::{Map, Value};
use switchboard_backends::store::listing::{ListCursor, ListQuery, ListedConversation};
use switchboard_schemas::{
    conversation::{Conversation, ConversationOwner},
    time::Timestamp,
};

use crate::http::{ApiError, ApiResult};

/// Conversations that one request looks at, or that one part of an export does.
pub(super) const LOOKED_AT_MAX: u32 = 500;
/// Between the two parts of a cursor.
const CURSOR_SEPARATOR: char = '.';
/// What a search for a visitor looks through.
const SEARCHED_KEYS: [&str; 3] = ["visitorName", "visitorEmail", "visitorId"];

/// The query of a list.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::admin) struct Wanted {
    agent: Option<String>,
    team: Option<String>,
    since: Option<String>,
    until: Option<String>,
    min_rating: Option<String>,
    max_rating: Option<String>,
    visitor: Option<String>,
    visitor_id: Option<String>,
    visitor_email: Option<String>,
    cursor: Option<String>,
    pub(super) limit: Option<String>,
    pub(super) format: Option<String>,
}

/// What a conversation must have, beside its place in the list.
#[derive(Debug)]
pub(super) struct Filter {
    ratings: (Option<f64>, Option<f64>),
    visitor: VisitorFilter,
}

/// Whom a conversation must be with.
#[derive(Debug, Default)]
struct VisitorFilter {
    /// Part of a name, an address or an id, in lower case.
    part: Option<String>,
    id: Option<String>,
    email: Option<String>,
}

/// The cursor of who goes on behind this conversation.
pub(super) fn cursor_behind(listed: &ListedConversation) -> String {
    format!(
        "{}{CURSOR_SEPARATOR}{}",
        listed.began_at.micros(),
        listed.id
    )
}

fn place(cursor: &str) -> Option<ListCursor> {
    let (began_at, id) = cursor.split_once(CURSOR_SEPARATOR)?;
    Some(ListCursor {
        began_at: Timestamp::from_micros(began_at.parse().ok()?),
        id: Some(id.parse().ok()?),
    })
}

impl Wanted {
    /// Its part of the list.
    pub(super) fn query(&self) -> ApiResult<ListQuery> {
        let cursor = self.cursor.as_deref().map(|cursor| {
            place(cursor).ok_or_else(|| {
                ApiError::field("cursor", "must be the nextCursor of an earlier page")
            })
        });
        let behind = match (cursor.transpose()?, time("until", self.until.as_deref())?) {
            (Some(place), _) => Some(place),
            (None, until) => until.map(|began_at| ListCursor { began_at, id: None }),
        };
        let since = time("since", self.since.as_deref())?;
        Ok(ListQuery {
            owner: self.owner()?,
            since,
            behind,
            limit: LOOKED_AT_MAX,
        })
    }

    fn owner(&self) -> ApiResult<Option<ConversationOwner>> {
        match (&self.agent, &self.team) {
            (None, None) => Ok(None),
            (Some(agent), None) => {
                let agent = agent
                    .parse()
                    .map_err(|_| ApiError::field("agent", "must be the id of an agent"))?;
                Ok(Some(ConversationOwner::Agent(agent)))
            }
            (None, Some(team)) => {
                let team = team
                    .parse()
                    .map_err(|_| ApiError::field("team", "must be the id of a team"))?;
                Ok(Some(ConversationOwner::Team(team)))
            }
            (Some(_), Some(_)) => Err(ApiError::field(
                "team",
                "excludes agent: a conversation is with one of them",
            )),
        }
    }

    /// What is left out of it.
    pub(super) fn filter(&self) -> ApiResult<Filter> {
        Ok(Filter {
            ratings: (
                number("minRating", self.min_rating.as_deref())?,
                number("maxRating", self.max_rating.as_deref())?,
            ),
            visitor: VisitorFilter {
                part: self.visitor.as_ref().map(|part| part.trim().to_lowercase()),
                id: self.visitor_id.clone(),
                email: self.visitor_email.clone(),
            },
        })
    }
}

impl Filter {
    /// Whether the conversation is meant.
    pub(super) fn passes(&self, conversation: &Conversation) -> bool {
        let rating = conversation.metadata.get("rating").and_then(Value::as_f64);
        let rated = match self.ratings {
            (None, None) => true,
            (min, max) => rating.is_some_and(|rating| {
                min.is_none_or(|min| rating >= min) && max.is_none_or(|max| rating <= max)
            }),
        };
        rated && self.visitor.passes(&conversation.metadata)
    }
}

impl VisitorFilter {
    fn passes(&self, metadata: &Map<String, Value>) -> bool {
        let said = |key: &str| {
            metadata
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let has = |part: &String| {
            SEARCHED_KEYS
                .iter()
                .any(|key| said(key).to_lowercase().contains(part))
        };
        self.part.as_ref().is_none_or(has)
            && self.id.as_deref().is_none_or(|id| id == said("visitorId"))
            && self
                .email
                .as_deref()
                .is_none_or(|email| is_address(email, said("visitorEmail")))
    }
}

/// Whether two texts are one e-mail address, in whatever spelling.
pub(super) fn is_address(left: &str, right: &str) -> bool {
    left.to_lowercase() == right.to_lowercase()
}

fn time(param: &str, text: Option<&str>) -> ApiResult<Option<Timestamp>> {
    let read = |text: &str| serde_json::from_value(Value::from(text));
    text.map(read)
        .transpose()
        .map_err(|_| ApiError::field(param, "must be a time such as 2026-01-31T00:00:00Z"))
}

fn number(param: &str, text: Option<&str>) -> ApiResult<Option<f64>> {
    let number = text
        .map(str::parse::<f64>)
        .transpose()
        .ok()
        .filter(|number| number.is_none_or(f64::is_finite));
    number.ok_or_else(|| ApiError::field(param, "must be a number"))
}
