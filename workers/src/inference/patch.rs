//! Changes of metadata: applied in the order of the conversation's partition, so that store and topic cannot disagree.

use std::time::Duration;

use switchboard_schemas::{
    conversation_job::PatchJob,
    ids::{EventId, IngressId},
    reply_event::PatchOutcome,
};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::{Inference, events};
use crate::{
    job_loop::JobEnd,
    retry::{self, Backoff},
};

/// Tries to tell the ingress that waits; it can ask the store after that.
const ANSWER_TRIES_MAX: u32 = 3;
/// Pause between them.
const ANSWER_RETRY_DELAY: Duration = Duration::from_millis(300);

/// Applies one change.
pub(super) async fn run(
    inference: &Inference,
    job: &PatchJob,
    handover: &CancellationToken,
) -> JobEnd {
    tokio::select! {
        biased;
        () = handover.cancelled() => JobEnd::Open(Duration::ZERO),
        end = apply(inference, job) => end,
    }
}

async fn apply(inference: &Inference, job: &PatchJob) -> JobEnd {
    let (config, backends) = (&inference.config, &inference.backends);
    let (limit, backoff) = (
        Instant::now() + config.job_deadline(),
        Backoff::of_store(config),
    );
    let stored = retry::until(limit, backoff, "change the metadata", || {
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
        None => return JobEnd::Open(config.parked_delay()),
    };
    if outcome == PatchOutcome::Applied {
        let event = events::conversation_updated(job);
        let published = retry::until(limit, backoff, "publish an event", || {
            events::publish(&*backends.bus, config, &event)
        });
        if published.await.is_none() {
            return JobEnd::Open(config.parked_delay());
        }
    }
    answer(inference, &job.reply_to, &job.event_id, outcome).await;
    JobEnd::Finished
}

/// Tells the ingress that waits.
pub(super) async fn answer(
    inference: &Inference,
    to: &IngressId,
    change: &EventId,
    outcome: PatchOutcome,
) {
    for _ in 0..ANSWER_TRIES_MAX {
        match inference
            .backends
            .relay
            .answer_patch(to, change, outcome)
            .await
        {
            Ok(()) => return,
            Err(error) => tracing::warn!(%error, "could not answer a change of a conversation"),
        }
        sleep(ANSWER_RETRY_DELAY).await;
    }
}
