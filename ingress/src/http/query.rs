//! Parsing of query strings.

use axum::extract::FromRequestParts;
use http::request::Parts;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{ApiError, ApiResult};

/// The query of a request as `T`, whose fields are optional texts. Of several values of a
/// parameter, the first one counts.
pub(crate) struct QueryTexts<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for QueryTexts<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> ApiResult<Self> {
        parse_query(parts.uri.query().unwrap_or_default()).map(Self)
    }
}

/// Parses a query into a type whose fields are optional texts.
pub(crate) fn parse_query<T: DeserializeOwned>(query: &str) -> ApiResult<T> {
    let mut texts = Map::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        texts.entry(name).or_insert_with(|| value.into());
    }
    serde_json::from_value(Value::Object(texts)).map_err(|error| ApiError::internal(&error))
}

/// Parses a whole number of digits only; saturates on overflow.
pub(crate) fn whole_number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct LimitQuery {
        limit: Option<String>,
    }

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
            let LimitQuery { limit } = parse_query(query).unwrap();
            assert_eq!(limit.as_deref(), read, "{query}");
        }
    }
}
