//! The search for products: the same in both profiles, in an index that each worker derives from what is kept.
//!
//! Reading order: [`search`] keeps indexes fresh and bounded; [`index`] holds the products of one agent; `query` turns
//! what somebody asked for into what the index is asked; `vocabulary`, `spelling` and `words` know what words mean the
//! same; `typed_price` finds the prices among them; `told` is what is kept of a product besides. `feeds` fetches products
//! from the web.

pub(crate) mod feeds;
mod index;
mod price_words;
mod query;
mod search;
mod spelling;
mod stop_words;
#[cfg(test)]
mod tests;
mod told;
mod typed_price;
mod vocabulary;
mod words;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use switchboard_backends::store::StoreError;
use switchboard_schemas::agent::Product;

pub use self::search::ProductSearch;
pub(crate) use self::told::{
    ATTRIBUTES_MAX as ATTRIBUTES_TOLD_MAX, DESCRIPTION_CHARS_MAX as DESCRIPTION_TOLD_CHARS_MAX,
};

/// Most products that one search gives.
pub const PRODUCTS_FOUND_MAX: usize = 50;

/// What is looked for. Any text is safe.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProductQuery {
    /// Words in any language; without any, all products that pass the filters are found. Price limits among them count
    /// where the query has none of its own.
    pub text: String,
    /// In the shop's own currency; products without a price are left out where there is one.
    pub prices: PriceLimits,
    /// Words that an attribute must have, by its name. An attribute that no product has is looked for in the text.
    pub attributes: BTreeMap<String, String>,
    /// Products wanted, at most [`PRODUCTS_FOUND_MAX`].
    pub limit: usize,
}

/// The lowest and the highest price that somebody accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PriceLimits {
    /// None: any.
    pub min: Option<f64>,
    /// None: any.
    pub max: Option<f64>,
}

impl PriceLimits {
    /// Any price up to this one.
    #[must_use]
    pub const fn up_to(max: f64) -> Self {
        Self {
            min: None,
            max: Some(max),
        }
    }
}

/// A product that was found: plain text on one line, besides what is shown of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundProduct {
    /// What visitors are shown.
    pub product: Product,
    /// The beginning of what the shop says of it, without links.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The first of its attributes, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
}

/// What was found, best first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProductsFound {
    /// The first of them.
    pub products: Vec<FoundProduct>,
    /// How many there are.
    pub total: u64,
    /// Price limits that were read in the text of the query.
    pub typed: PriceLimits,
}

/// Why nothing could be looked for.
#[derive(Debug, thiserror::Error)]
pub enum ProductSearchError {
    /// The products cannot be read, and none of them are in memory.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The index failed.
    #[error("product index: {0}")]
    Index(String),
}

impl From<rusqlite::Error> for ProductSearchError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Index(error.to_string())
    }
}
