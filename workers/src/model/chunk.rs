//! One chunk of a streamed completion, parsed leniently: servers omit, add and rename fields.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, Visitor},
};
use serde_json::{Value, value::RawValue};
use switchboard_schemas::conversation::{FinishReason, TokenUsage};

use super::tool_calls::ToolCallFragment;

/// A chunk; every field may be missing or null.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct CompletionChunk {
    choices: Option<Vec<ChunkChoice>>,
    // Usage that cannot be parsed must not cost the text beside it.
    usage: Option<Value>,
    error: Option<IgnoredAny>,
    /// Some servers send `{"object":"error","message":…}` instead of an error object.
    object: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ChunkChoice {
    delta: Option<ChunkDelta>,
    /// Some servers send one whole message instead of deltas.
    message: Option<ChunkDelta>,
    finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ChunkDelta {
    content: Option<TextBytes>,
    // Raw, so that an odd tool call costs the call and not the text beside it.
    tool_calls: Option<Box<RawValue>>,
    /// The older form for a single call.
    function_call: Option<Box<RawValue>>,
}

/// A part of a tool call as servers write it: wrapped or flat, with numbers as text and text as
/// numbers.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawToolCall {
    index: Option<Value>,
    id: Option<Value>,
    function: Option<RawToolFunction>,
    #[serde(flatten)]
    flat: RawToolFunction,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawToolFunction {
    name: Option<String>,
    arguments: Option<Value>,
}

impl CompletionChunk {
    /// Returns true if the provider reports a failure.
    pub(crate) fn is_error(&self) -> bool {
        self.error.is_some() || self.object.as_deref() == Some("error")
    }

    /// Returns the text, as bytes that may contain lone surrogates.
    pub(crate) fn text_bytes(&self) -> &[u8] {
        self.first_delta()
            .and_then(|delta| delta.content.as_ref())
            .map_or(&[], |content| &content.0)
    }

    pub(crate) fn tool_fragments(&self) -> Vec<ToolCallFragment> {
        let Some(delta) = self.first_delta() else {
            return Vec::new();
        };
        let listed = delta
            .tool_calls
            .as_deref()
            .map(RawValue::get)
            .map(parse_calls)
            .unwrap_or_default();
        let single = delta
            .function_call
            .as_deref()
            .map(|call| parse_fragment(call.get()));
        listed.into_iter().chain(single).collect()
    }

    /// Returns the reason why the provider stopped. An empty reason is none; an unknown one counts
    /// as `Stop`.
    pub(crate) fn finish_reason(&self) -> Option<FinishReason> {
        let reason = self
            .first_choice()?
            .finish_reason
            .as_deref()
            .filter(|reason| !reason.is_empty())?;
        Some(match reason {
            "length" | "max_tokens" | "model_length" => FinishReason::Length,
            "content_filter" | "safety" => FinishReason::ContentFilter,
            _ => FinishReason::Stop,
        })
    }

    /// Returns the token usage, if the chunk contains it.
    pub(crate) fn usage(&self) -> Option<TokenUsage> {
        let field_value = |field: &str| parse_number(self.usage.as_ref()?.get(field)?);
        // Some servers send a running count of zeros with every chunk.
        let completion_tokens = field_value("completion_tokens").filter(|tokens| *tokens > 0)?;
        Some(TokenUsage {
            prompt_tokens: field_value("prompt_tokens").unwrap_or(0),
            completion_tokens,
            estimated: false,
        })
    }

    fn first_choice(&self) -> Option<&ChunkChoice> {
        self.choices.as_ref()?.first()
    }

    fn first_delta(&self) -> Option<&ChunkDelta> {
        let choice = self.first_choice()?;
        choice.delta.as_ref().or(choice.message.as_ref())
    }
}

/// Parses a list of calls, or a single one.
fn parse_calls(json: &str) -> Vec<ToolCallFragment> {
    match serde_json::from_str::<Vec<Box<RawValue>>>(json) {
        Ok(calls) => calls
            .iter()
            .map(|call| parse_fragment(call.get()))
            .collect(),
        Err(_) => vec![parse_fragment(json)],
    }
}

fn parse_fragment(json: &str) -> ToolCallFragment {
    let Ok(call) = serde_json::from_str::<RawToolCall>(json) else {
        return ToolCallFragment::unreadable();
    };
    let RawToolFunction { name, arguments } = call.function.unwrap_or(call.flat);
    ToolCallFragment {
        index: call.index.as_ref().and_then(parse_number),
        id: call.id.as_ref().map(argument_text).unwrap_or_default(),
        name: name.unwrap_or_default(),
        arguments: arguments.as_ref().map(argument_text).unwrap_or_default(),
        readable: true,
    }
}

fn parse_number(value: &Value) -> Option<u64> {
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

/// A JSON string as bytes: the only form in which half a surrogate pair survives.
#[derive(Debug)]
struct TextBytes(Vec<u8>);

impl<'de> Deserialize<'de> for TextBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextBytesVisitor;
        impl Visitor<'_> for TextBytesVisitor {
            type Value = TextBytes;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("text")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<TextBytes, E> {
                Ok(TextBytes(bytes.to_vec()))
            }
        }
        deserializer.deserialize_bytes(TextBytesVisitor)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn chunk(json: &str) -> CompletionChunk {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn text_reason_and_usage_may_share_a_chunk() {
        let all = chunk(
            r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":2,"completion_tokens":3}}"#,
        );
        assert_eq!(
            (all.text_bytes(), all.finish_reason()),
            (&b"a"[..], Some(FinishReason::Stop))
        );
        assert_eq!(all.usage().unwrap().completion_tokens, 3);
        let alone = chunk(
            r#"{"choices":[],"usage":{"prompt_tokens":2,"completion_tokens":3,"details":{}}}"#,
        );
        assert_eq!(
            (alone.text_bytes(), alone.usage().unwrap().prompt_tokens),
            (&b""[..], 2)
        );
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
        ] {
            let chunk = chunk(json);
            assert!(
                chunk.text_bytes().is_empty()
                    && chunk.finish_reason().is_none()
                    && !chunk.is_error(),
                "{json}"
            );
        }
    }

    #[test]
    fn both_error_forms_are_recognized() {
        assert!(chunk(r#"{"error":{"message":"m","code":500}}"#).is_error());
        assert!(chunk(r#"{"error":"text"}"#).is_error());
        assert!(chunk(r#"{"object":"error","message":"m"}"#).is_error());
    }

    #[test]
    fn lone_surrogate_waits_for_its_other_half() {
        let mut text = super::super::assembler::TextAssembler::default();
        let first =
            text.push_bytes(chunk(r#"{"choices":[{"delta":{"content":"\ud83e"}}]}"#).text_bytes());
        let second =
            text.push_bytes(chunk(r#"{"choices":[{"delta":{"content":"\udd80"}}]}"#).text_bytes());
        assert_eq!((first.as_str(), second.as_str()), ("", "\u{1f980}"));
    }

    proptest! {
        #[test]
        fn arbitrary_chunk_text_never_panics(text: String) {
            let _ = serde_json::from_str::<CompletionChunk>(&text);
        }
    }
}
