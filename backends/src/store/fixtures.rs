//! Rows of an embedded store written directly, for tests without workers.

use std::sync::atomic::{AtomicI64, Ordering};

use rusqlite::params;
use switchboard_schemas::{
    conversation::{Conversation, Message},
    ids::{ConversationId, MessageId, OrgId},
};

use super::{
    ReplyRecord,
    embedded::{
        EmbeddedStore,
        rows::{
            PUT_ORIGIN, put_listed, put_message as put_message_row, put_metadata, put_progress,
            put_reply as put_reply_row,
        },
    },
    listing::ListRow,
    rows::{ConversationOrigin, MetadataChange, StampedCell, TurnProgress, position_column},
    stamp::ACCEPTANCE_STAMP,
};
use crate::{error::StoreError, json::encode, testing::with_clock_stopped};

/// Stamps of these writes: a later one wins, and all of them win over the note of an acceptance.
static NEXT_STAMP: AtomicI64 = AtomicI64::new(ACCEPTANCE_STAMP + 1);

fn cell(body: String) -> StampedCell {
    let stamp = NEXT_STAMP.fetch_add(1, Ordering::Relaxed);
    StampedCell { body, stamp }
}

/// Writes a conversation without its messages, or replaces it.
///
/// # Errors
/// Those of the store.
pub async fn put_conversation(
    store: &EmbeddedStore,
    conversation: &Conversation,
) -> Result<(), StoreError> {
    let origin = cell(encode(&ConversationOrigin {
        session_id: conversation.session_id.clone(),
        owner: conversation.owner.clone(),
        created_at: conversation.created_at,
        tombstone: None,
    })?);
    let progress = cell(encode(&TurnProgress {
        message_count: conversation.message_count,
        active_message_id: conversation.active_message_id.clone(),
        last_reply_id: conversation.last_reply_id.clone(),
        updated_at: conversation.updated_at,
    })?);
    let metadata = MetadataChange::new(&conversation.metadata, conversation.updated_at)?;
    let listed = ListRow::new(&conversation.owner, conversation.created_at);
    let (org, id) = (conversation.org_id.clone(), conversation.id.clone());
    let write = move |connection: &rusqlite::Connection| {
        let values = params![org.as_str(), id.as_str(), origin.body, origin.stamp];
        connection.prepare_cached(PUT_ORIGIN)?.execute(values)?;
        put_progress(connection, &org, &id, &progress)?;
        put_metadata(connection, &org, &id, &metadata)?;
        put_listed(connection, &org, &id, &listed)
    };
    with_clock_stopped(store.database.write(write)).await
}

/// Writes a message of a conversation; the message count of the conversation stays as it is.
///
/// # Errors
/// Those of the store.
pub async fn put_message(
    store: &EmbeddedStore,
    org: &OrgId,
    id: &ConversationId,
    message: &Message,
) -> Result<(), StoreError> {
    let (org, id) = (org.clone(), id.clone());
    let (position, row) = (position_column(message.position)?, cell(encode(message)?));
    let write = move |connection: &rusqlite::Connection| {
        put_message_row(connection, &org, &id, position, &row)
    };
    with_clock_stopped(store.database.write(write)).await
}

/// Writes the final record of a reply.
///
/// # Errors
/// Those of the store.
pub async fn put_reply(
    store: &EmbeddedStore,
    org: &OrgId,
    reply: &MessageId,
    record: &ReplyRecord,
) -> Result<(), StoreError> {
    let (org, reply, row) = (org.clone(), reply.clone(), cell(encode(record)?));
    let write =
        move |connection: &rusqlite::Connection| put_reply_row(connection, &org, &reply, &row);
    with_clock_stopped(store.database.write(write)).await
}
