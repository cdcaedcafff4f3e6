//! `GET /` leads browsers to the dashboard, and `/favicon.ico` is the icon for clients that do not
//! read pages.

use axum::{
    Router,
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use http::{HeaderMap, HeaderValue, Uri, header};

use crate::{http::unknown_routes::unknown_route, state::AppState};

/// The icon of the dashboard as a picture of 64 x 64 pixels.
const ICON: &[u8] = include_bytes!("../assets/favicon.ico");
const ICON_CACHING: HeaderValue = HeaderValue::from_static("public, max-age=86400");

/// Returns the routes. `page` is the page for people on this port, relative to the root, so that it
/// is found behind a proxy that adds a path prefix.
pub(crate) fn routes(page: &'static str) -> Router<AppState> {
    Router::new()
        .route(
            "/",
            get(async move |uri: Uri, headers: HeaderMap| serve_root(page, &uri, &headers)),
        )
        .route("/favicon.ico", get(serve_icon))
}

/// Programs get the same error as at every path without a route.
fn serve_root(page: &str, uri: &Uri, headers: &HeaderMap) -> Response {
    let vary = [(header::VARY, HeaderValue::from_static("accept"))];
    if accepts_html(headers) {
        (vary, Redirect::temporary(page)).into_response()
    } else {
        (vary, unknown_route(uri)).into_response()
    }
}

async fn serve_icon() -> Response {
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("image/x-icon"),
        ),
        (header::CACHE_CONTROL, ICON_CACHING),
    ];
    (headers, ICON).into_response()
}

/// Returns true for browsers, which name the type; programs accept anything or JSON.
fn accepts_html(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT).iter();
    let mut texts = values.filter_map(|value| value.to_str().ok());
    texts.any(|text| text.to_ascii_lowercase().contains("text/html"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;

    const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

    #[tokio::test]
    async fn root_leads_browsers_to_the_dashboard() {
        let world = World::new().await;
        let browser = world
            .send_with("GET", "/", &[("accept", BROWSER)], "")
            .await;
        assert_eq!(browser.status, 307);
        assert_eq!(browser.headers[header::LOCATION], "dashboard");
        for accept in ["*/*", "application/json"] {
            let program = world.send_with("GET", "/", &[("accept", accept)], "").await;
            assert_eq!(program.problem(), (404, "NOT_FOUND".to_owned()), "{accept}");
        }
    }
}
