//! Reads of the catalogue on the path of a request.

use std::sync::Arc;

use switchboard_schemas::{
    agent::Agent,
    api_key::{ApiKey, ApiKeyHash},
    ids::AgentId,
};

use super::{Catalog, Entry, EntryKind};
use crate::store::StoreError;

/// The catalogue as requests read it.
pub struct CatalogCache {
    catalog: Arc<dyn Catalog>,
}

impl CatalogCache {
    /// Reads from `catalog`.
    pub fn new(catalog: Arc<dyn Catalog>) -> Self {
        Self { catalog }
    }

    /// The agent.
    pub async fn agent(&self, id: &AgentId) -> Result<Option<Arc<Agent>>, StoreError> {
        Ok(match self.catalog.get(EntryKind::Agent, id.as_str()).await? {
            Some(Entry::Agent(agent)) => Some(Arc::from(agent)),
            _ => None,
        })
    }

    /// The key.
    pub async fn key(&self, hash: &ApiKeyHash) -> Result<Option<Arc<ApiKey>>, StoreError> {
        Ok(self.catalog.key_by_hash(hash).await?.map(Arc::new))
    }
}
