//! Sends files back: as downloads, which no browser shows or runs as a page of this origin.

use std::{io, ops::Range};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use data_encoding::HEXUPPER;
use futures::TryStreamExt;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;
use switchboard_backends::files::StoredFile;
use switchboard_schemas::ids::FileId;
use utoipa::IntoParams;

use super::upload::unavailable;
use crate::{
    http::{ApiError, ApiResult, ErrorCode},
    state::AppState,
};

/// Nothing of a file runs, loads or is framed, should a browser show it after all.
const POLICY: HeaderValue =
    HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; sandbox");
/// A file never changes; who may read it can.
const CACHE: HeaderValue = HeaderValue::from_static("private, no-cache");

/// The file of a path.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Path)]
pub(crate) struct FilePath {
    /// The id of the file.
    #[param(example = "file_77777777777777777777777777")]
    pub(crate) file_id: String,
}

/// The part of a file that a client asks for.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "it describes a header that is read by hand")]
pub(crate) struct RangeHeader {
    /// One range of bytes, such as `bytes=0-1023`; several are answered with the whole file.
    #[param(rename = "Range", required = false)]
    range: Option<String>,
}

/// A file that the caller may read.
pub(crate) struct DownloadedFile(pub(crate) StoredFile);

impl DownloadedFile {
    /// Finds the file of a path that satisfies `may_read`.
    ///
    /// # Errors
    /// 404 if there is none.
    pub(crate) async fn find(
        state: &AppState,
        org: &switchboard_schemas::ids::OrgId,
        id: &str,
        may_read: impl FnOnce(&StoredFile) -> bool,
    ) -> ApiResult<Self> {
        let not_found = || ApiError::new(ErrorCode::NotFound, "no file with this id");
        let id: FileId = id.parse().map_err(|_| not_found())?;
        let file = state.backends.files.find(org, &id).await;
        let file = file.map_err(|error| unavailable(&error))?;
        file.filter(may_read).map(Self).ok_or_else(not_found)
    }

    /// Sends the file, or the range that was asked for.
    ///
    /// # Errors
    /// 416 for a range that is not within the file, 503.
    pub(crate) async fn respond(
        self,
        state: &AppState,
        headers: &HeaderMap,
    ) -> ApiResult<Response> {
        let bytes = self.0.attachment.bytes;
        let (status, range) = match requested_range(headers, bytes) {
            None => (StatusCode::OK, 0..bytes),
            Some(Ok(range)) => (StatusCode::PARTIAL_CONTENT, range),
            Some(Err(())) => {
                let detail = format!("the file has {bytes} bytes");
                let details = serde_json::json!({ "bytes": bytes });
                return Err(ApiError::new(ErrorCode::RangeNotSatisfiable, detail).details(details));
            }
        };
        let content = state
            .backends
            .files
            .read_range(&self.0, range.clone())
            .await;
        let content = content.map_err(|error| unavailable(&error))?;
        let body = Body::from_stream(content.map_err(|error| {
            tracing::warn!(%error, "download of a file aborted");
            io::Error::other("the download was aborted")
        }));
        let mut response = (status, body).into_response();
        self.write_headers(response.headers_mut(), &range, status);
        Ok(response)
    }

    fn write_headers(&self, headers: &mut HeaderMap, range: &Range<u64>, status: StatusCode) {
        let file = &self.0.attachment;
        let text = |value: String| HeaderValue::try_from(value).ok();
        let media_type = match file.mime_type {
            kind if kind.is_text() => format!("{kind}; charset=utf-8"),
            kind => kind.to_string(),
        };
        let content_range = format!("bytes {}-{}/{}", range.start, range.end - 1, file.bytes);
        let written = [
            (header::CONTENT_TYPE, text(media_type)),
            (
                header::CONTENT_LENGTH,
                Some((range.end - range.start).into()),
            ),
            (header::CONTENT_DISPOSITION, text(disposition(&file.name))),
            (header::CONTENT_SECURITY_POLICY, Some(POLICY)),
            (header::CACHE_CONTROL, Some(CACHE)),
            (
                header::ACCEPT_RANGES,
                Some(HeaderValue::from_static("bytes")),
            ),
            (
                header::CONTENT_RANGE,
                text(content_range).filter(|_| status == StatusCode::PARTIAL_CONTENT),
            ),
        ];
        for (name, value) in written {
            if let Some(value) = value {
                headers.insert(name, value);
            }
        }
    }
}

/// Returns the one range of a request: `None` without one that is understood, and an error if it is
/// not within the file.
fn requested_range(headers: &HeaderMap, bytes: u64) -> Option<Result<Range<u64>, ()>> {
    let text = headers.get(header::RANGE)?.to_str().ok()?;
    let asked = http_range_header::parse_range_header(text).ok()?;
    match asked.validate(bytes) {
        Ok(ranges) => match ranges.as_slice() {
            [one] => Some(Ok(*one.start()..one.end() + 1)),
            _ => None,
        },
        Err(_) => Some(Err(())),
    }
}

/// Returns `Content-Disposition` with a name in ASCII, and the whole one as RFC 6266 writes it.
fn disposition(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|letter| match letter {
            '"' | '\\' | '%' => '_',
            letter if letter.is_ascii_graphic() || letter == ' ' => letter,
            _ => '_',
        })
        .collect();
    let mut encoded = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            encoded.push_str(&HEXUPPER.encode(&[byte]));
        }
    }
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}")
}
