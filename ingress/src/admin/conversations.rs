//! `/api/admin/organizations/{org}/conversations`: what visitors and agents said, to be read by those who may.
//!
//! A list is walked latest first and a bounded part at a time: a filter that few conversations pass gives short pages, even
//! empty ones, and a cursor to go on with, and never a request that reads everything. `export` walks to the end, in the
//! same parts; `deletion` and `erasures` take away; `live` follows the reply that is being made.

mod deletion;
mod erasures;
mod export;
mod filter;
mod live;
#[cfg(test)]
mod tests;
mod view;

use std::collections::HashSet;

use axum::{
    Json,
    extract::{Path, Query, State},
    response::{IntoResponse, Response},
};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use switchboard_backends::store::{ReplyState, listing::ListedConversation};
use switchboard_schemas::{
    conversation::{Conversation, Message, MessageAuthor},
    ids::{ConversationId, MessageId, OrgId},
    organization::Organization,
};

use self::filter::{LOOKED_AT_MAX, Wanted, cursor_behind};
pub(super) use self::{
    deletion::remove,
    erasures::{begin as erase, get as erasure, go_on as go_on_erasing, list as erasures},
    export::export,
    live::stream as follow,
};
use super::{
    administrator::{Action, Administrator},
    page::{Page, limit},
    things::{not_found, organization},
};
use crate::{http::ApiResult, state::AppState};

/// Conversations, or records of replies, that are read at once.
const READS_AT_ONCE: usize = 16;

/// Conversations, latest first.
pub(super) async fn list(
    State(state): State<AppState>,
    administrator: Administrator,
    Path(org): Path<String>,
    Query(wanted): Query<Wanted>,
) -> ApiResult<Response> {
    let Organization { id: org, .. } =
        organization(&state, &administrator, &org, Action::ReadConversations).await?;
    let (filter, page) = (wanted.filter()?, limit(wanted.limit.as_deref()));
    let query = wanted.query()?;
    let listed = state.backends.store.conversations(&org, &query).await?;
    let (listed_in_all, walked_to_the_end) = (listed.len(), listed.len() < LOOKED_AT_MAX as usize);
    let (mut items, mut seen, mut place) = (Vec::new(), 0, None);
    let mut found = read_all(&state, &org, listed);
    while items.len() < page
        && let Some((listed, conversation)) = found.try_next().await?
    {
        (seen, place) = (seen + 1, Some(listed));
        items.extend(
            conversation
                .filter(|conversation| filter.passes(conversation))
                .map(|it| view::summary(&it)),
        );
    }
    let is_last = walked_to_the_end && seen == listed_in_all;
    let next = place
        .filter(|_| !is_last)
        .map(|place| cursor_behind(&place));
    Ok(Json(json!({ "items": items, "limit": page, "nextCursor": next })).into_response())
}

/// One conversation with a page of its messages, oldest first.
pub(super) async fn get(
    State(state): State<AppState>,
    administrator: Administrator,
    Path((org, id)): Path<(String, String)>,
    Query(page): Query<Page>,
) -> ApiResult<Response> {
    let Organization { id: org, .. } =
        organization(&state, &administrator, &org, Action::ReadConversations).await?;
    let conversation = find(&state, &org, &id).await?;
    let (from, messages_max) = page.range();
    let messages = state
        .backends
        .store
        .messages(&org, &conversation.id, from, messages_max)
        .await?;
    let shown = with_failures(&state, &conversation, &messages).await?;
    let total = usize::try_from(conversation.message_count).unwrap_or(usize::MAX);
    let mut answer = view::summary(&conversation);
    answer["messages"] = page.answer(shown, total);
    Ok(Json(answer).into_response())
}

/// A conversation of the organization.
async fn find(state: &AppState, org: &OrgId, id: &str) -> ApiResult<Conversation> {
    let id: ConversationId = id.parse().map_err(|_| not_found("conversation"))?;
    state
        .backends
        .store
        .conversation(org, &id)
        .await?
        .ok_or_else(|| not_found("conversation"))
}

/// Rows of a list with what lies there; none if a row was left by an attempt that something else replaced.
fn read_all<'a>(
    state: &'a AppState,
    org: &'a OrgId,
    listed: Vec<ListedConversation>,
) -> impl Stream<Item = ApiResult<(ListedConversation, Option<Conversation>)>> + Unpin + 'a {
    let read = move |listed: ListedConversation| async move {
        let conversation = state.backends.store.conversation(org, &listed.id).await?;
        let conversation =
            conversation.filter(|conversation| conversation.created_at == listed.began_at);
        Ok((listed, conversation))
    };
    Box::pin(stream::iter(listed).map(read).buffered(READS_AT_ONCE))
}

/// The messages, and beside those that stand without an answer what became of it.
async fn with_failures(
    state: &AppState,
    conversation: &Conversation,
    messages: &[Message],
) -> ApiResult<Vec<Value>> {
    let answered: HashSet<&MessageId> = messages.iter().map(|message| &message.id).collect();
    let show = |message: &Message| {
        let reply = message.id.reply();
        let is_open = conversation.active_message_id.as_ref() == Some(&reply);
        let is_alone =
            message.author == MessageAuthor::User && !is_open && !answered.contains(&reply);
        (view::message(message), is_alone.then_some(reply))
    };
    let shown: Vec<(Value, Option<MessageId>)> = messages.iter().map(show).collect();
    let complete = move |(mut shown, reply): (Value, Option<MessageId>)| async move {
        let Some(reply) = reply else { return Ok(shown) };
        if let Some(ReplyState::Final(record)) = state
            .backends
            .store
            .known_reply(&conversation.org_id, &reply)
            .await?
            && record.position.is_none()
        {
            shown["unanswered"] = view::unanswered(&record);
        }
        Ok(shown)
    };
    stream::iter(shown)
        .map(complete)
        .buffered(READS_AT_ONCE)
        .try_collect()
        .await
}
