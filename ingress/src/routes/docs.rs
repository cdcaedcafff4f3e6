//! `/docs`: a page that shows the OpenAPI document. It is embedded in the binary, and its content
//! security policy blocks all other origins.

use axum::{
    Router,
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use http::{HeaderValue, header};

use crate::state::AppState;

const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'",
);
/// Revalidated on each use, because the file names contain no version.
const CACHE_CONTROL: HeaderValue = HeaderValue::from_static("no-cache");

const PAGE: &str = include_str!("../assets/docs.html");
const STYLE: &str = include_str!("../assets/docs.css");
const SCRIPT: &str = include_str!("../assets/docs.js");

/// Returns the routes of the page and its two files; they need no key.
pub(crate) fn routes() -> Router<AppState> {
    Router::new()
        .route(
            "/docs",
            get(async || asset_response("text/html; charset=utf-8", PAGE)),
        )
        // The page uses relative URLs, so that it works behind a proxy that adds a path prefix.
        .route("/docs/", get(async || Redirect::permanent("../docs")))
        .route(
            "/docs/docs.css",
            get(async || asset_response("text/css; charset=utf-8", STYLE)),
        )
        .route(
            "/docs/docs.js",
            get(async || asset_response("text/javascript; charset=utf-8", SCRIPT)),
        )
}

fn asset_response(media_type: &'static str, text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(media_type)),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, CACHE_CONTROL),
    ];
    (headers, text).into_response()
}
