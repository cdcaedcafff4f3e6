//! Products that agents received by uploads and feeds. They are stored here and searched elsewhere,
//! in an index that each worker derives, so that both profiles find the same products and a cluster
//! needs no search engine.
//!
//! Three traits cover them, and one type per backend implements them all:
//! [`embedded::EmbeddedProducts`] in a local file, [`scylla::ScyllaProducts`] in a cluster.
//! [`ProductStore`] stands for all of them where they are opened and handed around.
//!
//! - [`ProductReader`]: the status and the chunks of the current version.
//! - [`ProductVersionStore`]: versions, from their first chunk to their removal.
//! - [`FeedRefreshStore`]: requests to fetch a feed, and the outcome of the last fetch.
//!
//! # Contract
//! - **Visibility**: a read that begins after a publish, a removal or a refresh record has returned
//!   sees it, on any process.
//! - **Tenancy**: all data belongs to an organization and its agent; another organization finds
//!   nothing.
//! - **Durability**: as in [`crate::store`].

pub mod config;
#[cfg(test)]
mod conformance;
pub mod embedded;
pub mod feed;
mod feed_refresh;
pub mod reader;
pub mod replacement;
pub mod scylla;
mod version;
mod version_store;
pub mod writer;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use switchboard_schemas::time::Timestamp;
use utoipa::ToSchema;

pub use self::{
    feed_refresh::{FeedRefresh, FeedRefreshStore},
    reader::ProductReader,
    version::ProductsVersion,
    version_store::ProductVersionStore,
};

/// Time after which an unfinished version counts as abandoned.
pub const UPLOAD_TIME_MAX: Duration = Duration::from_secs(15 * 60);

/// Maximum number of rows that are reported with their reason.
const ROWS_REPORTED: usize = 20;

/// All parts of the product store.
pub trait ProductStore: ProductReader + ProductVersionStore + FeedRefreshStore {}

impl<T> ProductStore for T where T: ProductReader + ProductVersionStore + FeedRefreshStore {}

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
    pub rejected: ReportedRows,
    /// Rows of the source of which a value was left out; absent in versions of older processes.
    #[serde(default)]
    pub warnings: ReportedRows,
    /// Time at which the last chunk was written.
    pub stored_at: Timestamp,
    /// The version before, which can be restored; it has no previous version itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Box<PublishedProducts>>,
}

impl PublishedProducts {
    /// Returns these products as the successor of `replaced`.
    fn succeeding(&self, replaced: Option<&Self>) -> Self {
        let replaced = replaced.filter(|replaced| replaced.version != self.version);
        let previous = replaced.map(|replaced| {
            Box::new(Self {
                previous: None,
                ..replaced.clone()
            })
        });
        Self {
            previous,
            ..self.clone()
        }
    }

    /// Returns `true` if the chunks of a version are still needed.
    fn keeps(&self, version: &ProductsVersion) -> bool {
        let previous = self.previous.as_ref();
        self.version == *version || previous.is_some_and(|previous| previous.version == *version)
    }
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

/// Rows of a source with something to report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReportedRows {
    /// Number of rows.
    pub count: u64,
    /// The first 20 of them.
    pub first: Vec<ReportedRow>,
}

/// A row with something to report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReportedRow {
    /// Number of the row. In a table the header is row 1, in JSON and XML the first product is.
    pub row: u64,
    /// Reason of the report.
    pub reason: String,
}

impl ReportedRows {
    /// Counts a row and keeps the first ones.
    pub fn add(&mut self, row: u64, reason: String) {
        self.count += 1;
        if self.first.len() < ROWS_REPORTED {
            self.first.push(ReportedRow { row, reason });
        }
    }
}
