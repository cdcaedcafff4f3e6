//! The Responses API of the scripted model: scripts are written as chat completions and translated.

use serde_json::{Value, json};

use super::{Raw, text_of};

/// Returns role and text of each message of a request.
pub(crate) fn messages_of(body: &Value) -> Vec<(String, String)> {
    let instructions = body["instructions"].as_str();
    let instructions = instructions.map(|text| ("system".to_owned(), text.to_owned()));
    let items = body["input"].as_array().into_iter().flatten();
    let messages = items.map(|item| match item["type"].as_str() {
        Some("function_call_output") => ("tool".to_owned(), text_of(&item["output"])),
        Some(_) => ("assistant".to_owned(), String::new()),
        None => (text_of(&item["role"]), text_of(&item["content"])),
    });
    instructions.into_iter().chain(messages).collect()
}

/// Returns the events of a piece; `None` if it is the same in both dialects.
pub(crate) fn events_of(piece: &Raw) -> Option<Vec<Value>> {
    match piece {
        Raw::Delta(delta) => Some(events_of_delta(delta)),
        Raw::Finish(reason) => {
            let response = match *reason {
                "stop" | "tool_calls" => json!({"status": "completed"}),
                "length" => incomplete("max_output_tokens"),
                other => incomplete(other),
            };
            let kind = format!("response.{}", text_of(&response["status"]));
            Some(vec![json!({"type": kind, "response": response})])
        }
        Raw::Event(_) | Raw::Bytes(_) | Raw::Hang | Raw::Cut => None,
    }
}

fn incomplete(reason: &str) -> Value {
    json!({"status": "incomplete", "incomplete_details": {"reason": reason}})
}

fn events_of_delta(delta: &Value) -> Vec<Value> {
    let mut events = Vec::new();
    let content = &delta["content"];
    if !content.is_null() && content != "" {
        events.push(
            json!({"type": "response.output_text.delta", "output_index": 0, "delta": content}),
        );
    }
    for call in delta["tool_calls"].as_array().into_iter().flatten() {
        let function = &call["function"];
        let place = &call["index"];
        if function["name"].is_string() {
            let item = json!({"type": "function_call", "call_id": call["id"], "name": function["name"], "arguments": ""});
            events.push(
                json!({"type": "response.output_item.added", "output_index": place, "item": item}),
            );
        }
        let arguments = match &function["arguments"] {
            Value::Null => continue,
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        events.push(json!({"type": "response.function_call_arguments.delta", "output_index": place, "delta": arguments}));
    }
    events
}
