//! `/v1/widget.js` and its parts: the embeddable chat widget built from `web/widget`.
//!
//! Cache-friendly: the name of a part contains the hash of its bytes and never changes its content;
//! the script itself keeps its name and is revalidated.

use std::sync::LazyLock;

use axum::{
    Json, Router,
    extract::Path,
    response::{IntoResponse, Response},
    routing::get,
};
use data_encoding::{BASE64, HEXLOWER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde_json::json;
use sha2::{Digest, Sha256, Sha384};

use super::static_files::{IMMUTABLE, StaticFile};
use crate::{
    http::{ApiError, ErrorCode},
    state::AppState,
};

const SCRIPT: &str = "widget.js";
pub(super) const FILES: &[StaticFile] = include!(concat!(env!("OUT_DIR"), "/widget.rs"));
/// Number of hash digits in file names; must match `web/widget/build.mjs`.
const HASH_DIGITS: usize = 16;

/// Short, because a cached old script requests parts that a new version no longer has.
const SCRIPT_CACHING: HeaderValue = HeaderValue::from_static("public, max-age=60");
/// Lets pages of any origin load the parts as modules, including pages with cross-origin isolation.
const CROSS_ORIGIN_HEADERS: [(HeaderName, HeaderValue); 2] = [
    (
        header::ACCESS_CONTROL_ALLOW_ORIGIN,
        HeaderValue::from_static("*"),
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("cross-origin"),
    ),
];

struct WidgetAsset {
    file: &'static StaticFile,
    /// File name with hash, such as `panel.0123456789abcdef.js`.
    hashed_name: String,
}

static ASSETS: LazyLock<Vec<WidgetAsset>> = LazyLock::new(|| {
    let asset = |file: &'static StaticFile| {
        let hash = HEXLOWER.encode(&Sha256::digest(file.plain));
        let name = file.name.trim_end_matches(".js");
        WidgetAsset {
            file,
            hashed_name: format!("{name}.{}.js", &hash[..HASH_DIGITS]),
        }
    };
    FILES.iter().map(asset).collect()
});

fn script() -> Option<&'static WidgetAsset> {
    ASSETS.iter().find(|asset| asset.file.name == SCRIPT)
}

/// Returns the routes of the script, its parts and its version information; they need no key.
pub(crate) fn routes() -> Router<AppState> {
    Router::new()
        .route("/v1/widget.js", get(serve_script))
        .route("/v1/widget.json", get(serve_version))
        .route("/v1/widget/{file}", get(serve_hashed_file))
}

async fn serve_script(headers: HeaderMap) -> Response {
    let Some(asset) = script() else {
        return unknown_file();
    };
    // Weak, because it stands for the plain and the compressed bytes.
    let tag = format!("W/\"{}\"", asset.hashed_name);
    let known = headers
        .get(header::IF_NONE_MATCH)
        .and_then(|value| value.to_str().ok());
    let mut response = if known.is_some_and(|known| known.contains(&tag)) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        asset.file.respond(&headers)
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    (
        CROSS_ORIGIN_HEADERS,
        [(header::CACHE_CONTROL, SCRIPT_CACHING)],
        response,
    )
        .into_response()
}

/// Returns the address and integrity hash that a page needs to pin this version.
async fn serve_version() -> Response {
    let Some(asset) = script() else {
        return unknown_file();
    };
    let integrity = format!(
        "sha384-{}",
        BASE64.encode(&Sha384::digest(asset.file.plain))
    );
    let answer =
        json!({ "script": format!("/v1/widget/{}", asset.hashed_name), "integrity": integrity });
    (
        CROSS_ORIGIN_HEADERS,
        [(header::CACHE_CONTROL, SCRIPT_CACHING)],
        Json(answer),
    )
        .into_response()
}

async fn serve_hashed_file(Path(name): Path<String>, headers: HeaderMap) -> Response {
    match ASSETS.iter().find(|asset| asset.hashed_name == name) {
        Some(asset) => (
            CROSS_ORIGIN_HEADERS,
            [(header::CACHE_CONTROL, IMMUTABLE)],
            asset.file.respond(&headers),
        )
            .into_response(),
        // Another version may have this part, so caches must not store this response.
        None => (
            CROSS_ORIGIN_HEADERS,
            [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))],
            unknown_file(),
        )
            .into_response(),
    }
}

fn unknown_file() -> Response {
    ApiError::new(
        ErrorCode::NotFound,
        "this version of the widget has no such file",
    )
    .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_names_its_parts_as_they_are_served() {
        let script = str::from_utf8(script().unwrap().file.plain).unwrap();
        for asset in ASSETS.iter().filter(|asset| asset.file.name != SCRIPT) {
            assert!(
                script.contains(&asset.hashed_name),
                "widget.js does not load {}: build web/widget again",
                asset.hashed_name
            );
        }
    }

    #[test]
    fn widget_script_and_its_parts_stay_small_compressed() {
        let script = script().unwrap().file.gzip.len();
        assert!(script <= 15 << 10, "{script} bytes");
        let everything: usize = FILES.iter().map(|file| file.gzip.len()).sum();
        assert!(everything <= 48 << 10, "{everything} bytes");
    }

    #[test]
    fn base64_digits_match_those_of_browsers() {
        assert_eq!(BASE64.encode(b"abc"), "YWJj");
        assert_eq!(BASE64.encode(&[0xff, 0xfe, 0xfd, 0, 0, 0]), "//79AAAA");
    }
}
