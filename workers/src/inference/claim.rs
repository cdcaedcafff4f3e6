//! Claims a reply and restores the work of earlier attempts.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use switchboard_backends::{
    relay::{ClaimOutcome, ClaimRequest, ClaimTask, ClaimToken, LEASE, RelayError},
    store::ReplyState,
};
use switchboard_schemas::conversation_job::ReplyJob;
use tokio::time::{Instant, sleep};

use super::{InferenceHandler, reply_log::LoggedReply, reply_writer::ReplyWriter};
use crate::job_loop::JobEnd;

/// Tries before a reply is generated without the relay.
const CLAIM_TRIES_MAX: u32 = 3;
/// Pause between two tries.
const CLAIM_RETRY_DELAY: Duration = Duration::from_millis(250);
/// Shortest pause before a busy reply is claimed again.
const BUSY_DELAY_MIN: Duration = Duration::from_millis(20);
/// Pause while neither relay nor store can be asked for the state of a reply.
const UNKNOWN_STATE_DELAY: Duration = Duration::from_secs(1);

/// A reply that this worker holds the claim of.
pub(super) struct ClaimedReply {
    pub(super) writer: ReplyWriter,
    /// Work that is left to do.
    pub(super) task: ClaimTask,
    /// Number of messages in the conversation when its last turn was completed, if the relay knows
    /// it.
    pub(super) message_count: Option<u64>,
    /// Time since the message got its queue slot by the relay's clock, or, if the relay does not
    /// know, since this process took its record: the clocks of two machines may differ by hours.
    pub(super) queue_wait: Duration,
}

/// State of the claims of one job in this process, over all its runs.
#[derive(Debug)]
pub(crate) struct ClaimAttempts {
    /// True if another worker may be working on the reply: it may have received the same record or
    /// another one of the reply, or the reply was busy.
    maybe_held: AtomicBool,
    /// True if the message was accepted a while ago, by two clocks: an ingress may have refused it,
    /// and a relay that has just lost its state has to be told again.
    is_late: bool,
    /// True for a record that an ingress published because a worker was silent.
    is_takeover: bool,
    was_busy: AtomicBool,
    taken_at: Instant,
    /// Nonce of all claims of this job: a grant that was answered late is this job's own.
    nonce: u64,
}

impl ClaimAttempts {
    pub(crate) fn new(is_takeover: bool, maybe_repeated: bool, is_late: bool) -> Self {
        Self {
            maybe_held: (is_takeover || maybe_repeated).into(),
            is_late,
            is_takeover,
            was_busy: false.into(),
            taken_at: Instant::now(),
            nonce: rand::random(),
        }
    }

    /// Returns the end of a run that found the reply, or another one of its conversation, claimed.
    /// `holder` is the attempt that holds the reply itself.
    fn end_of_busy(&self, attempt_min: u32, retry_after: Duration, holder: Option<u32>) -> JobEnd {
        self.maybe_held.store(true, Ordering::Relaxed);
        let pause = retry_after.clamp(BUSY_DELAY_MIN, LEASE);
        let Some(attempt) = holder else {
            return JobEnd::RetryAfter(pause);
        };
        let was_busy = self.was_busy.swap(true, Ordering::Relaxed);
        // The reply was taken over, or its worker is alive after all. The record of the message
        // stays until the reply is done, so that this one is no longer needed.
        if self.is_takeover && (attempt >= attempt_min || was_busy) {
            return JobEnd::Finished;
        }
        JobEnd::HeldElsewhere(pause)
    }
}

/// Claims the reply of `job`, or returns the end of this run.
pub(super) async fn claim_reply(
    inference: &InferenceHandler,
    job: &ReplyJob,
    attempts: &ClaimAttempts,
) -> Result<ClaimedReply, JobEnd> {
    let maybe_held = attempts.maybe_held.load(Ordering::Relaxed);
    let request = ClaimRequest {
        reply_id: job.turn.reply_id(),
        publish_nonce: job.turn.publish_nonce.clone(),
        nonce: attempts.nonce,
        attempt_min: job.attempt_min,
        maybe_held: maybe_held || attempts.is_late,
    };
    let tries = if request.maybe_held {
        1
    } else {
        CLAIM_TRIES_MAX
    };
    match request_claim(inference, &request, tries).await {
        Ok(ClaimOutcome::Granted {
            token,
            task,
            message_count,
            queue_wait,
        }) => {
            let mut writer = restore_reply(inference, job, token, &task).await?;
            if maybe_held {
                writer.expect_other_attempts();
            }
            Ok(ClaimedReply {
                writer,
                task,
                message_count,
                queue_wait: queue_wait.unwrap_or_else(|| attempts.taken_at.elapsed()),
            })
        }
        // A job that runs again later holds back later jobs of its conversation, but occupies no
        // worker.
        Ok(ClaimOutcome::Busy {
            retry_after,
            attempt,
        }) => Err(attempts.end_of_busy(job.attempt_min, retry_after, attempt)),
        Ok(ClaimOutcome::Done | ClaimOutcome::Voided) => Err(JobEnd::Finished),
        Err(error) => {
            tracing::warn!(%error, maybe_held = request.maybe_held, "relay unavailable, claiming the reply without it");
            claim_without_relay(inference, job, attempts, &request).await
        }
    }
}

