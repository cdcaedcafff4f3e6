//! Reads JSON request bodies within size and time limits, with the documented errors, which the
//! framework's extractor does not return.

use std::{collections::HashMap, time::Duration};

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, value::RawValue};

use super::{ApiError, ApiResult, ErrorCode, strict_value::StrictValue};
use crate::config::IngressConfig;

#[derive(Clone, Copy)]
pub(crate) struct BodyLimits {
    /// Maximum size in bytes.
    pub(crate) bytes_max: usize,
    /// Maximum time until the last byte.
    pub(crate) timeout: Duration,
}

const GZIP_MARK: &[u8] = b"\x1f\x8b";
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Maximum size of a body with credentials, in bytes: everybody can send one.
const CREDENTIALS_BYTES_MAX: usize = 4 << 10;

/// Maximum size of a body with one resource, in bytes.
const RESOURCE_BYTES_MAX: usize = 2 << 20;
/// Size from which a body is parsed on a thread for blocking work, in bytes.
const LARGE_BODY_BYTES: usize = 64 << 10;

impl BodyLimits {
    /// Returns the limits of sign-in, one-time links, passwords and visitor tokens.
    pub(crate) fn credentials(config: &IngressConfig) -> Self {
        Self {
            bytes_max: CREDENTIALS_BYTES_MAX.min(config.body_bytes_max),
            timeout: config.body_timeout(),
        }
    }

    /// Returns the limits of the public API.
    pub(crate) const fn public(config: &IngressConfig) -> Self {
        Self {
            bytes_max: config.body_bytes_max,
            timeout: config.body_timeout(),
        }
    }

    /// Returns the limits of one resource in the admin API.
    pub(crate) fn resource(config: &IngressConfig) -> Self {
        Self {
            bytes_max: RESOURCE_BYTES_MAX.min(config.admin_body_bytes_max),
            timeout: config.body_timeout(),
        }
    }

    /// Returns the limits of documents in the admin API.
    pub(crate) const fn admin(config: &IngressConfig) -> Self {
        Self {
            bytes_max: config.admin_body_bytes_max,
            timeout: config.body_timeout(),
        }
    }
}

/// Reads a JSON body. Fails if its media type is not JSON or a limit is exceeded.
pub(crate) async fn read_body(
    headers: &HeaderMap,
    body: Body,
    limits: BodyLimits,
) -> ApiResult<Bytes> {
    check_media_type(headers)?;
    if announced_bytes(headers).is_some_and(|length| length > limits.bytes_max as u64) {
        return Err(too_large(limits.bytes_max));
    }
    let collected = tokio::time::timeout(
        limits.timeout,
        Limited::new(body, limits.bytes_max).collect(),
    );
    match collected.await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large(limits.bytes_max)),
        Ok(Err(_)) => Err(ApiError::new(
            ErrorCode::InvalidJson,
            "the body was cut off",
        )),
        Err(_) => Err(ApiError::uncoded(
            StatusCode::REQUEST_TIMEOUT,
            "the body did not arrive in time",
        )),
    }
}

/// Parses a body into a type whose fields are raw values, so that its handler can validate them in
/// the documented order. The errors are those of [`parse_object`].
pub(crate) fn parse_body<T: DeserializeOwned>(body: &[u8]) -> ApiResult<T> {
    let fields = parse_object(body)?;
    T::deserialize(StrictValue(fields.into())).map_err(|error| ApiError::internal(&error))
}

/// Parses a JSON object as [`parse_object`], a large one on a thread for blocking work.
pub(crate) async fn parse_large_object(body: Bytes) -> ApiResult<Map<String, Value>> {
    if body.len() < LARGE_BODY_BYTES {
        return parse_object(&body);
    }
    let parsed = tokio::task::spawn_blocking(move || parse_object(&body)).await;
    parsed.map_err(|error| ApiError::internal(&error))?
}

/// Parses a JSON object. Other JSON values are `INVALID_REQUEST_DATA`, malformed text is
/// `INVALID_JSON`.
pub(crate) fn parse_object(body: &[u8]) -> ApiResult<Map<String, Value>> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(fields)) => {
            check_whole_numbers(body)?;
            Ok(fields)
        }
        Ok(_) => Err(ApiError::new(
            ErrorCode::InvalidRequestData,
            "the body must be a JSON object",
        )),
        Err(error) => Err(ApiError::new(
            ErrorCode::InvalidJson,
            syntax_fault(body, &error),
        )),
    }
}

/// The field whose values are stored as they were sent; any other number is read by a type.
const STORED_AS_SENT: &str = "metadata";

