//! Reserves a queue slot for the message, subscribes to its reply and publishes its job. Duplicates
//! join the reply that is already running.

use std::time::Duration;

use switchboard_backends::store::AcceptedReply;
use switchboard_schemas::{file::Attachment, reply_event::Frame, time::Timestamp, turn::Turn};

use super::idempotency::{IdempotencyKey, IdempotencyKeyUse};
use crate::{
    http::{ApiError, ApiResult, ErrorCode, fields},
    jobs::publish::{TurnJob, publish_turn, void_publish},
    reply::{recovery, shape::ReplyShape, stream::ReplyStream},
    state::AppState,
};

/// Unanswered messages per conversation: the running one and eight waiting ones.
const QUEUE_SLOTS_MAX: u32 = 9;
/// `Retry-After` for a full queue, about the duration of one reply.
const RETRY_AFTER_FULL_QUEUE: Duration = Duration::from_secs(5);
/// Timeout for reserving a queue slot; on timeout the message is accepted without one.
const ENQUEUE_TIMEOUT: Duration = Duration::from_millis(500);

/// Submits a message, or joins the reply of an earlier identical request. After `Ok` the message is
/// durable, and its id can be looked up if the client receives it.
pub(crate) async fn submit_message(
    state: AppState,
    shape: ReplyShape,
    mut job: TurnJob,
    attachments: ApiResult<Vec<Attachment>>,
    repeat: Option<IdempotencyKey>,
) -> ApiResult<ReplyStream> {
    if let Some(repeat) = &repeat {
        repeat.assign_message_id(job.turn_mut());
    }
    let checked = match attachments {
        Ok(attachments) => {
            job.turn_mut().attachments = attachments;
            check_metadata(&state, job.turn()).await
        }
        Err(refusal) => Err(refusal),
    };
    if let Err(refusal) = checked {
        // A retry of an accepted message must not fail because the metadata has grown since, or a
        // file was removed.
        if repeat.is_none() || known_frames(&state, &job).await.is_empty() {
            return Err(refusal);
        }
    }
    if let Some(repeat) = repeat
        && let IdempotencyKeyUse::Duplicate { since } =
            repeat.record_use(&state, job.turn()).await?
    {
        return join_reply(state, shape, job, since).await;
    }
    // Subscribe before publishing: a worker can answer before the bus acknowledges.
    let subscription = state.pending_replies.wait_for_reply(job.turn().reply_id());
    enqueue_and_publish(&state, shape, &job).await?;
    Ok(ReplyStream::new(state, job, subscription))
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
/// records run. Whoever publishes watches the worker.
async fn join_reply(
    state: AppState,
    shape: ReplyShape,
    job: TurnJob,
    since: Timestamp,
) -> ApiResult<ReplyStream> {
    let subscription = state.pending_replies.wait_for_reply(job.turn().reply_id());
    let known = known_frames(&state, &job).await;
    if !known.is_empty() {
        return Ok(ReplyStream::for_duplicate(state, &job, subscription, known));
    }
    reject_deleted(&state, job.turn(), since).await?;
    enqueue_and_publish(&state, shape, &job).await?;
    Ok(ReplyStream::for_retry(state, job, subscription))
}

/// Rejects a retry of a message that was deleted with its conversation, so that the retry does not
/// restore it.
async fn reject_deleted(state: &AppState, turn: &Turn, since: Timestamp) -> ApiResult<()> {
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
        "this message was deleted with its conversation; send a new message with another key",
    ))
}

async fn enqueue_and_publish(state: &AppState, shape: ReplyShape, job: &TurnJob) -> ApiResult<()> {
    if state.pending_replies.is_crowded(&job.turn().org_id) {
        let detail = "too many messages of this organization are waiting for replies";
        let refusal = ApiError::new(ErrorCode::RateLimited, detail);
        return Err(refusal.retry_after(RETRY_AFTER_FULL_QUEUE));
    }
    if !job.is_playground() {
        reserve_slot(state, job).await?;
    }
    let published = publish_recorded(state, shape, job).await;
    if published.is_ok() {
        state.refused_publishes.forget(job.turn());
    } else {
        void_publish(state, job.turn()).await;
    }
    published
}

/// Publishes `job`, and records its acceptance in the store where the client receives the message
/// id at once. The store is used so that the id survives a loss of Redis and is known to every
/// ingress.
async fn publish_recorded(state: &AppState, shape: ReplyShape, job: &TurnJob) -> ApiResult<()> {
    let turn = job.turn();
    let publish = publish_turn(state, job);
    if job.is_playground() {
        return publish.await;
    }
    let record = || async move {
        let accepted = AcceptedReply {
            org_id: turn.org_id.clone(),
            user_message_id: turn.message_id.clone(),
            owner: job.owner(),
            accepted_at: turn.accepted_at,
        };
        state.backends.store.record_acceptance(&accepted).await
    };
    match shape {
        ReplyShape::Text | ReplyShape::Json => publish.await,
        ReplyShape::Events => {
            let (recorded, published) = tokio::join!(record(), publish);
            // The open stream needs no record; only a second reader on another process would.
            if let Err(error) = recorded {
                tracing::warn!(%error, message.id = %turn.message_id, "acceptance not recorded");
            }
            published
        }
        ReplyShape::Later => {
            // Recorded first: a 202 without a record would point to an unknown message.
            record().await?;
            publish.await
        }
    }
}

async fn known_frames(state: &AppState, job: &TurnJob) -> Vec<Frame> {
    let reply = job.turn().reply_id();
    match recovery::read_store(state, &job.turn().org_id, &reply).await {
        Ok(frames) if !frames.is_empty() => frames,
        _ => {
            let frames = state.backends.relay.read_frames(&reply, 0).await;
            frames.unwrap_or_default()
        }
    }
}

async fn reserve_slot(state: &AppState, job: &TurnJob) -> ApiResult<()> {
    let reply = job.turn().reply_id();
    match tokio::time::timeout(
        ENQUEUE_TIMEOUT,
        state.backends.relay.reserve_slot(&reply, QUEUE_SLOTS_MAX),
    )
    .await
    {
        Ok(Ok(false)) => {
            let detail = "too many messages of this conversation are waiting for replies";
            Err(ApiError::new(ErrorCode::RateLimited, detail).retry_after(RETRY_AFTER_FULL_QUEUE))
        }
        Ok(Ok(true)) => Ok(()),
        Ok(Err(_)) | Err(_) => {
            tracing::debug!(message.id = %reply, "accepted without a queue slot");
            Ok(())
        }
    }
}
