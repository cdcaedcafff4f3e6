//! Negotiates the format of a reply from headers and body. Pure.

use http::{HeaderMap, HeaderName, header};
use serde_json::Value;
use utoipa::IntoParams;

use crate::http::{ApiError, ApiResult};

const PREFER: HeaderName = HeaderName::from_static("prefer");
/// Preference of clients that do not wait for the reply.
pub(super) const RESPOND_ASYNC: &str = "respond-async";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyShape {
    /// Streamed `text/plain`.
    Text,
    /// One `application/json` document.
    Json,
    /// Server-sent events (`text/event-stream`).
    Events,
    /// 202 without the reply; the client fetches the message later.
    Later,
}

impl ReplyShape {
    /// Returns the format that a chat request asks for by its headers and its `stream` field.
    pub(crate) fn from_request(headers: &HeaderMap, stream: &Value) -> ApiResult<Self> {
        let stream = match stream {
            Value::Null => None,
            Value::Bool(stream) => Some(*stream),
            _ => return Err(ApiError::field("stream", "must be true or false")),
        };
        if PreferHeader::from_headers(headers).respond_async {
            return Ok(Self::Later);
        }
        Ok(if stream == Some(false) {
            Self::Json
        } else {
            accepted_shape(headers).unwrap_or(Self::Text)
        })
    }

    /// Returns the format for following an existing reply: text or events.
    pub(crate) fn for_stream(headers: &HeaderMap) -> Self {
        if accepted_shape(headers) == Some(Self::Events) {
            Self::Events
        } else {
            Self::Text
        }
    }

    /// Returns true if the client waits for the reply.
    pub(crate) fn waits_for_reply(self) -> bool {
        self != Self::Later
    }
}

/// The preferences of a client.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct PreferHeader {
    /// `respond-async` returns 202 at once instead of the reply.
    #[param(rename = "Prefer", value_type = String, required = false)]
    respond_async: bool,
}

impl PreferHeader {
    fn from_headers(headers: &HeaderMap) -> Self {
        let values = headers
            .get_all(PREFER)
            .iter()
            .filter_map(|value| value.to_str().ok());
        let mut names = values
            .flat_map(|value| value.split(','))
            .filter_map(|preference| preference.split([';', '=']).next());
        Self {
            respond_async: names.any(|name| name.trim().eq_ignore_ascii_case(RESPOND_ASYNC)),
        }
    }
}

/// Returns the accepted format with the greatest weight; ties go to the first one.
fn accepted_shape(headers: &HeaderMap) -> Option<ReplyShape> {
    let values = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let mut best: Option<(f32, ReplyShape)> = None;
    for (shape, weight) in values
        .flat_map(|value| value.split(','))
        .filter_map(media_range)
    {
        if weight > best.map_or(0.0, |(weight, _)| weight) {
            best = Some((weight, shape));
        }
    }
    best.map(|(_, shape)| shape)
}

fn media_range(range: &str) -> Option<(ReplyShape, f32)> {
    let mut parts = range.split(';').map(str::trim);
    let shape = match parts.next()?.to_ascii_lowercase().as_str() {
        "application/json" => ReplyShape::Json,
        "text/event-stream" => ReplyShape::Events,
        "text/plain" | "text/*" | "*/*" => ReplyShape::Text,
        _ => return None,
    };
    let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    Some((
        shape,
        weight.map_or(1.0, |weight| weight.parse().unwrap_or(0.0)),
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn headers(name: HeaderName, value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        headers
    }

    fn shape(accept: &str, body: Value) -> Option<ReplyShape> {
        ReplyShape::from_request(&headers(header::ACCEPT, accept), &body["stream"]).ok()
    }

    #[test]
    fn accept_header_chooses_and_text_is_the_default() {
        for (accept, expected) in [
            ("*/*", ReplyShape::Text),
            ("image/png", ReplyShape::Text),
            (
                "text/html,application/xhtml+xml,*/*;q=0.8",
                ReplyShape::Text,
            ),
            ("application/json", ReplyShape::Json),
            ("Application/JSON; charset=utf-8", ReplyShape::Json),
            ("text/event-stream, */*", ReplyShape::Events),
            (
                "text/event-stream;q=0.5, application/json;q=0.9",
                ReplyShape::Json,
            ),
            ("application/json;q=0, text/plain;q=0.1", ReplyShape::Text),
            ("application/json;q=x", ReplyShape::Text),
        ] {
            assert_eq!(shape(accept, json!({})), Some(expected), "{accept}");
        }
        assert_eq!(
            ReplyShape::from_request(&HeaderMap::new(), &Value::Null).unwrap(),
            ReplyShape::Text
        );
    }

    #[test]
    fn stream_false_overrides_accept_and_true_does_not() {
        assert_eq!(
            shape("text/event-stream", json!({ "stream": false })),
            Some(ReplyShape::Json)
        );
        assert_eq!(
            shape("text/event-stream", json!({ "stream": true })),
            Some(ReplyShape::Events)
        );
        assert_eq!(
            shape("*/*", json!({ "stream": null })),
            Some(ReplyShape::Text)
        );
        assert_eq!(shape("*/*", json!({ "stream": "no" })), None);
    }

    #[test]
    fn respond_async_overrides_the_format() {
        for prefer in [
            "respond-async",
            "Respond-Async",
            "return=minimal, respond-async; wait=10",
        ] {
            let chosen = ReplyShape::from_request(&headers(PREFER, prefer), &Value::Null).unwrap();
            assert_eq!(chosen, ReplyShape::Later, "{prefer}");
        }
        let other = ReplyShape::from_request(
            &headers(PREFER, "wait=10, respond-asynchronously"),
            &Value::Null,
        )
        .unwrap();
        assert_eq!(other, ReplyShape::Text);
    }

    proptest! {
        #[test]
        fn arbitrary_accept_header_chooses_a_format(accept in "[ -~]{0,60}") {
            let chosen = shape(&accept, json!({}));
            prop_assert!(chosen.is_some());
        }
    }
}
