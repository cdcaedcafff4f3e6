//! An HTTP/2 client of single frames (RFC 9113), because libraries do not let a test break the
//! protocol.

use crate::support::{Organization, RawConnection};

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

pub(super) const ACK: u8 = 1;
pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;

pub(super) const NO_ERROR: u32 = 0;
pub(super) const REFUSED_STREAM: u32 = 7;
pub(super) const CANCEL: u32 = 8;
pub(super) const ENHANCE_YOUR_CALM: u32 = 11;

pub(super) const SETTING_MAX_CONCURRENT_STREAMS: u16 = 3;
pub(super) const SETTING_INITIAL_WINDOW_SIZE: u16 = 4;
pub(super) const SETTING_MAX_HEADER_LIST_SIZE: u16 = 6;

/// `:status: 200` in HPACK, as the first byte of a block of headers.
const STATUS_200: u8 = 0x88;
const FRAME_HEAD_BYTES: usize = 9;

/// A frame received from the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReceivedFrame {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
    pub(super) payload: Vec<u8>,
}

/// A connection after its preface.
pub(super) struct Http2 {
    pub(super) raw: RawConnection,
}

impl Http2 {
    /// Opens a connection and sends these settings.
    pub(super) async fn open(url: &str, settings: &[(u16, u32)]) -> Self {
        let mut raw = RawConnection::open(url).await;
        let pairs = settings
            .iter()
            .flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat());
        let hello = frame(SETTINGS, 0, 0, &pairs.collect::<Vec<_>>());
        raw.write([&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &hello].concat())
            .await;
        Self { raw }
    }

    /// Returns the next frame, or `None` at the end of the connection.
    pub(super) async fn read(&mut self) -> Option<ReceivedFrame> {
        let head = self.raw.read_exactly(FRAME_HEAD_BYTES).await?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let payload = if length == 0 {
            vec![]
        } else {
            self.raw.read_exactly(length).await?
        };
        Some(ReceivedFrame {
            kind: head[3],
            flags: head[4],
            stream,
            payload,
        })
    }

    /// Returns the next frame of this kind and skips all others.
    pub(super) async fn read_kind(&mut self, kind: u8) -> Option<ReceivedFrame> {
        loop {
            match self.read().await? {
                frame if frame.kind == kind => return Some(frame),
                _ => {}
            }
        }
    }

    /// Reads the text of a stream up to a number of bytes or to its end.
    pub(super) async fn read_text(&mut self, stream: u32, bytes: usize) -> (String, bool) {
        let mut text = vec![];
        while text.len() < bytes {
            let frame = self.read().await.expect("the stream goes on");
            assert_ne!(
                (frame.kind, frame.stream),
                (RST_STREAM, stream),
                "{frame:?}"
            );
            if (frame.kind, frame.stream) == (DATA, stream) {
                text.extend(&frame.payload);
                if frame.flags & END_STREAM != 0 {
                    return (String::from_utf8(text).unwrap(), true);
                }
            }
        }
        (String::from_utf8(text).unwrap(), false)
    }
}

impl ReceivedFrame {
    /// Returns true for the headers of a response with status 200.
    pub(super) fn is_ok(&self) -> bool {
        self.kind == HEADERS && self.payload.first() == Some(&STATUS_200)
    }

    /// Returns the error code of a RST_STREAM or GOAWAY frame.
    pub(super) fn error(&self) -> u32 {
        let code = if self.kind == GOAWAY {
            &self.payload[4..8]
        } else {
            &self.payload[..4]
        };
        u32::from_be_bytes(code.try_into().unwrap())
    }

    /// Returns the pairs of a SETTINGS frame.
    pub(super) fn settings(&self) -> Vec<(u16, u32)> {
        let pair = |bytes: &[u8]| {
            (
                u16::from_be_bytes([bytes[0], bytes[1]]),
                u32::from_be_bytes([bytes[2], bytes[3], bytes[4], bytes[5]]),
            )
        };
        self.payload.chunks(6).map(pair).collect()
    }
}

/// Returns the bytes of a frame.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

pub(super) fn reset(stream: u32, error: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &error.to_be_bytes())
}

/// Returns an uncompressed header block.
pub(super) fn block(headers: &[(&str, &str)]) -> Vec<u8> {
    headers
        .iter()
        .flat_map(|(name, value)| [vec![0], string(name), string(value)].concat())
        .collect()
}

/// Returns the header block of a chat request with a body.
pub(super) fn chat_block(organization: &Organization) -> Vec<u8> {
    let path = organization.path("/chat");
    request_block("POST", &path, organization)
}

/// Returns the header block of a request for the agent's configuration.
pub(super) fn config_block(organization: &Organization) -> Vec<u8> {
    request_block("GET", &organization.path(""), organization)
}

fn request_block(method: &str, path: &str, organization: &Organization) -> Vec<u8> {
    block(&[
        (":method", method),
        (":scheme", "http"),
        (":authority", "x"),
        (":path", path),
        ("x-api-key", organization.key_text("all")),
    ])
}

/// Appends length and text; lengths from 127 continue in groups of seven bits (RFC 7541, section
/// 5.1).
fn string(text: &str) -> Vec<u8> {
    let mut bytes = vec![];
    match text.len() {
        short @ 0..127 => bytes.push(short as u8),
        long => {
            bytes.push(127);
            let mut rest = long - 127;
            while rest >= 128 {
                bytes.push((rest % 128) as u8 | 128);
                rest /= 128;
            }
            bytes.push(rest as u8);
        }
    }
    [bytes, text.as_bytes().to_vec()].concat()
}
