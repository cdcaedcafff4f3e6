//! Records of erasures: requests to delete all data of a visitor, and their progress.

use async_trait::async_trait;
use switchboard_schemas::{
    erasure::Erasure,
    ids::{ErasureId, OrgId},
};

use crate::error::StoreError;

/// A string greater than every id.
pub(super) const LAST: &str = "\u{10ffff}";

/// Records of erasures.
///
/// # Contract
/// Of two states of one erasure the one with more steps wins, in any order of arrival. A record
/// stays when the conversations that it is about are deleted.
#[async_trait]
pub trait ErasureStore: Send + Sync {
    /// Stores the state of an erasure.
    async fn put_erasure(&self, erasure: &Erasure) -> Result<(), StoreError>;

    /// Returns the erasure with this id.
    async fn erasure(&self, org: &OrgId, id: &ErasureId) -> Result<Option<Erasure>, StoreError>;

    /// Returns at most `limit` erasures, latest first, starting before `before` if given.
    async fn erasures(
        &self,
        org: &OrgId,
        before: Option<&ErasureId>,
        limit: u32,
    ) -> Result<Vec<Erasure>, StoreError>;
}
