//! `/dashboard/preview`: a framed page of the dashboard that runs the real widget with unsaved
//! settings.
//!
//! It contains text of other people, next to an administrator's session. Its content security
//! policy therefore removes its origin and blocks all requests.

use axum::{
    Router,
    response::{IntoResponse, Response},
    routing::get,
};
use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::{
    http::{ApiError, compression::respond_with_text},
    state::AppState,
};

const PAGE: &str = include_str!("../assets/preview.html");
const STYLE: &str = include_str!("../assets/preview.css");
const SCRIPT: &str = include_str!("../assets/preview.js");
/// Placeholder of the origin that serves the widget; empty if it is this one.
const PUBLIC_API_MARK: &str = "{publicApi}";
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache");
/// Lets the page load its own files, which are cross-origin for a page without an origin.
const OF_ANY_PAGE: (HeaderName, HeaderValue) = (
    HeaderName::from_static("cross-origin-resource-policy"),
    HeaderValue::from_static("cross-origin"),
);

/// Returns the routes of the page and its files; they contain no data and need no session.
pub(super) fn routes(public_api: &'static str) -> Router<AppState> {
    Router::new()
        .route(
            "/dashboard/preview",
            get(async move |headers: HeaderMap| serve_page(public_api, &headers)),
        )
        .route(
            "/dashboard/preview/preview.css",
            get(async |headers: HeaderMap| {
                asset_response("text/css; charset=utf-8", STYLE, &headers)
            }),
        )
        .route(
            "/dashboard/preview/preview.js",
            get(async |headers: HeaderMap| {
                asset_response("text/javascript; charset=utf-8", SCRIPT, &headers)
            }),
        )
}

fn serve_page(public_api: &str, headers: &HeaderMap) -> Response {
    let policy = format!(
        "default-src 'none'; script-src 'self' {public_api}; style-src 'self'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'self'; sandbox allow-scripts; require-trusted-types-for 'script'; trusted-types 'none'"
    );
    let Ok(policy) = HeaderValue::from_str(&policy) else {
        return ApiError::internal(&"invalid content security policy").into_response();
    };
    let mut response = asset_response(
        "text/html; charset=utf-8",
        &PAGE.replace(PUBLIC_API_MARK, public_api),
        headers,
    );
    response
        .headers_mut()
        .insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

fn asset_response(media_type: &'static str, text: &str, request: &HeaderMap) -> Response {
    let headers = [(header::CACHE_CONTROL, NO_CACHE), OF_ANY_PAGE];
    (headers, respond_with_text(media_type, text, request)).into_response()
}
