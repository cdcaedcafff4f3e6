//! Versions of products, from their first chunk to their removal.

use async_trait::async_trait;
use bytes::Bytes;
use switchboard_schemas::ids::{AgentId, OrgId};

use super::{ProductsVersion, PublishedProducts};
use crate::error::StoreError;

/// Writes of versions.
///
/// # Contract
/// - **Replacement**: a version is written chunk by chunk, invisible to readers, and becomes
///   current as a whole with [`publish_version`](Self::publish_version).
/// - **Last write wins**: of two publishes, or a publish and a removal, the later one wins, even if
///   clocks disagree.
/// - **Restoring**: the last versions that were current before stay
///   ([`super::PREVIOUS_VERSIONS_MAX`]), and can become current again.
/// - **Cleanup**: chunks of a version that was never published, or is older than these, are deleted
///   by a later publish or removal, except for those that may still be written
///   ([`super::UPLOAD_TIME_MAX`]).
#[async_trait]
pub trait ProductVersionStore: Send + Sync {
    /// Registers a new version, so that it can be deleted if its writer dies.
    async fn begin_version(
        &self,
        org: &OrgId,
        agent: &AgentId,
        version: &ProductsVersion,
    ) -> Result<(), StoreError>;

    /// Stores a chunk of a registered version.
    async fn put_chunk(
        &self,
        org: &OrgId,
        agent: &AgentId,
        version: &ProductsVersion,
        number: u32,
        body: Bytes,
    ) -> Result<(), StoreError>;

    /// Makes a version the current one, keeps the replaced one and those before it as its previous
    /// versions and deletes the oldest. Returns the version as it was stored.
    async fn publish_version(
        &self,
        org: &OrgId,
        agent: &AgentId,
        kept: &PublishedProducts,
    ) -> Result<PublishedProducts, StoreError>;

    /// Makes a previous version the current one, the last one without a name, and the current one
    /// its previous version. Returns `None` without such a previous version.
    async fn restore_version(
        &self,
        org: &OrgId,
        agent: &AgentId,
        version: Option<&ProductsVersion>,
    ) -> Result<Option<PublishedProducts>, StoreError>;

    /// Deletes the chunks of a version that will not be published.
    async fn discard_version(
        &self,
        org: &OrgId,
        agent: &AgentId,
        version: &ProductsVersion,
    ) -> Result<(), StoreError>;

    /// Deletes all products of an agent.
    async fn remove_products(&self, org: &OrgId, agent: &AgentId) -> Result<(), StoreError>;
}
