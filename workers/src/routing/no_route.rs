//! Fails the reply to a message for which no agent can answer, so that waiting clients receive an
//! error.
//!
//! No analytics event is published, because events name an agent.

use switchboard_backends::{
    Backends,
    relay::{ClaimOutcome, ClaimRequest, ClaimToken, LEASE},
    store::{
        ReplyRecord, ReplyState, TurnEnd, TurnStart,
        deletion::{HistoryState, Tombstone},
    },
};
use switchboard_schemas::{
    conversation::ConversationOwner,
    reply_event::{ReplyEnd, ReplyFailure},
    routing_job::TeamMessageJob,
    time::Timestamp,
    turn::Turn,
};

use super::RoutingError;
use crate::{
    inference::{
        reply_log::LoggedReply,
        reply_outcome::ReplyOutcome,
        reply_writer::{FinalizeResult, ReplyWriter},
    },
    job_loop::JobEnd,
};

/// Stores and announces that the reply failed. Returns `None` when that is done, otherwise the end
/// of this job. After an error the claim remains until its lease expires.
pub(super) async fn fail(
    backends: &Backends,
    job: &TeamMessageJob,
) -> Result<Option<JobEnd>, RoutingError> {
    let turn = &job.turn;
    let token = match claim(backends, turn).await? {
        Ok(token) => token,
        Err(end) => return Ok(Some(end)),
    };
    let HistoryState {
        message_count,
        tombstone,
    } = backends
        .store
        .history_state(&turn.org_id, &turn.conversation_id)
        .await?;
    let known = backends
        .store
        .known_reply(&turn.org_id, &token.reply_id)
        .await?;
    let writer = writer_of(backends, turn, token);
    let is_stored = matches!(known, Some(ReplyState::Final(_)));
    let record = match known {
        Some(ReplyState::Final(record)) => *record,
        Some(ReplyState::Deleted) => {
            return Ok(announce_deleted(&writer, turn, message_count).await);
        }
        Some(ReplyState::Accepted(_)) | None => {
            store_failed_turn(backends, job, &writer, message_count, tombstone.clone()).await?
        }
    };
    if writer.finalize(&record.end).await == FinalizeResult::Fenced {
        return Ok(Some(JobEnd::RetryAfter(LEASE)));
    }
    let count = record.message_count();
    let end = record.end.clone();
    let turn_end = TurnEnd {
        org_id: turn.org_id.clone(),
        accepted_at: turn.accepted_at,
        tombstone,
        attempt: record.attempt,
        user_message_id: turn.message_id.clone(),
        agent_id: None,
        team_id: Some(job.team_id.clone()),
        message: None,
        record,
    };
    // A stored end has already been counted, perhaps for an agent that this one does not name.
    if !is_stored {
        backends.store.finish_turn(&turn_end).await?;
    }
    let ours = writer.complete(&end, count, true).await;
    Ok((!ours).then_some(JobEnd::RetryAfter(LEASE)))
}

/// Ends the reply to a message that must not be stored. Returns `None` when that is done, otherwise
/// the end of this job.
pub(super) async fn cancel(
    backends: &Backends,
    job: &TeamMessageJob,
) -> Result<Option<JobEnd>, RoutingError> {
    Ok(match claim(backends, &job.turn).await? {
        Ok(token) => {
            let writer = writer_of(backends, &job.turn, token);
            announce_deleted(&writer, &job.turn, 0).await
        }
        Err(end) => Some(end),
    })
}

async fn announce_deleted(writer: &ReplyWriter, turn: &Turn, message_count: u64) -> Option<JobEnd> {
    let waited_ms = Timestamp::now().millis_since(turn.accepted_at);
    let end = ReplyEnd::cancelled_in_queue(waited_ms);
    let ours = writer.complete(&end, message_count, true).await;
    (!ours).then_some(JobEnd::RetryAfter(LEASE))
}

/// Claims the reply, or returns the end of this job.
async fn claim(
    backends: &Backends,
    turn: &Turn,
) -> Result<Result<ClaimToken, JobEnd>, RoutingError> {
    // Two routers that fail the same turn write the same end, so neither needs to wait for the
    // other.
    let request = ClaimRequest {
        reply_id: turn.reply_id(),
        publish_nonce: turn.publish_nonce.clone(),
        nonce: rand::random(),
        attempt_min: 1,
        maybe_held: false,
    };
    Ok(match backends.relay.claim_reply(&request).await? {
        ClaimOutcome::Granted { token, .. } => Ok(token),
        ClaimOutcome::Busy { retry_after, .. } => Err(JobEnd::RetryAfter(retry_after.min(LEASE))),
        ClaimOutcome::Done | ClaimOutcome::Voided => Err(JobEnd::Finished),
    })
}

fn writer_of(backends: &Backends, turn: &Turn, token: ClaimToken) -> ReplyWriter {
    ReplyWriter::new(
        backends.relay.clone(),
        token,
        turn.reply_to.clone(),
        0,
        LoggedReply::default(),
    )
}

/// Stores the user message and returns the record of its failed reply.
async fn store_failed_turn(
    backends: &Backends,
    job: &TeamMessageJob,
    writer: &ReplyWriter,
    message_count: u64,
    tombstone: Option<Tombstone>,
) -> Result<ReplyRecord, RoutingError> {
    let turn = &job.turn;
    let position = user_message_position(backends, job, message_count).await?;
    let owner = ConversationOwner::Team(job.team_id.clone());
    let start = TurnStart {
        turn: turn.clone(),
        owner,
        position,
        tombstone,
        metadata_at: turn.accepted_at,
        attempt: writer.token().attempt,
    };
    backends.store.begin_turn(&start).await?;
    let now = Timestamp::now();
    Ok(ReplyRecord {
        user_message_id: turn.message_id.clone(),
        user_position: position,
        position: None,
        head: None,
        end: ReplyOutcome::failed(ReplyFailure::NoRoute).reply_end("", turn.accepted_at, now),
        generation: writer.generation().await,
        attempt: writer.token().attempt,
        finished_at: now,
        first_text_ms: None,
    })
}

/// Returns the position of the user message, which an earlier run may have stored as the last one.
async fn user_message_position(
    backends: &Backends,
    job: &TeamMessageJob,
    count: u64,
) -> Result<u64, RoutingError> {
    let turn = &job.turn;
    let Some(last) = count.checked_sub(1) else {
        return Ok(0);
    };
    let stored = backends
        .store
        .messages(&turn.org_id, &turn.conversation_id, last, 1)
        .await?;
    Ok(
        if stored.iter().any(|message| message.id == turn.message_id) {
            last
        } else {
            count
        },
    )
}
