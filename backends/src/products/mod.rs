//! The products that agents were given by uploads and feeds. Kept here; searched elsewhere, in an index that each worker
//! derives, so that both profiles find the same and a cluster needs no search engine.
//!
//! # Contract
//! - **Replacement**: products come in versions. A version is written chunk by chunk, seen by nobody, and becomes current
//!   as a whole with [`ProductStore::publish`]. A reader takes the version from the status and reads its chunks; a chunk that
//!   is gone means that a later version is current, so that nobody joins halves of two versions.
//! - **Visibility**: a read that begins after a publish, a removal or a note returned sees it, on any process.
//! - **Last wins**: of two publishes, or a publish and a removal, the later one stands, also when clocks disagree.
//! - **Leftovers**: chunks of a version that was never published, or is no longer current, go with a later publish or
//!   removal, but for those that someone may still be writing ([`UPLOAD_TIME_MAX`]).
//! - **Tenancy**: everything lies under an organization and its agent; another organization finds nothing.
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

/// Longest time for which a version may be written before it counts as left behind.
pub const UPLOAD_TIME_MAX: Duration = Duration::from_secs(15 * 60);

/// Where products are kept.
#[async_trait]
pub trait ProductStore: Send + Sync {
    /// What is known of an agent's products.
    async fn status(&self, org: &OrgId, agent: &AgentId) -> Result<ProductsStatus, StoreError>;

    /// Notes that a version is going to be written, so that it can be found if its writer dies.
    async fn begin(
        &self,
        org: &OrgId,
        agent: &AgentId,
        version: &ProductsVersion,
    ) -> Result<(), StoreError>;

    /// Keeps a chunk of a version that was begun.
    async fn put_chunk(
        &self,
        org: &OrgId,
        agent: &AgentId,
        version: &ProductsVersion,
        number: u32,
        body: Bytes,
    ) -> Result<(), StoreError>;

    /// Makes a version the current one and removes those that it leaves behind.
    async fn publish(
        &self,
        org: &OrgId,
        agent: &AgentId,
        kept: &PublishedProducts,
    ) -> Result<(), StoreError>;

    /// A chunk; none once its version is gone.
    async fn chunk(
        &self,
        org: &OrgId,
        agent: &AgentId,
        version: &ProductsVersion,
        number: u32,
    ) -> Result<Option<Vec<u8>>, StoreError>;

    /// Removes what was written of a version that is not to be published.
    async fn discard(
        &self,
        org: &OrgId,
        agent: &AgentId,
        version: &ProductsVersion,
    ) -> Result<(), StoreError>;

    /// Removes everything of an agent.
    async fn remove(&self, org: &OrgId, agent: &AgentId) -> Result<(), StoreError>;

    /// Notes how the last fetch of a feed ended.
    async fn note_refresh(
        &self,
        org: &OrgId,
        agent: &AgentId,
        refresh: &FeedRefresh,
    ) -> Result<(), StoreError>;

    /// Asks that a feed be fetched soon.
    async fn ask_refresh(
        &self,
        org: &OrgId,
        agent: &AgentId,
        at: Timestamp,
    ) -> Result<(), StoreError>;

    /// Comes back once a fetch was asked for in this process since it last came back. Whoever asks elsewhere is only seen in
    /// the status.
    async fn asked(&self) {
        std::future::pending().await
    }

    /// Whether the products can be reached.
    async fn check(&self) -> Result<(), StoreError>;
}

/// What is known of an agent's products.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProductsStatus {
    /// The current version.
    pub kept: Option<PublishedProducts>,
    /// The last fetch of a feed.
    pub refresh: Option<FeedRefresh>,
    /// When a fetch was last asked for.
    pub asked_at: Option<Timestamp>,
}

/// A version that is, or becomes, the current one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PublishedProducts {
    /// Which.
    pub version: ProductsVersion,
    /// Where its products are from.
    pub source: ProductSource,
    /// Products.
    pub count: u64,
    /// Chunks, numbered from 0.
    pub chunks: u32,
    /// Bytes of all chunks.
    pub bytes: u64,
    /// Rows of the source that are no products.
    pub rejected: FeedRejections,
    /// When its last chunk was written.
    pub stored_at: Timestamp,
}

/// Where products are from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ProductSource {
    /// An administrator sent them.
    Upload,
    /// They were fetched.
    Feed {
        /// From there.
        url: String,
    },
}

/// Rows that are no products.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FeedRejections {
    /// How many.
    pub count: u64,
    /// The first of them.
    pub first: Vec<RejectedRow>,
}

/// A row that is no product.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RejectedRow {
    /// Its place: in CSV the head is row 1, in JSON the first object is.
    pub row: u64,
    /// Why.
    pub reason: String,
}

/// How the last fetch of a feed ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FeedRefresh {
    /// Address that was asked.
    pub url: String,
    /// When it began.
    pub attempted_at: Timestamp,
    /// When it ended; not told in notes of older versions.
    #[serde(default)]
    pub ended_at: Option<Timestamp>,
    /// When a fetch of this address last succeeded, whether or not there was anything new.
    pub succeeded_at: Option<Timestamp>,
    /// Why it failed; none when it succeeded.
    pub error: Option<String>,
    /// What the server said with the products that are kept, to ask whether they changed.
    pub etag: Option<String>,
    /// Likewise.
    pub last_modified: Option<String>,
}
