//! A product as a catalogue keeps it: what is shown of it, and what it is found by.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{agent::Product, price};

/// A product of a feed, or of an agent's document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CatalogProduct {
    /// What is shown.
    #[serde(flatten)]
    pub product: Product,
    /// What the shop says of it, as text without markup.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The price as a number in the shop's own currency; none when its text tells none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<f64>,
    /// Everything else, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
}

impl From<Product> for CatalogProduct {
    fn from(product: Product) -> Self {
        Self {
            amount: price::amount(&product.price),
            product,
            description: String::new(),
            attributes: BTreeMap::new(),
        }
    }
}
