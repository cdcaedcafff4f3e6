//! `/dashboard`: the single-page dashboard, built from `web/dashboard` and embedded in the binary.
//!
//! The content security policy allows nothing inline. The component library writes style elements
//! at run time; they carry a nonce that is new for every response and permits style sheets only,
//! not scripts.

use axum::{
    Router,
    extract::Path,
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use http::{HeaderMap, HeaderValue, header};
use rand::RngExt;

use super::{
    preview,
    static_files::{IMMUTABLE, StaticFile},
};
use crate::{
    http::{ApiError, ErrorCode, compression::respond_with_text, origin::url_origin},
    state::AppState,
};

/// A file of the dashboard build.
pub(super) const FILES: &[StaticFile] = include!(concat!(env!("OUT_DIR"), "/dashboard.rs"));
const PAGE: &str = include_str!("../../assets/dashboard/index.html");

/// Placeholder of the style nonce in the page.
const NONCE_MARK: &str = "@STYLE_NONCE@";
/// Placeholder of the public API's origin in the page.
const PUBLIC_API_MARK: &str = "@PUBLIC_API@";
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// Returns the routes of the page, which is served at every path below `/dashboard`, and of its
/// files. `public_api` is the origin of the public API if it differs from the dashboard's.
pub(crate) fn routes(public_api: Option<&str>) -> Router<AppState> {
    let public_api: &'static str = Box::leak(
        public_api
            .and_then(url_origin)
            .unwrap_or_default()
            .into_boxed_str(),
    );
    let page = get(async move |headers: HeaderMap| serve_page(public_api, &headers));
    Router::new()
        .route("/dashboard", page.clone())
        // Redirect to the canonical address without a trailing slash.
        .route(
            "/dashboard/",
            get(async || Redirect::permanent("../dashboard")),
        )
        .route("/dashboard/{*path}", page)
        .route("/dashboard/assets/{name}", get(serve_file))
        .merge(preview::routes(public_api))
}

fn serve_page(public_api: &str, request: &HeaderMap) -> Response {
    let nonce = format!("{:032x}", rand::rng().random::<u128>());
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' https: data:; \
         font-src 'self'; connect-src 'self' {public_api}; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let Ok(policy) = HeaderValue::from_str(&policy) else {
        return ApiError::internal(&"invalid content security policy").into_response();
    };
    let headers = [
        (header::CONTENT_SECURITY_POLICY, policy),
        // A cached page would contain a nonce that no longer matches its policy.
        (header::CACHE_CONTROL, NO_STORE),
    ];
    let page = PAGE.replace(NONCE_MARK, &nonce);
    let page = page.replace(PUBLIC_API_MARK, public_api);
    let response = respond_with_text("text/html; charset=utf-8", &page, request);
    (headers, response).into_response()
}

/// Serves a built file. A missing file is an error and never the page, which a browser would run as
/// a script.
async fn serve_file(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let wanted = format!("assets/{name}");
    let Some(file) = FILES.iter().find(|file| file.name == wanted) else {
        return ApiError::new(ErrorCode::NotFound, "the dashboard has no such file")
            .into_response();
    };
    ([(header::CACHE_CONTROL, IMMUTABLE)], file.respond(&headers)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_has_the_placeholders_of_its_headers() {
        assert!(FILES.iter().any(|file| file.name == "index.html"));
        assert!(PAGE.contains(NONCE_MARK) && PAGE.contains(PUBLIC_API_MARK));
    }

    #[test]
    fn policy_contains_only_an_origin() {
        assert_eq!(
            url_origin("https://chat.example/below").as_deref(),
            Some("https://chat.example")
        );
        assert_eq!(
            url_origin("http://127.0.0.1:8080").as_deref(),
            Some("http://127.0.0.1:8080")
        );
        for odd in [
            "",
            "chat.example",
            "/path",
            "https://a.example; script-src *",
        ] {
            assert_eq!(url_origin(odd), None, "{odd}");
        }
    }
}
