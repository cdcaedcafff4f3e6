//! Reads frames that were not pushed: from the reply log, or from the store once the log is gone.
//! Both return frames, so that one state machine handles them.

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

/// Returns the logged frames after `after_seq`.
pub(crate) async fn read_log(
    state: &AppState,
    reply: &MessageId,
    after_seq: u64,
) -> Result<Vec<Frame>, RelayError> {
    state.backends.relay.read_frames(reply, after_seq).await
}

/// Returns the final reply as frames, or nothing while it is not final.
pub(crate) async fn read_store(
    state: &AppState,
    org: &OrgId,
    reply: &MessageId,
) -> Result<Vec<Frame>, StoreError> {
    let Some(record) = state.backends.store.final_record(org, reply).await? else {
        return Ok(Vec::new());
    };
    let text = match record.position {
        Some(position) => stored_text(state, org, reply, position).await?,
        None => Some(Bytes::new()),
    };
    // The record can be readable before its message; the next poll finds both.
    Ok(text
        .map(|text| frames_of_record(record, text))
        .unwrap_or_default())
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

fn frames_of_record(record: ReplyRecord, text: Bytes) -> Vec<Frame> {
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
