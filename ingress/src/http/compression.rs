//! Compressed forms of texts that are the same for everybody. Replies are never compressed: a
//! compressor holds back the end of what it got.

use std::io::Write as _;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{HeaderMap, HeaderValue, header};

/// Quality of brotli for texts that are compressed while a request waits; the best is 11.
const BROTLI_QUALITY: u32 = 9;
/// Base-2 logarithm of brotli's window, in bytes.
const BROTLI_WINDOW: u32 = 22;
/// Size of brotli's buffer, in bytes.
const BROTLI_BUFFER: usize = 4096;

/// A text in each form in which it is sent.
pub(crate) struct CompressedText {
    plain: Bytes,
    gzip: Bytes,
    brotli: Bytes,
}

/// A content coding of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentCoding {
    Brotli,
    Gzip,
    Identity,
}

impl ContentCoding {
    /// Returns the coding that the client prefers, the shortest of several.
    pub(crate) fn preferred(request: &HeaderMap) -> Self {
        let values = request.get_all(header::ACCEPT_ENCODING).iter();
        let text: Vec<_> = values.filter_map(|value| value.to_str().ok()).collect();
        let text = text.join(",");
        let weight = |name: &str| weight_of(&text, name).or_else(|| weight_of(&text, "*"));
        let (brotli, gzip) = (
            weight("br").unwrap_or_default(),
            weight("gzip").unwrap_or_default(),
        );
        if brotli > 0.0 && brotli >= gzip {
            Self::Brotli
        } else if gzip > 0.0 {
            Self::Gzip
        } else {
            Self::Identity
        }
    }

    /// Returns the value of `Content-Encoding`; none without compression.
    const fn name(self) -> Option<&'static str> {
        match self {
            Self::Brotli => Some("br"),
            Self::Gzip => Some("gzip"),
            Self::Identity => None,
        }
    }

    /// Adds the headers of a response in this coding.
    pub(crate) fn add_headers(self, response: &mut Response) {
        let headers = response.headers_mut();
        headers.append(header::VARY, HeaderValue::from_static("accept-encoding"));
        if let Some(name) = self.name() {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(name));
        }
    }

    fn encode(self, plain: &[u8]) -> Bytes {
        let encoded = match self {
            Self::Brotli => brotli(plain),
            Self::Gzip => gzip(plain),
            Self::Identity => return Bytes::copy_from_slice(plain),
        };
        // Writing to memory does not fail.
        encoded.unwrap_or_default().into()
    }
}

impl CompressedText {
    pub(crate) fn new(plain: impl Into<Bytes>) -> Self {
        let plain = plain.into();
        Self {
            gzip: ContentCoding::Gzip.encode(&plain),
            brotli: ContentCoding::Brotli.encode(&plain),
            plain,
        }
    }

    pub(crate) const fn plain(&self) -> &Bytes {
        &self.plain
    }

    /// Creates the response in the coding that the client prefers.
    pub(crate) fn respond(&self, media_type: &'static str, request: &HeaderMap) -> Response {
        let coding = ContentCoding::preferred(request);
        let body = match coding {
            ContentCoding::Brotli => &self.brotli,
            ContentCoding::Gzip => &self.gzip,
            ContentCoding::Identity => &self.plain,
        };
        text_response(media_type, coding, body.clone())
    }
}

/// Creates the response with a short text that differs from request to request.
pub(crate) fn respond_with_text(
    media_type: &'static str,
    text: &str,
    request: &HeaderMap,
) -> Response {
    let coding = ContentCoding::preferred(request);
    text_response(media_type, coding, coding.encode(text.as_bytes()))
}

fn text_response(media_type: &'static str, coding: ContentCoding, body: Bytes) -> Response {
    let media_type = [(header::CONTENT_TYPE, HeaderValue::from_static(media_type))];
    let mut response = (media_type, body).into_response();
    coding.add_headers(&mut response);
    response
}

/// Returns the weight of a coding that the client names.
fn weight_of(text: &str, name: &str) -> Option<f32> {
    text.split(',').find_map(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_named = parts.next()?.eq_ignore_ascii_case(name);
        let weight = parts.find_map(|part| part.strip_prefix("q="));
        is_named.then(|| weight.map_or(1.0, |weight| weight.trim().parse().unwrap_or(0.0)))
    })
}

fn brotli(plain: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoded = Vec::new();
    let mut encoder =
        brotli::CompressorWriter::new(&mut encoded, BROTLI_BUFFER, BROTLI_QUALITY, BROTLI_WINDOW);
    encoder.write_all(plain)?;
    encoder.flush()?;
    drop(encoder);
    Ok(encoded)
}

fn gzip(plain: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn preferred_coding_follows_the_weights() {
        for (text, coding) in [
            ("gzip", ContentCoding::Gzip),
            ("br", ContentCoding::Brotli),
            ("gzip, deflate, br, zstd", ContentCoding::Brotli),
            ("br;q=0.5, GZIP", ContentCoding::Gzip),
            ("br;q=0, gzip;q=0.1", ContentCoding::Gzip),
            ("*", ContentCoding::Brotli),
            ("br;q=0, *;q=0.5", ContentCoding::Gzip),
            ("deflate, x-gzip", ContentCoding::Identity),
            ("gzip;q=0, br;q=0.000", ContentCoding::Identity),
            ("", ContentCoding::Identity),
        ] {
            let headers =
                HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(text))]);
            assert_eq!(ContentCoding::preferred(&headers), coding, "{text}");
        }
        let none = ContentCoding::preferred(&HeaderMap::new());
        assert_eq!(none, ContentCoding::Identity);
    }

    #[test]
    fn compressed_text_is_the_plain_one() {
        let plain = "the same words again and again ".repeat(500);
        let text = CompressedText::new(plain.clone());
        let (mut unzipped, mut unbrotlied) = (String::new(), String::new());
        flate2::read::GzDecoder::new(&text.gzip[..])
            .read_to_string(&mut unzipped)
            .unwrap();
        brotli::Decompressor::new(&text.brotli[..], BROTLI_BUFFER)
            .read_to_string(&mut unbrotlied)
            .unwrap();
        assert_eq!((&unzipped, &unbrotlied), (&plain, &plain));
    }
}
