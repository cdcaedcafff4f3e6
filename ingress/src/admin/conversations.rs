//! Conversations of visitors with agents and teams, as administrators read and delete them.
//!
//! A request reads a bounded part of the list, latest first, so that a filter that matches few
//! conversations returns short or empty pages with a cursor. `export` reads to the end in the same
//! parts, `deletion` and `erasures` delete, and `live` streams a reply that is being written.

mod deletion;
mod erasures;
mod export;
mod filter;
mod leads;
mod live;
mod search;
#[cfg(test)]
mod tests;
mod view;

use std::collections::HashSet;

use axum::{Json, extract::Query};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use switchboard_backends::store::{
    ReplyState,
    listing::{ListQuery, ListedConversation},
};
use switchboard_schemas::{
    conversation::{Conversation, Message, MessageAuthor},
    ids::{ConversationId, MessageId, OrgId},
    lead::LEAD_KEY,
};

pub(super) use self::{
    deletion::delete,
    erasures::{
        create as create_erasure, list as list_erasures, proceed as proceed_erasure,
        read as read_erasure,
    },
    export::export,
    leads::{LeadView, list as list_leads},
    live::follow,
    search::ListedConversationView,
};
use self::{
    filter::{ConversationFilter, ConversationQuery, cursor_after},
    view::{ConversationDetailView, ConversationView, MessageView, UnansweredView},
};
use super::{
    authorization::Admin,
    authorization::ResourceId,
    entries::not_found,
    pages::{CursorPage, CursorQuery, PageQuery},
    permissions::{ReadConversations, ReadLeads},
};
use crate::{http::ApiResult, state::AppState};

/// The number of conversations, or of reply records, that are read concurrently.
const CONCURRENT_READS: usize = 16;

/// Lists a page of the conversations, latest first.
pub(super) async fn list(
    admin: Admin<ReadConversations>,
    Query(query): Query<ConversationQuery>,
    Query(page): Query<CursorQuery>,
) -> ApiResult<Json<CursorPage<ListedConversationView>>> {
    let (state, filter) = (&admin.state, &query.filter()?);
    let shows_lead = admin.may::<ReadLeads>();
    let show = |mut conversation: Conversation| async move {
        if !shows_lead {
            conversation.metadata.remove(LEAD_KEY);
        }
        show_in_list(state, filter, &conversation).await
    };
    let list_query = query.list_query(&page)?;
    read_page(state, admin.org(), &list_query, page.limit(), show).await
}

/// Reads a page of what `show` returns for the conversations of a list; it skips those for which it
/// returns `None`.
async fn read_page<T, F>(
    state: &AppState,
    org: &OrgId,
    list_query: &ListQuery,
    limit: usize,
    show: impl Fn(Conversation) -> F,
) -> ApiResult<Json<CursorPage<T>>>
where
    F: Future<Output = ApiResult<Option<T>>>,
{
    let listed = state.backends.store.conversations(org, list_query).await?;
    let (listed_count, read_whole_list) = (listed.len(), listed.len() < list_query.limit as usize);
    let (mut items, mut seen_count, mut last_seen) = (Vec::new(), 0, None);
    let show = &show;
    let shown = read_all(state, org, listed).map_ok(|(listed, conversation)| async move {
        let shown = match conversation {
            Some(conversation) => show(conversation).await?,
            None => None,
        };
        Ok((listed, shown))
    });
    let mut found = shown.try_buffered(CONCURRENT_READS);
    while items.len() < limit
        && let Some((listed, shown)) = found.try_next().await?
    {
        (seen_count, last_seen) = (seen_count + 1, Some(listed));
        items.extend(shown);
    }
    let is_last = read_whole_list && seen_count == listed_count;
    let next_cursor = last_seen.filter(|_| !is_last).as_ref().map(cursor_after);
    Ok(CursorPage::new(items, limit, next_cursor))
}

/// Returns the view of a conversation that passes the filter.
async fn show_in_list(
    state: &AppState,
    filter: &ConversationFilter,
    conversation: &Conversation,
) -> ApiResult<Option<ListedConversationView>> {
    let Some(found) = filter.find(state, conversation).await? else {
        return Ok(None);
    };
    let shown = ListedConversationView::read(state, conversation, found.passage).await?;
    Ok(Some(shown))
}

/// Reads one conversation with a page of its messages, oldest first.
pub(super) async fn read(
    admin: Admin<ReadConversations>,
    ResourceId(id): ResourceId,
    Query(page): Query<PageQuery>,
) -> ApiResult<Json<ConversationDetailView>> {
    let (state, org) = (&admin.state, admin.org());
    let mut conversation = find(state, org, &id).await?;
    if !admin.may::<ReadLeads>() {
        conversation.metadata.remove(LEAD_KEY);
    }
    let (from, max) = page.range();
    let length = conversation.page_length(from, max);
    let messages = state
        .backends
        .store
        .messages(org, &conversation.id, from, length);
    let shown = with_failures(state, &conversation, &messages.await?).await?;
    let total = usize::try_from(conversation.message_count).unwrap_or(usize::MAX);
    Ok(Json(ConversationDetailView {
        conversation: ConversationView::new(&conversation),
        messages: page.page(shown, total),
    }))
}

async fn find(state: &AppState, org: &OrgId, id: &str) -> ApiResult<Conversation> {
    let not_found = || not_found("conversation", id);
    let id: ConversationId = id.parse().map_err(|_| not_found())?;
    let found = state.backends.store.conversation(org, &id).await?;
    found.ok_or_else(not_found)
}

/// Reads the conversations of list rows. `None` stands for an outdated row of a deleted
/// conversation.
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
    Box::pin(stream::iter(listed).map(read).buffered(CONCURRENT_READS))
}

/// Returns the views of messages. A message without a reply shows how its reply ended.
async fn with_failures(
    state: &AppState,
    conversation: &Conversation,
    messages: &[Message],
) -> ApiResult<Vec<MessageView>> {
    let answered: HashSet<&MessageId> = messages.iter().map(|message| &message.id).collect();
    let show = |message: &Message| {
        let reply = message.id.reply();
        let is_open = conversation.active_message_id.as_ref() == Some(&reply);
        let is_alone =
            message.author == MessageAuthor::User && !is_open && !answered.contains(&reply);
        (MessageView::new(message), is_alone.then_some(reply))
    };
    let shown: Vec<(MessageView, Option<MessageId>)> = messages.iter().map(show).collect();
    let complete = move |(mut shown, reply): (MessageView, Option<MessageId>)| async move {
        let Some(reply) = reply else { return Ok(shown) };
        let store = &state.backends.store;
        let known = store.known_reply(&conversation.org_id, &reply).await?;
        if let Some(ReplyState::Final(record)) = known
            && record.position.is_none()
        {
            shown.unanswered = Some(UnansweredView::new(&record));
        }
        Ok(shown)
    };
    stream::iter(shown)
        .map(complete)
        .buffered(CONCURRENT_READS)
        .try_collect()
        .await
}
