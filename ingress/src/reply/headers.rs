//! Response headers of a reply: printable ASCII, and small enough for common proxies.

use std::fmt::Write;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use serde_json::Value;
use switchboard_schemas::{
    ids::{AgentId, MessageId},
    reply_event::ReplyHead,
};

use super::assembly::ReplyAssembly;

/// Maximum size of all our headers together, in bytes; a common proxy buffer for a response head is
/// 4 KiB.
pub(crate) const HEADERS_BYTES_MAX: usize = 3 << 10;
/// Maximum size of a value other than the UI specification, in bytes.
const TEXT_BYTES_MAX: usize = 512;
/// Size of the colon, space and line end of a header.
const SEPARATOR_BYTES: usize = 4;
/// Bytes reserved for headers of other layers: request id, rate limits, CORS and security headers.
const RESERVED_BYTES: usize = 1 << 10;

const CONVERSATION_ID: HeaderName = HeaderName::from_static("x-conversation-id");
const MESSAGE_ID: HeaderName = HeaderName::from_static("x-message-id");
const AGENT_ID: HeaderName = HeaderName::from_static("x-agent-id");
const AGENT_NAME: HeaderName = HeaderName::from_static("x-agent-name");
const ROUTING_REASON: HeaderName = HeaderName::from_static("x-routing-reason");
const MODEL: HeaderName = HeaderName::from_static("x-model");
const GENERATION: HeaderName = HeaderName::from_static("x-reply-generation");
const UI_SPEC: HeaderName = HeaderName::from_static("x-ui-spec");
const UI_SPEC_TRUNCATED: HeaderName = HeaderName::from_static("x-ui-spec-truncated");
/// Machine-readable mark of generated text (Regulation (EU) 2024/1689, Article 50).
const AI_GENERATED: HeaderName = HeaderName::from_static("x-ai-generated");
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// Field of a UI specification that holds its items.
const UI_DATA: &str = "data";

/// Facts about a reply that its headers contain.
pub(crate) struct ReplyFacts<'a> {
    pub(crate) reply_id: &'a MessageId,
    /// Generation of the text; `None` before the first frame.
    pub(crate) generation: Option<u32>,
    pub(crate) model: Option<&'a str>,
    /// Routing result, for messages to a team.
    pub(crate) routed: Option<RoutingFacts<'a>>,
    /// Structured data of the reply.
    pub(crate) ui_spec: Option<&'a Value>,
}

/// Agent that answers for a team, and the reason.
pub(crate) struct RoutingFacts<'a> {
    agent_id: &'a AgentId,
    agent_name: &'a str,
    reason: &'a str,
}

impl<'a> ReplyFacts<'a> {
    /// Collects the facts that have arrived so far.
    pub(crate) fn from_assembly(reply_id: &'a MessageId, assembly: &'a ReplyAssembly) -> Self {
        let head = assembly.head();
        Self {
            reply_id,
            generation: assembly.generation(),
            model: head.map(|head| head.model.as_str()),
            routed: head.and_then(RoutingFacts::from_head),
            ui_spec: assembly.ui_spec(),
        }
    }
}

impl<'a> RoutingFacts<'a> {
    /// Returns the routing facts of a reply head, or `None` for a message sent to an agent.
    pub(crate) fn from_head(head: &'a ReplyHead) -> Option<Self> {
        let reason = head.routing_reason.as_deref()?;
        Some(Self {
            agent_id: &head.agent_id,
            agent_name: &head.agent_name,
            reason,
        })
    }
}

/// Builds the headers that every response of an accepted message has.
pub(crate) fn accepted_headers(reply_id: &MessageId, content_type: &'static str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-store, no-transform"),
    );
    headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    insert_text(
        &mut headers,
        CONVERSATION_ID,
        reply_id.conversation().as_str(),
    );
    insert_text(&mut headers, MESSAGE_ID, reply_id.as_str());
    headers
}

/// Marks a response whose body is generated text.
pub(crate) fn mark_generated(headers: &mut HeaderMap) {
    headers.insert(AI_GENERATED, HeaderValue::from_static("true"));
}

