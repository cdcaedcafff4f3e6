//! Reads a final reply from the store, as the frames that its log had contained, so that one state
//! machine handles both.

use bytes::Bytes;
use switchboard_backends::{StoreError, store::ReplyRecord};
use switchboard_schemas::{
    ids::{MessageId, OrgId},
    reply_event::{Frame, FrameBody},
};

use crate::state::AppState;

/// Returns the final reply as frames, or nothing while it is not final.
pub(crate) async fn read_store(
    state: &AppState,
    org: &OrgId,
    reply: &MessageId,
) -> Result<Vec<Frame>, StoreError> {
    let Some(record) = state.backends.store.final_record(org, reply).await? else {
        return Ok(Vec::new());
    };
    let text = stored_text(state, org, reply, &record).await?;
    // The record can be readable before its message; the next poll finds both.
    Ok(text
        .map(|text| frames_of_record(record, text.into()))
        .unwrap_or_default())
}

/// Returns the text of a final reply, or `None` while its message is not readable.
pub(crate) async fn stored_text(
    state: &AppState,
    org: &OrgId,
    reply: &MessageId,
    record: &ReplyRecord,
) -> Result<Option<String>, StoreError> {
    let Some(position) = record.position else {
        return Ok(Some(String::new()));
    };
    let (store, conversation) = (&state.backends.store, reply.conversation());
    let messages = store.messages(org, &conversation, position, 1).await?;
    let mut messages = messages.into_iter();
    let message = messages.find(|message| message.id == *reply);
    Ok(message.map(|message| message.content))
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
