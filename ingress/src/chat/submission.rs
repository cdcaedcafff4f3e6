//! Steps 3 and 4 of the path: a message gets a place in its conversation's queue, someone who waits for its reply, and
//! its record on the bus. A repeat joins what is there.

use std::time::Duration;

use switchboard_schemas::{reply_event::Frame, time::Timestamp, turn::Turn};

use crate::{
    error::{ApiError, ApiResult, ErrorCode},
    fields,
    idempotency::{Occurrence, Repeat},
    publish::{TurnJob, void},
    reply::{acceptance::publish_recorded, follower::Follower, recovery, shape::ReplyShape},
    state::AppState,
};

/// Messages of a conversation that are not answered yet: the running one, and eight that wait behind it.
const PLACES_MAX: u32 = 9;
/// When a client is told to come again if all places are taken: about what a reply takes.
const RETRY_AFTER_FULL_QUEUE: Duration = Duration::from_secs(5);
/// How long the relay may take to find a place; without it messages are accepted all the same.
const ENQUEUE_TIMEOUT: Duration = Duration::from_millis(500);

/// Accepts a message, or finds it accepted; once this returns, its reply is made whatever dies, and whoever is told its
/// id finds it.
pub(crate) async fn accept(
    state: AppState,
    shape: ReplyShape,
    mut job: TurnJob,
    repeat: Option<Repeat>,
) -> ApiResult<Follower> {
    if let Some(repeat) = &repeat {
        repeat.name_message(job.turn_mut());
    }
    if let Err(refusal) = check_metadata(&state, job.turn()).await {
        // What was accepted before the conversation's metadata grew is not refused now.
        if repeat.is_none() || known_frames(&state, &job).await.is_empty() {
            return Err(refusal);
        }
    }
    if let Some(repeat) = repeat
        && let Occurrence::Again { since } = repeat.remember(&state, job.turn()).await?
    {
        return join(state, shape, job, since).await;
    }
    // Before the publish: a worker can be faster than the bus's acknowledgement.
    let slot = state.registry.wait_for_reply(job.turn().reply_id());
    hand_over(&state, shape, &job).await?;
    Ok(Follower::new(state, job, slot))
}

/// Refuses metadata that would grow beyond their bound together with what the conversation has. Only who sends some pays
/// for the look; a store that does not answer refuses nobody.
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

/// Follows the reply that an earlier request asked for. What is not heard of is published again: the earlier publish may
/// have been refused, and where it was not the claim lets one of the two records pass.
async fn join(
    state: AppState,
    shape: ReplyShape,
    job: TurnJob,
    since: Timestamp,
) -> ApiResult<Follower> {
    let slot = state.registry.wait_for_reply(job.turn().reply_id());
    let known = known_frames(&state, &job).await;
    if known.is_empty() {
        refuse_deleted(&state, job.turn(), since).await?;
        hand_over(&state, shape, &job).await?;
    }
    Ok(Follower::joining(state, &job, slot, known))
}

/// Refuses a message that was deleted with its conversation: its repeat would bring back what somebody wanted gone.
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
