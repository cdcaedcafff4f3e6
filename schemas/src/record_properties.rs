//! Property tests of the records on the topics: jobs and message events survive encoding and
//! decoding, and arbitrary bytes never cause a panic.

use proptest::{collection::vec, prelude::*};
use serde_json::{Map, Value, json};

use crate::{
    control_event::ControlEvent,
    conversation_job::ConversationJob,
    message_event::MessageEvent,
    routing_job::RoutingJob,
    versioned::{DecodeError, TopicRecord, decode, encode},
};

const ID: &str = "00000000000000000000000000";
const STAMP: &str = "2026-11-21T11:17:49.123456Z";

/// Returns arbitrary JSON of a few levels, as clients may send it in metadata.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            any_object(inner).prop_map(Value::from)
        ]
    })
}

fn any_object(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    vec((any::<String>(), value), 0..4).prop_map(Map::from_iter)
}

fn turn(content: &str, session: &str, metadata: &Map<String, Value>) -> Value {
    json!({
        "orgId": format!("org_{ID}"), "conversationId": format!("conv_{ID}"), "messageId": format!("msg_{ID}{ID}"),
        "requestId": format!("req_{ID}"), "keyId": null, "sessionId": session, "content": content,
        "visitor": {"id": session, "email": content, "name": null}, "metadata": metadata, "source": "api",
        "ipAddress": content, "acceptedAt": STAMP, "replyTo": null, "publishNonce": content
    })
}

fn event(content: &str, metadata: &Map<String, Value>) -> Value {
    json!({
        "version": 1, "eventId": format!("evt_{ID}"), "occurredAt": STAMP, "orgId": format!("org_{ID}"),
        "conversationId": format!("conv_{ID}"), "actor": "visitor", "agentId": format!("agt_{ID}"), "teamId": null,
        "requestId": format!("req_{ID}"), "type": "conversation.updated", "changes": metadata, "future": content
    })
}

/// Asserts that a record equals itself after encoding and decoding.
fn assert_round_trip<T: TopicRecord + PartialEq + std::fmt::Debug>(
    value: &Value,
) -> Result<(), TestCaseError> {
    let read: T = decode(value.to_string().as_bytes())
        .map_err(|error| TestCaseError::fail(error.to_string()))?;
    let again: T =
        decode(&encode(&read).unwrap()).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(read, again);
    Ok(())
}

fn decode_as_every_record(bytes: &[u8]) {
    let _ = decode::<RoutingJob>(bytes);
    let _ = decode::<ConversationJob>(bytes);
    let _ = decode::<MessageEvent>(bytes);
    let _ = decode::<ControlEvent>(bytes);
}

proptest! {
    #[test]
    fn jobs_and_events_round_trip_with_any_content(
        content: String,
        session in "[^\\p{Cc}\\p{Z}]{1,20}",
        metadata in any_object(any_json()),
    ) {
        let turn = turn(&content, &session, &metadata);
        assert_round_trip::<RoutingJob>(&json!({"version": 1, "teamId": format!("team_{ID}"), "turn": turn}))?;
        let routed = json!({"teamId": format!("team_{ID}"), "reason": content});
        let answer = json!({"version": 1, "kind": "answer", "agentId": format!("agt_{ID}"), "routed": routed, "turn": turn});
        assert_round_trip::<ConversationJob>(&answer)?;
        assert_round_trip::<MessageEvent>(&event(&content, &metadata))?;
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
        decode_as_every_record(&bytes);
    }

    #[test]
    fn damaged_record_never_panics(at: prop::sample::Index, byte: u8, cut: bool) {
        for record in [event("é", &Map::new()), json!({"version": 1, "kind": "answer", "turn": turn("é", "s", &Map::new())})] {
            let mut bytes = record.to_string().into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if cut {
                bytes.truncate(at);
            }
            decode_as_every_record(&bytes);
        }
    }

    #[test]
    fn newer_record_differs_from_a_malformed_one(version: u32, rest in any_object(any_json())) {
        let mut record = rest;
        record.insert("version".into(), version.into());
        let read = decode::<ControlEvent>(Value::from(record).to_string().as_bytes());
        let is_newer = version > ControlEvent::VERSION;
        prop_assert_eq!(matches!(read, Err(DecodeError::UnknownVersion(found)) if found == version), is_newer);
    }

    #[test]
    fn decode_error_never_quotes_the_record(secret in "[a-z]{12}") {
        for record in [json!(secret), json!({"version": secret}), json!({"version": 1, "kind": secret, "id": 7})] {
            let error = decode::<ControlEvent>(record.to_string().as_bytes()).unwrap_err().to_string();
            prop_assert!(!error.contains(&secret), "{error}");
        }
    }
}
