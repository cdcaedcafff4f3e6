//! `/api/admin/organizations/{org}/conversations`: what visitors and agents said, to be read by those who may.
//!
//! A list is walked latest first and a bounded part at a time: a filter that few conversations pass gives short pages, even
//! empty ones, and a cursor to go on with, and never a request that reads everything.

use axum::{
    Json,
    extract::{Path, Query, State},
    response::{IntoResponse, Response},
};
use futures::{StreamExt, TryStreamExt, stream};
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_backends::store::listing::{ListPlace, ListQuery, ListedConversation};
use switchboard_schemas::{
    conversation::{Author, Conversation, ConversationOwner, Message},
    ids::{ConversationId, OrgId},
    organization::Organization,
    time::Timestamp,
};

use super::{
    administrator::{Action, Administrator},
    page::{Page, limit},
    things::{not_found, organization},
};
use crate::{
    error::{ApiError, ApiResult},
    state::AppState,
};

/// Conversations that one request looks at.
const LOOKED_AT_MAX: u32 = 500;
/// Conversations that are read at once.
const READS_AT_ONCE: usize = 16;
/// Between the two parts of a cursor.
const CURSOR_SEPARATOR: char = '.';

/// The query of a list.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Wanted {
    agent: Option<String>,
    team: Option<String>,
    since: Option<String>,
    until: Option<String>,
    min_rating: Option<String>,
    max_rating: Option<String>,
    visitor_id: Option<String>,
    visitor_email: Option<String>,
    cursor: Option<String>,
    limit: Option<String>,
}

/// What a conversation must have, beside its place in the list.
#[derive(Debug)]
struct Filter {
    ratings: (Option<f64>, Option<f64>),
    visitor: Vec<(&'static str, String)>,
}

/// Conversations, latest first.
pub(super) async fn list(
    State(state): State<AppState>,
    administrator: Administrator,
    Path(org): Path<String>,
    Query(wanted): Query<Wanted>,
) -> ApiResult<Response> {
    let Organization { id: org, .. } = organization(&state, &administrator, &org, Action::ReadConversations).await?;
    let (filter, page) = (wanted.filter()?, limit(wanted.limit.as_deref()));
    let query = wanted.query()?;
    let listed = state.backends.store.conversations(&org, &query).await?;
    let (listed_in_all, walked_to_the_end) = (listed.len(), listed.len() < query.limit as usize);
    let (mut items, mut seen, mut place) = (Vec::new(), 0, None);
    let mut found = stream::iter(listed).map(|listed| read(&state, &org, listed)).buffered(READS_AT_ONCE);
    while items.len() < page
        && let Some((listed, conversation)) = found.try_next().await?
    {
        (seen, place) = (seen + 1, Some(listed));
        items.extend(conversation.filter(|conversation| filter.passes(conversation)).map(|it| summary(&it)));
    }
    let is_last = walked_to_the_end && seen == listed_in_all;
    let next = place.filter(|_| !is_last).map(|place| cursor_behind(&place));
    Ok(Json(json!({ "items": items, "limit": page, "nextCursor": next })).into_response())
}

/// One conversation with a page of its messages, oldest first.
pub(super) async fn get(
    State(state): State<AppState>,
    administrator: Administrator,
    Path((org, id)): Path<(String, String)>,
    Query(page): Query<Page>,
) -> ApiResult<Response> {
    let Organization { id: org, .. } = organization(&state, &administrator, &org, Action::ReadConversations).await?;
    let id: ConversationId = id.parse().map_err(|_| not_found("conversation"))?;
    let store = &state.backends.store;
    let conversation = store.conversation(&org, &id).await?.ok_or_else(|| not_found("conversation"))?;
    let (from, messages_max) = page.range();
    let messages = store.messages(&org, &id, from, messages_max).await?;
    let total = usize::try_from(conversation.message_count).unwrap_or(usize::MAX);
    let mut shown = summary(&conversation);
    shown["messages"] = page.answer(messages.iter().map(message).collect(), total);
    Ok(Json(shown).into_response())
}

/// A row of the list with what lies there; none if it was listed by an attempt that something else replaced.
async fn read(
    state: &AppState,
    org: &OrgId,
    listed: ListedConversation,
) -> ApiResult<(ListedConversation, Option<Conversation>)> {
    let conversation = state.backends.store.conversation(org, &listed.id).await?;
    let conversation = conversation.filter(|conversation| conversation.created_at == listed.began_at);
    Ok((listed, conversation))
}

fn summary(conversation: &Conversation) -> Value {
    let (agent, team) = match &conversation.owner {
        ConversationOwner::Agent(agent) => (Some(agent), None),
        ConversationOwner::Team(team) => (None, Some(team)),
    };
    json!({
        "id": conversation.id,
        "sessionId": conversation.session_id,
        "agentId": agent,
        "teamId": team,
        "messageCount": conversation.message_count,
        "activeMessageId": conversation.active_message_id,
        "createdAt": conversation.created_at,
        "updatedAt": conversation.updated_at,
        "metadata": conversation.metadata,
    })
}

fn message(message: &Message) -> Value {
    let mut shown = json!({ "id": message.id, "content": message.content, "timestamp": message.created_at });
    match &message.author {
        Author::User => shown["role"] = "user".into(),
        Author::Assistant(facts) => {
            shown["role"] = "assistant".into();
            shown["agentId"] = json!(facts.agent_id);
            shown["agentName"] = json!(facts.agent_name);
            shown["status"] = json!(facts.status);
            shown["finishReason"] = json!(facts.finish_reason);
            shown["usage"] = json!(facts.usage);
            shown["responseTime"] = json!(facts.response_time_ms);
            shown["model"] = json!(facts.model);
            shown["routingReason"] = json!(facts.routing_reason);
            shown["uiSpec"] = json!(facts.ui_spec);
        }
    }
    shown
}

fn cursor_behind(listed: &ListedConversation) -> String {
    format!("{}{CURSOR_SEPARATOR}{}", listed.began_at.micros(), listed.id)
}

fn place(cursor: &str) -> Option<ListPlace> {
    let (began_at, id) = cursor.split_once(CURSOR_SEPARATOR)?;
    Some(ListPlace { began_at: Timestamp::from_micros(began_at.parse().ok()?), id: Some(id.parse().ok()?) })
}

impl Wanted {
    fn query(&self) -> ApiResult<ListQuery> {
        let cursor = self.cursor.as_deref().map(|cursor| {
            place(cursor).ok_or_else(|| ApiError::field("cursor", "must be the nextCursor of an earlier page"))
        });
        let behind = match (cursor.transpose()?, time("until", self.until.as_deref())?) {
            (Some(place), _) => Some(place),
            (None, until) => until.map(|began_at| ListPlace { began_at, id: None }),
        };
        let since = time("since", self.since.as_deref())?;
        Ok(ListQuery { owner: self.owner()?, since, behind, limit: LOOKED_AT_MAX })
    }

