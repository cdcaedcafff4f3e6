//! One chunk of a streamed chat completion, parsed leniently and in place: servers omit, add and
//! rename fields.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Map, Value, value::RawValue};
use switchboard_schemas::conversation::TokenUsage;

use super::{
    CallError,
    borrowed_json::{FieldName, FirstElement, TextBytes, raw_text},
    event_stream::StreamEvent,
    output::ModelOutput,
    tool_calls::ToolCallFragment,
};

/// Data of the event behind the last chunk.
const DONE: &[u8] = b"[DONE]";

/// A chunk; every field may be missing or null.
#[derive(Default, Deserialize)]
#[serde(default)]
struct CompletionChunk<'a> {
    #[serde(borrow)]
    choices: Option<FirstElement<ChunkChoice<'a>>>,
    // Usage that cannot be parsed must not cost the text beside it.
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    /// Groq reports usage and errors in an object of its own.
    #[serde(borrow)]
    x_groq: Option<GroqFields<'a>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    /// Some servers send `{"object":"error","message":…}` instead of an error object.
    #[serde(borrow)]
    object: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GroqFields<'a> {
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ChunkChoice<'a> {
    #[serde(borrow)]
    delta: Option<ChunkDelta<'a>>,
    /// Some servers send one whole message instead of deltas.
    #[serde(borrow)]
    message: Option<ChunkDelta<'a>>,
    #[serde(borrow)]
    finish_reason: Option<&'a RawValue>,
    /// Reason of the provider behind a gateway (OpenRouter).
    #[serde(borrow)]
    native_finish_reason: Option<&'a RawValue>,
    /// Some servers count here (Moonshot).
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// Fields of a message or a part of one. Values are raw, so that an odd tool call costs the call
/// and not the text beside it.
#[derive(Default)]
struct ChunkDelta<'a> {
    content: Option<&'a RawValue>,
    refusal: Option<&'a RawValue>,
    tool_calls: Option<&'a RawValue>,
    /// The older form for a single call.
    function_call: Option<&'a RawValue>,
    /// Fields that this client does not know.
    others: Vec<(FieldName<'a>, &'a RawValue)>,
}

/// A part of a message: Mistral sends texts, thoughts and references as parts.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ContentPart<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Option<&'a RawValue>,
}

/// Adds an event of a stream, or a whole document, to the output.
pub(super) fn take_event(event: StreamEvent<'_>, output: &mut ModelOutput) {
    if output.failure.is_some() || output.is_done {
        return;
    }
    let data = event.data.trim_ascii();
    if event.is_error {
        return output.fail(CallError::Reported, error_message(data));
    }
    if data.starts_with(DONE) {
        output.is_done = true;
        return;
    }
    match serde_json::from_slice::<CompletionChunk<'_>>(data) {
        Ok(chunk) => take_chunk(chunk, data, output),
        Err(_) => output.fail(CallError::NotAnAnswer, None),
    }
}

fn take_chunk(chunk: CompletionChunk<'_>, data: &[u8], output: &mut ModelOutput) {
    let choice = chunk.choices.and_then(|choices| choices.0);
    let groq = chunk.x_groq.unwrap_or_default();
    let counted = choice.as_ref().and_then(|choice| choice.usage);
    let usage = [counted, chunk.usage, groq.usage].into_iter().flatten();
    output.usage = usage.rev().find_map(parse_usage).or(output.usage);
    let mut choice_error = None;
    if let Some(choice) = choice {
        if let Some(delta) = choice.delta.or(choice.message) {
            take_delta(delta, output);
        }
        choice_error = choice.error;
        if let Some(reason) = choice.finish_reason {
            output.note_finish(raw_text(reason).as_deref().unwrap_or_else(|| reason.get()));
        }
        if let Some(reason) = choice.native_finish_reason.and_then(raw_text) {
            output.note_interruption(&reason);
        }
    }
    let error = [chunk.error, groq.error, choice_error];
    let is_error_object = chunk
        .object
        .is_some_and(|object| object.get() == "\"error\"");
    if error.iter().any(Option::is_some) || is_error_object {
        output.failure = None;
        output.fail(CallError::Reported, error_message(data));
    }
}

fn take_delta(delta: ChunkDelta<'_>, output: &mut ModelOutput) {
    for content in [delta.content, delta.refusal].into_iter().flatten() {
        if push_content(content, output).is_none() {
            output.fail(CallError::NotAnAnswer, None);
        }
    }
    if !output.collects_calls {
        return;
    }
    if let Some(calls) = delta.tool_calls {
        parse_calls(calls.get(), output);
    }
    if let Some(call) = delta.function_call {
        output.push_fragment(parse_fragment(call.get()));
    }
    for (name, value) in delta.others {
        output.add_extra(&name.0, value.get());
    }
}

