//! Reads and writes of the entries of the catalog.

use async_trait::async_trait;
use switchboard_schemas::{
    api_key::{ApiKey, ApiKeyHash},
    ids::OrgId,
};

use super::{CatalogEntry, EntryKind, VersionedEntry};
use crate::error::StoreError;

/// Entries of the catalog.
///
/// # Contract
/// - **Idempotence**: [`put`](Self::put) stores the entry whether or not it exists;
///   [`remove`](Self::remove) of an unknown entry succeeds.
/// - **Tenancy**: an entry is written and listed under its organization. A read by id needs none,
///   because that lookup resolves the organization; ids cannot be guessed.
/// - **Versions**: a put assigns a version greater than that of the replaced entry and, as far as
///   clocks go forward, than that of an entry removed before. Editors compare versions; the catalog
///   does not.
#[async_trait]
pub trait CatalogEntryStore: Send + Sync {
    /// Returns the entry of this kind and id.
    async fn get(&self, kind: EntryKind, id: &str) -> Result<Option<CatalogEntry>, StoreError>;

    /// Returns the entry with its version.
    async fn versioned(
        &self,
        kind: EntryKind,
        id: &str,
    ) -> Result<Option<VersionedEntry>, StoreError>;

    /// Returns the key with this hash.
    async fn key_by_hash(&self, hash: &ApiKeyHash) -> Result<Option<ApiKey>, StoreError>;

    /// Creates or replaces an entry.
    async fn put(&self, entry: &CatalogEntry) -> Result<(), StoreError>;

    /// Removes an entry. A removed key is no longer found by its hash.
    async fn remove(&self, kind: EntryKind, org: &OrgId, id: &str) -> Result<(), StoreError>;

    /// Returns all entries of a kind of one organization by id; without an organization, all
    /// organizations.
    async fn list(
        &self,
        kind: EntryKind,
        org: Option<&OrgId>,
    ) -> Result<Vec<CatalogEntry>, StoreError>;

    /// Fails if the catalog does not respond.
    async fn check(&self) -> Result<(), StoreError>;
}
