//! The named values of a row and their conversion to a product.

use std::collections::BTreeMap;

use switchboard_schemas::{
    agent::Product,
    catalog_product::{CatalogProduct, TimedSale},
    price,
};

use super::{
    columns::{ExportDialect, FeedColumn},
    links::{page_address, picture_address},
    markup::{plain_text, truncate_chars},
    sale_dates::{parse_bounds, parse_interval},
};

const TITLE_CHARS_MAX: usize = 300;
const PRICE_CHARS_MAX: usize = 60;
const DESCRIPTION_CHARS_MAX: usize = 2000;
const ATTRIBUTES_MAX: usize = 40;
/// Titles of the row below the products of a price list.
const SUMS: [&str; 7] = [
    "total",
    "grand total",
    "subtotal",
    "summe",
    "gesamt",
    "gesamtsumme",
    "zwischensumme",
];
const ATTRIBUTE_CHARS_MAX: usize = 300;
/// Name of the regular price of a product whose displayed price is lower.
pub(super) const REGULAR_PRICE: &str = switchboard_schemas::catalog_product::REGULAR_PRICE;
/// Attributes with numbers that a spreadsheet may have rounded.
const BARCODES: [&str; 7] = [
    "barcode",
    "gtin",
    "ean",
    "upc",
    "isbn",
    "gtin_upc_ean_or_isbn",
    "global_unique_id",
];

/// A product and remarks about values that were left out.
pub(super) struct ReadProduct {
    pub(super) product: CatalogProduct,
    pub(super) warnings: Vec<String>,
}

/// The values of a row by column.
#[derive(Clone, Default)]
pub(super) struct RowFields {
    pub(super) dialect: ExportDialect,
    /// Values of known columns, blank ones included.
    known: BTreeMap<FeedColumn, String>,
    /// Other values that are not blank, in the order of the file.
    pub(super) attributes: Vec<(String, String)>,
}

impl RowFields {
    pub(super) fn new(dialect: ExportDialect) -> Self {
        Self {
            dialect,
            ..Self::default()
        }
    }

    /// Adds a value. The first value of a column that is not blank wins.
    pub(super) fn add(&mut self, column: &FeedColumn, text: &str) {
        let text = text.trim();
        match column {
            FeedColumn::Ignored | FeedColumn::Variants => return,
            FeedColumn::Attribute(name) => return self.add_attribute(name, text),
            FeedColumn::Sku => self.add_attribute("sku", text),
            FeedColumn::Availability => self.add_attribute("availability", text),
            _ => {}
        }
        let text = if self.dialect == ExportDialect::WooCommerce {
            text.replace("\\n", "\n")
        } else {
            text.to_owned()
        };
        let known = self.known.entry(column.clone()).or_default();
        if known.is_empty() {
            *known = text;
        }
    }

    pub(super) fn add_attribute(&mut self, name: &str, text: &str) {
        if !name.is_empty() && !text.is_empty() {
            self.attributes.push((name.to_owned(), text.to_owned()));
        }
    }

    /// Returns the value of a column, blank without the column.
    pub(super) fn text(&self, column: &FeedColumn) -> &str {
        self.known.get(column).map_or("", String::as_str)
    }

    pub(super) fn has(&self, column: &FeedColumn) -> bool {
        self.known.contains_key(column)
    }

    pub(super) fn known(&self) -> impl Iterator<Item = (&FeedColumn, &str)> {
        self.known
            .iter()
            .map(|(column, text)| (column, text.as_str()))
    }

    /// Replaces the value of a column.
    pub(super) fn set(&mut self, column: FeedColumn, text: String) {
        self.known.insert(column, text);
    }

    /// Converts the values to a product.
    ///
    /// # Errors
    /// The reason why they are not one.
    pub(super) fn into_product(self) -> Result<ReadProduct, String> {
        let title = truncate_chars(&plain_text(self.text(&FeedColumn::Title)), TITLE_CHARS_MAX);
        if title.is_empty() {
            return Err("it has no title".into());
        }
        let is_bare = [FeedColumn::Url, FeedColumn::Image]
            .iter()
            .all(|column| self.text(column).is_empty());
        if is_bare && SUMS.contains(&title.trim_end_matches(':').to_lowercase().as_str()) {
            return Err("it is a sum of other rows".into());
        }
        let mut warnings = Vec::new();
        let mut address = |what: &str, read: Result<String, &str>| {
            read.unwrap_or_else(|reason| {
                warnings.push(format!("its {what} {reason}"));
                String::new()
            })
        };
        let url = address("link", page_address(self.text(&FeedColumn::Url)));
        let image = address("picture", picture_address(self.picture()));
        let mut attributes = self.read_attributes(&mut warnings);
        let prices = self.read_prices(&mut warnings);
        if let Some(regular) = prices.regular {
            attributes.insert(REGULAR_PRICE.to_owned(), regular);
        }
        let product = Product {
            title,
            price: prices.price,
            image,
            url,
        };
        let description = plain_text(self.text(&FeedColumn::Description));
        let product = CatalogProduct {
            description: truncate_chars(&description, DESCRIPTION_CHARS_MAX),
            attributes,
            sale: prices.sale,
            ..product.into()
        };
        Ok(ReadProduct { product, warnings })
    }

