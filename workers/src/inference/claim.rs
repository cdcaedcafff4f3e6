//! The right to work on a reply, and what is left of earlier attempts.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use switchboard_backends::relay::{
    ClaimOutcome, ClaimRequest, ClaimTask, ClaimToken, LEASE, RelayError,
};
use switchboard_schemas::{conversation_job::ReplyJob, time::Timestamp};
use tokio::time::sleep;

use super::{Inference, reply_log::LoggedReply, reply_writer::ReplyWriter};
use crate::job_loop::JobEnd;

/// Tries before a reply is made without the relay.
const CLAIM_TRIES_MAX: u32 = 3;
/// Pause between them.
const CLAIM_RETRY_DELAY: Duration = Duration::from_millis(250);
/// Shortest pause before a busy reply is asked for again.
const BUSY_DELAY_MIN: Duration = Duration::from_millis(20);
/// Pause when neither relay nor store can say whether a reply is final.
const BLIND_DELAY: Duration = Duration::from_secs(1);

/// A reply that is ours.
pub(super) struct Claimed {
    /// Its writer.
    pub(super) writer: ReplyWriter,
    /// What is left to do.
    pub(super) task: ClaimTask,
    /// Messages in the conversation when its last turn was settled.
    pub(super) settled_count: Option<u64>,
}

/// Claims the reply of `job`, or says how this run of the job ends. `inherited`: an earlier owner may work on it.
pub(super) async fn claim(
    inference: &Inference,
    job: &ReplyJob,
    inherited: &AtomicBool,
) -> Result<Claimed, JobEnd> {
    let request = ClaimRequest {
        reply_id: job.turn.reply_id(),
        publish_nonce: job.turn.publish_nonce.clone(),
        attempt_min: job.attempt_min,
        inherited: inherited.load(Ordering::Relaxed),
    };
    let tries = if request.inherited {
        1
    } else {
        CLAIM_TRIES_MAX
    };
    match ask(inference, &request, tries).await {
        Ok(ClaimOutcome::Granted {
            token,
            task,
            message_count,
        }) => granted(inference, job, token, task, message_count).await,
        // The lane is held while the job is parked, and no slot is.
        Ok(ClaimOutcome::Busy { retry_after }) => {
            inherited.store(true, Ordering::Relaxed);
            Err(JobEnd::Open(retry_after.clamp(BUSY_DELAY_MIN, LEASE)))
        }
        Ok(ClaimOutcome::Done | ClaimOutcome::Voided) => Err(JobEnd::Finished),
        Err(error) => {
            let inherited = request.inherited;
            tracing::warn!(%error, inherited, "the relay is away and cannot say who makes the reply");
            without_relay(inference, job, inherited).await
        }
    }
}

async fn ask(
    inference: &Inference,
    request: &ClaimRequest,
    tries: u32,
) -> Result<ClaimOutcome, RelayError> {
    let relay = &inference.backends.relay;
    for _ in 1..tries {
        if let Ok(claim) = relay.claim(request).await {
            return Ok(claim);
        }
        sleep(CLAIM_RETRY_DELAY).await;
    }
    relay.claim(request).await
}

async fn granted(
    inference: &Inference,
    job: &ReplyJob,
    token: ClaimToken,
    task: ClaimTask,
    settled_count: Option<u64>,
) -> Result<Claimed, JobEnd> {
    let relay = inference.backends.relay.clone();
    // A first attempt has no log, and is spared the look.
    let logged = if token.attempt == 1 && task == ClaimTask::Generate {
        LoggedReply::default()
    } else {
        match relay.read_log(&token.reply_id, 0).await {
            Ok(frames) => LoggedReply::read(frames),
            Err(error) => {
                tracing::warn!(%error, "could not read the log of an earlier attempt");
                inference.release(&token).await;
                return Err(JobEnd::Open(BLIND_DELAY));
            }
        }
    };
    let bytes_max = inference.config.reply_bytes_max;
    let writer = ReplyWriter::new(relay, token, job.turn.reply_to.clone(), bytes_max, logged);
    Ok(Claimed {
        writer,
        task,
        settled_count,
    })
}

/// Degraded mode: ownership of the partition is all we have, and the store says whether the reply is final.
async fn without_relay(
    inference: &Inference,
    job: &ReplyJob,
    inherited: bool,
) -> Result<Claimed, JobEnd> {
    let reply_id = job.turn.reply_id();
    match inference
        .backends
        .store
        .reply(&job.turn.org_id, &reply_id)
        .await
    {
        Ok(Some(_)) => return Err(JobEnd::Finished),
        Ok(None) => {}
        Err(error) => {
            tracing::warn!(%error, "neither relay nor store can say whether the reply is final");
            return Err(JobEnd::Open(BLIND_DELAY));
        }
    }
    // Who had the partition before finishes what it has begun. A second text beside it would break its transfer off.
    let age = Duration::from_millis(Timestamp::now().millis_since(job.turn.accepted_at));
    if inherited && age < inference.config.job_deadline() {
        return Err(JobEnd::Open(BLIND_DELAY));
    }
    let token = ClaimToken {
        reply_id,
        attempt: job.attempt_min,
        nonce: rand::random(),
    };
    let (relay, bytes_max) = (
        inference.backends.relay.clone(),
        inference.config.reply_bytes_max,
    );
    let writer = ReplyWriter::without_claim(relay, token, job.turn.reply_to.clone(), bytes_max);
    Ok(Claimed {
        writer,
        task: ClaimTask::Generate,
        settled_count: None,
    })
}
