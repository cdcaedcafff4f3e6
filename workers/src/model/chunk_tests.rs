//! Tests of the chunks of chat completions.

use proptest::prelude::*;
use switchboard_schemas::conversation::FinishReason;

use super::*;
use crate::model::finish_reason::FinishKind;

fn output(events: &[&str]) -> ModelOutput {
    let mut output = ModelOutput::new(true, false);
    for event in events {
        take_data(event.as_bytes(), &mut output);
    }
    output
}

#[test]
fn text_reason_and_usage_may_share_a_chunk() {
    let all = output(&[
        r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":2,"completion_tokens":3}}"#,
    ]);
    let stop = Some(FinishKind::Regular(FinishReason::Stop));
    assert_eq!((all.text.as_str(), all.finish), ("a", stop));
    assert_eq!(all.usage.unwrap().completion_tokens, 3);
}

#[test]
fn last_usage_counts_wherever_it_stands() {
    let counted = output(&[
        r#"{"choices":[],"usage":{"prompt_tokens":2,"completion_tokens":1}}"#,
        r#"{"choices":[],"x_groq":{"usage":{"prompt_tokens":2,"completion_tokens":22}}}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}"#,
    ]);
    assert_eq!(counted.usage.unwrap().completion_tokens, 22);
}

#[test]
fn choice_needs_no_list() {
    let parts = output(&[
        r#"{"choices":[null]}"#,
        r#"{"choices":{"delta":{"content":[{"type":"text","text":"Hello"}]},"finish_reason":"stop"}}"#,
    ]);
    assert_eq!((parts.text.as_str(), parts.failure), ("Hello", None));
}

#[test]
fn missing_null_and_unknown_fields_are_ignored() {
    for json in [
        "{}",
        r#"{"choices":null,"usage":null,"error":null}"#,
        r#"{"choices":[{}]}"#,
        r#"{"choices":[{"delta":null,"finish_reason":null}],"service_tier":"new"}"#,
        r#"{"choices":[{"delta":{"role":"assistant","content":null},"finish_reason":""}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"id":"x"}]}}]}"#,
        r#"{"choices":[{"delta":{"content":[]},"error":null}]}"#,
    ] {
        let output = output(&[json]);
        assert!(
            output.text.is_empty() && output.finish.is_none() && output.failure.is_none(),
            "{json}"
        );
    }
}

#[test]
fn text_parts_are_joined_and_others_skipped() {
    let parts = output(&[
        r#"{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"SECRET"}]}]}}]}"#,
        r#"{"choices":[{"delta":{"content":[{"type":"text","text":"Hello"},{"type":"reference","reference_ids":[1]},{"type":"text","text":" wor"}]}}]}"#,
        r#"{"choices":[{"delta":{"content":"ld"}}]}"#,
        r#"{"choices":[{"delta":{"content":{"type":"text","text":"!"}}}]}"#,
    ]);
    assert_eq!((parts.text.as_str(), parts.failure), ("Hello world!", None));
}

#[test]
fn every_error_form_is_a_failure_with_its_words() {
    for json in [
        r#"{"error":{"message":"gone","code":500}}"#,
        r#"{"error":"gone"}"#,
        r#"{"object":"error","message":"gone"}"#,
        r#"{"choices":[{"delta":{"content":""},"finish_reason":"error","error":{"code":502,"message":"gone"}}]}"#,
        r#"{"choices":[],"x_groq":{"error":"gone"}}"#,
    ] {
        let failure = output(&[json]).failure.unwrap();
        assert_eq!(failure.error, CallError::Reported, "{json}");
        assert_eq!(failure.message.as_deref(), Some("gone"), "{json}");
    }
}

#[test]
fn unknown_fields_of_message_and_call_are_kept() {
    let kept = output(&[
        r#"{"choices":[{"delta":{"role":"assistant","reasoning_content":"I th","tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"find","arguments":"{}"},"extra_content":{"google":{"thought_signature":"c2ln"}}}]}}]}"#,
        r#"{"choices":[{"delta":{"reasoning_content":"ink","reasoning_details":[{"a":1}],"audio":null}}]}"#,
        r#"{"choices":[{"delta":{"reasoning_details":[{"b":2}]}}]}"#,
    ]);
    let want = serde_json::json!({"reasoning_content": "I think", "reasoning_details": [{"a": 1}, {"b": 2}]});
    assert_eq!(Value::from(kept.extras), want);
    assert_eq!(
        Value::from(kept.fragments[0].extras.clone()),
        serde_json::json!({"extra_content": {"google": {"thought_signature": "c2ln"}}})
    );
}

#[test]
fn lone_surrogate_waits_for_its_other_half() {
    let halves = [
        r#"{"choices":[{"delta":{"content":"\ud83e"}}]}"#,
        r#"{"choices":[{"delta":{"content":"\udd80"}}]}"#,
    ];
    assert_eq!(output(&halves[..1]).text, "");
    assert_eq!(output(&halves).text, "\u{1f980}");
}

proptest! {
    #[test]
    fn arbitrary_data_never_panics(data: Vec<u8>, text: String) {
        let content = serde_json::json!({"choices": [{"delta": {"content": text}}]}).to_string();
        let mut output = ModelOutput::new(true, false);
        for data in [data.as_slice(), text.as_bytes(), content.as_bytes()] {
            take_data(data, &mut output);
        }
    }
}