    fn owner(&self) -> ApiResult<Option<ConversationOwner>> {
        match (&self.agent, &self.team) {
            (None, None) => Ok(None),
            (Some(agent), None) => {
                let agent = agent.parse().map_err(|_| ApiError::field("agent", "must be the id of an agent"))?;
                Ok(Some(ConversationOwner::Agent(agent)))
            }
            (None, Some(team)) => {
                let team = team.parse().map_err(|_| ApiError::field("team", "must be the id of a team"))?;
                Ok(Some(ConversationOwner::Team(team)))
            }
            (Some(_), Some(_)) => Err(ApiError::field("team", "excludes agent: a conversation is with one of them")),
        }
    }

    fn filter(&self) -> ApiResult<Filter> {
        let visitor = [("visitorId", &self.visitor_id), ("visitorEmail", &self.visitor_email)];
        let visitor = visitor.into_iter().filter_map(|(field, wanted)| Some((field, wanted.clone()?)));
        Ok(Filter {
            ratings: (
                number("minRating", self.min_rating.as_deref())?,
                number("maxRating", self.max_rating.as_deref())?,
            ),
            visitor: visitor.collect(),
        })
    }
}

impl Filter {
    fn passes(&self, conversation: &Conversation) -> bool {
        let of_visitor = self.visitor.iter().all(|(field, wanted)| {
            conversation.metadata.get(*field).and_then(Value::as_str).is_some_and(|said| said == wanted)
        });
        let rating = conversation.metadata.get("rating").and_then(Value::as_f64);
        let rated = match self.ratings {
            (None, None) => true,
            (min, max) => {
                rating.is_some_and(|rating| min.is_none_or(|min| rating >= min) && max.is_none_or(|max| rating <= max))
            }
        };
        of_visitor && rated
    }
}

fn time(param: &str, text: Option<&str>) -> ApiResult<Option<Timestamp>> {
    let read = |text: &str| serde_json::from_value(Value::from(text));
    text.map(read).transpose().map_err(|_| ApiError::field(param, "must be a time such as 2026-01-31T00:00:00Z"))
}

fn number(param: &str, text: Option<&str>) -> ApiResult<Option<f64>> {
    let number = text.map(str::parse::<f64>).transpose().ok().filter(|number| number.is_none_or(f64::is_finite));
    number.ok_or_else(|| ApiError::field(param, "must be a number"))
}
