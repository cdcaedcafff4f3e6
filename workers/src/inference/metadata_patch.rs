//! Applies metadata changes in the order of the conversation's partition, so that store and topic agree.

use std::time::Duration;

use switchboard_schemas::{
    conversation_job::PatchJob,
    ids::{EventId, IngressId},
    reply_event::{IngressEnvelope, PatchOutcome},
};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::{InferenceHandler, events};
use crate::{
    job_loop::JobEnd,
    retry::{self, RetryDelays},
};

/// Tries of the response to the ingress, which can also read the store.
const RESPONSE_TRIES_MAX: u32 = 3;
/// Pause between two tries.
const RESPONSE_RETRY_DELAY: Duration = Duration::from_millis(300);

/// Applies one metadata change, unless `handoff` is cancelled first.
pub(super) async fn run_patch(
    inference: &InferenceHandler,
    job: &PatchJob,
    handoff: &CancellationToken,
) -> JobEnd {
    tokio::select! {
        biased;
        () = handoff.cancelled() => JobEnd::RetryAfter(Duration::ZERO),
        end = apply_patch(inference, job) => end,
    }
}

async fn apply_patch(inference: &InferenceHandler, job: &PatchJob) -> JobEnd {
    let (config, backends) = (&inference.config, &inference.backends);
    let (deadline, delays) = (
        Instant::now() + config.job_deadline(),
        RetryDelays::of_store(config),
    );
    let stored = retry::retry_until(deadline, delays, "change the metadata", || {
        backends.store.update_metadata(
            &job.org_id,
            &job.conversation_id,
            &job.changes,
            job.accepted_at,
        )
    });
    let outcome = match stored.await {
        Some(true) => PatchOutcome::Applied,
        Some(false) => PatchOutcome::NotFound,
        None => return JobEnd::RetryAfter(config.parked_delay()),
    };
    if outcome == PatchOutcome::Applied {
        let event = events::conversation_updated(job);
        let published = retry::retry_until(deadline, delays, "publish an event", || {
            events::publish_event(&*backends.bus, config, &event)
        });
        if published.await.is_none() {
            return JobEnd::RetryAfter(config.parked_delay());
        }
    }
    respond(inference, &job.reply_to, &job.event_id, outcome).await;
    JobEnd::Finished
}

/// Sends the outcome to the ingress that waits for it.
pub(super) async fn respond(
    inference: &InferenceHandler,
    to: &IngressId,
    change: &EventId,
    outcome: PatchOutcome,
) {
    for _ in 0..RESPONSE_TRIES_MAX {
        match inference
            .backends
            .relay
            .push(to, &IngressEnvelope::Patch(change.clone(), outcome))
            .await
        {
            Ok(()) => return,
            Err(error) => {
                tracing::warn!(%error, "could not send the outcome of a conversation change")
            }
        }
        sleep(RESPONSE_RETRY_DELAY).await;
    }
}
