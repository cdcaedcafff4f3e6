//! Files of the web builds, embedded in the binary both plain and compressed with gzip.

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, header};

/// Cache policy of files whose names contain a hash of their content.
pub(super) const IMMUTABLE: HeaderValue =
    HeaderValue::from_static("public, max-age=31536000, immutable");

/// A file of a web build; `build.rs` generates tables of them.
pub(super) struct StaticFile {
    /// Path below the build folder.
    pub(super) name: &'static str,
    pub(super) plain: &'static [u8],
    pub(super) gzip: &'static [u8],
}

impl StaticFile {
    /// Creates the response in the encoding that the client accepts.
    pub(super) fn respond(&self, request: &HeaderMap) -> Response {
        let common = [
            (
                header::CONTENT_TYPE,
                HeaderValue::from_static(media_type(self.name)),
            ),
            (header::VARY, HeaderValue::from_static("accept-encoding")),
        ];
        if accepts_gzip(request) {
            let encoding = [(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))];
            (common, encoding, self.gzip).into_response()
        } else {
            (common, self.plain).into_response()
        }
    }
}

fn accepts_gzip(request: &HeaderMap) -> bool {
    let named = request
        .get_all(header::ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok());
    named.flat_map(|text| text.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts
            .next()
            .is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        is_gzip && !parts.any(|weight| matches!(weight, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("html") => "text/html; charset=utf-8",
        Some("woff2") => "font/woff2",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{dashboard, widget_script},
        *,
    };

    #[test]
    fn built_files_have_a_media_type_and_compressed_content() {
        for file in dashboard::FILES.iter().chain(widget_script::FILES) {
            let media_type = media_type(file.name);
            assert_ne!(media_type, "application/octet-stream", "{}", file.name);
            assert_eq!(file.gzip[..2], [0x1f, 0x8b], "{}", file.name);
        }
    }

    #[test]
    fn gzip_is_sent_only_if_accepted() {
        for (text, accepts) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("deflate", false),
            ("", false),
            ("gzip;q=0", false),
            ("x-gzip", false),
        ] {
            let headers =
                HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(text))]);
            assert_eq!(accepts_gzip(&headers), accepts, "{text}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }
}
