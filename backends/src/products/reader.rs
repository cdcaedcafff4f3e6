//! Reads the chunks of a published catalog version and parses their products.

use switchboard_schemas::{
    catalog_product::CatalogProduct,
    ids::{AgentId, OrgId},
};

use super::{ProductStore, PublishedProducts};
use crate::error::StoreError;

/// Returns the chunks of a version in order, or `None` if it was replaced meanwhile.
///
/// # Errors
/// Those of the store.
pub async fn read_chunks(
    products: &dyn ProductStore,
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