/// Adds the text of a string or of a list of parts. Returns `None` if it is neither.
fn push_content(content: &RawValue, output: &mut ModelOutput) -> Option<()> {
    if !content.get().starts_with(['[', '{']) {
        output.push_text(&TextBytes::parse(content)?.0);
        return Some(());
    }
    let parts: Vec<&RawValue> =
        serde_json::from_str(content.get()).unwrap_or_else(|_| vec![content]);
    for part in parts {
        if part.get().starts_with('"') {
            output.push_text(&TextBytes::parse(part)?.0);
            continue;
        }
        // A part without text is a thought, a reference or something else that is not shown.
        let part: ContentPart<'_> = serde_json::from_str(part.get()).unwrap_or_default();
        for text in [part.text, part.refusal].into_iter().flatten() {
            if let Some(text) = TextBytes::parse(text) {
                output.push_text(&text.0);
            }
        }
    }
    Some(())
}

fn parse_usage(usage: &RawValue) -> Option<TokenUsage> {
    let usage: Map<String, Value> = serde_json::from_str(usage.get()).ok()?;
    let number = |names: [&str; 2]| {
        names
            .iter()
            .find_map(|name| parse_number(usage.get(*name)?))
    };
    // Some servers send a running count of zeros with every chunk.
    let completion_tokens =
        number(["completion_tokens", "output_tokens"]).filter(|tokens| *tokens > 0)?;
    Some(TokenUsage {
        prompt_tokens: number(["prompt_tokens", "input_tokens"]).unwrap_or(0),
        completion_tokens,
        estimated: false,
    })
}

/// Parses a list of calls, or a single one.
fn parse_calls(json: &str, output: &mut ModelOutput) {
    match serde_json::from_str::<Vec<&RawValue>>(json) {
        Ok(calls) => calls
            .iter()
            .for_each(|call| output.push_fragment(parse_fragment(call.get()))),
        Err(_) => output.push_fragment(parse_fragment(json)),
    }
}

/// Parses a part of a tool call as servers write it: wrapped or flat, with numbers as text and text
/// as numbers.
fn parse_fragment(json: &str) -> ToolCallFragment {
    parse_call(json).unwrap_or_default()
}

fn parse_call(json: &str) -> Option<ToolCallFragment> {
    let mut call: Map<String, Value> = serde_json::from_str(json).ok()?;
    let index = call.remove("index");
    let id = call.remove("id");
    call.remove("type");
    let mut function = match call.remove("function") {
        Some(Value::Object(function)) => function,
        None | Some(Value::Null) => Map::from_iter(
            ["name", "arguments"]
                .into_iter()
                .filter_map(|name| call.remove_entry(name)),
        ),
        Some(_) => return None,
    };
    let name = match function.remove("name") {
        Some(Value::String(name)) => name,
        None | Some(Value::Null) => String::new(),
        Some(_) => return None,
    };
    let arguments = function.remove("arguments");
    call.retain(|_, value| !value.is_null());
    function.retain(|_, value| !value.is_null());
    Some(ToolCallFragment {
        index: index.as_ref().and_then(parse_number),
        id: id.as_ref().map(argument_text).unwrap_or_default(),
        name,
        arguments: arguments.as_ref().map(argument_text).unwrap_or_default(),
        extras: call,
        function_extras: function,
        readable: true,
    })
}

pub(super) fn parse_number(value: &Value) -> Option<u64> {
    value
        .as_u64()
        .or_else(|| value.as_str()?.trim().parse().ok())
}

/// Arguments that came as an object are turned back into JSON.
fn argument_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the words of an error in any of its forms, or the whole data if it is no JSON.
pub(super) fn error_message(data: &[u8]) -> Option<String> {
    super::refusal::RefusalBody::parse(data).message
}

impl<'de: 'a, 'a> Deserialize<'de> for ChunkDelta<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct DeltaVisitor;
        impl<'de> Visitor<'de> for DeltaVisitor {
            type Value = ChunkDelta<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut fields: A,
            ) -> Result<ChunkDelta<'de>, A::Error> {
                let mut delta = ChunkDelta::default();
                while let Some(name) = fields.next_key::<FieldName<'de>>()? {
                    let known = match &*name.0 {
                        "content" => &mut delta.content,
                        "refusal" => &mut delta.refusal,
                        "tool_calls" => &mut delta.tool_calls,
                        "function_call" => &mut delta.function_call,
                        "role" => {
                            fields.next_value::<IgnoredAny>()?;
                            continue;
                        }
                        _ => {
                            if let Some(value) = fields.next_value()? {
                                delta.others.push((name, value));
                            }
                            continue;
                        }
                    };
                    *known = fields.next_value()?;
                }
                Ok(delta)
            }
        }
        deserializer.deserialize_map(DeltaVisitor)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use switchboard_schemas::conversation::FinishReason;

    use super::*;
    use crate::model::finish_reason::FinishKind;

    fn output(events: &[&str]) -> ModelOutput {
        let mut output = ModelOutput::new(true, false);
        for event in events {
            let event = StreamEvent {
                is_error: false,
                data: event.as_bytes(),
            };
            take_event(event, &mut output);
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
                take_event(StreamEvent { is_error: false, data }, &mut output);
            }
        }
    }
}
