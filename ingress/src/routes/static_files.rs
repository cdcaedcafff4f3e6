//! Files of the web builds, embedded in the binary plain and compressed.

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, header};

use crate::http::compression::ContentCoding;

/// Cache policy of files whose names contain a hash of their content.
pub(super) const IMMUTABLE: HeaderValue =
    HeaderValue::from_static("public, max-age=31536000, immutable");

/// A file of a web build; `build.rs` generates tables of them.
pub(super) struct StaticFile {
    /// Path below the build folder.
    pub(super) name: &'static str,
    pub(super) plain: &'static [u8],
    pub(super) gzip: &'static [u8],
    pub(super) brotli: &'static [u8],
}

impl StaticFile {
    /// Creates the response in the coding that the client prefers.
    pub(super) fn respond(&self, request: &HeaderMap) -> Response {
        let media_type = HeaderValue::from_static(media_type(self.name));
        let coding = ContentCoding::preferred(request);
        let body = match coding {
            ContentCoding::Brotli => self.brotli,
            ContentCoding::Gzip => self.gzip,
            ContentCoding::Identity => self.plain,
        };
        let mut response = ([(header::CONTENT_TYPE, media_type)], body).into_response();
        coding.add_headers(&mut response);
        response
    }
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
        let (brotli, gzip) = dashboard::FILES
            .iter()
            .fold((0, 0), |(brotli, gzip), file| {
                (brotli + file.brotli.len(), gzip + file.gzip.len())
            });
        assert!(brotli < gzip, "{brotli} and {gzip} bytes");
    }
}
