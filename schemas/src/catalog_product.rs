//! Products as the product catalog stores them: the public fields and those used by the search.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{agent::Product, price, time::Timestamp};

/// Name of the attribute with the regular price of a product whose price is reduced.
pub const REGULAR_PRICE: &str = "regular_price";

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
    /// A reduced price that is valid for some time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sale: Option<TimedSale>,
}

/// A reduced price with the time at which it is valid; an absent bound is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimedSale {
    /// Displayed price while the sale is on.
    pub price: String,
    /// Time at which the sale begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_at: Option<Timestamp>,
    /// Time at which the sale is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<Timestamp>,
}

impl TimedSale {
    /// Returns `true` if the sale is on.
    pub fn is_on(&self, now: Timestamp) -> bool {
        self.starts_at.is_none_or(|start| start <= now) && self.ends_at.is_none_or(|end| now < end)
    }
}

impl CatalogProduct {
    /// Returns the product with its reduced price as the price, or `None` without a timed sale.
    #[must_use]
    pub fn on_sale(&self) -> Option<Self> {
        let sale = self.sale.clone()?;
        let mut product = self.clone();
        let regular = std::mem::replace(&mut product.product.price, sale.price);
        product.amount = price::parse_amount(&product.product.price);
        if !regular.is_empty() {
            product.attributes.insert(REGULAR_PRICE.to_owned(), regular);
        }
        Some(product)
    }

    /// Returns the product with the price that is valid at `now`.
    #[must_use]
    pub fn priced_at(self, now: Timestamp) -> Self {
        let is_on = self.sale.as_ref().is_some_and(|sale| sale.is_on(now));
        let reduced = if is_on { self.on_sale() } else { None };
        reduced.unwrap_or(self)
    }
}

impl From<Product> for CatalogProduct {
    fn from(product: Product) -> Self {
        Self {
            amount: price::parse_amount(&product.price),
            product,
            description: String::new(),
            attributes: BTreeMap::new(),
            sale: None,
        }
    }
}
