//! Dependencies that catalog changes share, and their write lock.

use std::sync::{Arc, OnceLock};

use switchboard_backends::{
    Backends, StoreError,
    accounts::AccountActivityStore,
    bus::MessageBus,
    catalog::{CatalogEntry, CatalogStore, EntryKind},
    relay::KeyValueMemory,
    store::{ConversationStore, listing::ListQuery},
    vault::SecretVault,
};
use switchboard_schemas::{ids::OrgId, removal::OrganizationRemoval, secret::InstallationSecret};
use tokio::sync::Mutex;

use super::AddressCheck;
use crate::ceilings::MemberCeilings;

/// Dependencies of a change to the catalog, and the lock that serializes changes within a process.
pub struct ApplyContext {
    pub(crate) catalog: Arc<dyn CatalogStore>,
    accounts: Arc<dyn AccountActivityStore>,
    store: Arc<dyn ConversationStore>,
    pub(crate) bus: Arc<dyn MessageBus>,
    pub(crate) relay: Arc<dyn KeyValueMemory>,
    pub(crate) secret: InstallationSecret,
    pub(crate) vault: SecretVault,
    /// Ceilings that the operator sets for members.
    pub(crate) ceilings: MemberCeilings,
    /// Checks addresses of providers and feeds; none in commands and tests.
    pub(crate) address_check: OnceLock<AddressCheck>,
    /// Serializes changes within a process: otherwise two requests could both create the same new
    /// key.
    pub(crate) write_lock: Mutex<()>,
}

impl ApplyContext {
    /// Creates a context that writes to the catalog of `backends`, derives ids and keys from
    /// `secret`, and notifies and locks out other processes through bus and relay.
    pub fn new(backends: &Backends, secret: InstallationSecret) -> Self {
        let Backends {
            catalog,
            bus,
            relay,
            accounts,
            store,
            ..
        } = backends.clone();
        Self {
            catalog,
            accounts,
            store,
            bus,
            relay,
            vault: SecretVault::new(&secret),
            secret,
            ceilings: MemberCeilings::default(),
            address_check: OnceLock::new(),
            write_lock: Mutex::new(()),
        }
    }

    /// Sets the ceilings of members.
    #[must_use]
    pub fn with_ceilings(self, ceilings: MemberCeilings) -> Self {
        Self { ceilings, ..self }
    }

    /// Returns the id of the organization with this slug, or the one that it would get. The id of
    /// an organization that was removed is never used again: its successor follows.
    ///
    /// # Errors
    /// The catalog cannot be reached.
    pub async fn organization_id(&self, slug: &str) -> Result<OrgId, StoreError> {
        Ok(self.find_id(slug).await?.0)
    }

    /// Begins the removal of what is left of an organization with this slug, if an older version
    /// deleted it.
    pub(crate) async fn retire_remains(&self, slug: &str) -> Result<(), StoreError> {
        let (_, remains) = self.find_id(slug).await?;
        for removal in remains {
            self.catalog.put(&CatalogEntry::Removal(removal)).await?;
        }
        Ok(())
    }

    /// Returns the id of the organization with this slug, and the removals that its predecessors
    /// lack.
    async fn find_id(&self, slug: &str) -> Result<(OrgId, Vec<OrganizationRemoval>), StoreError> {
        let (mut id, mut missing) = (OrgId::derive(&self.secret, slug), Vec::new());
        loop {
            if let Some(successor) = self.successor(&id).await? {
                id = successor;
            } else if self.exists(&id).await? || !self.has_remains(&id).await? {
                return Ok((id, missing));
            // Again, because another process may have created or removed it meanwhile.
            } else if !self.exists(&id).await? && self.successor(&id).await?.is_none() {
                // Derived, so that two processes find the same one.
                let successor = OrgId::derive(&self.secret, id.as_str());
                missing.push(OrganizationRemoval {
                    successor: successor.clone(),
                    ..OrganizationRemoval::begin(id, None)
                });
                id = successor;
            }
        }
    }

    async fn exists(&self, id: &OrgId) -> Result<bool, StoreError> {
        let found = self.catalog.get(EntryKind::Organization, id.as_str());
        Ok(found.await?.is_some())
    }

    async fn successor(&self, removed: &OrgId) -> Result<Option<OrgId>, StoreError> {
        let found = self.catalog.get(EntryKind::Removal, removed.as_str());
        Ok(match found.await? {
            Some(CatalogEntry::Removal(removal)) => Some(removal.successor),
            _ => None,
        })
    }

    async fn has_remains(&self, id: &OrgId) -> Result<bool, StoreError> {
        let one = ListQuery {
            limit: 1,
            ..ListQuery::default()
        };
        Ok(!self.accounts.log_entries(id, None, 1).await?.is_empty()
            || !self.store.conversations(id, &one).await?.is_empty())
    }
}
