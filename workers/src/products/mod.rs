//! Product search: full-text indexes in memory that each worker builds from the stored products.
//!
//! Reading order: [`search`] keeps indexes fresh and bounded; [`index`] holds the products of one
//! agent; `query` translates a visitor's query for the index; `vocabulary` finds word forms,
//! compounds and misspellings; `typed_price` reads price limits in a query; `details` selects the
//! stored fields of a product. `feeds` fetches products from the web.

mod details;
pub(crate) mod feeds;
mod index;
mod price_words;
mod query;
mod search;
#[cfg(test)]
mod tests;
mod typed_price;
mod vocabulary;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use switchboard_backends::StoreError;
use switchboard_schemas::agent::Product;

pub(crate) use self::details::{
    ATTRIBUTES_MAX as ATTRIBUTES_TOLD_MAX, DESCRIPTION_CHARS_MAX as DESCRIPTION_TOLD_CHARS_MAX,
};
pub use self::search::ProductSearch;

/// Most products that one search returns.
pub const PRODUCTS_FOUND_MAX: usize = 50;

/// A product query; any text is safe.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProductQuery {
    /// Words in any language; without any, all products that pass the filters are found. Price
    /// limits among the words apply if `prices` has none.
    pub text: String,
    /// Price limits in the shop's own currency; products without a price never match a limit.
    pub prices: PriceLimits,
    /// Words that an attribute must have, by attribute name. The words of an attribute that no
    /// product has are searched in all texts.
    pub attributes: BTreeMap<String, String>,
    /// Most products to return, at most [`PRODUCTS_FOUND_MAX`].
    pub limit: usize,
}

/// The lowest and the highest accepted price.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PriceLimits {
    /// Lowest price; none for no limit.
    pub min: Option<f64>,
    /// Highest price; none for no limit.
    pub max: Option<f64>,
}

impl PriceLimits {
    /// Returns the limits of any price up to `max`.
    #[must_use]
    pub const fn up_to(max: f64) -> Self {
        Self {
            min: None,
            max: Some(max),
        }
    }
}

/// A product in a search result, with details for the model as plain text on one line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundProduct {
    /// The product as visitors see it.
    pub product: Product,
    /// The beginning of the shop's description, without links.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The first of its attributes in the order of their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
}

/// The result of a product search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProductsFound {
    /// The best products, best first.
    pub products: Vec<FoundProduct>,
    /// Number of all products that match.
    pub total: u64,
    /// Price limits that were read from the text of the query.
    pub typed: PriceLimits,
}

/// An error of the product search.
#[derive(Debug, thiserror::Error)]
pub enum ProductSearchError {
    /// The products cannot be read, and no index is in memory.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The index failed with this message.
    #[error("product index: {0}")]
    Index(String),
}

impl From<rusqlite::Error> for ProductSearchError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Index(error.to_string())
    }
}
