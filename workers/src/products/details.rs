//! Selects the details of a product that an index stores for the model: the beginning of its
//! description and its attributes, as plain text without links. They are bounded, because an index
//! can hold 50,000 products.

use std::collections::BTreeMap;

use switchboard_schemas::catalog_product::CatalogProduct;

use super::FoundProduct;
use crate::plain_text::{one_line, truncate_text};

/// Characters of a description that are stored.
pub(crate) const DESCRIPTION_CHARS_MAX: usize = 400;
/// Attributes of a product that are stored.
pub(crate) const ATTRIBUTES_MAX: usize = 16;
/// Characters of an attribute's name that are stored.
const NAME_CHARS_MAX: usize = 40;
/// Characters of an attribute's value that are stored.
const VALUE_CHARS_MAX: usize = 80;
/// Parts of a word that mark it as a link. Product cards show the links, and a model without them
/// cannot misspell one.
const LINK_MARKS: [&str; 2] = ["://", "www."];

pub(super) fn with_details(product: CatalogProduct) -> FoundProduct {
    let attributes = product.attributes.iter().filter_map(|(name, value)| {
        let (name, value) = (
            plain_beginning(name, NAME_CHARS_MAX),
            plain_beginning(value, VALUE_CHARS_MAX),
        );
        (!name.is_empty() && !value.is_empty()).then_some((name, value))
    });
    FoundProduct {
        description: plain_beginning(&product.description, DESCRIPTION_CHARS_MAX),
        attributes: attributes.take(ATTRIBUTES_MAX).collect::<BTreeMap<_, _>>(),
        product: product.product,
    }
}

fn plain_beginning(text: &str, chars_max: usize) -> String {
    let line = one_line(text);
    if !LINK_MARKS.iter().any(|sign| line.contains(sign)) {
        return truncate_text(&line, chars_max);
    }
    let words = line
        .split(' ')
        .filter(|word| !LINK_MARKS.iter().any(|sign| word.contains(sign)));
    truncate_text(&words.collect::<Vec<_>>().join(" "), chars_max)
}

#[cfg(test)]
mod tests {
    use switchboard_schemas::agent::Product;

    use super::*;

    fn product(description: &str, attributes: &[(&str, &str)]) -> CatalogProduct {
        let product = Product {
            title: "Tent".into(),
            ..Product::default()
        };
        let attributes = attributes
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect();
        CatalogProduct {
            description: description.into(),
            attributes,
            ..product.into()
        }
    }

    #[test]
    fn descriptions_and_attributes_are_plain_lines_without_links() {
        let kept = with_details(product(
            "<p>For rain.</p>\nSee https://shop.example/tent or www.shop.example\u{0} now",
            &[
                ("weight\n", "<i>2</i> kg"),
                ("manual", "https://shop.example/m.pdf"),
                ("<b>", "x"),
            ],
        ));
        assert_eq!(kept.description, "For rain. See or now");
        assert_eq!(
            kept.attributes,
            [("weight".to_owned(), "2 kg".to_owned())].into()
        );
    }

    #[test]
    fn stored_details_are_truncated() {
        let long = "é".repeat(2_000);
        let names: Vec<String> = (0..40).map(|number| format!("{number:02}{long}")).collect();
        let attributes: Vec<(&str, &str)> = names
            .iter()
            .map(|name| (name.as_str(), long.as_str()))
            .collect();
        let kept = with_details(product(&long, &attributes));
        assert_eq!(
            kept.description,
            format!("{}…", "é".repeat(DESCRIPTION_CHARS_MAX))
        );
        assert_eq!(kept.attributes.len(), ATTRIBUTES_MAX);
        let (name, value) = kept.attributes.first_key_value().unwrap();
        assert_eq!(
            (name.chars().count(), value.chars().count()),
            (NAME_CHARS_MAX + 1, VALUE_CHARS_MAX + 1)
        );
    }
}
