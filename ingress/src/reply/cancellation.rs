//! Cancels replies: for their clients, and for clients that have disconnected where the agent is
//! configured so.

use std::time::Duration;

use switchboard_backends::relay::{CancelOutcome, RelayError};
use switchboard_schemas::{
    ids::MessageId,
    reply_event::{Frame, ReplyEnd, ReplySignal},
    time::Timestamp,
};

use crate::state::AppState;

/// Timeout for requesting the cancellation; nobody waits for it.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// Requests that a reply stops. A waiting reply ends at once; other processes that follow it read
/// its end from the log.
pub(crate) async fn cancel_reply(
    state: &AppState,
    reply: &MessageId,
    accepted_at: Timestamp,
) -> Result<CancelOutcome, RelayError> {
    let waited_ms = Timestamp::now().millis_since(accepted_at);
    let end = Frame::only(ReplyEnd::cancelled_in_queue(waited_ms));
    let outcome = state.backends.relay.cancel_reply(reply, &end).await?;
    if outcome == CancelOutcome::Ended {
        let signal = ReplySignal::Frame(end);
        state.pending_replies.deliver_signal(reply, &signal);
    }
    Ok(outcome)
}

/// Requests the cancellation in the background. Does nothing while the process shuts down, because
/// it closes connections itself and their replies continue.
pub(super) fn cancel_in_background(state: &AppState, reply: MessageId, accepted_at: Timestamp) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        return;
    };
    if state.aborting.is_cancelled() {
        return;
    }
    let requesting = state.clone();
    let cancel = async move {
        let request = cancel_reply(&requesting, &reply, accepted_at);
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
