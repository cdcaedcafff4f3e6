//! Entry points of the fuzz targets, which are outside this crate. Each feeds arbitrary input into
//! a function and asserts its invariants. Compiled for fuzzing only (`make fuzz`).

use http::{HeaderMap, HeaderValue, header};
use switchboard_schemas::{api_key::ApiKeyText, reply_event::Frame};

use crate::{
    auth::key_headers::{PresentedKey, presented_key},
    chat::{bodies::TeamChatRequest, request::ChatBody},
    http::{
        body,
        client_address::client_address,
        cors, fields,
        origin::{self, OriginPattern},
    },
    reply::{
        assembly::{AssemblyStep, FrameSource, ReplyAssembly},
        headers::{self, ReplyFacts},
    },
};
use switchboard_schemas::network::IpNetwork;

/// Maximum message length in [`chat_body`].
const MESSAGE_CHARS_MAX: u32 = 4000;

/// Checks key parsing: at most one key is found, and it is part of a header.
pub fn key_headers(authorization: &[u8], api_key: &[u8]) {
    let mut sent = HeaderMap::new();
    for (name, value) in [("authorization", authorization), ("x-api-key", api_key)] {
        if let Ok(value) = HeaderValue::from_bytes(value) {
            sent.append(name, value);
        }
    }
    if let PresentedKey::Text(text) = presented_key(&sent) {
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

/// Checks origin allowlists: an accepted origin ends in the entry's host, and only the sent origin
/// is echoed.
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
        assert!(!allowed, "an invalid entry allows an origin");
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

/// Checks `X-Forwarded-For`: without a trusted proxy it has no effect.
pub fn forwarded_for(header: &[u8], network: &str) {
    let Ok(value) = HeaderValue::from_bytes(header) else {
        return;
    };
    let mut sent = HeaderMap::new();
    sent.insert("x-forwarded-for", value);
    let peer = std::net::IpAddr::from([198, 51, 100, 7]);
    assert_eq!(client_address(peer, &sent, &[]), peer);
    if let Ok(network) = network.parse::<IpNetwork>() {
        assert_eq!(network.to_string().parse(), Ok(network));
        let _ = client_address(peer, &sent, &[network]);
    }
}

/// Checks chat bodies: message and metadata are within their limits, or an error is returned.
pub fn chat_body(bytes: &[u8]) {
    let Ok(body) = body::parse_body::<TeamChatRequest>(bytes) else {
        return;
    };
    let (body, conversation_id) = body.into_parts();
    if let Ok(chat) = ChatBody::parse(&body, &conversation_id, MESSAGE_CHARS_MAX) {
        assert_eq!(chat.fingerprint().len(), 64);
    }
    if let Ok(Some(metadata)) = fields::parse_metadata(body.metadata()) {
        assert!(metadata.len() <= fields::METADATA_KEYS_MAX && !metadata.contains_key("ipAddress"));
    }
}

/// Checks reply assembly: text is sent once, in order, and from one generation.
pub fn reply_frames(frames: Vec<(bool, Frame)>) {
    let (mut assembly, mut sent, mut generation) = (ReplyAssembly::default(), 0, None);
    for (pushed, frame) in frames {
        let source = if pushed {
            FrameSource::Push
        } else {
            FrameSource::Log
        };
        match assembly.apply_frame(frame, source) {
            AssemblyStep::Text(text) => {
                assert!(!text.is_empty() && assembly.head().is_some());
                assert!(*generation.get_or_insert(assembly.generation()) == assembly.generation());
                sent += text.len() as u64;
            }
            AssemblyStep::Ended(end) => assert_eq!(end.length, sent),
            AssemblyStep::Broken(_) => return,
            AssemblyStep::Nothing | AssemblyStep::ReplyUpdate(_) | AssemblyStep::Gap => {}
        }
    }
}

/// Checks reply headers: printable ASCII within the size limit.
pub fn reply_headers(model: &str, ui_spec: &serde_json::Value) {
    let Ok(reply_id) = format!("msg_{}", "0".repeat(52)).parse() else {
        return;
    };
    let facts = ReplyFacts {
        reply_id: &reply_id,
        generation: Some(1),
        model: Some(model),
        routed: None,
        ui_spec: Some(ui_spec),
    };
    let sent = headers::reply_headers(&facts, "text/plain");
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
