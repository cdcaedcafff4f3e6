//! Reads back what was not pushed: from the relay's log, or, where that is gone, from the store. Both give frames, so
//! that one machine judges all of them.

use bytes::Bytes;
use switchboard_backends::{
    relay::RelayError,
    store::{ReplyRecord, StoreError},
};
use switchboard_schemas::{
    ids::{MessageId, OrgId},
    reply_event::{Frame, FrameBody},
};

use crate::state::AppState;

/// The logged frames after `after_seq`.
pub(crate) async fn read_log(
    state: &AppState,
    reply: &MessageId,
    after_seq: u64,
) -> Result<Vec<Frame>, RelayError> {
    state.backends.relay.read_log(reply, after_seq).await
}

/// The finished reply as frames; none while it is not finished.
pub(crate) async fn read_store(
    state: &AppState,
    org: &OrgId,
    reply: &MessageId,
) -> Result<Vec<Frame>, StoreError> {
    let Some(record) = state.backends.store.reply(org, reply).await? else {
        return Ok(Vec::new());
    };
    let text = match record.position {
        Some(position) => stored_text(state, org, reply, position).await?,
        None => Some(Bytes::new()),
    };
    // The record is written before its message can be read on every replica; the next look finds both.
    Ok(text.map(|text| frames(record, text)).unwrap_or_default())
}

async fn stored_text(
    state: &AppState,
    org: &OrgId,
    reply: &MessageId,
    position: u64,
) -> Result<Option<Bytes>, StoreError> {
    let messages = state
        .backends
        .store
        .messages(org, &reply.conversation(), position, 1)
        .await?;
    Ok(messages
        .into_iter()
        .find(|message| message.id == *reply)
        .map(|message| message.content.into()))
}

fn frames(record: ReplyRecord, text: Bytes) -> Vec<Frame> {
    let head = record.head.map(|head| FrameBody::Head(Box::new(head)));
    let text = (!text.is_empty()).then_some(FrameBody::Text { offset: 0, text });
    let bodies = head
        .into_iter()
        .chain(text)
        .chain([FrameBody::End(Box::new(record.end))]);
    let frame = |(body, seq)| Frame {
        attempt: record.attempt,
        generation: record.generation,
        seq,
        body,
    };
    bodies.zip(1..).map(frame).collect()
}
