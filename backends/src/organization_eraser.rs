//! The erasure of all rows of an organization.
//!
//! Both implementations find the tables by their column `org_id`, so that a new table cannot be
//! forgotten.

#[cfg(test)]
mod conformance;

use async_trait::async_trait;
use switchboard_schemas::ids::OrgId;

use crate::{
    StoreError, accounts::embedded::EmbeddedAccounts, catalog::embedded::EmbeddedCatalog,
    products::embedded::EmbeddedProducts, scylla_link::ScyllaLink, sqlite::SqliteDatabase,
    store::embedded::EmbeddedStore,
};

/// Erases the rows of organizations.
///
/// # Contract
/// - **Completeness**: afterwards no table and no file has a row of the organization or what is
///   left of one, except entries of the catalog and ids.
/// - **Resumption**: after a crash or an error another call goes on. Other organizations are
///   served meanwhile.
/// - **Late writers**: no process writes rows of the organization any more, and its id is never
///   used again.
#[async_trait]
pub trait OrganizationEraser: Send + Sync {
    /// Erases the rows of an organization.
    async fn erase_organization(&self, org: &OrgId) -> Result<(), StoreError>;
}

/// Erases rows in the files of the embedded profile; by default in none.
#[derive(Default)]
pub struct EmbeddedEraser {
    files: Vec<SqliteDatabase>,
}

impl EmbeddedEraser {
    /// Creates an eraser of everything that these backends store.
    #[must_use]
    pub fn new(
        store: &EmbeddedStore,
        catalog: &EmbeddedCatalog,
        products: &EmbeddedProducts,
        accounts: &EmbeddedAccounts,
    ) -> Self {
        let databases = [
            &store.database,
            &catalog.database,
            &products.database,
            &accounts.database,
        ];
        Self {
            files: databases.map(SqliteDatabase::clone).into(),
        }
    }
}

#[async_trait]
impl OrganizationEraser for EmbeddedEraser {
    async fn erase_organization(&self, org: &OrgId) -> Result<(), StoreError> {
        for file in &self.files {
            file.erase_organization(org).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl OrganizationEraser for ScyllaLink {
    async fn erase_organization(&self, org: &OrgId) -> Result<(), StoreError> {
        self.erase_partitions(org).await
    }
}
