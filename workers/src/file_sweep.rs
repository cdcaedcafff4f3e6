//! Removes expired uploads.

use std::time::Duration;

use switchboard_backends::Backends;
use switchboard_schemas::time::Timestamp;
use tokio_util::sync::CancellationToken;

/// Share of the interval, as a divisor, within which the first sweep begins at a random time, so
/// that processes that start together do not sweep together.
const FIRST_DELAY_DIVISOR: u32 = 60;

/// Sweeps until `shutdown`. Several processes may do so at the same time.
pub(crate) async fn sweep_until(
    backends: &Backends,
    interval: Duration,
    shutdown: CancellationToken,
) {
    let mut delay = (interval / FIRST_DELAY_DIVISOR).mul_f64(rand::random());
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(delay) => {}
        }
        delay = interval;
        match backends.files.sweep(Timestamp::now()).await {
            Ok(0) => {}
            Ok(uploads) => tracing::info!(uploads, "removed expired uploads"),
            Err(error) => tracing::warn!(%error, "expired uploads not removed; tried again later"),
        }
    }
}
