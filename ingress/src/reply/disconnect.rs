//! Cancels the reply of a disconnected client where the agent is configured so.

use std::time::Duration;

use switchboard_schemas::ids::MessageId;

use crate::state::AppState;

/// Timeout for requesting the cancellation; nobody waits for it.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// Requests the cancellation in the background. Does nothing while the process shuts down, because
/// it closes connections itself and their replies continue.
pub(super) fn cancel_reply(state: &AppState, reply: MessageId) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        return;
    };
    if state.aborting.is_cancelled() {
        return;
    }
    let relay = state.backends.relay.clone();
    let cancel = async move {
        match tokio::time::timeout(CANCEL_TIMEOUT, relay.cancel_reply(&reply)).await {
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
