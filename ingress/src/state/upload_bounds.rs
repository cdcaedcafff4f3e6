//! Bounds of the uploads of one process.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use switchboard_schemas::ids::OrgId;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

/// Uploads that are received at the same time. Each holds a connection and a file on the disk.
const OPEN_UPLOADS_MAX: usize = 1024;
/// Those of one organization, so that it leaves room for others.
pub(crate) const OPEN_UPLOADS_PER_ORG_MAX: usize = OPEN_UPLOADS_MAX / 4;
/// Refused bodies whose rest is read at the same time.
const DRAINS_MAX: usize = 8;

/// Bounds of the uploads of one process.
pub(crate) struct UploadBounds {
    /// Numbers of open uploads, of the organizations that have any.
    open: Mutex<HashMap<OrgId, usize>>,
    drains: Arc<Semaphore>,
}

/// A place among the open uploads, which is free again when it is dropped.
pub(crate) struct UploadPlace<'a> {
    bounds: &'a UploadBounds,
    org: OrgId,
}

/// The bound that another upload would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TooManyUploads {
    OfOrganization,
    OfProcess,
}

impl Drop for UploadPlace<'_> {
    fn drop(&mut self) {
        let mut open = self.bounds.open.lock();
        if let Some(own) = open.get_mut(&self.org) {
            *own -= 1;
        }
        open.retain(|_, own| *own > 0);
    }
}

impl Default for UploadBounds {
    fn default() -> Self {
        Self {
            open: Mutex::default(),
            drains: Arc::new(Semaphore::new(DRAINS_MAX)),
        }
    }
}

impl UploadBounds {
    /// Takes a place among the open uploads.
    ///
    /// # Errors
    /// The organization, or all of them, have too many.
    pub(crate) fn open(&self, org: &OrgId) -> Result<UploadPlace<'_>, TooManyUploads> {
        let mut open = self.open.lock();
        if open.get(org).copied().unwrap_or_default() >= OPEN_UPLOADS_PER_ORG_MAX {
            return Err(TooManyUploads::OfOrganization);
        }
        if open.values().sum::<usize>() >= OPEN_UPLOADS_MAX {
            return Err(TooManyUploads::OfProcess);
        }
        *open.entry(org.clone()).or_default() += 1;
        Ok(UploadPlace {
            bounds: self,
            org: org.clone(),
        })
    }

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
