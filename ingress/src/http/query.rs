//! Parsing of query strings.

use std::borrow::Cow;

/// Returns the first value of a parameter, decoded.
pub(crate) fn first_value<'query>(query: &'query str, name: &str) -> Option<Cow<'query, str>> {
    form_urlencoded::parse(query.as_bytes())
        .find(|(key, _)| key == name)
        .map(|(_, value)| value)
}

/// Parses a whole number of digits only; saturates on overflow.
pub(crate) fn whole_number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_value_is_decoded_and_the_first_of_several_counts() {
        for (query, read) in [
            ("limit=10", Some("10")),
            ("limit=%31%30&limit=3", Some("10")),
            ("l%69mit=10", Some("10")),
            ("limit", Some("")),
            ("xlimit=10", None),
            ("", None),
        ] {
            assert_eq!(first_value(query, "limit").as_deref(), read, "{query}");
        }
    }
}
