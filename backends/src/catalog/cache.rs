//! The catalogue as requests read it: from memory, never older than a moment, and for a while without the store.
//!
//! There is no push and no invalidation: a value is read again once it is older than
//! [`FRESH`](super::freshness::FRESH), so that a change is live on every process within 2 s whatever was lost.

use std::sync::Arc;

use switchboard_schemas::{
    agent::Agent,
    api_key::{ApiKey, ApiKeyHash},
    ids::{AgentId, OrgId, ProviderId, TeamId},
    organization::Organization,
    provider::Provider,
    team::Team,
};

use super::{Catalog, Entry, EntryKind, freshness::Fresh};
use crate::store::StoreError;

/// The catalogue behind a cache; clones share it.
///
/// Every read gives [`StoreError`] only when the store cannot be read and no value of the last minute is known.
#[derive(Clone)]
pub struct CatalogCache {
    catalog: Arc<dyn Catalog>,
    agents: Fresh<AgentId, Agent>,
    teams: Fresh<TeamId, Team>,
    keys: Fresh<ApiKeyHash, ApiKey>,
    providers: Fresh<ProviderId, SealedProvider>,
    organizations: Fresh<OrgId, Organization>,
}

/// A provider and its key as [`crate::vault::Vault`] sealed it; empty when it needs none.
#[derive(Clone, Debug, PartialEq)]
pub struct SealedProvider {
    /// The endpoint.
    pub provider: Provider,
    /// Its key, sealed.
    pub sealed_key: Vec<u8>,
}

impl CatalogCache {
    /// An empty cache.
    pub fn new(catalog: Arc<dyn Catalog>) -> Self {
        Self {
            catalog,
            agents: Fresh::new(),
            teams: Fresh::new(),
            keys: Fresh::new(),
            providers: Fresh::new(),
            organizations: Fresh::new(),
        }
    }

    /// The agent with this id, of whatever organization: the caller compares.
    pub async fn agent(&self, id: &AgentId) -> Result<Option<Arc<Agent>>, StoreError> {
        let read = self.read(EntryKind::Agent, id.as_str(), |entry| match entry {
            Entry::Agent(agent) => Some(*agent),
            _ => None,
        });
        self.agents.get(id.clone(), read).await
    }

    /// The team with this id, of whatever organization: the caller compares.
    pub async fn team(&self, id: &TeamId) -> Result<Option<Arc<Team>>, StoreError> {
        let read = self.read(EntryKind::Team, id.as_str(), |entry| match entry {
            Entry::Team(team) => Some(team),
            _ => None,
        });
        self.teams.get(id.clone(), read).await
    }

    /// The key with this hash.
    pub async fn key(&self, hash: &ApiKeyHash) -> Result<Option<Arc<ApiKey>>, StoreError> {
        self.keys.get(*hash, self.catalog.key_by_hash(hash)).await
    }

    /// The organization's provider with this id.
    pub async fn provider(&self, org: &OrgId, id: &ProviderId) -> Result<Option<Arc<SealedProvider>>, StoreError> {
        let read = self.read(EntryKind::Provider, id.as_str(), |entry| match entry {
            Entry::Provider { provider, sealed_key } => Some(SealedProvider { provider, sealed_key }),
            _ => None,
        });
        let sealed = self.providers.get(id.clone(), read).await?;
        Ok(sealed.filter(|sealed| sealed.provider.org_id == *org))
    }

    /// The organization with this id.
    pub async fn organization(&self, id: &OrgId) -> Result<Option<Arc<Organization>>, StoreError> {
        let read = self.read(EntryKind::Organization, id.as_str(), |entry| match entry {
            Entry::Organization(organization) => Some(organization),
            _ => None,
        });
        self.organizations.get(id.clone(), read).await
    }

    async fn read<T>(
        &self,
        kind: EntryKind,
        id: &str,
        unwrap: impl FnOnce(Entry) -> Option<T> + Send,
    ) -> Result<Option<T>, StoreError> {
        let Some(entry) = self.catalog.get(kind, id).await? else { return Ok(None) };
        let value =
            unwrap(entry).ok_or_else(|| StoreError::Malformed(format!("no {} lies under its id", kind.name())))?;
        Ok(Some(value))
    }
}
