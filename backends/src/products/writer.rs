//! Writes a version product by product, with one chunk in memory.

use std::sync::Arc;

use bytes::Bytes;
use switchboard_schemas::{
    catalog_product::CatalogProduct,
    ids::{AgentId, OrgId},
    time::Timestamp,
};

use super::{
    ProductSource, ProductVersionStore, ProductsVersion, PublishedProducts, feed::FeedReport,
};
use crate::error::StoreError;

/// Size from which a chunk is written, in bytes; its last product may exceed it.
pub(super) const CHUNK_BYTES: usize = 256 << 10;

/// A version that is being written.
pub struct ProductsWriter {
    products: Arc<dyn ProductVersionStore>,
    org: OrgId,
    agent: AgentId,
    version: ProductsVersion,
    buffer: Vec<u8>,
    chunks: u32,
    bytes: u64,
    count: u64,
}

impl ProductsWriter {
    /// Registers a new version.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn begin(
        products: Arc<dyn ProductVersionStore>,
        org: OrgId,
        agent: AgentId,
    ) -> Result<Self, StoreError> {
        let version = ProductsVersion::begin();
        products.begin_version(&org, &agent, &version).await?;
        Ok(Self {
            products,
            org,
            agent,
            version,
            buffer: Vec::new(),
            chunks: 0,
            bytes: 0,
            count: 0,
        })
    }

    /// Returns the number of products written so far.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Adds a product.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn push(&mut self, product: &CatalogProduct) -> Result<(), StoreError> {
        let line = serde_json::to_vec(product)
            .map_err(|error| StoreError::Malformed(error.to_string()))?;
        self.buffer.extend_from_slice(&line);
        self.buffer.push(b'\n');
        self.count += 1;
        if self.buffer.len() >= CHUNK_BYTES {
            self.flush().await
        } else {
            Ok(())
        }
    }

    /// Makes the version the current one.
    ///
    /// # Errors
    /// Those of the store; nothing has changed then.
    pub async fn publish(
        mut self,
        source: ProductSource,
        report: FeedReport,
    ) -> Result<PublishedProducts, StoreError> {
        if !self.buffer.is_empty() {
            self.flush().await?;
        }
        let kept = PublishedProducts {
            version: self.version,
            source,
            count: self.count,
            chunks: self.chunks,
            bytes: self.bytes,
            rejected: report.rejected,
            left_out: report.left_out,
            warnings: report.warnings,
            attribute_columns: report.attribute_columns,
            filled: report.filled,
            stored_at: Timestamp::now(),
            previous: None,
        };
        self.products
            .publish_version(&self.org, &self.agent, &kept)
            .await
    }

    /// Abandons the version. If this fails, a later publish deletes its chunks.
    pub async fn discard(self) {
        if let Err(error) = self
            .products
            .discard_version(&self.org, &self.agent, &self.version)
            .await
        {
            tracing::warn!(%error, "discarded products not deleted");
        }
    }

    async fn flush(&mut self) -> Result<(), StoreError> {
        let body = Bytes::from(std::mem::take(&mut self.buffer));
        self.bytes += body.len() as u64;
        self.products
            .put_chunk(&self.org, &self.agent, &self.version, self.chunks, body)
            .await?;
        self.chunks += 1;
        Ok(())
    }
}
