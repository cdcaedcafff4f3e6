//! Products as the product catalog stores them: the public fields and those used by the search.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{agent::Product, price};

/// A product of a feed or of an agent's configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CatalogProduct {
    /// Public fields of the product.
    #[serde(flatten)]
    pub product: Product,
    /// Description by the shop, as text without markup.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Price as a number in the currency of the shop; absent if the text contains none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<f64>,
    /// Further fields by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
}

impl From<Product> for CatalogProduct {
    fn from(product: Product) -> Self {
        Self {
            amount: price::parse_amount(&product.price),
            product,
            description: String::new(),
            attributes: BTreeMap::new(),
        }
    }
}
