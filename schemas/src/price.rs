//! Parser for prices as shops write them: `19.99 EUR`, `€ 1.299,00`, `CHF 1'299.–`, `from $5`.

use std::fmt;

use serde::{
    Deserializer,
    de::{Error, Visitor},
};

/// Maximum number of digits and separators of one number.
const NUMBER_CHARS_MAX: usize = 24;
/// Number of digits of a group of thousands.
const GROUP_DIGITS: usize = 3;

/// Returns the first number in `text`, or `None` if there is none that could be a price.
pub fn parse_amount(text: &str) -> Option<f64> {
    let begin = text.find(|character: char| character.is_ascii_digit())?;
    if text[..begin].trim_end().ends_with(['-', '−']) {
        return None;
    }
    amount_at_start(&text[begin..]).map(|(amount, _)| amount)
}

/// Parses the number at the start of `text` and returns it with its length in bytes.
pub fn amount_at_start(text: &str) -> Option<(f64, usize)> {
    let (number, bytes) = number_at(text);
    let amount = canonical(&number).parse::<f64>().ok()?;
    amount.is_finite().then_some((amount, bytes))
}

/// Deserializes a price from text or a number.
///
/// # Errors
/// The value is neither.
pub fn text_or_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    struct TextOrNumber;

    impl Visitor<'_> for TextOrNumber {
        type Value = String;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a string or a number")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
            Ok(text.to_owned())
        }

        fn visit_u64<E: Error>(self, number: u64) -> Result<String, E> {
            Ok(number.to_string())
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<String, E> {
            Ok(number.to_string())
        }

        fn visit_f64<E: Error>(self, number: f64) -> Result<String, E> {
            Ok(number.to_string())
        }
    }

    deserializer.deserialize_any(TextOrNumber)
}

/// Splits digits and separators from the start of a text and returns them with their length in
/// bytes. A space separates only groups of thousands.
fn number_at(text: &str) -> (String, usize) {
    let characters: Vec<char> = text.chars().take(NUMBER_CHARS_MAX).collect();
    let (mut number, mut bytes) = (String::new(), 0);
    for (index, character) in characters.iter().enumerate() {
        let digits_follow = |count: usize| {
            let following = characters[index + 1..]
                .iter()
                .take_while(|character| character.is_ascii_digit())
                .count();
            following >= 1 && (count == 0 || following == count)
        };
        match character {
            '0'..='9' => number.push(*character),
            '.' | ',' if digits_follow(0) => number.push(*character),
            '\'' | '’' | ' ' | '\u{a0}' | '\u{202f}' if digits_follow(GROUP_DIGITS) => {}
            _ => break,
        }
        bytes += character.len_utf8();
    }
    (number, bytes)
}

/// Normalizes a number: a point before the decimals and no other separator.
fn canonical(number: &str) -> String {
    let points = number.matches('.').count();
    let commas = number.matches(',').count();
    let decimal = match (number.rfind('.'), number.rfind(',')) {
        (Some(point), Some(comma)) => Some(point.max(comma)),
        (Some(only), None) | (None, Some(only))
            if points + commas == 1 && !is_group(number, only) =>
        {
            Some(only)
        }
        _ => None,
    };
    let kept = number
        .char_indices()
        .filter_map(|(index, character)| match character {
            '.' | ',' if Some(index) == decimal => Some('.'),
            '.' | ',' => None,
            digit => Some(digit),
        });
    kept.collect()
}

/// Returns `true` if the only separator, at `index`, separates thousands. `1.299` means that far
/// more often than three decimals.
fn is_group(number: &str, index: usize) -> bool {
    number.len() - index - 1 == GROUP_DIGITS && !number.starts_with('0') && index <= GROUP_DIGITS
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn prices_of_many_countries_are_parsed() {
        for (text, expected) in [
            ("19.99 EUR", 19.99),
            ("EUR 19,99", 19.99),
            ("€1.299,00", 1299.0),
            ("1,299.00 USD", 1299.0),
            ("1 299,00 kr", 1299.0),
            ("1\u{202f}299,5 €", 1299.5),
            ("CHF 1'299.–", 1299.0),
            ("$9", 9.0),
            ("from $5", 5.0),
            ("¥1,299", 1299.0),
            ("1.299", 1299.0),
            ("0.999", 0.999),
            ("12.345.678", 12_345_678.0),
            ("10 - 20 EUR", 10.0),
            ("1999.95", 1999.95),
            ("2 for 5", 2.0),
        ] {
            assert_eq!(parse_amount(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn price_is_deserialized_from_text_or_number() {
        let price = |value: serde_json::Value| {
            let product = serde_json::json!({ "title": "Tea", "price": value });
            serde_json::from_value::<crate::agent::Product>(product)
                .map(|product| product.price)
                .ok()
        };
        for (value, expected) in [
            ("\"5 EUR\"", Some("5 EUR")),
            ("5", Some("5")),
            ("19.9", Some("19.9")),
            ("true", None),
            ("[5]", None),
        ] {
            assert_eq!(
                price(value.parse().unwrap()).as_deref(),
                expected,
                "{value}"
            );
        }
    }

    #[test]
    fn number_ends_at_the_first_other_character() {
        for (text, expected) in [
            ("20€ mug", Some((20.0, 2))),
            ("1\u{202f}299,50 €", Some((1299.5, 10))),
            ("10 W", Some((10.0, 2))),
            ("5.", Some((5.0, 1))),
            ("€20", None),
            ("", None),
        ] {
            assert_eq!(amount_at_start(text), expected, "{text}");
        }
    }

    #[test]
    fn text_without_a_price_has_no_amount() {
        for text in ["", "on request", "-5 EUR", "EUR", "٥"] {
            assert_eq!(parse_amount(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn amount_of_arbitrary_text_is_finite(text: String) {
            prop_assert!(parse_amount(&text).is_none_or(f64::is_finite));
        }

        #[test]
        fn amount_with_two_decimals_round_trips(cents in 0_u32..100_000_000) {
            let text = format!("{}.{:02}", cents / 100, cents % 100);
            prop_assert_eq!(parse_amount(&text), Some(text.parse().unwrap()));
        }
    }
}
