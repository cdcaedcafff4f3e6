//! Fails the reply to a message for which no agent can answer, so that waiting clients receive an
//! error.
//!
//! No analytics event is published, because events name an agent.

use switchboard_backends::{
    Backends,
    relay::{ClaimOutcome, ClaimRequest, LEASE},
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
    // Two routers that fail the same turn write the same end, so neither needs to wait for the
    // other.
    let request = ClaimRequest {
        reply_id: turn.reply_id(),
        publish_nonce: turn.publish_nonce.clone(),
        nonce: rand::random(),
        attempt_min: 1,
        maybe_held: false,
    };
    let token = match backends.relay.claim_reply(&request).await? {
        ClaimOutcome::Granted { token, .. } => token,
        ClaimOutcome::Busy { retry_after, .. } => {
            return Ok(Some(JobEnd::RetryAfter(retry_after.min(LEASE))));
        }
        ClaimOutcome::Done | ClaimOutcome::Voided => return Ok(Some(JobEnd::Finished)),
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
    let relay = backends.relay.clone();
    let writer = ReplyWriter::new(
        relay,
        token,
        turn.reply_to.clone(),
        0,
        LoggedReply::default(),
    );
    let is_stored = matches!(known, Some(ReplyState::Final(_)));
    let record = match known {
        Some(ReplyState::Final(record)) => *record,
        Some(ReplyState::Deleted) => {
            let waited_ms = Timestamp::now().millis_since(turn.accepted_at);
            let end = ReplyEnd::cancelled_in_queue(waited_ms);
            let ours = writer.complete(&end, message_count, true).await;
            return Ok((!ours).then_some(JobEnd::RetryAfter(LEASE)));
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
