//! Properties of the records of all topics: what one program writes another one reads, whatever a visitor said in it; and
//! bytes that nobody of ours wrote are told from those of a newer program, without a panic.

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

/// Whatever a client can put into metadata, a few levels deep.
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

/// Reads a record, writes it, and reads what was written.
fn survives<T: TopicRecord + PartialEq + std::fmt::Debug>(
    value: &Value,
) -> Result<(), TestCaseError> {
    let read: T = decode(value.to_string().as_bytes())
        .map_err(|error| TestCaseError::fail(error.to_string()))?;
    let again: T =
        decode(&encode(&read).unwrap()).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(read, again);
    Ok(())
}

fn is_read_or_refused(bytes: &[u8]) {
    let _ = decode::<RoutingJob>(bytes);
    let _ = decode::<ConversationJob>(bytes);
    let _ = decode::<MessageEvent>(bytes);
    let _ = decode::<ControlEvent>(bytes);
}

proptest! {
    #[test]
    fn a_job_or_an_event_survives_its_bytes_whatever_a_visitor_said(
        content: String,
        session in "[^\\p{Cc}\\p{Z}]{1,20}",
        metadata in any_object(any_json()),
    ) {
        let turn = turn(&content, &session, &metadata);
        survives::<RoutingJob>(&json!({"version": 1, "teamId": format!("team_{ID}"), "turn": turn}))?;
        let routed = json!({"teamId": format!("team_{ID}"), "reason": content});
        let answer = json!({"version": 1, "kind": "answer", "agentId": format!("agt_{ID}"), "routed": routed, "turn": turn});
        survives::<ConversationJob>(&answer)?;
        survives::<MessageEvent>(&event(&content, &metadata))?;
    }

    #[test]
    fn any_bytes_are_read_or_refused_without_a_panic(bytes: Vec<u8>) {
        is_read_or_refused(&bytes);
    }

    #[test]
    fn a_record_with_one_byte_changed_or_cut_is_read_or_refused(at: prop::sample::Index, byte: u8, cut: bool) {
        for record in [event("é", &Map::new()), json!({"version": 1, "kind": "answer", "turn": turn("é", "s", &Map::new())})] {
            let mut bytes = record.to_string().into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if cut {
                bytes.truncate(at);
            }
            is_read_or_refused(&bytes);
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
    fn an_error_never_quotes_the_record(secret in "[a-z]{12}") {
        for record in [json!(secret), json!({"version": secret}), json!({"version": 1, "kind": secret, "id": 7})] {
            let error = decode::<ControlEvent>(record.to_string().as_bytes()).unwrap_err().to_string();
            prop_assert!(!error.contains(&secret), "{error}");
        }
    }
}
