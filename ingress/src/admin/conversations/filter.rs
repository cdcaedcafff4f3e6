//! Filters of the list and the export of conversations.

use serde::Deserialize;
use serde_json::{Map, Value};
use switchboard_backends::store::listing::{ListCursor, ListQuery, ListedConversation};
use switchboard_schemas::{
    conversation::{Conversation, ConversationOwner},
    time::Timestamp,
};
use utoipa::{IntoParams, ToSchema};

use super::search::TextSearch;
use crate::{
    admin::pages::{CursorQuery, parse_parameter},
    http::{ApiError, ApiResult},
    state::AppState,
};

/// The most conversations that one request, or one part of an export, reads.
pub(super) const READ_MAX: u32 = 500;
/// The same for a search over messages, which costs more.
const SEARCHED_MAX: u32 = 200;
/// The separator of the two parts of a cursor.
const CURSOR_SEPARATOR: char = '.';
/// The metadata that a search for a visitor compares.
const SEARCHED_KEYS: [&str; 3] = ["visitorName", "visitorEmail", "visitorId"];

/// The filters of a list of conversations.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
pub(in crate::admin) struct ConversationQuery {
    /// The id of an agent; not together with `team`.
    agent: Option<String>,
    /// The id of a team.
    team: Option<String>,
    /// The earliest time of the first message.
    #[param(value_type = Option<Timestamp>)]
    since: Option<String>,
    /// The time before which the first message was sent.
    #[param(value_type = Option<Timestamp>)]
    until: Option<String>,
    /// The lowest rating.
    #[param(value_type = Option<f64>)]
    min_rating: Option<String>,
    /// The highest rating.
    #[param(value_type = Option<f64>)]
    max_rating: Option<String>,
    /// A part of the visitor's name, address or id.
    visitor: Option<String>,
    /// Words that all occur in the messages, regardless of case.
    text: Option<String>,
    /// The visitor's id.
    visitor_id: Option<String>,
    /// The visitor's e-mail address, regardless of case.
    visitor_email: Option<String>,
    /// The format of an export: `jsonl` (the default) or `csv`. A list ignores it.
    #[param(value_type = Option<ExportFormat>, inline)]
    pub(super) format: Option<String>,
}

/// The conditions that a listed conversation must meet.
#[derive(Debug)]
pub(super) struct ConversationFilter {
    ratings: (Option<f64>, Option<f64>),
    visitor: VisitorFilter,
    text: Option<TextSearch>,
}

/// A conversation that meets all conditions.
pub(super) struct FilterMatch {
    /// The passage that a search over messages found.
    pub(super) passage: Option<String>,
}

/// The conditions on the visitor of a conversation.
#[derive(Debug, Default)]
struct VisitorFilter {
    /// A part of the name, the address or the id, in lower case.
    part: Option<String>,
    id: Option<String>,
    email: Option<String>,
}

/// Returns the cursor of the page that follows this conversation.
pub(super) fn cursor_after(listed: &ListedConversation) -> String {
    let began_at = listed.began_at.micros();
    format!("{began_at}{CURSOR_SEPARATOR}{}", listed.id)
}

fn parse_place(cursor: &str) -> Option<ListCursor> {
    let (began_at, id) = cursor.split_once(CURSOR_SEPARATOR)?;
    Some(ListCursor {
        began_at: Timestamp::from_micros(began_at.parse().ok()?),
        id: Some(id.parse().ok()?),
    })
}

impl ConversationQuery {
    /// Creates the query of all conversations with this owner that began before `until`.
    pub(super) fn of_owner(
        agent: Option<String>,
        team: Option<String>,
        until: Option<String>,
    ) -> Self {
        Self {
            agent,
            team,
            until,
            ..Self::default()
        }
    }

    /// Returns the part of the list to read.
    pub(super) fn list_query(&self, page: &CursorQuery) -> ApiResult<ListQuery> {
        let cursor = page.cursor(parse_place)?;
        let until = parse_time("until", self.until.as_deref())?;
        let until = until.map(|began_at| ListCursor { began_at, id: None });
        let since = parse_time("since", self.since.as_deref())?;
        Ok(ListQuery {
            owner: self.owner()?,
            since,
            behind: cursor.or(until),
            limit: self.text.as_ref().map_or(READ_MAX, |_| SEARCHED_MAX),
        })
    }