    fn picture(&self) -> &str {
        match self.text(&FeedColumn::Image) {
            "" => self.text(&FeedColumn::VariantImage),
            image => image,
        }
    }

    fn read_attributes(&self, warnings: &mut Vec<String>) -> BTreeMap<String, String> {
        let mut attributes = BTreeMap::new();
        for (name, text) in &self.attributes {
            let text = plain_text(text);
            let text = if BARCODES.contains(&name.as_str()) {
                let Some(barcode) = read_barcode(&text) else {
                    warnings.push(format!(
                        "its {name} was rounded by a spreadsheet and was left out"
                    ));
                    continue;
                };
                barcode
            } else {
                text
            };
            if text.contains("://") && text.chars().count() > ATTRIBUTE_CHARS_MAX {
                warnings.push(format!(
                    "its {name} contains an address, is longer than {ATTRIBUTE_CHARS_MAX} characters and was left out"
                ));
            } else if !text.is_empty() && attributes.len() < ATTRIBUTES_MAX {
                let text = truncate_chars(&text, ATTRIBUTE_CHARS_MAX);
                attributes.entry(name.clone()).or_insert(text);
            }
        }
        attributes
    }

    /// Returns the price outside of a sale, with the sale if it has dates.
    fn read_prices(&self, warnings: &mut Vec<String>) -> ReadPrices {
        let price = |column| self.read_price(column);
        let normal = [FeedColumn::Price, FeedColumn::VariantPrice]
            .iter()
            .map(price)
            .find(|text| !text.is_empty())
            .unwrap_or_default();
        let (regular, sale) = (
            price(&FeedColumn::RegularPrice),
            price(&FeedColumn::SalePrice),
        );
        let base = if regular.is_empty() || (sale.is_empty() && !normal.is_empty()) {
            normal
        } else {
            regular.clone()
        };
        let higher = [regular, price(&FeedColumn::CompareAtPrice)]
            .into_iter()
            .find(|text| is_higher(text, &base));
        // Shop systems write an empty or zero sale price if there is no sale.
        let is_sale = price::parse_amount(&sale).is_some_and(|amount| amount > 0.0)
            && (base.is_empty() || is_higher(&base, &sale));
        if !is_sale {
            return ReadPrices {
                price: base,
                regular: higher,
                sale: None,
            };
        }
        match self.sale_time() {
            Some((Some(start), Some(end))) if end <= start => {
                warnings.push("its sale ends before it begins; its regular price is shown".into());
                ReadPrices {
                    price: base,
                    regular: higher,
                    sale: None,
                }
            }
            Some((None, None)) => ReadPrices {
                regular: higher.or_else(|| Some(base).filter(|base| !base.is_empty())),
                price: sale,
                sale: None,
            },
            Some((starts_at, ends_at)) => ReadPrices {
                price: base,
                regular: higher,
                sale: Some(TimedSale {
                    price: sale,
                    starts_at,
                    ends_at,
                }),
            },
            None => {
                warnings.push(
                    "the dates of its sale cannot be read; its regular price is shown".into(),
                );
                ReadPrices {
                    price: base,
                    regular: higher,
                    sale: None,
                }
            }
        }
    }

    fn sale_time(&self) -> Option<super::sale_dates::SaleTime> {
        let (start, end) = (
            self.text(&FeedColumn::SaleStart),
            self.text(&FeedColumn::SaleEnd),
        );
        if start.is_empty() && end.is_empty() {
            parse_interval(self.text(&FeedColumn::SaleDates))
        } else {
            parse_bounds(start, end)
        }
    }

    fn read_price(&self, column: &FeedColumn) -> String {
        // Spreadsheets mark numbers that are stored as text.
        let text = self.text(column).trim_start_matches(['\'', '=']);
        let text = with_currency(text.trim_matches('"'), self.text(&FeedColumn::Currency));
        truncate_chars(&plain_text(&text), PRICE_CHARS_MAX)
    }
}

struct ReadPrices {
    price: String,
    regular: Option<String>,
    sale: Option<TimedSale>,
}

fn is_higher(text: &str, other: &str) -> bool {
    match (price::parse_amount(text), price::parse_amount(other)) {
        (Some(amount), Some(other)) => amount > other,
        _ => false,
    }
}

/// Returns a barcode without the marks of spreadsheets, or `None` if a spreadsheet replaced its
/// last digits by an exponent.
fn read_barcode(text: &str) -> Option<String> {
    let text = text
        .trim_start_matches(['\'', '='])
        .trim_matches(['"', ' ']);
    let (number, exponent) = text.split_once(['e', 'E']).unwrap_or((text, ""));
    let is_number = |text: &str| {
        !text.is_empty()
            && text
                .chars()
                .all(|c| c.is_ascii_digit() || ".,+".contains(c))
    };
    if is_number(number) && is_number(exponent) {
        return None;
    }
    let whole = text.strip_suffix(".0").unwrap_or(text);
    Some(whole.to_owned())
}

fn with_currency(price: &str, currency: &str) -> String {
    let is_number = !price.is_empty()
        && price
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '.' | ','));
    if is_number && !currency.is_empty() {
        format!("{price} {currency}")
    } else {
        price.to_owned()
    }
}