/// Rejects whole numbers that no type of the service holds, such as ids of 20 digits: they would be
/// stored rounded.
fn check_whole_numbers(body: &[u8]) -> ApiResult<()> {
    if !std::str::from_utf8(body).is_ok_and(has_rounded_number) {
        return Ok(());
    }
    let fields: HashMap<String, &RawValue> = serde_json::from_slice(body).unwrap_or_default();
    let stored = fields.get(STORED_AS_SENT);
    if !stored.is_some_and(|value| has_rounded_number(value.get())) {
        return Ok(());
    }
    Err(ApiError::field(
        STORED_AS_SENT,
        "has a whole number with too many digits; send it as a string",
    ))
}

fn has_rounded_number(json: &str) -> bool {
    let (mut is_string, mut is_escaped) = (false, false);
    let mut is_between_numbers = |character| {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => is_string = !is_string,
            _ => {}
        }
        is_string || !matches!(character, '0'..='9' | '-' | '+' | '.' | 'e' | 'E')
    };
    let is_rounded = |number: &str| {
        let digits = number.strip_prefix('-').unwrap_or(number);
        let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_whole && number.parse::<i64>().is_err() && number.parse::<u64>().is_err()
    };
    json.split(&mut is_between_numbers).any(is_rounded)
}

/// Describes malformed JSON by its position. The text of `error` can quote the body.
fn syntax_fault(body: &[u8], error: &serde_json::Error) -> String {
    if body.trim_ascii().is_empty() {
        return "the body is empty".to_owned();
    }
    let (line, column) = (error.line(), error.column());
    if is_too_deep(error) {
        return "the body is nested too deeply".to_owned();
    }
    let rows = body.split(|byte| *byte == b'\n');
    let row = rows.into_iter().nth(line.saturating_sub(1));
    let offender = row.and_then(|row| row.get(column.saturating_sub(1)));
    let hint = match offender {
        _ if body.starts_with(BYTE_ORDER_MARK) => ": leave out the byte order mark",
        _ if body.contains(&0) => ": send it as UTF-8",
        _ if body.starts_with(GZIP_MARK) => ": compressed bodies are not accepted",
        // The parser counts the line break as the beginning of the next line.
        _ if column == 0 => ": write line breaks in texts as \\n",
        _ if error.is_eof() => ": it ends too early",
        Some(b'\'') => ": use double quotes",
        _ => "",
    };
    format!("the body is not valid JSON at line {line}, column {column}{hint}")
}

fn is_too_deep(error: &serde_json::Error) -> bool {
    error.to_string().starts_with("recursion limit exceeded")
}

fn too_large(bytes_max: usize) -> ApiError {
    let details = serde_json::json!({ "max": bytes_max });
    let detail = format!("the body is larger than {bytes_max} bytes");
    ApiError::new(ErrorCode::PayloadTooLarge, detail).details(details)
}

/// Returns the size that the client announced.
pub(crate) fn announced_bytes(headers: &HeaderMap) -> Option<u64> {
    let length = headers.get(header::CONTENT_LENGTH)?;
    length.to_str().ok()?.parse().ok()
}

/// Returns the media type of a body in lower case without parameters; `None` without the header.
///
/// # Errors
/// 415 for a compressed body, which could expand to any size.
pub(crate) fn media_type(headers: &HeaderMap) -> ApiResult<Option<String>> {
    let encoding = headers.get(header::CONTENT_ENCODING);
    if encoding.is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        let detail = "compressed bodies are not accepted";
        return Err(ApiError::new(ErrorCode::UnsupportedMediaType, detail));
    }
    let essence = headers.get(header::CONTENT_TYPE).map(|media_type| {
        let text = media_type.to_str().unwrap_or_default();
        let essence = text.split(';').next().unwrap_or_default().trim();
        essence.to_ascii_lowercase()
    });
    Ok(essence)
}

/// Returns true for a media type such as `application/merge-patch+json`.
pub(crate) fn has_json_suffix(essence: &str) -> bool {
    essence.starts_with("application/") && essence.ends_with("+json")
}