    fn owner(&self) -> ApiResult<Option<ConversationOwner>> {
        let (agent, team) = (self.agent.as_deref(), self.team.as_deref());
        if agent.is_some() && team.is_some() {
            let rule = "excludes agent: a conversation is with one of them";
            return Err(ApiError::field("team", rule));
        }
        let agent = parse_parameter("agent", agent, "must be the id of an agent")?;
        let team = parse_parameter("team", team, "must be the id of a team")?;
        Ok((agent.map(ConversationOwner::Agent)).or(team.map(ConversationOwner::Team)))
    }

    /// Returns the conditions that are checked for each conversation.
    pub(super) fn filter(&self) -> ApiResult<ConversationFilter> {
        Ok(ConversationFilter {
            ratings: (
                parse_number("minRating", self.min_rating.as_deref())?,
                parse_number("maxRating", self.max_rating.as_deref())?,
            ),
            visitor: VisitorFilter {
                part: self.visitor.as_ref().map(|part| part.trim().to_lowercase()),
                id: self.visitor_id.clone(),
                email: self.visitor_email.clone(),
            },
            text: TextSearch::parse(self.text.as_deref())?,
        })
    }
}

impl ConversationFilter {
    /// Returns the match of a conversation that meets all conditions, whose messages are read if a
    /// condition needs them.
    pub(super) async fn find(
        &self,
        state: &AppState,
        conversation: &Conversation,
    ) -> ApiResult<Option<FilterMatch>> {
        if !self.matches(conversation) {
            return Ok(None);
        }
        let Some(search) = &self.text else {
            return Ok(Some(FilterMatch { passage: None }));
        };
        let passage = search.find(state, conversation).await?;
        Ok(passage.map(|passage| FilterMatch {
            passage: Some(passage),
        }))
    }

    /// Returns whether a conversation meets the conditions that need no messages.
    fn matches(&self, conversation: &Conversation) -> bool {
        let rating = conversation.metadata.get("rating").and_then(Value::as_f64);
        let is_rated = match self.ratings {
            (None, None) => true,
            (min, max) => rating.is_some_and(|rating| {
                min.is_none_or(|min| rating >= min) && max.is_none_or(|max| rating <= max)
            }),
        };
        is_rated && self.visitor.matches(&conversation.metadata)
    }
}

impl VisitorFilter {
    fn matches(&self, metadata: &Map<String, Value>) -> bool {
        let value_of = |key: &str| {
            metadata
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let contains = |key: &&str, part: &str| value_of(key).to_lowercase().contains(part);
        let has_part = |part: &String| SEARCHED_KEYS.iter().any(|key| contains(key, part));
        let has_id = |id: &String| id == value_of("visitorId");
        let has_email = |email: &String| is_same_address(email, value_of("visitorEmail"));
        self.part.as_ref().is_none_or(has_part)
            && self.id.as_ref().is_none_or(has_id)
            && self.email.as_ref().is_none_or(has_email)
    }
}

/// Returns whether two texts are the same e-mail address, regardless of case.
pub(super) fn is_same_address(left: &str, right: &str) -> bool {
    left.to_lowercase() == right.to_lowercase()
}

pub(super) fn parse_time(param: &str, text: Option<&str>) -> ApiResult<Option<Timestamp>> {
    let parse = |text: &str| serde_json::from_value(Value::from(text));
    text.map(parse)
        .transpose()
        .map_err(|_| ApiError::field(param, "must be a time such as 2026-01-31T00:00:00Z"))
}

fn parse_number(param: &str, text: Option<&str>) -> ApiResult<Option<f64>> {
    let number: Option<f64> = parse_parameter(param, text, "must be a number")?;
    match number {
        Some(number) if !number.is_finite() => Err(ApiError::field(param, "must be a number")),
        number => Ok(number),
    }
}
/// The format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ToSchema)]
#[schema(rename_all = "lowercase")]
pub(super) enum ExportFormat {
    Jsonl,
    Csv,
}

impl ExportFormat {
    pub(super) fn parse(text: Option<&str>) -> ApiResult<Self> {
        match text {
            None | Some("jsonl") => Ok(Self::Jsonl),
            Some("csv") => Ok(Self::Csv),
            Some(_) => Err(ApiError::field("format", "must be jsonl or csv")),
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
        }
    }

    pub(super) const fn media_type(self) -> &'static str {
        match self {
            Self::Jsonl => "application/x-ndjson",
            Self::Csv => "text/csv; charset=utf-8",
        }
    }
}
