//! The catalog: the configuration of organizations, read on every request through a cache and
//! written by the admin API.
//!
//! # Contract
//! - **Visibility**: a read that begins after a write has returned sees the write, on any process.
//! - **Idempotence**: [`CatalogStore::put`] stores the entry whether or not it exists;
//!   [`CatalogStore::remove`] of an unknown entry succeeds.
//! - **Tenancy**: an entry is written and listed under its organization. A read by id needs none,
//!   because that lookup resolves the organization; ids cannot be guessed.
//! - **Versions**: a put assigns a version greater than that of the replaced entry and, as far as
//!   clocks go forward, than that of an entry removed before. Editors compare versions; the catalog
//!   does not.
//! - **Uses**: the last use of a key is stored beside it and does not change its version. Of
//!   several uses the latest is kept, in any order of arrival. It is removed with its key.
//! - **Durability**: as in [`crate::store`].
//! - **Secrets**: provider keys are stored encrypted, API keys and links only as keyed hashes,
//!   passwords as slow hashes.

pub mod cache;
#[cfg(test)]
mod conformance;
pub mod embedded;
mod freshness;
pub mod scylla;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use switchboard_schemas::{
    agent::Agent,
    api_key::{ApiKey, ApiKeyHash},
    ids::{KeyId, OrgId},
    organization::Organization,
    provider::Provider,
    team::Team,
    time::Timestamp,
    user::UserAccount,
};

use crate::error::StoreError;

/// The store of the configuration.
#[async_trait]
pub trait CatalogStore: Send + Sync {
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

    /// Records uses of keys.
    async fn record_key_uses(&self, uses: &[KeyUse]) -> Result<(), StoreError>;

    /// Returns the recorded last uses of the organization's keys.
    async fn key_uses(&self, org: &OrgId) -> Result<Vec<KeyUse>, StoreError>;

    /// Fails if the catalog does not respond.
    async fn check(&self) -> Result<(), StoreError>;
}

/// An entry with its version.
#[derive(Clone, Debug, PartialEq)]
pub struct VersionedEntry {
    /// The stored entry.
    pub entry: CatalogEntry,
    /// Version of the write.
    pub version: i64,
}

/// The last use of an API key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyUse {
    /// Organization of the key.
    pub org_id: OrgId,
    /// Id of the key.
    pub key_id: KeyId,
    /// Time of the use.
    pub at: Timestamp,
}

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// An [`Organization`].
    Organization,
    /// A [`Provider`] with its encrypted key.
    Provider,
    /// An [`Agent`] with its settings.
    Agent,
    /// A [`Team`] with its members.
    Team,
    /// An [`ApiKey`] with its hash.
    Key,
    /// A [`UserAccount`] with its credentials.
    User,
}

impl EntryKind {
    /// Returns the name used in the store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Organization => "organization",
            Self::Provider => "provider",
            Self::Agent => "agent",
            Self::Team => "team",
            Self::Key => "key",
            Self::User => "user",
        }
    }
}

/// A configured resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum CatalogEntry {
    /// An organization of the installation.
    Organization(Organization),
    /// A provider with its API key, encrypted by [`crate::vault::SecretVault`]; empty if it needs
    /// none.
    Provider {
        /// Settings of the endpoint.
        provider: Provider,
        /// Encrypted API key of the endpoint.
        sealed_key: Vec<u8>,
    },
    /// An agent of an organization.
    Agent(Box<Agent>),
    /// A team of an organization.
    Team(Team),
    /// An API key with the hash by which it is found.
    Key {
        /// Stored form of the key.
        key: ApiKey,
        /// HMAC-SHA-256 of the key's text.
        hash: [u8; 32],
    },
    /// An account of a user. Its id is derived from its e-mail address, so that a lookup by address
    /// is a read by id.
    User(Box<UserAccount>),
}

impl CatalogEntry {
    /// Returns the kind of the entry.
    pub const fn kind(&self) -> EntryKind {
        match self {
            Self::Organization(_) => EntryKind::Organization,
            Self::Provider { .. } => EntryKind::Provider,
            Self::Agent(_) => EntryKind::Agent,
            Self::Team(_) => EntryKind::Team,
            Self::Key { .. } => EntryKind::Key,
            Self::User(_) => EntryKind::User,
        }
    }

    /// Returns the id of the entry.
    pub fn id(&self) -> &str {
        match self {
            Self::Organization(organization) => organization.id.as_str(),
            Self::Provider { provider, .. } => provider.id.as_str(),
            Self::Agent(agent) => agent.id.as_str(),
            Self::Team(team) => team.id.as_str(),
            Self::Key { key, .. } => key.id.as_str(),
            Self::User(account) => account.user.id.as_str(),
        }
    }

    /// Returns the organization of the entry.
    pub const fn org_id(&self) -> &OrgId {
        match self {
            Self::Organization(organization) => &organization.id,
            Self::Provider { provider, .. } => &provider.org_id,
            Self::Agent(agent) => &agent.org_id,
            Self::Team(team) => &team.org_id,
            Self::Key { key, .. } => &key.org_id,
            Self::User(account) => &account.user.org_id,
        }
    }
}
