//! Product grid of a reply, built from a tool's data by code and never from a model's words.
//!
//! Data of a catalog or of another service is untrusted: invalid links are removed, other types
//! become text, and everything is bounded. Pure.

use serde_json::{Value, json};

use crate::plain_text::{one_line, truncate_text};

/// Type of the grid (specification: Rich UI).
pub(crate) const TYPE: &str = "product-grid";
/// Most products of one grid.
pub(crate) const PRODUCTS_MAX: usize = 24;
/// Beginning of a note about displayed products, which follows the words of a visitor in prompts.
pub(crate) const SHOWN_MARK: &str = "[Products that the visitor ";
/// Longest title, in characters.
pub(crate) const TITLE_CHARS_MAX: usize = 200;
const PRICE_CHARS_MAX: usize = 40;
const URL_BYTES_MAX: usize = 2048;

/// Creates a grid of these cards, up to its bound; `None` without cards.
pub(crate) fn grid_of(cards: impl IntoIterator<Item = Value>) -> Option<Value> {
    let cards: Vec<Value> = cards.into_iter().take(PRODUCTS_MAX).collect();
    (!cards.is_empty()).then(|| json!({ "type": TYPE, "data": cards }))
}

/// Merges several grids, without duplicates.
pub(crate) fn join_grids(grids: &[Value]) -> Option<Value> {
    let mut cards: Vec<Value> = Vec::new();
    for card in grids.iter().flat_map(cards_of) {
        if !cards.contains(card) {
            cards.push(card.clone());
        }
    }
    grid_of(cards)
}

/// Returns true if the UI specification is a product grid.
pub(crate) fn is_grid(spec: &Value) -> bool {
    spec["type"] == TYPE
}

/// Drops products from the end until the grid fits; `None` if nothing is left.
pub(crate) fn truncate_grid(mut grid: Value, bytes_max: usize) -> Option<Value> {
    while grid.to_string().len() > bytes_max {
        grid["data"].as_array_mut()?.pop()?;
    }
    (!cards_of(&grid).is_empty()).then_some(grid)
}

pub(crate) fn cards_of(grid: &Value) -> &[Value] {
    grid["data"].as_array().map_or(&[], Vec::as_slice)
}

/// Describes a card to a model, without its links: a model cannot misspell links that it does not
/// know.
pub(crate) fn describe_card(card: &Value, title_chars_max: usize) -> Value {
    let title = truncate_text(card["title"].as_str().unwrap_or_default(), title_chars_max);
    json!({ "title": title, "price": card["price"] })
}

/// Creates the card of a product; `None` without a title or with an unsafe link.
pub(crate) fn card_of_product(product: &Value) -> Option<Value> {
    let title = plain_text(&product["title"], TITLE_CHARS_MAX);
    if title.is_empty() {
        return None;
    }
    let url = safe_link(&product["url"])?;
    // An unsafe image alone is no reason to drop the product.
    let image = safe_link(&product["image"]).unwrap_or_default();
    Some(
        json!({ "title": title, "price": plain_text(&product["price"], PRICE_CHARS_MAX), "image": image, "url": url }),
    )
}

/// Returns text on one line, without tags.
fn plain_text(value: &Value, chars_max: usize) -> String {
    let text = match value {
        Value::String(text) => one_line(text),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    };
    text.chars()
        .take(chars_max)
        .collect::<String>()
        .trim_end()
        .to_owned()
}

