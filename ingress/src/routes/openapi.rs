//! `GET /api/public/openapi.json`: the OpenAPI document of the public API; it needs no key.

use std::sync::LazyLock;

use axum::{
    Extension,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use utoipa::IntoParams;

use crate::openapi::PublishedDocument;

/// Cached but revalidated, because a new version may change the document.
const CACHE_CONTROL: HeaderValue = HeaderValue::from_static("public, no-cache");

/// Returns the OpenAPI document, or 304 if the client has the current version.
#[utoipa::path(
    get,
    path = "/api/public/openapi.json",
    operation_id = "getOpenApi",
    tag = "Document",
    summary = "Read this document",
    description = "Needs no key. `/docs` shows it to people.",
    params(IfNoneMatchHeader),
    security(()),
    responses(
        (status = 200, description = "This document.", body = Object, content_type = "application/json"),
        (status = 304, description = "The copy of the client is current."),
    ),
)]
pub(crate) async fn get_document(
    Extension(document): Extension<&'static LazyLock<PublishedDocument>>,
    headers: HeaderMap,
) -> Response {
    serve_document(document, &headers)
}

/// Returns a document, or 304 if the client has this version.
pub(crate) fn serve_document(document: &PublishedDocument, headers: &HeaderMap) -> Response {
    let mut response = if IfNoneMatchHeader::from_headers(headers).matches(&document.etag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        document.body.respond("application/json", headers)
    };
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, CACHE_CONTROL);
    if let Ok(etag) = HeaderValue::from_str(&document.etag) {
        response.headers_mut().insert(header::ETAG, etag);
    }
    response
}

/// The versions that a cache has.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct IfNoneMatchHeader {
    /// The `ETag` of the cached copy.
    #[param(rename = "If-None-Match", value_type = String, required = false)]
    tags: Vec<String>,
}

impl IfNoneMatchHeader {
    fn from_headers(headers: &HeaderMap) -> Self {
        let values = headers.get_all(header::IF_NONE_MATCH).iter();
        let texts = values.filter_map(|value| value.to_str().ok());
        let tags = texts.flat_map(|text| text.split(','));
        Self {
            tags: tags.map(|tag| tag.trim().to_owned()).collect(),
        }
    }

    /// Returns true if the cache has this version. The comparison is weak, because compressing
    /// proxies mark tags as weak.
    fn matches(&self, etag: &str) -> bool {
        let mut tags = self.tags.iter();
        let etag = etag.trim_start_matches("W/");
        tags.any(|tag| tag == "*" || tag.trim_start_matches("W/") == etag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etag_matches_in_a_list_and_when_a_proxy_weakened_it() {
        let has = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::IF_NONE_MATCH, value.parse().unwrap());
            IfNoneMatchHeader::from_headers(&headers).matches("W/\"a\"")
        };
        assert!(has("\"a\"") && has("\"b\", \"a\"") && has("W/\"a\"") && has("*"));
        assert!(!has("\"b\"") && !has("a") && !has(""));
    }
}
