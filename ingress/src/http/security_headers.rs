//! Security headers of all responses. Headers that a handler has set are kept, because pages define
//! their own policies.

use axum::{extract::Request, middleware::Next, response::Response};
use http::{HeaderName, HeaderValue, header};

const API_PREFIX: &str = "/api/";

const EVERYWHERE: [(HeaderName, HeaderValue); 2] = [
    (
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    ),
    // Not `no-referrer`: browsers would then send `Origin: null` for our own forms, which would
    // look like those of another site.
    (
        header::REFERRER_POLICY,
        HeaderValue::from_static("same-origin"),
    ),
];

/// API responses are data: never a page, framed or cached.
const OF_THE_API: [(HeaderName, HeaderValue); 2] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"),
    ),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
];

/// Adds the security headers that the response does not have yet.
pub(crate) async fn security_headers(request: Request, next: Next) -> Response {
    let is_api = request.uri().path().starts_with(API_PREFIX);
    let mut response = next.run(request).await;
    let of_the_api = if is_api { &OF_THE_API[..] } else { &[] };
    for (name, value) in EVERYWHERE.iter().chain(of_the_api) {
        response
            .headers_mut()
            .entry(name)
            .or_insert_with(|| value.clone());
    }
    response
}
