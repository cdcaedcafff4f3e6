//! Bounds of the uploads of one process.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

/// Refused bodies whose rest is read at the same time.
const DRAINS_MAX: usize = 8;

/// Bounds of the uploads of one process.
pub(crate) struct UploadBounds {
    drains: Arc<Semaphore>,
}

impl Default for UploadBounds {
    fn default() -> Self {
        Self {
            drains: Arc::new(Semaphore::new(DRAINS_MAX)),
        }
    }
}

impl UploadBounds {
    /// Runs `drain`, which reads the rest of a refused body, in the background. Drops it if too
    /// many are running.
    pub(crate) fn drain(
        &self,
        tasks: &TaskTracker,
        drain: impl Future<Output = ()> + Send + 'static,
    ) {
        if let Ok(place) = self.drains.clone().try_acquire_owned() {
            tasks.spawn(async move {
                drain.await;
                drop(place);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{future::pending, time::Duration};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn few_refused_bodies_are_read_at_once() {
        let (bounds, tasks) = (UploadBounds::default(), TaskTracker::new());
        for _ in 0..=DRAINS_MAX {
            bounds.drain(&tasks, tokio::time::sleep(Duration::from_secs(1)));
        }
        assert_eq!(tasks.len(), DRAINS_MAX);
        tasks.close();
        tasks.wait().await;
        bounds.drain(&tasks, pending());
        assert_eq!(tasks.len(), 1);
    }
}
