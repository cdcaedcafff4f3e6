//! `/docs`: a page that shows the OpenAPI document. It is embedded in the binary, and its content
//! security policy blocks all other origins.

use std::sync::LazyLock;

use axum::{
    Router,
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use http::{HeaderMap, HeaderValue, header};

use crate::{http::compression::CompressedText, state::AppState};

const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'",
);
/// Revalidated on each use, because the file names contain no version.
const CACHE_CONTROL: HeaderValue = HeaderValue::from_static("no-cache");

const HTML: &str = "text/html; charset=utf-8";

/// A file of the page, compressed on first use.
type PageFile = LazyLock<CompressedText>;

static PAGE: PageFile = LazyLock::new(|| CompressedText::new(include_str!("../assets/docs.html")));
static ERRORS: PageFile = LazyLock::new(|| CompressedText::new(ERRORS_PAGE));
static STYLE: PageFile = LazyLock::new(|| CompressedText::new(include_str!("../assets/docs.css")));
static SCRIPT: PageFile = LazyLock::new(|| CompressedText::new(include_str!("../assets/docs.js")));

/// The page of the error codes, to which the `type` of each error leads.
const ERRORS_PAGE: &str = include_str!("../assets/errors.html");

/// Returns the routes of the page and its two files; they need no key.
pub(crate) fn routes() -> Router<AppState> {
    Router::new()
        .route(
            "/docs",
            get(async |headers: HeaderMap| asset_response(HTML, &PAGE, &headers)),
        )
        .route(
            "/docs/errors",
            get(async |headers: HeaderMap| asset_response(HTML, &ERRORS, &headers)),
        )
        // The page uses relative URLs, so that it works behind a proxy that adds a path prefix.
        .route("/docs/", get(async || Redirect::permanent("../docs")))
        .route(
            "/docs/docs.css",
            get(async |headers: HeaderMap| {
                asset_response("text/css; charset=utf-8", &STYLE, &headers)
            }),
        )
        .route(
            "/docs/docs.js",
            get(async |headers: HeaderMap| {
                asset_response("text/javascript; charset=utf-8", &SCRIPT, &headers)
            }),
        )
}

fn asset_response(media_type: &'static str, file: &PageFile, request: &HeaderMap) -> Response {
    let headers = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, CACHE_CONTROL),
    ];
    (headers, file.respond(media_type, request)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::ErrorCode;

    #[test]
    fn every_error_code_has_a_section() {
        for code in ErrorCode::ALL {
            let (slug, name) = (code.slug(), code.name());
            let head = format!("<article id=\"{slug}\">\n<h2><code>{name}</code></h2>");
            let section = ERRORS_PAGE.split(&head).nth(1);
            let section = section.and_then(|rest| rest.split("</article>").next());
            let section = section.unwrap_or_else(|| panic!("{name} has no section"));
            let status = format!("<p class=\"type\">{}</p>", code.status().as_u16());
            for part in [status.as_str(), "<h4>Cause</h4>", "<h4>What to do</h4>"] {
                assert!(section.contains(part), "{name}: {part} is missing");
            }
        }
        let sections = ERRORS_PAGE.matches("<article").count();
        assert_eq!(sections, ErrorCode::ALL.len() + 1);
    }
}