async fn request_claim(
    inference: &InferenceHandler,
    request: &ClaimRequest,
    tries: u32,
) -> Result<ClaimOutcome, RelayError> {
    let relay = &inference.backends.relay;
    for _ in 1..tries {
        if let Ok(claim) = relay.claim_reply(request).await {
            return Ok(claim);
        }
        sleep(CLAIM_RETRY_DELAY).await;
    }
    relay.claim_reply(request).await
}

/// Restores the reply of a granted claim from the log of earlier attempts.
async fn restore_reply(
    inference: &InferenceHandler,
    job: &ReplyJob,
    token: ClaimToken,
    task: &ClaimTask,
) -> Result<ReplyWriter, JobEnd> {
    let relay = inference.backends.relay.clone();
    // A first attempt has no log to read.
    let logged = if token.attempt == 1 && *task == ClaimTask::Generate {
        LoggedReply::default()
    } else {
        match relay.read_frames(&token.reply_id, 0).await {
            Ok(frames) => LoggedReply::from_frames(frames),
            Err(error) => {
                tracing::warn!(%error, "could not read the log of an earlier attempt");
                inference.release_claim(&token).await;
                return Err(JobEnd::RetryAfter(UNKNOWN_STATE_DELAY));
            }
        }
    };
    let bytes_max = inference.config.reply_bytes_max;
    let reply_to = job.turn.reply_to.clone();
    Ok(ReplyWriter::new(relay, token, reply_to, bytes_max, logged))
}

/// Starts a reply without a claim while the relay is unavailable. Only one consumer reads the
/// partition, which is almost as exclusive, and the store shows whether the reply is final.
async fn claim_without_relay(
    inference: &InferenceHandler,
    job: &ReplyJob,
    attempts: &ClaimAttempts,
    request: &ClaimRequest,
) -> Result<ClaimedReply, JobEnd> {
    let reply_id = job.turn.reply_id();
    let known = inference
        .backends
        .store
        .known_reply(&job.turn.org_id, &reply_id)
        .await;
    let task = match known {
        // The attempt that stored it may have ended before its analytics event was published.
        Ok(Some(ReplyState::Final(_) | ReplyState::Deleted)) => ClaimTask::Announce,
        Ok(Some(ReplyState::Accepted(_)) | None) => ClaimTask::Generate,
        Err(error) => {
            tracing::warn!(%error, "could not read the state of the reply from relay or store");
            return Err(JobEnd::RetryAfter(UNKNOWN_STATE_DELAY));
        }
    };
    // Until its deadline, another worker may still be generating this reply. A second text would
    // cut the visitor's stream.
    let queue_wait = attempts.taken_at.elapsed();
    let may_run_elsewhere = request.maybe_held && queue_wait < inference.config.job_deadline();
    if may_run_elsewhere && task == ClaimTask::Generate {
        return Err(JobEnd::RetryAfter(UNKNOWN_STATE_DELAY));
    }
    let token = ClaimToken {
        reply_id,
        attempt: job.attempt_min,
        nonce: request.nonce,
    };
    let (relay, bytes_max) = (
        inference.backends.relay.clone(),
        inference.config.reply_bytes_max,
    );
    let writer = ReplyWriter::without_claim(relay, token, job.turn.reply_to.clone(), bytes_max);
    Ok(ClaimedReply {
        writer,
        task,
        message_count: None,
        queue_wait,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(is_takeover: bool, holder: Option<u32>) -> Vec<String> {
        let attempts = ClaimAttempts::new(is_takeover, false, false);
        let run = || attempts.end_of_busy(2, Duration::from_secs(1), holder);
        [run(), run()].map(|end| format!("{end:?}")).into()
    }

    #[test]
    fn takeover_ends_once_it_is_not_needed() {
        let (done, waits) = ("Finished", "HeldElsewhere(1s)");
        assert_eq!(ends(true, Some(2))[0], done, "another one took over");
        assert_eq!(ends(true, Some(1)), [waits, done], "the worker is alive");
        assert_eq!(ends(true, None), ["RetryAfter(1s)"; 2], "another reply");
        assert_eq!(ends(false, Some(2)), [waits; 2], "the message's own record");
    }
}
