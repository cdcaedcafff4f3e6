//! The search for products: the same in both profiles, in an index that each worker derives from what is kept.
//!
//! Reading order: [`search`] keeps indexes fresh and bounded; [`index`] holds the products of one agent; `query` turns
//! what somebody asked for into what the index is asked; `vocabulary`, `spelling` and `words` know what words mean the
//! same. `feeds` fetches products from the web.

pub(crate) mod feeds;
mod index;
mod query;
mod search;
mod spelling;
mod stop_words;
#[cfg(test)]
mod tests;
mod vocabulary;
mod words;

use std::collections::BTreeMap;

use switchboard_backends::store::StoreError;
use switchboard_schemas::agent::Product;

pub use self::search::ProductSearch;

/// Most products that one search gives.
pub const PRODUCTS_FOUND_MAX: usize = 50;

/// What is looked for. Any text is safe.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProductQuery {
    /// Words in any language; without any, all products that pass the filters are found.
    pub text: String,
    /// Lowest price, in the shop's own currency; products without a price are left out then.
    pub price_min: Option<f64>,
    /// Highest price.
    pub price_max: Option<f64>,
    /// Words that an attribute must have, by its name. An attribute that no product has is looked for in the text.
    pub attributes: BTreeMap<String, String>,
    /// Products wanted, at most [`PRODUCTS_FOUND_MAX`].
    pub limit: usize,
}

/// What was found, best first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProductsFound {
    /// The first of them.
    pub products: Vec<Product>,
    /// How many there are.
    pub total: u64,
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
