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
use switchboard_schemas::{agent::Product, time::Timestamp};
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
/// Maximum number of previous versions that can be restored.
pub const PREVIOUS_VERSIONS_MAX: usize = 5;

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
    /// Rows of products that the shop does not show; this and the following fields are absent in
    /// versions of older processes.
    #[serde(default)]
    pub left_out: ReportedRows,
    /// Rows of the source of which a value was left out.
    #[serde(default)]
    pub warnings: ReportedRows,
    /// Columns of the source that became attributes.
    #[serde(default)]
    pub attribute_columns: Vec<AttributeColumn>,
    /// Number of products that have a value.
    #[serde(default)]
    pub filled: FilledValues,
    /// Time at which the last chunk was written.
    pub stored_at: Timestamp,
    /// The version before, which can be restored, with the ones before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Box<PublishedProducts>>,
}

impl PublishedProducts {
    /// Returns these products as the successor of `replaced`.
    fn succeeding(&self, replaced: Option<&Self>) -> Self {
        let kept = replaced
            .into_iter()
            .flat_map(Self::versions)
            .filter(|kept| kept.version != self.version)
            .take(PREVIOUS_VERSIONS_MAX);
        let kept: Vec<_> = kept.cloned().collect();
        let previous = kept.into_iter().rfold(None, |previous, kept| {
            Some(Box::new(Self { previous, ..kept }))
        });
        Self {
            previous,
            ..self.clone()
        }
    }

    /// Returns this version and the previous ones, newest first.
    pub fn versions(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |kept| kept.previous.as_deref())
    }

    /// Returns the previous version with a name, or the last one without a name.
    fn previous_version(&self, version: Option<&ProductsVersion>) -> Option<&Self> {
        self.versions()
            .skip(1)
            .find(|kept| version.is_none_or(|version| kept.version == *version))
    }

    /// Returns `true` if the chunks of a version are still needed.
    fn keeps(&self, version: &ProductsVersion) -> bool {
        self.versions().any(|kept| kept.version == *version)
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

/// Number of products that have a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilledValues {
    /// Products with a price.
    pub prices: u64,
    /// Products with a picture.
    pub images: u64,
    /// Products with a link.
    pub links: u64,
}

impl FilledValues {
    fn add(&mut self, product: &Product) {
        self.prices += u64::from(!product.price.is_empty());
        self.images += u64::from(!product.image.is_empty());
        self.links += u64::from(!product.url.is_empty());
    }
}

/// A column of a source that became an attribute of the products.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttributeColumn {
    /// Name of the column and the attribute.
    pub name: String,
    /// Name that the column was probably meant to have; `null` if it is no known one.
    #[schema(required)]
    pub meant: Option<String>,
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

/// Returns a number with a noun, such as `1 row` or `2 rows`.
fn counted(number: u64, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{ending}")
}
