//! Bodies of responses, read within bounds of size and time.

use std::{pin::pin, time::Duration};

use futures::{Stream, StreamExt};
use tokio::time::{Instant, timeout_at};

/// Timeout of reading a short body: that of a refusal, or a list.
const BODY_TIMEOUT: Duration = Duration::from_secs(2);

/// Reads the body as far as it arrives in time.
pub(super) async fn read_body(response: reqwest::Response, bytes_max: usize) -> Vec<u8> {
    let limit = Instant::now() + BODY_TIMEOUT;
    let mut pieces = pin!(body_pieces(response, bytes_max));
    let mut body = Vec::new();
    while let Ok(Some(Ok(piece))) = timeout_at(limit, pieces.next()).await {
        body.extend_from_slice(&piece);
    }
    body
}

/// Returns the same response, cut off after `bytes_max` bytes regardless of its lines.
pub(super) fn bounded_response(response: reqwest::Response, bytes_max: usize) -> reqwest::Response {
    let (status, headers) = (response.status(), response.headers().clone());
    let mut bounded =
        http::Response::new(reqwest::Body::wrap_stream(body_pieces(response, bytes_max)));
    *bounded.status_mut() = status;
    *bounded.headers_mut() = headers;
    bounded.into()
}

/// Returns the body in pieces, up to the piece that exceeds `bytes_max`.
fn body_pieces(
    response: reqwest::Response,
    bytes_max: usize,
) -> impl Stream<Item = reqwest::Result<bytes::Bytes>> + Send + 'static {
    let mut left = bytes_max;
    response.bytes_stream().take_while(move |piece| {
        let length = piece.as_ref().map_or(0, bytes::Bytes::len);
        let fits = length <= left;
        left = left.saturating_sub(length);
        std::future::ready(fits)
    })
}
