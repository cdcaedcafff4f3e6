//! What keeps a browser from doing more with an answer than reading it. A page of ours may set its own policy: what a
//! handler has set is left as it is.

use axum::{extract::Request, middleware::Next, response::Response};
use http::{HeaderName, HeaderValue, header};

const API_PREFIX: &str = "/api/";

const EVERYWHERE: [(HeaderName, HeaderValue); 2] = [
    (
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    ),
    // Not `no-referrer`: under it a browser sends `Origin: null` for a page's own forms, and they could not be told
    // from another site's.
    (
        header::REFERRER_POLICY,
        HeaderValue::from_static("same-origin"),
    ),
];

/// Answers of the API are data: never a page, never in a frame, never in a cache.
const OF_THE_API: [(HeaderName, HeaderValue); 2] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"),
    ),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
];

/// Adds them to every answer.
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
