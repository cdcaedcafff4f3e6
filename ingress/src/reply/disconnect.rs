//! What a vanished client does to a reply that nobody else is to read.

use std::time::Duration;

use switchboard_schemas::ids::MessageId;

use crate::state::AppState;

/// How long the relay may take to note the wish; nobody waits for it.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// Asks that the reply stops. A process that ends breaks connections off as well, and then the reply goes on.
pub(super) fn cancel(state: &AppState, reply: MessageId) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        return;
    };
    if state.aborting.is_cancelled() {
        return;
    }
    let relay = state.backends.relay.clone();
    let cancel = async move {
        match tokio::time::timeout(CANCEL_TIMEOUT, relay.cancel(&reply)).await {
            Ok(Ok(_)) => tracing::info!(message.id = %reply, "client gone, reply cancelled"),
            Ok(Err(error)) => {
                tracing::warn!(%error, message.id = %reply, "reply of a gone client not cancelled")
            }
            Err(error) => {
                tracing::warn!(%error, message.id = %reply, "reply of a gone client not cancelled")
            }
        }
    };
    state.background.spawn_on(cancel, &runtime);
}
