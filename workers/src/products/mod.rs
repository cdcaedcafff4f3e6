//! The search in an agent's catalogue.

mod inline;

use std::collections::BTreeMap;

use switchboard_schemas::agent::{Agent, Product};

/// What is looked for; no words: everything within the bounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ProductQuery {
    /// Words.
    pub(crate) text: String,
    /// Lowest price.
    pub(crate) price_min: Option<f64>,
    /// Highest price.
    pub(crate) price_max: Option<f64>,
    /// Attributes that a product must have, by name.
    pub(crate) attributes: BTreeMap<String, String>,
    /// Products that are wanted at most.
    pub(crate) limit: usize,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ProductsFound {
    /// The best of them, best first.
    pub(crate) products: Vec<Product>,
    /// How many match.
    pub(crate) total: u64,
}

/// Why nothing could be found out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProductSearchError {
    /// The catalogue cannot be read now.
    #[error("product catalogue unavailable")]
    #[cfg_attr(not(test), expect(dead_code, reason = "the products of an agent are in memory already"))]
    Unavailable,
}

/// Searches catalogues.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProductSearch {
    #[cfg(test)]
    pub(crate) fails: bool,
}

impl ProductSearch {
    /// Searches the agent's own catalogue.
    #[expect(clippy::unused_async, reason = "a catalogue that does not lie in the agent is read from a store")]
    pub(crate) async fn search(
        &self,
        agent: &Agent,
        query: &ProductQuery,
    ) -> Result<ProductsFound, ProductSearchError> {
        #[cfg(test)]
        if self.fails {
            return Err(ProductSearchError::Unavailable);
        }
        Ok(inline::search(&agent.settings.ecommerce.products, query))
    }
}
