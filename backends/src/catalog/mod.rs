//! The catalog: the configuration of organizations, read on every request through a cache and
//! written by the admin API.
//!
//! Three traits cover it, and one type per backend implements them all:
//! [`embedded::EmbeddedCatalog`] in a local file, [`scylla::ScyllaCatalog`] in a cluster.
//! [`CatalogStore`] stands for all where they are opened and handed around.
//!
//! - [`CatalogEntryStore`]: organizations, agents, API keys and the other kinds of entries.
//! - [`KeyUseStore`]: the last uses of API keys.
//! - [`PageSightingStore`]: the pages on which widgets were seen.
//!
//! # Contract
//! - **Visibility**: a read that begins after a write has returned sees the write, on any process.
//! - **Durability**: as in [`crate::store`].
//! - **Secrets**: provider keys are stored encrypted, API keys and links only as keyed hashes,
//!   passwords as slow hashes.

pub mod cache;
#[cfg(test)]
mod conformance;
pub mod embedded;
mod entries;
mod freshness;
mod key_uses;
mod page_sightings;
pub mod scylla;

pub use self::{
    entries::{CatalogEntryStore, EntryPage},
    key_uses::{KeyUse, KeyUseStore},
    page_sightings::{PageSighting, PageSightingStore},
};

use serde::{Deserialize, Serialize};
use switchboard_schemas::{
    agent::Agent, api_key::ApiKey, ids::OrgId, organization::Organization, provider::Provider,
    removal::OrganizationRemoval, team::Team, user::UserAccount,
};

/// All parts of the catalog.
pub trait CatalogStore: CatalogEntryStore + KeyUseStore + PageSightingStore {}

impl<T> CatalogStore for T where T: CatalogEntryStore + KeyUseStore + PageSightingStore {}

/// An entry with its version.
#[derive(Clone, Debug, PartialEq)]
pub struct VersionedEntry {
    /// The stored entry.
    pub entry: CatalogEntry,
    /// Version of the write.
    pub version: i64,
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
    /// An [`OrganizationRemoval`], under the id of the organization.
    Removal,
}

impl EntryKind {
    /// Returns true if entries of this kind belong to the installation, not to an organization.
    pub(crate) const fn is_of_installation(self) -> bool {
        matches!(self, Self::Organization | Self::Removal)
    }

    /// Returns the name used in the store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Organization => "organization",
            Self::Provider => "provider",
            Self::Agent => "agent",
            Self::Team => "team",
            Self::Key => "key",
            Self::User => "user",
            Self::Removal => "removal",
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
    /// The removal of an organization.
    Removal(OrganizationRemoval),
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
            Self::Removal(_) => EntryKind::Removal,
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
            Self::Removal(removal) => removal.org_id.as_str(),
        }
    }

    /// Returns the name that users know the entry by: its slug, a key's name or a user's e-mail
    /// address. Lists are in order of labels.
    pub fn label(&self) -> &str {
        match self {
            Self::Organization(organization) => &organization.slug,
            Self::Provider { provider, .. } => &provider.slug,
            Self::Agent(agent) => &agent.slug,
            Self::Team(team) => &team.slug,
            Self::Key { key, .. } => &key.name,
            Self::User(account) => account.user.email.as_str(),
            Self::Removal(removal) => removal.org_id.as_str(),
        }
    }

    /// Returns the entry without its long texts, as lists contain it. Only agents and teams differ
    /// from their summary.
    #[must_use]
    pub fn summary(&self) -> Self {
        match self {
            Self::Agent(agent) => Self::Agent(Box::new(Agent {
                settings: agent.settings.summary(),
                ..Agent::clone(agent)
            })),
            Self::Team(team) => {
                let mut team = team.clone();
                for member in &mut team.members {
                    member.specialization.clear();
                }
                Self::Team(team)
            }
            _ => self.clone(),
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
            Self::Removal(removal) => &removal.org_id,
        }
    }
}