fn check_media_type(headers: &HeaderMap) -> ApiResult<()> {
    let is_json = |essence: String| essence == "application/json" || has_json_suffix(&essence);
    if media_type(headers)?.is_none_or(is_json) {
        return Ok(());
    }
    let detail = "the body must be application/json";
    Err(ApiError::new(ErrorCode::UnsupportedMediaType, detail))
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use proptest::prelude::*;

    use super::*;

    const LIMITS: BodyLimits = BodyLimits {
        bytes_max: 8,
        timeout: Duration::from_secs(5),
    };

    fn status<T>(result: ApiResult<T>) -> Option<u16> {
        result.err().map(|error| error.into_parts().status.as_u16())
    }

    async fn read_with(name: &'static str, value: &'static str, body: Body) -> Option<u16> {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        status(read_body(&headers, body, LIMITS).await)
    }

    #[test]
    fn whole_number_that_would_be_rounded_is_refused_with_its_field() {
        let ignored = br#"{"metadata": {"a": 1}, "": 12345678901234567890123}"#;
        parse_object(ignored).unwrap();
        for (value, is_refused) in [
            ("12345678901234567890123", true),
            ("[{\"deep\": -9223372036854775809}]", true),
            ("18446744073709551615", false),
            ("-9223372036854775808", false),
            ("12345678901234567890123.0", false),
            ("4.444444444444445e23", false),
            ("\"12345678901234567890123\"", false),
            ("\"\\\"12345678901234567890123\"", false),
            ("{\"12345678901234567890123\": 1}", false),
        ] {
            let body = format!("{{\"a\": 1, \"metadata\": {value}}}");
            let refused = parse_object(body.as_bytes()).map_err(ApiError::into_parts);
            let param = refused.err().and_then(|error| error.param);
            assert_eq!(
                param.as_deref(),
                is_refused.then_some("metadata"),
                "{value}"
            );
        }
    }

    #[tokio::test]
    async fn json_media_types_are_accepted_and_others_rejected() {
        for media_type in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/merge-patch+json",
        ] {
            assert_eq!(
                read_with("content-type", media_type, Body::from("{}")).await,
                None,
                "{media_type}"
            );
        }
        for media_type in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
            "",
        ] {
            assert_eq!(
                read_with("content-type", media_type, Body::from("{}")).await,
                Some(415),
                "{media_type}"
            );
        }
        assert_eq!(
            status(read_body(&HeaderMap::new(), Body::from("{}"), LIMITS).await),
            None
        );
        assert_eq!(
            read_with("content-encoding", "gzip", Body::from("{}")).await,
            Some(415)
        );
    }

    #[tokio::test]
    async fn body_above_the_limit_is_rejected_announced_or_not() {
        assert_eq!(
            status(read_body(&HeaderMap::new(), Body::from("12345678"), LIMITS).await),
            None
        );
        assert_eq!(
            status(read_body(&HeaderMap::new(), Body::from("123456789"), LIMITS).await),
            Some(413)
        );
        assert_eq!(
            read_with("content-length", "9", Body::from("1")).await,
            Some(413)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn unfinished_body_times_out() {
        let endless = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        assert_eq!(
            status(read_body(&HeaderMap::new(), endless, LIMITS).await),
            Some(408)
        );
    }

    #[test]
    fn malformed_json_differs_from_json_that_is_no_object() {
        let code = |text: &str| {
            parse_object(text.as_bytes())
                .err()
                .and_then(|error| error.into_parts().code)
        };
        let deep = "[".repeat(10_000);
        for text in [
            "",
            "{",
            "{\"a\":1,}",
            "\u{feff}{}",
            "{}{}",
            "NaN",
            r#"{"a":"\ud800"}"#,
            "{\"a\":1e400}",
            &deep,
        ] {
            assert_eq!(code(text), Some(ErrorCode::InvalidJson), "{text:.20}");
        }
        for text in ["[]", "\"a\"", "null", "1"] {
            assert_eq!(code(text), Some(ErrorCode::InvalidRequestData), "{text}");
        }
        assert_eq!(code(" {\"a\":1} "), None);
    }

    #[test]
    fn malformed_json_is_described_by_its_position_alone() {
        for (text, detail) in [
            ("", "the body is empty"),
            (" \r\n", "the body is empty"),
            (
                "{'message': 1}",
                "the body is not valid JSON at line 1, column 2: use double quotes",
            ),
            (
                "{\n  \"message\": hi\n}",
                "the body is not valid JSON at line 2, column 14",
            ),
            (
                "{\"message\": \"h",
                "the body is not valid JSON at line 1, column 14: it ends too early",
            ),
            (
                r#"{"$serde_json::private::RawValue": 4711}"#,
                "the body is not valid JSON at line 1, column 39",
            ),
            (
                "{\"message\": \"hi\nthere\"}",
                "the body is not valid JSON at line 2, column 0: write line breaks in texts as \\n",
            ),
            (
                "\u{feff}{}",
                "the body is not valid JSON at line 1, column 1: leave out the byte order mark",
            ),
            (&"[".repeat(200), "the body is nested too deeply"),
        ] {
            let error = parse_object(text.as_bytes()).unwrap_err().into_parts();
            assert_eq!(error.detail, detail, "{text}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = parse_object(&bytes);
        }
    }
}
