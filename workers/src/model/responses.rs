//! Events of the Responses API, the second dialect of the client. Some models take tools together
//! with reasoning only here.
//!
//! Source: the streaming events and the `Response` object of OpenAI's API reference.

use serde_json::{Map, Value};
use switchboard_schemas::conversation::TokenUsage;

use super::{
    CallError, borrowed_json::parse_text_delta, chunk::parse_number, event_stream::StreamEvent,
    output::ModelOutput, refusal::RefusalBody, tool_calls::ToolCallFragment,
};

/// Data that some gateways send behind the last event.
const DONE: &[u8] = b"[DONE]";
/// Name under which the items of a model's thoughts are kept, to be sent back.
pub(super) const REASONING_ITEMS: &str = "reasoning";

/// Adds an event of a stream, or a whole response, to the output.
pub(super) fn take_event(event: StreamEvent<'_>, output: &mut ModelOutput) {
    if output.failure.is_some() || output.is_done {
        return;
    }
    let data = event.data.trim_ascii();
    if data.starts_with(DONE) {
        output.is_done = true;
        return;
    }
    // Text events are many, and are read in place.
    if let Some(text) = parse_text_delta(data) {
        output.push_text(&text);
        return;
    }
    match serde_json::from_slice::<Map<String, Value>>(data) {
        Ok(fields) => take_fields(Value::Object(fields), data, output),
        Err(_) => output.fail(CallError::NotAnAnswer, None),
    }
}

fn take_fields(mut event: Value, data: &[u8], output: &mut ModelOutput) {
    match event["type"].as_str().unwrap_or_default() {
        "response.output_text.delta" | "response.refusal.delta" if !event["delta"].is_string() => {
            output.fail(CallError::NotAnAnswer, None);
        }
        "response.output_item.added" => take_item(&event, false, output),
        "response.output_item.done" => take_item(&event, true, output),
        "response.function_call_arguments.delta" => output.push_fragment(ToolCallFragment {
            index: parse_number(&event["output_index"]),
            arguments: text_of(&event["delta"]),
            readable: event["delta"].is_string(),
            ..ToolCallFragment::default()
        }),
        "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
            take_response(&event["response"].take(), data, output);
        }
        "error" => output.fail(CallError::Reported, RefusalBody::parse(data).message),
        "" if event["object"] == "response" => take_response(&event, data, output),
        "" if !event["error"].is_null() => {
            output.fail(CallError::Reported, RefusalBody::parse(data).message);
        }
        _ => {}
    }
}

/// Takes an item of the output. Texts are not taken from items, because they arrived as deltas.
fn take_item(event: &Value, is_done: bool, output: &mut ModelOutput) {
    let item = &event["item"];
    match item["type"].as_str() {
        Some("function_call") => output.push_fragment(ToolCallFragment {
            index: parse_number(&event["output_index"]),
            id: text_of(&item["call_id"]),
            name: text_of(&item["name"]),
            arguments: text_of(&item["arguments"]),
            readable: true,
            ..ToolCallFragment::default()
        }),
        // Without their encrypted content they cannot be read by a server that stores nothing.
        Some("reasoning") if is_done && item["encrypted_content"].is_string() => {
            output.add_extra(
                REASONING_ITEMS,
                &Value::from(vec![item.clone()]).to_string(),
            );
        }
        _ => {}
    }
}

/// Takes the last state of a response, with its output if nothing of it has arrived before.
fn take_response(response: &Value, data: &[u8], output: &mut ModelOutput) {
    if !output.has_begun() {
        for (place, item) in response["output"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate()
        {
            for part in item["content"].as_array().into_iter().flatten() {
                let text = part["text"].as_str().or(part["refusal"].as_str());
                if let Some(text) = text.filter(|_| item["type"] == "message") {
                    output.push_text(text.as_bytes());
                }
            }
            let event = serde_json::json!({"output_index": place, "item": item});
            take_item(&event, true, output);
        }
    }
    output.usage = usage(&response["usage"]).or(output.usage);
    let reason = response["incomplete_details"]["reason"].as_str();
    match (response["status"].as_str().unwrap_or_default(), reason) {
        ("completed", _) => output.note_finish("stop"),
        ("incomplete", Some(reason)) => output.note_finish(reason),
        _ => {
            output.fail(CallError::Reported, RefusalBody::parse(data).message);
        }
    }
}

fn usage(usage: &Value) -> Option<TokenUsage> {
    let completion_tokens = parse_number(&usage["output_tokens"]).filter(|tokens| *tokens > 0)?;
    Some(TokenUsage {
        prompt_tokens: parse_number(&usage["input_tokens"]).unwrap_or(0),
        completion_tokens,
        estimated: false,
    })
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use switchboard_schemas::conversation::FinishReason;

    use super::*;
    use crate::model::finish_reason::FinishKind;

    fn output(events: &[Value]) -> ModelOutput {
        let mut output = ModelOutput::new(true, false);
        for event in events {
            let data = event.to_string();
            let event = StreamEvent {
                is_error: false,
                data: data.as_bytes(),
            };
            take_event(event, &mut output);
        }
        output
    }

    #[test]
    fn whole_response_is_an_answer() {
        let text = output(&[json!({
            "object": "response", "status": "completed",
            "output": [
                {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "abc"},
                {"type": "message", "content": [{"type": "output_text", "text": "Hello"}]}
            ],
            "usage": {"input_tokens": 3, "output_tokens": 2}
        })]);
        assert_eq!(text.text, "Hello");
        assert_eq!(text.finish, Some(FinishKind::Regular(FinishReason::Stop)));
        assert_eq!(text.usage.map(|usage| usage.completion_tokens), Some(2));
        assert_eq!(text.extras[REASONING_ITEMS][0]["id"], "rs_1");
    }

    #[test]
    fn end_of_a_stream_does_not_repeat_its_text() {
        let answer = json!({"type": "message", "content": [{"type": "output_text", "text": "Hi"}]});
        let text = output(&[
            json!({"type": "response.output_text.delta", "delta": "Hi"}),
            json!({"type": "response.output_text.done", "text": "Hi"}),
            json!({"type": "response.completed", "response": {"status": "completed", "output": [answer]}}),
        ]);
        let stop = Some(FinishKind::Regular(FinishReason::Stop));
        assert_eq!((text.text.as_str(), text.finish), ("Hi", stop));
    }

    #[test]
    fn failures_are_reported_with_their_words() {
        for event in [
            json!({"type": "error", "code": "x", "message": "gone"}),
            json!({"type": "error", "error": {"code": "x", "message": "gone"}}),
            json!({"type": "response.failed", "response": {"status": "failed", "error": {"message": "gone"}}}),
            json!({"error": {"message": "gone"}}),
        ] {
            let failure = output(std::slice::from_ref(&event)).failure.unwrap();
            assert_eq!(failure.message.as_deref(), Some("gone"), "{event}");
        }
    }
}
