//! The catalogue: what organizations configure. Read on every request through a cache, written by the admin API.
//!
//! # Contract
//! - **Visibility**: a read that begins after a write returned sees it, on any process.
//! - **Idempotence**: [`CatalogStore::put`] makes it so, whether or not it was so; [`CatalogStore::remove`] of what is not there
//!   succeeds.
//! - **Tenancy**: an entry is written and listed under its organization. Reading one by its id needs none, because that
//!   read is how the service finds out whose it is; ids cannot be guessed.
//! - **Versions**: a put gives an entry a version greater than that of what it replaces, and, as far as clocks go
//!   forward, than that of what was removed before. Editors compare versions; the catalogue does not.
//! - **Uses**: when a key was last used is kept beside it and is no version of it; of several uses the latest stays,
//!   in whatever order they arrive. It goes with its key.
//! - **Durability**: as in [`crate::store`].
//! - **Secrets**: provider keys lie here sealed, API keys and links only as keyed hashes, passwords as slow ones.

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

/// Where configuration is kept.
#[async_trait]
pub trait CatalogStore: Send + Sync {
    /// The entry of this kind and id.
    async fn get(&self, kind: EntryKind, id: &str) -> Result<Option<CatalogEntry>, StoreError>;

    /// The same with its version.
    async fn versioned(
        &self,
        kind: EntryKind,
        id: &str,
    ) -> Result<Option<VersionedEntry>, StoreError>;

    /// The key with this hash.
    async fn key_by_hash(&self, hash: &ApiKeyHash) -> Result<Option<ApiKey>, StoreError>;

    /// Makes or replaces an entry.
    async fn put(&self, entry: &CatalogEntry) -> Result<(), StoreError>;

    /// Removes an entry; a removed key is no longer found by its hash.
    async fn remove(&self, kind: EntryKind, org: &OrgId, id: &str) -> Result<(), StoreError>;

    /// All entries of a kind of one organization, by id; with no organization, all organizations themselves.
    async fn list(
        &self,
        kind: EntryKind,
        org: Option<&OrgId>,
    ) -> Result<Vec<CatalogEntry>, StoreError>;

    /// Notes that keys were used.
    async fn note_uses(&self, uses: &[KeyUse]) -> Result<(), StoreError>;

    /// When the organization's keys were last used, as far as that was noted.
    async fn uses(&self, org: &OrgId) -> Result<Vec<KeyUse>, StoreError>;

    /// Whether the catalogue answers.
    async fn check(&self) -> Result<(), StoreError>;
}

/// An entry as one put left it.
#[derive(Clone, Debug, PartialEq)]
pub struct VersionedEntry {
    /// What lies there.
    pub entry: CatalogEntry,
    /// Of the put that wrote it.
    pub version: i64,
}

/// The last use of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyUse {
    /// Its owner.
    pub org_id: OrgId,
    /// The key.
    pub key_id: KeyId,
    /// When.
    pub at: Timestamp,
}

/// Kinds of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// [`Organization`].
    Organization,
    /// [`Provider`] with its sealed key.
    Provider,
    /// [`Agent`].
    Agent,
    /// [`Team`].
    Team,
    /// [`ApiKey`] with its hash.
    Key,
    /// [`UserAccount`].
    User,
}

impl EntryKind {
    /// Name in the store.
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

/// One configured thing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum CatalogEntry {
    /// An organization.
    Organization(Organization),
    /// A provider and its key, sealed by [`crate::vault::SecretVault`]; empty when it needs none.
    Provider {
        /// The endpoint.
        provider: Provider,
        /// Its key, sealed.
        sealed_key: Vec<u8>,
    },
    /// An agent.
    Agent(Box<Agent>),
    /// A team.
    Team(Team),
    /// An API key and the hash under which it is found.
    Key {
        /// What is known of it.
        key: ApiKey,
        /// HMAC-SHA-256 of its text.
        hash: [u8; 32],
    },
    /// A person's account. Its id is derived from its e-mail address, so that a look-up by the one is a read of the other.
    User(Box<UserAccount>),
}

impl CatalogEntry {
    /// Its kind.
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

    /// Its id.
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

    /// Its owner.
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
