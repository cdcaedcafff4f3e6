//! Steps 3 and 4 of the path: reserves a queue slot for the message, subscribes to its reply and
//! publishes its job. Duplicates join the reply that is already running.

use std::time::Duration;

use switchboard_schemas::{reply_event::Frame, time::Timestamp, turn::Turn};

use super::idempotency::{IdempotencyKey, KeyUsage};
use crate::{
    http::{ApiError, ApiResult, ErrorCode, fields},
    jobs::publish::{TurnJob, void},
    reply::{acceptance::publish_recorded, recovery, shape::ReplyShape, stream::ReplyStream},
    state::AppState,
};

/// Unanswered messages per conversation: the running one and eight waiting ones.
const PLACES_MAX: u32 = 9;
/// `Retry-After` for a full queue, about the duration of one reply.
const RETRY_AFTER_FULL_QUEUE: Duration = Duration::from_secs(5);
/// Timeout for reserving a queue slot; on timeout the message is accepted without one.
const ENQUEUE_TIMEOUT: Duration = Duration::from_millis(500);

/// Submits a message, or joins the reply of an earlier identical request. After `Ok` the message is
/// durable, and its id can be looked up if the client receives it.
pub(crate) async fn accept(
    state: AppState,
    shape: ReplyShape,
    mut job: TurnJob,
    repeat: Option<IdempotencyKey>,
) -> ApiResult<ReplyStream> {
    if let Some(repeat) = &repeat {
        repeat.name_message(job.turn_mut());
    }
    if let Err(refusal) = check_metadata(&state, job.turn()).await {
        // A retry of an accepted message must not fail because the metadata has grown since.
        if repeat.is_none() || known_frames(&state, &job).await.is_empty() {
            return Err(refusal);
        }
    }
    if let Some(repeat) = repeat
        && let KeyUsage::Duplicate { since } = repeat.remember(&state, job.turn()).await?
    {
        return join(state, shape, job, since).await;
    }
    // Subscribe before publishing: a worker can answer before the bus acknowledges.
    let slot = state.pending_replies.wait_for_reply(job.turn().reply_id());
    hand_over(&state, shape, &job).await?;
    Ok(ReplyStream::new(state, job, slot))
}

/// Rejects metadata that would exceed its limit when merged with the conversation's. The store is
/// read only if the message has metadata, and store errors do not reject it.
async fn check_metadata(state: &AppState, turn: &Turn) -> ApiResult<()> {
    if turn.metadata.is_empty() {
        return Ok(());
    }
    match state
        .backends
        .store
        .conversation(&turn.org_id, &turn.conversation_id)
        .await
    {
        Ok(Some(conversation)) => fields::check_merged(&conversation.metadata, &turn.metadata),
        Ok(None) | Err(_) => Ok(()),
    }
}

/// Follows the reply of an earlier identical request. If nothing of it is readable the job is
/// published again, because the earlier publish may have failed; the claim lets only one of the two
/// records run.
async fn join(
    state: AppState,
    shape: ReplyShape,
    job: TurnJob,
    since: Timestamp,
) -> ApiResult<ReplyStream> {
    let slot = state.pending_replies.wait_for_reply(job.turn().reply_id());
    let known = known_frames(&state, &job).await;
    if known.is_empty() {
        refuse_deleted(&state, job.turn(), since).await?;
        hand_over(&state, shape, &job).await?;
    }
    Ok(ReplyStream::joining(state, &job, slot, known))
}

/// Rejects a retry of a message that was deleted with its conversation, so that the retry does not
/// restore it.
async fn refuse_deleted(state: &AppState, turn: &Turn, since: Timestamp) -> ApiResult<()> {
    let known = state
        .backends
        .store
        .history_state(&turn.org_id, &turn.conversation_id)
        .await;
    let Some(tombstone) = known.unwrap_or_default().tombstone else {
        return Ok(());
    };
    if tombstone.at < since {
        return Ok(());
    }
    Err(ApiError::new(
        ErrorCode::Conflict,
        "this message was deleted with its conversation; a new one takes another key",
    ))
}

async fn hand_over(state: &AppState, shape: ReplyShape, job: &TurnJob) -> ApiResult<()> {
    enqueue(state, job).await?;
    let handed = publish_recorded(state, shape, job).await;
    if handed.is_err() {
        void(state, job.turn()).await;
    }
    handed
}

async fn known_frames(state: &AppState, job: &TurnJob) -> Vec<Frame> {
    let reply = job.turn().reply_id();
    match recovery::read_store(state, &job.turn().org_id, &reply).await {
        Ok(frames) if !frames.is_empty() => frames,
        _ => recovery::read_log(state, &reply, 0)
            .await
            .unwrap_or_default(),
    }
}

async fn enqueue(state: &AppState, job: &TurnJob) -> ApiResult<()> {
    let reply = job.turn().reply_id();
    match tokio::time::timeout(
        ENQUEUE_TIMEOUT,
        state.backends.relay.enqueue(&reply, PLACES_MAX),
    )
    .await
    {
        Ok(Ok(false)) => {
            let detail = "too many messages of this conversation wait for their answers";
            Err(ApiError::new(ErrorCode::RateLimited, detail).retry_after(RETRY_AFTER_FULL_QUEUE))
        }
        Ok(Ok(true)) => Ok(()),
        Ok(Err(_)) | Err(_) => {
            tracing::debug!(message.id = %reply, "accepted without a place in the queue");
            Ok(())
        }
    }
}
