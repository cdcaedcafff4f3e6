//! Products that agents received by uploads and feeds. They are stored here and searched elsewhere,
//! in an index that each worker derives, so that both profiles find the same products and a cluster
//! needs no search engine.
//!
//! # Contract
//! - **Replacement**: products are stored in versions. A version is written chunk by chunk,
//!   invisible to readers, and becomes current as a whole with [`ProductStore::publish`]. A reader
//!   gets the version from the status and reads its chunks; a missing chunk means that a later
//!   version is current, so that nobody combines parts of two versions.
//! - **Visibility**: a read that begins after a publish, a removal or a refresh record has returned
//!   sees it, on any process.
//! - **Last write wins**: of two publishes, or a publish and a removal, the later one wins, even if
//!   clocks disagree.
//! - **Cleanup**: chunks of a version that was never published, or is no longer current, are
//!   deleted by a later publish or removal, except for those that may still be written
//!   ([`UPLOAD_TIME_MAX`]).
//! - **Tenancy**: all data belongs to an organization and its agent; another organization finds
//!   nothing.
//! - **Durability**: as in [`crate::store`].

pub mod config;
#[cfg(test)]
mod conformance;
pub mod embedded;
pub mod feed;
pub mod reader;
pub mod scylla;
mod version;
pub mod writer;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use switchboard_schemas::{
    ids::{AgentId, OrgId},
    time::Timestamp,
};
use utoipa::ToSchema;

pub use self::version::ProductsVersion;
use crate::error::StoreError;

/// Time after which an unfinished version counts as abandoned.
pub const UPLOAD_TIME_MAX: Duration = Duration::from_secs(15 * 60);

/// The store of products.
#[async_trait]
pub trait ProductStore: Send + Sync {
    /// Returns the status of an agent's products.
    async fn read_status(&self, org: &OrgId, agent: &AgentId)
    -> Result<ProductsStatus, StoreError>;

    /// Registers a new version, so that it can be deleted if its writer dies.
    async fn begin_version(
        &self,
        org: &OrgId,
        agent: &AgentId,
        version: &ProductsVersion,
    ) -> Result<(), StoreError>;

    /// Stores a chunk of a registered version.
    async fn put_chunk(
        &self,
        org: &OrgId,
        agent: &AgentId,
        version: &ProductsVersion,
        number: u32,
        body: Bytes,
    ) -> Result<(), StoreError>;

    /// Makes a version the current one and deletes replaced versions.
    async fn publish_version(
        &self,
        org: &OrgId,
        agent: &AgentId,
        kept: &PublishedProducts,
    ) -> Result<(), StoreError>;

    /// Returns a chunk, or `None` if its version is gone.
    async fn read_chunk(
        &self,
        org: &OrgId,
        agent: &AgentId,
        version: &ProductsVersion,
        number: u32,
    ) -> Result<Option<Vec<u8>>, StoreError>;

    /// Deletes the chunks of a version that will not be published.
    async fn discard_version(
        &self,
        org: &OrgId,
        agent: &AgentId,
        version: &ProductsVersion,
    ) -> Result<(), StoreError>;

    /// Deletes all products of an agent.
    async fn remove_products(&self, org: &OrgId, agent: &AgentId) -> Result<(), StoreError>;

    /// Records the outcome of the last fetch of a feed.
    async fn record_refresh(
        &self,
        org: &OrgId,
        agent: &AgentId,
        refresh: &FeedRefresh,
    ) -> Result<(), StoreError>;

    /// Requests that a feed is fetched soon.
    async fn request_refresh(
        &self,
        org: &OrgId,
        agent: &AgentId,
        at: Timestamp,
    ) -> Result<(), StoreError>;

    /// Waits until a fetch was requested in this process since the last return. Requests in other
    /// processes are only visible in the status.
    async fn refresh_requested(&self) {
        std::future::pending().await
    }

    /// Fails if the store does not respond.
    async fn check(&self) -> Result<(), StoreError>;
}

/// The status of an agent's products.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProductsStatus {
    /// Current version of the products.
    pub kept: Option<PublishedProducts>,
    /// Outcome of the last fetch of a feed.
    pub refresh: Option<FeedRefresh>,
    /// Time at which a fetch was last requested.
    pub asked_at: Option<Timestamp>,
}

/// A version that is current or is about to be published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PublishedProducts {
    /// Name of the version.
    pub version: ProductsVersion,
    /// Source of the products.
    pub source: ProductSource,
    /// Number of products.
    pub count: u64,
    /// Number of chunks, which are numbered from 0.
    pub chunks: u32,
    /// Size of all chunks, in bytes.
    pub bytes: u64,
    /// Rows of the source that are not products.
    pub rejected: RejectedRows,
    /// Time at which the last chunk was written.
    pub stored_at: Timestamp,
}

/// The source of products.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ProductSource {
    /// An administrator uploaded them.
    Upload,
    /// They were fetched from a feed.
    Feed {
        /// URL of the feed.
        url: String,
    },
}

/// The rows of a source that are not products.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RejectedRows {
    /// Number of rejected rows.
    pub count: u64,
    /// The first rejected rows.
    pub first: Vec<RejectedRow>,
}

/// A row that is not a product.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RejectedRow {
    /// Number of the row. In CSV the header is row 1, in JSON the first object is.
    pub row: u64,
    /// Reason of the rejection.
    pub reason: String,
}

/// The outcome of the last fetch of a feed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FeedRefresh {
    /// Fetched URL.
    pub url: String,
    /// Time at which the fetch began.
    pub attempted_at: Timestamp,
    /// Time at which the fetch ended; absent in records of older versions.
    #[serde(default)]
    pub ended_at: Option<Timestamp>,
    /// Time at which this URL was last fetched successfully, with or without changes.
    pub succeeded_at: Option<Timestamp>,
    /// Reason of the failure; absent if the fetch succeeded.
    pub error: Option<String>,
    /// `ETag` of the stored products, sent to ask for changes.
    pub etag: Option<String>,
    /// `Last-Modified` of the stored products, sent to ask for changes.
    pub last_modified: Option<String>,
}
