//! What the worker that owns a conversation does between two of its turns, and how a request waits for it: its outcome comes
//! back like a reply, and where it does not, because the relay is away while everything else works, the store tells.

use std::time::Duration;

use switchboard_schemas::{
    conversation_job::ConversationJob,
    ids::{EventId, RequestId},
    reply_event::PatchOutcome,
    topics::Topic,
};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::{error::ApiResult, publish::publish, reply::registry::PatchSlot, state::AppState};

/// A job that is published: it is done whatever dies.
pub(crate) struct Published<'a> {
    state: &'a AppState,
    slot: PatchSlot,
}

impl<'a> Published<'a> {
    /// Publishes the job whose outcome is told under this event.
    pub(crate) async fn new(
        state: &'a AppState,
        job: &ConversationJob,
        event: EventId,
        request: &RequestId,
    ) -> ApiResult<Self> {
        let slot = state.registry.wait_for_patch(event);
        publish(state, Topic::Jobs, job, request).await?;
        Ok(Self { state, slot })
    }

    /// Waits for its outcome, or until the store shows that it is done; none: it takes longer than a request waits.
    pub(crate) async fn outcome<Done: Future<Output = bool>>(
        mut self,
        is_done: impl Fn() -> Done,
    ) -> Option<PatchOutcome> {
        let wait = Duration::from_millis(self.state.config.patch_timeout_ms);
        let outcome = async {
            tokio::select! {
                Some(outcome) = self.slot.outcome() => outcome,
                () = shown(self.state, is_done) => PatchOutcome::Applied,
            }
        };
        tokio::time::timeout(wait, outcome).await.ok()
    }
}

/// Returns once the store shows that it is done.
async fn shown<Done: Future<Output = bool>>(state: &AppState, is_done: impl Fn() -> Done) {
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
