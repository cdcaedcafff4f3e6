//! Applies metadata changes in the order of the conversation's partition, so that store and topic
//! agree.

use std::time::Duration;

use switchboard_backends::StoreError;
use switchboard_schemas::{
    conversation::Conversation,
    conversation_job::PatchJob,
    ids::{EventId, IngressId},
    message_event::MessageEvent,
    reply_event::{IngressEnvelope, PatchOutcome},
    time::Timestamp,
};
use tokio::time::{Instant, sleep};

use super::{InferenceHandler, events};
use crate::{
    job_loop::JobEnd,
    retry::{self, RetryDelays},
};

/// Tries of the response to the ingress, which can also read the store.
const RESPONSE_TRIES_MAX: u32 = 3;
/// Pause between two tries.
const RESPONSE_RETRY_DELAY: Duration = Duration::from_millis(300);

/// Applies one metadata change. One whose record may be repeated keeps its time, so that it changes
/// nothing that was changed after it.
pub(super) async fn apply_patch(
    inference: &InferenceHandler,
    job: &PatchJob,
    maybe_repeated: bool,
) -> JobEnd {
    let store = &inference.backends.store;
    let change = ConversationChange {
        task: "change the metadata",
        events: events::events_of_patch(job),
        event_id: &job.event_id,
        reply_to: &job.reply_to,
    };
    let write = || async {
        let (org, id) = (&job.org_id, &job.conversation_id);
        let at = if maybe_repeated {
            job.accepted_at
        } else {
            time_behind(store.conversation(org, id).await?.as_ref(), job.accepted_at)
        };
        store.update_metadata(org, id, &job.changes, at).await
    };
    change.run(inference, write).await
}

/// Returns the time of a change that was accepted at `at` and follows all stored ones. The order of
/// the partition counts, because the clocks of two ingress processes may differ.
pub(super) fn time_behind(known: Option<&Conversation>, at: Timestamp) -> Timestamp {
    known.map_or(at, |known| {
        at.max(Timestamp::from_micros(known.updated_at.micros() + 1))
    })
}

/// A change of a conversation between two of its turns.
pub(super) struct ConversationChange<'a> {
    /// Name of the write in the log.
    pub(super) task: &'static str,
    /// Events to publish if the conversation exists.
    pub(super) events: Vec<MessageEvent>,
    pub(super) event_id: &'a EventId,
    /// Ingress that waits for the outcome.
    pub(super) reply_to: &'a IngressId,
}

impl ConversationChange<'_> {
    /// Stores the change with `write`, which returns false if there is no such conversation, then
    /// publishes its events and sends the outcome.
    pub(super) async fn run<F: Future<Output = Result<bool, StoreError>>>(
        self,
        inference: &InferenceHandler,
        write: impl FnMut() -> F,
    ) -> JobEnd {
        let config = &inference.config;
        let deadline = Instant::now() + config.job_deadline();
        let delays = RetryDelays::of_store(config);
        let outcome = match retry::retry_until(deadline, delays, self.task, write).await {
            Some(true) => PatchOutcome::Applied,
            Some(false) => PatchOutcome::NotFound,
            None => return JobEnd::RetryAfter(config.parked_delay()),
        };
        let is_published = outcome == PatchOutcome::Applied && config.publish_events;
        for event in self.events.iter().filter(|_| is_published) {
            let bus = &*inference.backends.bus;
            let publish = || events::publish_event(bus, config, event);
            let published = retry::retry_until(deadline, delays, "publish an event", publish);
            if published.await.is_none() {
                return JobEnd::RetryAfter(config.parked_delay());
            }
        }
        respond(inference, self.reply_to, self.event_id, outcome).await;
        JobEnd::Finished
    }
}

/// Sends the outcome to the ingress that waits for it.
async fn respond(
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
