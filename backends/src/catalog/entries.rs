//! Reads and writes of the entries of the catalog.

use async_trait::async_trait;
use switchboard_schemas::{
    api_key::{ApiKey, ApiKeyHash},
    ids::OrgId,
};

use super::{CatalogEntry, EntryKind, VersionedEntry};
use crate::error::StoreError;

/// A part of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryPage {
    /// Summaries of the entries of the page.
    pub entries: Vec<CatalogEntry>,
    /// Number of entries of the whole list.
    pub total: usize,
}

/// Entries of the catalog.
///
/// # Contract
/// - **Idempotence**: [`put`](Self::put) stores the entry whether or not it exists;
///   [`remove`](Self::remove) of an unknown entry succeeds.
/// - **Tenancy**: an entry is written and listed under its organization. A read by id needs none,
///   because that lookup resolves the organization; ids cannot be guessed.
/// - **Lists**: lists contain summaries, whose size has a bound; a read by id has the whole entry.
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

    /// Returns the [summaries](CatalogEntry::summary) of all entries of a kind of one organization
    /// by id; without an organization, all organizations or removals.
    async fn list(
        &self,
        kind: EntryKind,
        org: Option<&OrgId>,
    ) -> Result<Vec<CatalogEntry>, StoreError>;

    /// Returns a part of a [list](Self::list) that is sorted by label and id.
    async fn page(
        &self,
        kind: EntryKind,
        org: Option<&OrgId>,
        offset: u64,
        limit: u32,
    ) -> Result<EntryPage, StoreError> {
        let mut entries = self.list(kind, org).await?;
        entries.sort_by(|left, right| (left.label(), left.id()).cmp(&(right.label(), right.id())));
        let total = entries.len();
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let entries = entries.into_iter().skip(offset).take(limit as usize);
        Ok(EntryPage {
            entries: entries.collect(),
            total,
        })
    }

    /// Fails if the catalog does not respond.
    async fn check(&self) -> Result<(), StoreError>;
}
