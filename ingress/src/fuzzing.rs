//! Doors for the fuzz targets, which live outside this crate: bytes go in, and what must hold for any of them is
//! asserted. Compiled for fuzzing only (`make fuzz`).

use http::{HeaderMap, HeaderValue, header};
use switchboard_schemas::{api_key::ApiKeyText, reply_event::Frame};

use crate::{
    body,
    client_address::{Network, client_address},
    cors, fields,
    key_headers::{SuppliedKey, supplied_key},
    origin::{self, OriginPattern},
    reply::{
        assembly::{FrameSource, ReplyAssembly, Step},
        headers::{self, HeaderFacts},
    },
    turn::ChatBody,
};

/// Longest message of the body's target.
const MESSAGE_CHARS_MAX: u32 = 4000;

/// Whatever two headers hold: one key, which is a part of one of them, or none.
pub fn key_headers(authorization: &[u8], api_key: &[u8]) {
    let mut sent = HeaderMap::new();
    for (name, value) in [("authorization", authorization), ("x-api-key", api_key)] {
        if let Ok(value) = HeaderValue::from_bytes(value) {
            sent.append(name, value);
        }
    }
    if let SuppliedKey::Text(text) = supplied_key(&sent) {
        let holds = |value: &[u8]| {
            value
                .windows(text.len())
                .any(|part| part == text.as_bytes())
        };
        assert!(!text.is_empty() && (holds(authorization) || holds(api_key)));
        if let Ok(key) = text.parse::<ApiKeyText>() {
            assert_eq!(key.expose(), text);
        }
    }
}

/// Whatever a list and a page say: an origin that is let in ends in the entry's host, and an echo is what was sent.
pub fn origin(entry: &str, sent: &[u8]) {
    let mut request = HeaderMap::new();
    let Ok(value) = HeaderValue::from_bytes(sent) else {
        return;
    };
    request.insert(header::ORIGIN, value.clone());
    if let Some(echo) = cors::allowed_origin(&request) {
        assert!(echo == value || (value == "null" && echo == "*"));
    }
    let allowed = origin::is_allowed(&request, &[entry.to_owned()]);
    if entry.parse::<OriginPattern>().is_err() {
        assert!(!allowed, "an entry that means nothing lets nobody in");
    } else if allowed && !entry.contains(['[', ':']) {
        let (entry, sent) = (
            entry.to_ascii_lowercase(),
            value.to_str().unwrap_or_default().to_ascii_lowercase(),
        );
        let host = sent
            .split_once("://")
            .map_or("", |(_, authority)| authority);
        let host = host.split_once(':').map_or(host, |(host, _)| host);
        let matches = entry
            .strip_prefix('*')
            .map_or(host == entry, |domain| host.ends_with(domain));
        assert!(matches, "{sent} for {entry}");
    }
}

/// Whatever a forwarding header says: without a trusted proxy it moves nobody.
pub fn forwarded_for(header: &[u8], network: &str) {
    let Ok(value) = HeaderValue::from_bytes(header) else {
        return;
    };
    let mut sent = HeaderMap::new();
    sent.insert("x-forwarded-for", value);
    let peer = std::net::IpAddr::from([198, 51, 100, 7]);
    assert_eq!(client_address(peer, &sent, &[]), peer);
    if let Ok(network) = network.parse::<Network>() {
        assert_eq!(network.to_string().parse(), Ok(network));
        let _ = client_address(peer, &sent, &[network]);
    }
}

/// Whatever a body holds: a message within its limit and metadata within its bounds, or an error that quotes nothing.
pub fn chat_body(bytes: &[u8]) {
    let Ok(body) = body::parse_object(bytes) else {
        return;
    };
    if let Ok(chat) = ChatBody::parse_for_team(&body, MESSAGE_CHARS_MAX) {
        assert_eq!(chat.fingerprint().len(), 64);
    }
    if let Ok(Some(metadata)) = fields::metadata(&body) {
        assert!(metadata.len() <= fields::METADATA_KEYS_MAX && !metadata.contains_key("ipAddress"));
    }
}

/// Whatever frames arrive, pushed or read: text comes once, in order, and never from two generations.
pub fn reply_frames(frames: Vec<(bool, Frame)>) {
    let (mut assembly, mut sent, mut generation) = (ReplyAssembly::default(), 0, None);
    for (pushed, frame) in frames {
        let source = if pushed {
            FrameSource::Push
        } else {
            FrameSource::Log
        };
        match assembly.accept(frame, source) {
            Step::Text(text) => {
                assert!(!text.is_empty() && assembly.head().is_some());
                assert!(*generation.get_or_insert(assembly.generation()) == assembly.generation());
                sent += text.len() as u64;
            }
            Step::Ended(end) => assert_eq!(end.length, sent),
            Step::Broken(_) => return,
            Step::Nothing | Step::Note(_) | Step::Gap => {}
        }
    }
}

/// Whatever a model's name and a specification hold: printable headers within their bound.
pub fn reply_headers(model: &str, ui_spec: &serde_json::Value) {
    let Ok(reply_id) = format!("msg_{}", "0".repeat(52)).parse() else {
        return;
    };
    let facts = HeaderFacts {
        reply_id: &reply_id,
        generation: 1,
        model: Some(model),
        routed: None,
        ui_spec: Some(ui_spec),
    };
    let sent = headers::of_reply(&facts, "text/plain");
    let bytes: usize = sent
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum();
    assert!(
        bytes <= headers::HEADERS_BYTES_MAX,
        "{bytes} bytes of headers"
    );
    assert!(
        sent.values().all(|value| value.to_str().is_ok()),
        "printable ASCII"
    );
}