/// Returns a safe link: http or https with a host and without credentials. Missing links are empty;
/// `None` is unsafe.
fn safe_link(value: &Value) -> Option<String> {
    let text = match value {
        Value::Null => return Some(String::new()),
        Value::String(text) => text.trim(),
        _ => return None,
    };
    if text.is_empty() {
        return Some(String::new());
    }
    let url = reqwest::Url::parse(text).ok()?;
    let fine = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
        && text.len() <= URL_BYTES_MAX;
    fine.then(|| url.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown_card(product: Value) -> Option<Value> {
        card_of_product(&product)
    }

    #[test]
    fn product_becomes_a_card_of_four_texts() {
        let product = json!({"title": "Desk Lamp", "price": "$39", "image": "https://s.example/a.jpg", "url": "https://s.example/a", "stock": 3});
        let card = json!({"title": "Desk Lamp", "price": "$39", "image": "https://s.example/a.jpg", "url": "https://s.example/a"});
        assert_eq!(
            grid_of(shown_card(product)),
            Some(json!({"type": "product-grid", "data": [card]}))
        );
        assert_eq!(grid_of([]), None);
    }

    #[test]
    fn invalid_link_drops_its_product_or_picture() {
        for bad in [
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            " data:text/html,x",
            "vbscript:x",
            "file:///etc/passwd",
            "//s.example",
            "/path",
            "https://",
            "https://user:pw@s.example/",
            "java\nscript:x",
        ] {
            assert_eq!(shown_card(json!({"title": "a", "url": bad})), None, "{bad}");
            assert_eq!(
                shown_card(json!({"title": "a", "image": bad})).unwrap()["image"],
                "",
                "{bad}"
            );
        }
        assert_eq!(shown_card(json!({"title": "a", "url": 7})), None);
        assert_eq!(shown_card(json!({"title": "a"})).unwrap()["url"], "");
        assert_eq!(
            shown_card(json!({"title": "a", "url": "https://bücher.example/ü"})).unwrap()["url"],
            "https://xn--bcher-kva.example/%C3%BC"
        );
    }

    #[test]
    fn other_types_become_text_or_nothing() {
        let card =
            shown_card(json!({"title": 42, "price": 9.5, "image": [], "url": null})).unwrap();
        assert_eq!(
            card,
            json!({"title": "42", "price": "9.5", "image": "", "url": ""})
        );
        for nothing in [
            json!({"price": 1}),
            json!({"title": {}}),
            json!("text"),
            json!(null),
            json!({"title": " \u{1}\n"}),
        ] {
            assert_eq!(shown_card(nothing), None);
        }
        let html = shown_card(
            json!({"title": "<b>Lamp</b>\r\n<script>x</script> < 5 W", "price": "<i>$5"}),
        )
        .unwrap();
        assert_eq!(
            (&html["title"], &html["price"]),
            (&json!("Lamp x < 5 W"), &json!("$5"))
        );
    }

    #[test]
    fn grid_is_bounded_and_joining_drops_repeats() {
        let many =
            (0..1000).map(|number| json!({"title": format!("{number}{}", "x".repeat(10_000))}));
        let many = grid_of(many.filter_map(shown_card)).unwrap();
        assert_eq!(cards_of(&many).len(), PRODUCTS_MAX);
        assert!(many.to_string().len() < PRODUCTS_MAX * 300);
        let some = truncate_grid(many.clone(), 1_000).unwrap();
        assert!(some.to_string().len() <= 1_000 && cards_of(&many).starts_with(cards_of(&some)));
        assert_eq!(truncate_grid(many, 100), None);
        let (a, b) = (
            grid_of([json!({"title": "a"}), json!({"title": "b"})]).unwrap(),
            grid_of([json!({"title": "b"}), json!({"title": "c"})]).unwrap(),
        );
        assert_eq!(cards_of(&join_grids(&[a, b]).unwrap()).len(), 3);
    }

    proptest! {
        #[test]
        fn arbitrary_product_becomes_a_safe_card_or_none(title in "\\PC{0,40}|<[a-z]{0,9}>?\\PC{0,9}", url in "\\PC{0,30}|[a-z]{0,10}:[a-z/.]{0,20}") {
            if let Some(card) = shown_card(json!({"title": title, "price": title, "image": url, "url": url})) {
                prop_assert!(!card["title"].as_str().unwrap().is_empty());
                for field in ["image", "url"] {
                    let link = card[field].as_str().unwrap();
                    prop_assert!(link.is_empty() || link.starts_with("http://") || link.starts_with("https://"));
                }
            }
        }
    }
}
