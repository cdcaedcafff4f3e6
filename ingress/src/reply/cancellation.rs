//! Cancels replies: for their clients, and for clients that have disconnected where the agent is
//! configured so.

use std::time::Duration;

use switchboard_backends::{
    StoreError,
    relay::{CancelOutcome, RelayError},
};
use switchboard_schemas::{
    ids::{MessageId, OrgId},
    reply_event::{Frame, ReplyEnd, ReplySignal},
    time::Timestamp,
};

use crate::{jobs::publish::TurnJob, state::AppState};

/// Timeout for requesting the cancellation; nobody waits for it.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// Reason why a reply was not cancelled.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CancelError {
    #[error(transparent)]
    Relay(#[from] RelayError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Requests that a reply stops. A waiting reply ends at once; other processes that follow it read
/// its end from the log.
///
/// A reply without a claim may be running on a worker that cannot reach the relay. The store
/// therefore decides whether it is cancelled. `org` is `None` for a playground run, of which the
/// store knows nothing.
pub(crate) async fn cancel_reply(
    state: &AppState,
    org: Option<&OrgId>,
    reply: &MessageId,
    accepted_at: Timestamp,
) -> Result<CancelOutcome, CancelError> {
    let (relay, store) = (&state.backends.relay, &state.backends.store);
    let waited_ms = Timestamp::now().millis_since(accepted_at);
    let end = ReplyEnd::cancelled_in_queue(waited_ms);
    if let Some(org) = org
        && relay.remaining_lease(reply).await?.is_none()
        && !store.settle_cancellation(org, reply, &end).await?
    {
        return Ok(CancelOutcome::TooLate);
    }
    let end = Frame::only(end);
    let outcome = relay.cancel_reply(reply, &end).await?;
    if outcome == CancelOutcome::Ended {
        let signal = ReplySignal::Frame(end);
        state.pending_replies.deliver_signal(reply, &signal);
    }
    Ok(outcome)
}

/// Requests the cancellation in the background. Does nothing while the process shuts down, because
/// it closes connections itself and their replies continue.
pub(super) fn cancel_in_background(state: &AppState, job: &TurnJob) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        return;
    };
    if state.aborting.is_cancelled() {
        return;
    }
    let (requesting, turn) = (state.clone(), job.turn());
    let (reply, accepted_at) = (turn.reply_id(), turn.accepted_at);
    let org = (!job.is_playground()).then(|| turn.org_id.clone());
    let cancel = async move {
        let request = cancel_reply(&requesting, org.as_ref(), &reply, accepted_at);
        match tokio::time::timeout(CANCEL_TIMEOUT, request).await {
            Ok(Ok(_)) => tracing::info!(message.id = %reply, "client disconnected, reply canceled"),
            Ok(Err(error)) => {
                tracing::warn!(%error, message.id = %reply, "reply of a disconnected client not canceled")
            }
            Err(error) => {
                tracing::warn!(%error, message.id = %reply, "reply of a disconnected client not canceled")
            }
        }
    };
    state.background.spawn_on(cancel, &runtime);
}
