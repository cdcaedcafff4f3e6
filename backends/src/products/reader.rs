//! Reads of products: the status and the chunks of a published version.

use async_trait::async_trait;
use switchboard_schemas::{
    catalog_product::CatalogProduct,
    ids::{AgentId, OrgId},
};

use super::{ProductsStatus, ProductsVersion, PublishedProducts};
use crate::error::StoreError;

/// Reads of products.
///
/// # Contract
/// A reader gets the current version from the status and reads its chunks. A missing chunk means
/// that a later version is current, so that nobody combines parts of two versions.
#[async_trait]
pub trait ProductReader: Send + Sync {
    /// Returns the status of an agent's products.
    async fn read_status(&self, org: &OrgId, agent: &AgentId)
    -> Result<ProductsStatus, StoreError>;

    /// Returns a chunk, or `None` if its version is gone.
    async fn read_chunk(
        &self,
        org: &OrgId,
        agent: &AgentId,
        version: &ProductsVersion,
        number: u32,
    ) -> Result<Option<Vec<u8>>, StoreError>;

    /// Fails if the store does not respond.
    async fn check(&self) -> Result<(), StoreError>;
}

/// Returns the chunks of a version in order, or `None` if it was replaced meanwhile.
///
/// # Errors
/// Those of the store.
pub async fn read_chunks(
    products: &dyn ProductReader,
    (org, agent): (&OrgId, &AgentId),
    kept: &PublishedProducts,
) -> Result<Option<Vec<Vec<u8>>>, StoreError> {
    let mut chunks = Vec::new();
    for number in 0..kept.chunks {
        match products
            .read_chunk(org, agent, &kept.version, number)
            .await?
        {
            Some(body) => chunks.push(body),
            None => return Ok(None),
        }
    }
    Ok(Some(chunks))
}

/// Parses the products of a chunk in order.
///
/// # Errors
/// [`StoreError::Malformed`] if the chunk is damaged.
pub fn products_of(chunk: &[u8]) -> impl Iterator<Item = Result<CatalogProduct, StoreError>> {
    let lines = chunk
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    lines.map(|line| {
        serde_json::from_slice(line).map_err(|error| StoreError::Malformed(error.to_string()))
    })
}
