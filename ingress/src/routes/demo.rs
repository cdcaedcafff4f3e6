//! `/demo`: a shop page with the chat widget of the demo organization; available while the process
//! has one.
//!
//! Its content security policy is as strict as possible, which shows that the widget needs no
//! exceptions.

use axum::{
    Router,
    extract::State,
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use http::{HeaderMap, HeaderValue, header};

use crate::{
    http::{ApiError, ErrorCode, compression::respond_with_text},
    state::AppState,
};

const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' https: data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
     trusted-types 'none'",
);
const CACHE_CONTROL: HeaderValue = HeaderValue::from_static("no-cache");

const PAGE: &str = include_str!("../assets/demo.html");
const STYLE: &str = include_str!("../assets/demo.css");
/// Placeholder of the agent id in the page.
const AGENT_MARK: &str = "{agentId}";
/// Placeholder of this service's URL in the page.
const SERVICE_MARK: &str = "{service}";

/// Returns the routes of the page and its style sheet; they need no key.
pub(crate) fn routes() -> Router<AppState> {
    Router::new()
        .route("/demo", get(serve_page))
        // The page uses relative URLs, so that it works behind a proxy that adds a path prefix.
        .route("/demo/", get(async || Redirect::permanent("../demo")))
        .route(
            "/demo/demo.css",
            get(async |headers: HeaderMap| {
                asset_response("text/css; charset=utf-8", STYLE, &headers)
            }),
        )
}

async fn serve_page(State(state): State<AppState>, headers: HeaderMap) -> Response {
    match state.demo_agent.get() {
        Some(agent) => {
            let page = PAGE
                .replace(AGENT_MARK, agent.as_str())
                .replace(SERVICE_MARK, &state.config.public_url);
            asset_response("text/html; charset=utf-8", &page, &headers)
        }
        None => ApiError::new(
            ErrorCode::NotFound,
            "this installation has no demo organization",
        )
        .into_response(),
    }
}

fn asset_response(media_type: &'static str, text: &str, request: &HeaderMap) -> Response {
    let headers = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, CACHE_CONTROL),
    ];
    (headers, respond_with_text(media_type, text, request)).into_response()
}
