//! Dependencies that catalog changes share, and their write lock.

use std::sync::{Arc, OnceLock};

use switchboard_backends::{
    Backends, StoreError,
    bus::MessageBus,
    catalog::{CatalogEntry, CatalogStore, EntryKind},
    relay::KeyValueMemory,
    vault::SecretVault,
};
use switchboard_schemas::{ids::OrgId, secret::InstallationSecret};
use tokio::sync::Mutex;

use super::AddressCheck;
use crate::ceilings::MemberCeilings;

/// Dependencies of a change to the catalog, and the lock that serializes changes within a process.
pub struct ApplyContext {
    pub(crate) catalog: Arc<dyn CatalogStore>,
    pub(crate) bus: Arc<dyn MessageBus>,
    pub(crate) relay: Arc<dyn KeyValueMemory>,
    pub(crate) secret: InstallationSecret,
    pub(crate) vault: SecretVault,
    /// MemberCeilings that the operator sets for members.
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
            ..
        } = backends.clone();
        Self {
            catalog,
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
        let mut id = OrgId::derive(&self.secret, slug);
        while let Some(CatalogEntry::Removal(removal)) =
            self.catalog.get(EntryKind::Removal, id.as_str()).await?
        {
            id = removal.successor;
        }
        Ok(id)
    }
}
