//! Bytes of uploads that no message has named. An upload costs its sender little, so that what an
//! organization may have of them is bounded.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::TryStreamExt;
use moka::future::Cache;
use object_store::{ObjectStore, path::Path};
use switchboard_schemas::ids::OrgId;

use super::FileStore;
use crate::StoreError;

/// Time for which a sum is used before the uploads are listed again.
const SUM_LIFETIME: Duration = Duration::from_secs(10);
/// Organizations whose sums are kept.
const SUMS_MAX: u64 = 10_000;

/// Bytes of the waiting uploads of organizations, as they were listed, and of the uploads that this
/// process has stored since.
pub(super) struct WaitingBytes(Cache<OrgId, Arc<AtomicU64>>);

impl WaitingBytes {
    pub(super) fn new() -> Self {
        let sums = Cache::builder().max_capacity(SUMS_MAX);
        Self(sums.time_to_live(SUM_LIFETIME).build())
    }

    /// Adds an upload that was stored.
    pub(super) async fn add(&self, org: &OrgId, bytes: u64) {
        if let Some(sum) = self.0.get(org).await {
            sum.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

impl FileStore {
    /// Returns true if the organization may upload more: the uploads that no message has named have
    /// less bytes than the limit. Messages and other processes count after 10 seconds.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub async fn has_room(&self, org: &OrgId) -> Result<bool, StoreError> {
        let objects = self.objects()?;
        let listed = async {
            let folder = Path::from_iter(["uploads", org.as_str()]);
            let mut uploads = objects.list(Some(&folder));
            let mut sum = 0;
            while let Some(upload) = uploads.try_next().await? {
                sum += upload.size;
            }
            Ok(Arc::new(AtomicU64::new(sum)))
        };
        let sum = self.waiting.0.try_get_with(org.clone(), listed).await;
        let sum = sum.map_err(|error: Arc<StoreError>| (*error).clone())?;
        Ok(sum.load(Ordering::Relaxed) < self.waiting_bytes_max)
    }
}
