//! One chunk of a streamed chat completion, parsed leniently and in place: servers omit, add and
//! rename fields.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Map, Value, value::RawValue};
use switchboard_schemas::conversation::TokenUsage;

use super::{
    CallError,
    borrowed_json::{FieldName, FirstElement, TextBytes, raw_text},
    output::ModelOutput,
    refusal,
    tool_calls::ToolCallFragment,
};

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

impl ChunkDelta<'_> {
    fn is_empty(&self) -> bool {
        let known = [
            self.content,
            self.refusal,
            self.tool_calls,
            self.function_call,
        ];
        known.iter().all(Option::is_none) && self.others.is_empty()
    }
}

/// A part of a message: Mistral sends texts, thoughts and references as parts.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ContentPart<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    /// True for thoughts of Gemini.
    #[serde(borrow)]
    thought: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Option<&'a RawValue>,
}

impl<'a> ContentPart<'a> {
    /// Returns the texts that are part of the answer.
    fn shown_texts(&self) -> impl Iterator<Item = &'a RawValue> {
        #[derive(Deserialize)]
        struct TextValue<'a> {
            #[serde(borrow)]
            value: &'a RawValue,
        }
        let kind = self.kind.map_or("\"text\"", RawValue::get);
        let is_text = matches!(
            kind,
            "\"text\"" | "\"output_text\"" | "null" | "\"refusal\""
        );
        let is_thought = self.thought.is_some_and(|thought| thought.get() == "true");
        let text = self.text.map(|text| {
            // The form of assistants: `{"value": "Hello"}`.
            serde_json::from_str::<TextValue<'_>>(text.get()).map_or(text, |text| text.value)
        });
        let texts = [text, self.refusal];
        texts
            .into_iter()
            .flatten()
            .filter(move |_| is_text && !is_thought)
    }
}

/// Adds a chunk, or a whole completion, to the output.
pub(super) fn take_data(data: &[u8], output: &mut ModelOutput) {
    match serde_json::from_slice::<Option<CompletionChunk<'_>>>(data) {
        Ok(chunk) => take_chunk(chunk.unwrap_or_default(), data, output),
        Err(_) => take_bytes(data, output),
    }
}

/// Takes the text of a chunk that is no UTF-8, because a server cut a character into two chunks.
fn take_bytes(data: &[u8], output: &mut ModelOutput) {
    #[derive(Deserialize)]
    struct BytesChunk<'a> {
        #[serde(borrow)]
        choices: FirstElement<BytesChoice<'a>>,
    }
    #[derive(Deserialize)]
    struct BytesChoice<'a> {
        #[serde(borrow)]
        delta: BytesDelta<'a>,
    }
    #[derive(Deserialize)]
    struct BytesDelta<'a> {
        #[serde(borrow, default)]
        content: Option<TextBytes<'a>>,
    }
    match serde_json::from_slice::<BytesChunk<'_>>(data) {
        Ok(chunk) if std::str::from_utf8(data).is_err() => {
            let content = chunk.choices.0.and_then(|choice| choice.delta.content);
            output.push_text(&content.map(|text| text.0).unwrap_or_default());
        }
        _ => output.fail(CallError::NotAnAnswer),
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
        let delta = choice.delta.filter(|delta| !delta.is_empty());
        if let Some(delta) = delta.or(choice.message) {
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
    if error.into_iter().flatten().any(says_something) || is_error_object {
        output.failure = Some(refusal::reported_failure(data));
    }
}

/// Returns false for forms of "no error".
fn says_something(error: &RawValue) -> bool {
    !matches!(error.get(), "{}" | "[]" | "\"\"" | "false" | "0")
}

fn take_delta(delta: ChunkDelta<'_>, output: &mut ModelOutput) {
    for content in [delta.content, delta.refusal].into_iter().flatten() {
        if push_content(content, output).is_none() {
            output.fail(CallError::NotAnAnswer);
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
        // Any other part is a thought, a reference or something else that is not shown.
        let part: ContentPart<'_> = serde_json::from_str(part.get()).unwrap_or_default();
        for text in part.shown_texts() {
            if let Some(text) = TextBytes::parse(text) {
                output.push_text(&text.0);
            }
        }
    }
    Some(())
}

fn parse_usage(usage: &RawValue) -> Option<TokenUsage> {
    usage_of(&serde_json::from_str(usage.get()).ok()?)
}

/// Returns a usage under the names of both dialects.
pub(super) fn usage_of(usage: &Value) -> Option<TokenUsage> {
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
    let whole = value.as_f64().filter(|number| *number >= 0.0);
    value
        .as_u64()
        .or_else(|| whole.map(|number| number as u64))
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

impl<'de: 'a, 'a> Deserialize<'de> for ChunkDelta<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct DeltaVisitor;
        impl<'de> Visitor<'de> for DeltaVisitor {
            type Value = ChunkDelta<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            /// Some servers send an empty text instead of an object.
            fn visit_str<E: Error>(self, _: &str) -> Result<ChunkDelta<'de>, E> {
                Ok(ChunkDelta::default())
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
        deserializer.deserialize_any(DeltaVisitor)
    }
}

#[cfg(test)]
#[path = "chunk_tests.rs"]
mod tests;
