//! The product grid that a visitor is shown: built from a tool's data by code, never from a model's words.
//!
//! What comes from a catalogue or from another service is not trusted: links that are none are left out, other types
//! become text, and everything has a bound. Pure.

use serde_json::{Value, json};

use crate::plain_text::{beginning, one_line};

/// The grid's type (specification: Rich UI).
pub(crate) const TYPE: &str = "product-grid";
/// Products of one grid.
pub(crate) const PRODUCTS_MAX: usize = 24;
/// Characters of a title.
pub(crate) const TITLE_CHARS_MAX: usize = 200;
const PRICE_CHARS_MAX: usize = 40;
const URL_BYTES_MAX: usize = 2048;

/// The grid of these cards, as far as it holds them; none when there are none.
pub(crate) fn of(cards: impl IntoIterator<Item = Value>) -> Option<Value> {
    let cards: Vec<Value> = cards.into_iter().take(PRODUCTS_MAX).collect();
    (!cards.is_empty()).then(|| json!({ "type": TYPE, "data": cards }))
}

/// Several grids as one, without repeats.
pub(crate) fn joined(grids: &[Value]) -> Option<Value> {
    let mut cards: Vec<Value> = Vec::new();
    for card in grids.iter().flat_map(cards_of) {
        if !cards.contains(card) {
            cards.push(card.clone());
        }
    }
    of(cards)
}

/// Whether this is a grid.
pub(crate) fn is_grid(spec: &Value) -> bool {
    spec["type"] == TYPE
}

/// The grid, with products dropped from its end until it is small enough; none when nothing is left.
pub(crate) fn within(mut grid: Value, bytes_max: usize) -> Option<Value> {
    while grid.to_string().len() > bytes_max {
        grid["data"].as_array_mut()?.pop()?;
    }
    (!cards_of(&grid).is_empty()).then_some(grid)
}

/// The products of a grid.
pub(crate) fn cards_of(grid: &Value) -> &[Value] {
    grid["data"].as_array().map_or(&[], Vec::as_slice)
}

/// What a model is told of a card: links stand on the cards, and a model that does not know them cannot misspell them.
pub(crate) fn told(card: &Value, title_chars_max: usize) -> Value {
    let title = beginning(card["title"].as_str().unwrap_or_default(), title_chars_max);
    json!({ "title": title, "price": card["price"] })
}

/// What is shown of a product; one without a name, or with a link that must not be followed, is not shown.
pub(crate) fn card(product: &Value) -> Option<Value> {
    let title = plain(&product["title"], TITLE_CHARS_MAX);
    if title.is_empty() {
        return None;
    }
    let url = link(&product["url"])?;
    // A picture alone is no reason to leave a product out.
    let image = link(&product["image"]).unwrap_or_default();
    Some(
        json!({ "title": title, "price": plain(&product["price"], PRICE_CHARS_MAX), "image": image, "url": url }),
    )
}

/// Text on one line, without tags.
fn plain(value: &Value, chars_max: usize) -> String {
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

/// A link to a page: http or https with a host and nothing before it, or nothing at all. None: it is something else.
fn link(value: &Value) -> Option<String> {
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

    fn shown(product: Value) -> Option<Value> {
        card(&product)
    }

    #[test]
    fn a_product_becomes_a_card_of_four_texts() {
        let product = json!({"title": "Desk Lamp", "price": "$39", "image": "https://s.example/a.jpg", "url": "https://s.example/a", "stock": 3});
        let card = json!({"title": "Desk Lamp", "price": "$39", "image": "https://s.example/a.jpg", "url": "https://s.example/a"});
        assert_eq!(
            of(shown(product)),
            Some(json!({"type": "product-grid", "data": [card]}))
        );
        assert_eq!(of([]), None);
    }

    #[test]
    fn links_that_are_none_are_left_out_with_their_product_and_pictures_without() {
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
            assert_eq!(shown(json!({"title": "a", "url": bad})), None, "{bad}");
            assert_eq!(
                shown(json!({"title": "a", "image": bad})).unwrap()["image"],
                "",
                "{bad}"
            );
        }
        assert_eq!(shown(json!({"title": "a", "url": 7})), None);
        assert_eq!(shown(json!({"title": "a"})).unwrap()["url"], "");
        assert_eq!(
            shown(json!({"title": "a", "url": "https://bücher.example/ü"})).unwrap()["url"],
            "https://xn--bcher-kva.example/%C3%BC"
        );
    }

    #[test]
    fn other_types_become_text_or_nothing() {
        let card = shown(json!({"title": 42, "price": 9.5, "image": [], "url": null})).unwrap();
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
            assert_eq!(shown(nothing), None);
        }
        let html =
            shown(json!({"title": "<b>Lamp</b>\r\n<script>x</script> < 5 W", "price": "<i>$5"}))
                .unwrap();
        assert_eq!(
            (&html["title"], &html["price"]),
            (&json!("Lamp x < 5 W"), &json!("$5"))
        );
    }

    #[test]
    fn a_grid_is_bounded_and_joining_drops_repeats() {
        let many =
            (0..1000).map(|number| json!({"title": format!("{number}{}", "x".repeat(10_000))}));
        let many = of(many.filter_map(shown)).unwrap();
        assert_eq!(cards_of(&many).len(), PRODUCTS_MAX);
        assert!(many.to_string().len() < PRODUCTS_MAX * 300);
        let some = within(many.clone(), 1_000).unwrap();
        assert!(some.to_string().len() <= 1_000 && cards_of(&many).starts_with(cards_of(&some)));
        assert_eq!(within(many, 100), None);
        let (a, b) = (
            of([json!({"title": "a"}), json!({"title": "b"})]).unwrap(),
            of([json!({"title": "b"}), json!({"title": "c"})]).unwrap(),
        );
        assert_eq!(cards_of(&joined(&[a, b]).unwrap()).len(), 3);
    }

    proptest! {
        #[test]
        fn any_product_gives_a_card_of_plain_texts_and_web_links_or_none(title in "\\PC{0,40}|<[a-z]{0,9}>?\\PC{0,9}", url in "\\PC{0,30}|[a-z]{0,10}:[a-z/.]{0,20}") {
            if let Some(card) = shown(json!({"title": title, "price": title, "image": url, "url": url})) {
                prop_assert!(!card["title"].as_str().unwrap().is_empty());
                for field in ["image", "url"] {
                    let link = card[field].as_str().unwrap();
                    prop_assert!(link.is_empty() || link.starts_with("http://") || link.starts_with("https://"));
                }
            }
        }
    }
}
