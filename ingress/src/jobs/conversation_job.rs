//! Jobs that the owner of a conversation runs between two turns. The outcome arrives on the reply
//! channel; if Redis is unavailable, the store is polled for the effect.

use std::time::Duration;

use switchboard_schemas::{
    conversation_job::ConversationJob,
    ids::{EventId, RequestId},
    reply_event::PatchOutcome,
};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::publish::publish_job;
use crate::{
    http::ApiResult,
    state::{AppState, pending_replies::OutcomeReceiver},
};

/// A published, durable conversation job whose outcome can be awaited.
pub(crate) struct PublishedJob<'a> {
    state: &'a AppState,
    subscription: OutcomeReceiver<EventId, PatchOutcome>,
}

impl<'a> PublishedJob<'a> {
    /// Publishes the job. Its outcome is reported under `event`.
    pub(crate) async fn publish(
        state: &'a AppState,
        job: &ConversationJob,
        event: EventId,
        request: &RequestId,
    ) -> ApiResult<Self> {
        let subscription = state.pending_replies.wait_for_patch(event);
        publish_job(state, job, request).await?;
        Ok(Self {
            state,
            subscription,
        })
    }

    /// Waits for the outcome, or until `is_done` finds the effect in the store. Returns `None`
    /// after the configured patch timeout.
    pub(crate) async fn wait_for_outcome<Done: Future<Output = bool>>(
        mut self,
        is_done: impl Fn() -> Done,
    ) -> Option<PatchOutcome> {
        let wait = Duration::from_millis(self.state.config.patch_timeout_ms);
        let outcome = async {
            tokio::select! {
                Some(outcome) = self.subscription.outcome() => outcome,
                () = poll_until(self.state, is_done) => PatchOutcome::Applied,
            }
        };
        tokio::time::timeout(wait, outcome).await.ok()
    }
}

/// Polls until `is_done` returns true.
async fn poll_until<Done: Future<Output = bool>>(state: &AppState, is_done: impl Fn() -> Done) {
    let period = Duration::from_millis(state.config.store_poll_ms);
    let mut ticks = interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if is_done().await {
            return;
        }
    }
}
