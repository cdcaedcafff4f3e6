//! Mapping of named values to product fields: the names of Google's product data and those of shop
//! systems and spreadsheets. Other names become attributes.

use std::collections::BTreeMap;

use switchboard_schemas::{agent::Product, catalog_product::CatalogProduct, price};

use super::{
    FeedRow,
    markup::{plain_text, truncate_chars},
};

const TITLE_CHARS_MAX: usize = 300;
const PRICE_CHARS_MAX: usize = 60;
const DESCRIPTION_CHARS_MAX: usize = 2000;
const URL_BYTES_MAX: usize = 2048;
const ATTRIBUTES_MAX: usize = 40;
const ATTRIBUTE_NAME_CHARS_MAX: usize = 60;
const ATTRIBUTE_CHARS_MAX: usize = 300;
/// Name of the regular price, which a sale price replaces.
const REGULAR_PRICE: &str = "regular_price";

/// The meaning of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FeedColumn {
    Title,
    Description,
    Price,
    SalePrice,
    Currency,
    Image,
    Url,
    /// A list of objects, one for each size or color.
    Variants,
    VariantPrice,
    Attribute(String),
}

impl FeedColumn {
    pub(super) fn from_name(name: &str) -> Self {
        let name = normalize_name(name);
        match name.as_str() {
            "title" | "name" | "product_name" | "product_title" | "titel" | "titre" | "titolo"
            | "titulo" | "título" | "nombre" | "nom" | "nome" | "naam" | "bezeichnung"
            | "produktname" => Self::Title,
            "description" | "short_description" | "body_html" | "body" | "beschreibung"
            | "descripcion" | "descripción" | "descrizione" | "omschrijving" => Self::Description,
            "price" | "regular_price" | "unit_price" | "preis" | "prix" | "precio" | "prezzo"
            | "preço" | "prijs" | "cena" | "pris" => Self::Price,
            "sale_price" | "special_price" | "angebotspreis" => Self::SalePrice,
            "currency" | "price_currency" | "currency_code" | "währung" => Self::Currency,
            "image_link" | "image" | "images" | "image_url" | "imageurl" | "image_src"
            | "featured_image" | "picture" | "thumbnail" | "photo" | "bild" | "bild_url" => {
                Self::Image
            }
            "link" | "url" | "product_url" | "product_link" | "producturl" | "permalink"
            | "href" | "deeplink" => Self::Url,
            "variants" => Self::Variants,
            _ => Self::Attribute(truncate_chars(&name, ATTRIBUTE_NAME_CHARS_MAX)),
        }
    }
}

/// Normalizes a column name, so that `Image Link`, `image-link`, `imageLink` and `g:image_link`
/// equal `image_link`.
fn normalize_name(name: &str) -> String {
    let name = name.trim().trim_start_matches('\u{feff}');
    let name = name.strip_prefix("g:").unwrap_or(name);
    let mut normalized = String::with_capacity(name.len());
    let mut after_lower = false;
    for character in name.chars() {
        if character.is_uppercase() && after_lower {
            normalized.push('_');
        }
        after_lower = character.is_lowercase();
        if character.is_alphanumeric() {
            normalized.extend(character.to_lowercase());
        } else if !normalized.ends_with('_') {
            normalized.push('_');
        }
    }
    normalized.trim_matches('_').to_owned()
}

/// The fields of a product found so far.
#[derive(Default)]
struct ProductFields {
    title: String,
    description: String,
    price: String,
    sale_price: String,
    variant_price: String,
    currency: String,
    image: String,
    url: String,
    attributes: BTreeMap<String, String>,
}

/// Creates a product from its values. The first value of a field that is not blank wins.
pub(super) fn product_from_values<'a>(
    values: impl Iterator<Item = (&'a FeedColumn, &'a str)>,
) -> FeedRow {
    let mut found = ProductFields::default();
    for (column, text) in values {
        let slot = match column {
            FeedColumn::Title => &mut found.title,
            FeedColumn::Description => &mut found.description,
            FeedColumn::Price => &mut found.price,
            FeedColumn::SalePrice => &mut found.sale_price,
            FeedColumn::VariantPrice => &mut found.variant_price,
            FeedColumn::Currency => &mut found.currency,
            FeedColumn::Image => &mut found.image,
            FeedColumn::Url => &mut found.url,
            FeedColumn::Variants => continue,
            FeedColumn::Attribute(name) => {
                found.add_attribute(name, text);
                continue;
            }
        };
        if slot.is_empty() {
            text.trim().clone_into(slot);
        }
    }
    found.finish()
}

impl ProductFields {
    fn add_attribute(&mut self, name: &str, text: &str) {
        let text = truncate_chars(&plain_text(text), ATTRIBUTE_CHARS_MAX);
        if !name.is_empty() && !text.is_empty() && self.attributes.len() < ATTRIBUTES_MAX {
            self.attributes.entry(name.to_owned()).or_insert(text);
        }
    }

    fn finish(mut self) -> FeedRow {
        let title = truncate_chars(&plain_text(&self.title), TITLE_CHARS_MAX);
        if title.is_empty() {
            return Err("it has no title".into());
        }
        if self.price.is_empty() {
            self.price = std::mem::take(&mut self.variant_price);
        }
        // Shop systems write an empty or zero sale price if there is no sale.
        if price::parse_amount(&self.sale_price).is_some_and(|amount| amount > 0.0) {
            let regular = std::mem::replace(&mut self.price, std::mem::take(&mut self.sale_price));
            self.add_attribute(REGULAR_PRICE, &regular);
        }
        let shown = truncate_chars(
            &plain_text(&with_currency(&self.price, &self.currency)),
            PRICE_CHARS_MAX,
        );
        let product = Product {
            title,
            price: shown,
            image: web_address(&self.image),
            url: web_address(&self.url),
        };
        Ok(CatalogProduct {
            description: truncate_chars(&plain_text(&self.description), DESCRIPTION_CHARS_MAX),
            attributes: self.attributes,
            ..product.into()
        })
    }
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

/// Returns a web address, or an empty text: any other scheme would run or open something on the
/// visitor's machine.
fn web_address(text: &str) -> String {
    // A value often lists several pictures; the first is that of the product.
    let first = text
        .split(|character: char| character.is_whitespace() || character == '|')
        .next()
        .unwrap_or_default();
    let first = if first.starts_with("//") {
        format!("https:{first}")
    } else {
        first.to_owned()
    };
    let first = match first.split_once(",http") {
        Some((only, _)) => only.to_owned(),
        None => first,
    };
    let first = first.trim_end_matches(',');
    let lower = first.get(..8).unwrap_or_default().to_ascii_lowercase();
    let is_web = lower.starts_with("https://") || lower.starts_with("http://");
    let is_clean = !first
        .chars()
        .any(|character| character.is_control() || "<>\"`\\".contains(character));
    if is_web && is_clean && first.len() <= URL_BYTES_MAX {
        first.to_owned()
    } else {
        String::new()
    }
}
