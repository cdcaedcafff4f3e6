//! What an index keeps of a product beside what visitors are shown, so that a model can be told it: the beginning of its
//! description and its attributes, as plain text without links. Bounded, because 50,000 of them lie in memory. Pure.

use std::collections::BTreeMap;

use switchboard_schemas::catalog_product::CatalogProduct;

use super::FoundProduct;
use crate::plain_text::{one_line, truncate_text};

/// Characters of a description that are kept.
pub(crate) const DESCRIPTION_CHARS_MAX: usize = 400;
/// Attributes that are kept.
pub(crate) const ATTRIBUTES_MAX: usize = 16;
/// Characters of an attribute's name that are kept.
const NAME_CHARS_MAX: usize = 40;
/// Characters of an attribute's value that are kept.
const VALUE_CHARS_MAX: usize = 80;
/// What a word has that is an address; cards have the links, and a model that knows none cannot misspell it.
const ADDRESS_SIGNS: [&str; 2] = ["://", "www."];

/// What is kept of `product`.
pub(super) fn kept_of(product: CatalogProduct) -> FoundProduct {
    let attributes = product.attributes.iter().filter_map(|(name, value)| {
        let (name, value) = (told(name, NAME_CHARS_MAX), told(value, VALUE_CHARS_MAX));
        (!name.is_empty() && !value.is_empty()).then_some((name, value))
    });
    FoundProduct {
        description: told(&product.description, DESCRIPTION_CHARS_MAX),
        attributes: attributes.take(ATTRIBUTES_MAX).collect::<BTreeMap<_, _>>(),
        product: product.product,
    }
}

fn told(text: &str, chars_max: usize) -> String {
    let line = one_line(text);
    if !ADDRESS_SIGNS.iter().any(|sign| line.contains(sign)) {
        return truncate_text(&line, chars_max);
    }
    let words = line
        .split(' ')
        .filter(|word| !ADDRESS_SIGNS.iter().any(|sign| word.contains(sign)));
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
        let kept = kept_of(product(
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
    fn of_long_and_many_texts_only_beginnings_are_kept() {
        let long = "é".repeat(2_000);
        let names: Vec<String> = (0..40).map(|number| format!("{number:02}{long}")).collect();
        let attributes: Vec<(&str, &str)> = names
            .iter()
            .map(|name| (name.as_str(), long.as_str()))
            .collect();
        let kept = kept_of(product(&long, &attributes));
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
