//! Events of the Responses API, the second dialect of the client. Some models take tools together
//! with reasoning only here.
//!
//! Source: the streaming events and the `Response` object of OpenAI's API reference.

use serde_json::{Map, Value};
use switchboard_schemas::conversation::FinishReason;

use super::{
    CallError,
    borrowed_json::parse_text_delta,
    chunk::{parse_number, usage_of},
    finish_reason::FinishKind,
    output::ModelOutput,
    refusal::reported_failure,
    tool_calls::ToolCallFragment,
};

/// Name under which the items of a model's thoughts are kept, to be sent back.
pub(super) const REASONING_ITEMS: &str = "reasoning";

/// Adds an event of a stream, or a whole response, to the output.
pub(super) fn take_data(data: &[u8], output: &mut ModelOutput) {
    // Text events are many, and are read in place.
    if let Some(text) = parse_text_delta(data) {
        output.push_text(&text);
        return;
    }
    match serde_json::from_slice::<Map<String, Value>>(data) {
        Ok(fields) => take_fields(Value::Object(fields), data, output),
        Err(_) => output.fail(CallError::NotAnAnswer),
    }
}

fn take_fields(mut event: Value, data: &[u8], output: &mut ModelOutput) {
    match event["type"].as_str().unwrap_or_default() {
        "response.output_text.delta" | "response.refusal.delta" if !event["delta"].is_string() => {
            output.fail(CallError::NotAnAnswer);
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
        "error" => output.fail(reported_failure(data)),
        "" if event["object"] == "response" => take_response(&event, data, output),
        "" if !event["error"].is_null() => output.fail(reported_failure(data)),
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
            extras: if is_done {
                unknown_fields(item)
            } else {
                Map::new()
            },
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

/// Returns the fields of a call that this client does not know.
fn unknown_fields(item: &Value) -> Map<String, Value> {
    let mut fields = item.as_object().cloned().unwrap_or_default();
    fields.retain(|name, value| {
        !value.is_null() && !["type", "call_id", "name", "arguments"].contains(&name.as_str())
    });
    fields
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
    output.usage = usage_of(&response["usage"]).or(output.usage);
    let reason = response["incomplete_details"]["reason"].as_str();
    match (response["status"].as_str().unwrap_or_default(), reason) {
        ("completed", _) => output.note_finish("stop"),
        ("incomplete", Some(reason)) => {
            output.note_finish(reason);
            // "Incomplete" contradicts a reason that sounds like a whole answer.
            if output.finish == Some(FinishKind::Regular(FinishReason::Stop)) {
                output.finish = Some(FinishKind::Unknown);
            }
        }
        _ => {
            output.fail(reported_failure(data));
        }
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn output(events: &[Value]) -> ModelOutput {
        let mut output = ModelOutput::new(true, false);
        for event in events {
            take_data(event.to_string().as_bytes(), &mut output);
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
