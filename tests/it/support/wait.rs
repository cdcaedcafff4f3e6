//! Waiting for a condition instead of a fixed sleep, which is either slow or flaky.

use std::time::{Duration, Instant};

/// Longest wait for a condition on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Time that a busy machine may take beyond a documented deadline.
pub(crate) const SLACK: Duration = Duration::from_secs(3);
/// Time until a change is live on every ingress, as promised, with slack.
pub(crate) const PROMISED: Duration = Duration::from_secs(2).saturating_add(SLACK);
/// Time between two looks at a condition.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// Polls until `attempt` returns a value; panics with `what` when the deadline passes.
pub(crate) async fn eventually<T, F>(what: &str, deadline: Duration, mut attempt: F) -> T
where
    F: AsyncFnMut() -> Option<T>,
{
    let began = Instant::now();
    loop {
        if let Some(value) = attempt().await {
            return value;
        }
        assert!(
            began.elapsed() < deadline,
            "not within {deadline:?}: {what}"
        );
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
