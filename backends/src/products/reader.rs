//! Reads a version whole, chunk by chunk.

use switchboard_schemas::{
    catalog_product::CatalogProduct,
    ids::{AgentId, OrgId},
};

use super::{Kept, Products};
use crate::store::StoreError;

/// Gives each product of a version to `take`, in order; `false` when the version went away meanwhile.
///
/// # Errors
/// Those of the store; [`StoreError::Malformed`] when a chunk is damaged.
pub async fn read_all(
    products: &dyn Products,
    (org, agent): (&OrgId, &AgentId),
    kept: &Kept,
    mut take: impl FnMut(CatalogProduct) + Send,
) -> Result<bool, StoreError> {
    for number in 0..kept.chunks {
        let Some(body) = products.chunk(org, agent, &kept.version, number).await? else { return Ok(false) };
        for line in body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            take(serde_json::from_slice(line).map_err(|error| StoreError::Malformed(error.to_string()))?);
        }
    }
    Ok(true)
}