/// Builds the headers of a started reply.
pub(crate) fn reply_headers(facts: &ReplyFacts<'_>, content_type: &'static str) -> HeaderMap {
    let mut headers = accepted_headers(facts.reply_id, content_type);
    mark_generated(&mut headers);
    if let Some(generation) = facts.generation {
        headers.insert(GENERATION, HeaderValue::from(generation));
    }
    if let Some(model) = facts.model {
        insert_text(&mut headers, MODEL, model);
    }
    if let Some(routed) = &facts.routed {
        insert_text(&mut headers, AGENT_ID, routed.agent_id.as_str());
        insert_text(&mut headers, AGENT_NAME, routed.agent_name);
        insert_text(&mut headers, ROUTING_REASON, routed.reason);
    }
    if let Some(spec) = facts.ui_spec {
        insert_ui_spec(&mut headers, spec);
    }
    headers
}

/// Inserts a text as printable ASCII: other characters and the percent sign are percent-encoded as
/// UTF-8.
fn insert_text(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    let mut encoded = String::with_capacity(text.len());
    for character in text.chars() {
        let before = encoded.len();
        if matches!(character, ' '..='~') && character != '%' {
            encoded.push(character);
        } else {
            let mut buffer = [0; 4];
            for byte in character.encode_utf8(&mut buffer).bytes() {
                // Writing into a string cannot fail.
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
        if encoded.len() > TEXT_BYTES_MAX {
            encoded.truncate(before);
            break;
        }
    }
    if let Ok(value) = HeaderValue::from_str(encoded.trim()) {
        headers.insert(name, value);
    }
}

fn insert_ui_spec(headers: &mut HeaderMap, spec: &Value) {
    let truncated_mark = HeaderValue::from_static("true");
    let used = headers
        .iter()
        .map(|(name, value)| header_size(name, value.len()))
        .sum::<usize>();
    let mark_bytes = header_size(&UI_SPEC_TRUNCATED, truncated_mark.len());
    let budget = HEADERS_BYTES_MAX
        .saturating_sub(used + RESERVED_BYTES + mark_bytes + header_size(&UI_SPEC, 0));
    let (text, whole) = fit_ui_spec(spec, budget);
    if let Some(value) = text.and_then(|text| HeaderValue::from_str(&text).ok()) {
        headers.insert(UI_SPEC, value);
    }
    if !whole {
        headers.insert(UI_SPEC_TRUNCATED, truncated_mark);
    }
}

fn header_size(name: &HeaderName, value_bytes: usize) -> usize {
    name.as_str().len() + value_bytes + SEPARATOR_BYTES
}

/// Returns the specification as JSON within `budget` bytes, dropping products from the end, and
/// whether it is complete.
fn fit_ui_spec(spec: &Value, budget: usize) -> (Option<String>, bool) {
    let whole = ascii_json(spec);
    if whole.len() <= budget {
        return (Some(whole), true);
    }
    let mut smaller = spec.clone();
    let Some(products) = smaller.get_mut(UI_DATA).and_then(Value::as_array_mut) else {
        return (None, false);
    };
    let mut products = std::mem::take(products);
    let mut bytes = ascii_json(&smaller).len();
    let kept = products.iter().take_while(|product| {
        bytes += ascii_json(product).len() + 1;
        // Each product is counted with a comma, which the first one does not have.
        bytes <= budget + 1
    });
    let kept = kept.count();
    if kept == 0 {
        // An empty grid would mean that nothing was found.
        return (None, false);
    }
    products.truncate(kept);
    if let Some(data) = smaller.get_mut(UI_DATA) {
        *data = Value::Array(products);
    }
    let text = ascii_json(&smaller);
    ((text.len() <= budget).then_some(text), false)
}

/// Serializes as JSON of printable ASCII, which headers can hold and every JSON parser reads.
fn ascii_json(value: &Value) -> String {
    let text = value.to_string();
    let mut ascii = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, ' '..='~') {
            ascii.push(character);
        } else {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                let _ = write!(ascii, "\\u{unit:04x}");
            }
        }
    }
    ascii
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::testing::message_id;

    fn headers(model: &str, ui_spec: Option<&Value>) -> HeaderMap {
        let reply_id = message_id();
        let facts = ReplyFacts {
            reply_id: &reply_id,
            generation: Some(1),
            model: Some(model),
            routed: None,
            ui_spec,
        };
        reply_headers(&facts, "text/plain")
    }

    fn total(headers: &HeaderMap) -> usize {
        headers
            .iter()
            .map(|(name, value)| header_size(name, value.len()))
            .sum()
    }

    fn grid(titles: &[String]) -> Value {
        let products = titles
            .iter()
            .map(|title| json!({"title": title, "price": "$1", "image": "", "url": ""}));
        json!({ "type": "product-grid", "data": products.collect::<Vec<_>>() })
    }

    #[test]
    fn small_ui_spec_is_complete() {
        let spec = grid(&["Café ☕ 🦀".to_owned()]);
        let headers = headers("demo", Some(&spec));
        assert_eq!(
            serde_json::from_slice::<Value>(headers[UI_SPEC].as_bytes()).unwrap(),
            spec
        );
        assert!(headers.get(UI_SPEC_TRUNCATED).is_none());
    }

    #[test]
    fn oversized_specification_is_omitted_and_marked() {
        let spec = json!({ "type": "x".repeat(HEADERS_BYTES_MAX) });
        let headers = headers("demo", Some(&spec));
        assert!(headers.get(UI_SPEC).is_none());
        assert_eq!(headers[UI_SPEC_TRUNCATED], "true");
    }

    #[test]
    fn grid_with_an_oversized_first_product_is_omitted_and_marked() {
        let mut spec = grid(&["Long Lamp".to_owned(), "Short Lamp".to_owned()]);
        spec["data"][0]["url"] =
            format!("https://shop.example/{}", "a".repeat(HEADERS_BYTES_MAX)).into();
        let headers = headers("demo", Some(&spec));
        assert_eq!(
            (
                headers.get(UI_SPEC),
                headers[UI_SPEC_TRUNCATED].to_str().unwrap()
            ),
            (None, "true")
        );
    }

    #[test]
    fn team_headers_name_agent_and_reason_in_ascii() {
        let reply_id = message_id();
        let mut head = crate::testing::head();
        (head.agent_name, head.routing_reason) = (
            "Technik für alle".into(),
            Some("asks about “Ärger”\r\nX: y".into()),
        );
        let facts = ReplyFacts {
            reply_id: &reply_id,
            generation: Some(1),
            model: None,
            routed: RoutingFacts::from_head(&head),
            ui_spec: None,
        };
        let headers = reply_headers(&facts, "text/plain");
        assert_eq!(headers[AGENT_ID], head.agent_id.as_str());
        assert_eq!(headers[AGENT_NAME], "Technik f%C3%BCr alle");
        assert_eq!(
            headers[ROUTING_REASON],
            "asks about %E2%80%9C%C3%84rger%E2%80%9D%0D%0AX: y"
        );
    }

    proptest! {
        #[test]
        fn ui_spec_header_is_bounded_ascii_with_the_first_products(
            titles in proptest::collection::vec("\\PC{0,80}|[\r\n\u{7f}é]{0,80}", 1..40),
            long in proptest::collection::vec((0_usize..40, 0_usize..2100), 0..3),
        ) {
            let mut spec = grid(&titles);
            let all = spec["data"].as_array_mut().unwrap();
            for (at, bytes) in long {
                let at = at % all.len();
                all[at]["url"] = format!("https://s.example/{}", "a".repeat(bytes)).into();
            }
            let all = all.clone();
            let headers = headers("demo", Some(&spec));
            prop_assert!(total(&headers) + RESERVED_BYTES <= HEADERS_BYTES_MAX);
            let kept = headers.get(UI_SPEC).map(|text| {
                let read: Value = serde_json::from_str(text.to_str().unwrap()).unwrap();
                let kept = read["data"].as_array().unwrap().clone();
                assert!(!kept.is_empty(), "no grid is empty");
                kept
            });
            let kept = kept.unwrap_or_default();
            prop_assert_eq!(kept.as_slice(), &all[..kept.len()]);
            prop_assert_eq!(headers.contains_key(UI_SPEC_TRUNCATED), kept.len() < all.len());
            if kept.len() < all.len() {
                // One more product would exceed the limit.
                let more = ascii_json(&json!({ "type": "product-grid", "data": all[..=kept.len()] })).len();
                let without = total(&headers) - headers.get(UI_SPEC).map_or(0, |text| header_size(&UI_SPEC, text.len()));
                prop_assert!(without + header_size(&UI_SPEC, more) + RESERVED_BYTES > HEADERS_BYTES_MAX);
            }
        }

        #[test]
        fn model_header_is_one_short_line(model in "\\PC{0,400}|[\r\n%]{0,400}") {
            let headers = headers(&model, None);
            let value = headers[MODEL].to_str().unwrap();
            prop_assert!(value.len() <= TEXT_BYTES_MAX && !value.contains(['\r', '\n']));
        }
    }
}
