//! CORS of the public API. Any page may call it and read its responses, because access depends on
//! the key and the agent's allowlist, never on a cookie.

use axum::{
    body::Body,
    extract::Request,
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

/// Path prefixes with CORS; the admin API is not among them.
const PUBLIC_PREFIXES: [&str; 2] = ["/api/public/", "/api/widget/"];
/// Maximum size of an echoed origin: scheme, host name and port.
const ORIGIN_BYTES_MAX: usize = 300;

const ANY_ORIGIN: HeaderValue = HeaderValue::from_static("*");
const VARY: HeaderValue = HeaderValue::from_static("Origin");
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PATCH, OPTIONS");
const REQUEST_HEADERS: HeaderValue = HeaderValue::from_static(
    "Authorization, X-API-Key, Content-Type, Idempotency-Key, Last-Event-ID, Prefer, Accept, Range, \
     traceparent",
);
const EXPOSED_HEADERS: HeaderValue = HeaderValue::from_static(
    "X-Request-Id, X-Conversation-Id, X-Message-Id, X-Agent-Id, X-Agent-Name, X-Routing-Reason, X-UI-Spec, \
     X-UI-Spec-Truncated, X-AI-Generated, X-Model, X-Reply-Generation, Retry-After, RateLimit, RateLimit-Policy, Location, \
     Preference-Applied, Content-Disposition, Content-Range, Accept-Ranges",
);
/// Two hours, the maximum that all browsers accept.
const PREFLIGHT_MAX_AGE_SECONDS: HeaderValue = HeaderValue::from_static("7200");

/// Answers preflight requests, which carry no key, and adds CORS headers to other responses of the
/// public API.
pub(crate) async fn cors(request: Request, next: Next) -> Response {
    if !PUBLIC_PREFIXES
        .iter()
        .any(|prefix| request.uri().path().starts_with(prefix))
    {
        return next.run(request).await;
    }
    let origin = allowed_origin(request.headers());
    let mut response = if request.method() == Method::OPTIONS {
        preflight_response()
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    // Also set for programs, so that caches do not serve their responses to pages.
    headers.append(header::VARY, VARY);
    if let Some(origin) = origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
    }
    response
}

fn preflight_response() -> Response {
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, METHODS),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS),
        (header::ACCESS_CONTROL_MAX_AGE, PREFLIGHT_MAX_AGE_SECONDS),
    ];
    (StatusCode::NO_CONTENT, headers, Body::empty()).into_response()
}

/// Returns the origin to echo. `null` is answered with `*` instead, because any sandboxed frame can
/// send it and it must not look like a listed origin.
pub(crate) fn allowed_origin(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let origin = origins
        .next()
        .filter(|origin| (1..=ORIGIN_BYTES_MAX).contains(&origin.len()))?;
    let is_one_word = origin
        .as_bytes()
        .iter()
        .all(|byte| byte.is_ascii_graphic() && *byte != b',');
    if origins.next().is_some() || !is_one_word {
        return None;
    }
    Some(if origin == "null" {
        ANY_ORIGIN
    } else {
        origin.clone()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn allowed(origins: &[&[u8]]) -> Option<HeaderValue> {
        let mut headers = HeaderMap::new();
        for origin in origins {
            headers.append(header::ORIGIN, HeaderValue::from_bytes(origin).unwrap());
        }
        allowed_origin(&headers)
    }

    #[test]
    fn single_origin_is_echoed_and_null_becomes_a_wildcard() {
        assert_eq!(
            allowed(&[b"https://shop.example"]).unwrap(),
            "https://shop.example"
        );
        assert_eq!(allowed(&[b"null"]).unwrap(), "*");
        let long = format!("https://{}.example", "a".repeat(ORIGIN_BYTES_MAX));
        for origins in [
            &[][..],
            &[&b""[..]],
            &[long.as_bytes()],
            &[b"https://a.example", b"https://b.example"],
            &[b"https://a.example, https://b.example"],
            &[b"https://a.example https://b.example"],
            &[b"https://\xff.example"],
        ] {
            assert_eq!(allowed(origins), None, "{origins:?}");
        }
    }

    proptest! {
        #[test]
        fn origin_is_echoed_unchanged_or_not_at_all(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            if let Ok(value) = HeaderValue::from_bytes(&bytes)
                && let Some(echo) = allowed(&[&bytes])
            {
                prop_assert!(echo == value || (value == "null" && echo == "*"));
                prop_assert!(echo.len() <= ORIGIN_BYTES_MAX && echo.to_str().is_ok());
            }
        }
    }
}
