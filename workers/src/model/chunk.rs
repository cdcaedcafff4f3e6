//! One chunk of a streamed completion, read as leniently as can be: servers leave out, add and rename fields.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, Visitor},
};
use serde_json::{Value, value::RawValue};
use switchboard_schemas::conversation::{FinishReason, TokenUsage};

use super::tool_calls::Fragment;

/// A chunk; every field may be missing or null.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Chunk {
    choices: Option<Vec<Choice>>,
    // Figures that cannot be read are no reason to lose the text beside them.
    usage: Option<Value>,
    error: Option<IgnoredAny>,
    /// Some servers send `{"object":"error","message":…}` in place of an error object.
    object: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Choice {
    delta: Option<Delta>,
    /// Some servers send one whole message in place of deltas.
    message: Option<Delta>,
    finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Delta {
    content: Option<TextBytes>,
    // Raw, so that an odd tool call costs the call and not the text beside it.
    tool_calls: Option<Box<RawValue>>,
    /// How calls came before there could be several.
    function_call: Option<Box<RawValue>>,
}

/// A part of a tool call as servers write it: wrapped or flat, with numbers as text and text as numbers.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawCall {
    index: Option<Value>,
    id: Option<Value>,
    function: Option<RawFunction>,
    #[serde(flatten)]
    flat: RawFunction,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawFunction {
    name: Option<String>,
    arguments: Option<Value>,
}

impl Chunk {
    /// Whether it says that the provider failed.
    pub(crate) fn is_error(&self) -> bool {
        self.error.is_some() || self.object.as_deref() == Some("error")
    }

    /// Its text, as bytes in which lone surrogates may stand.
    pub(crate) fn text(&self) -> &[u8] {
        self.delta()
            .and_then(|delta| delta.content.as_ref())
            .map_or(&[], |content| &content.0)
    }

    /// Its parts of tool calls, in their order.
    pub(crate) fn tool_fragments(&self) -> Vec<Fragment> {
        let Some(delta) = self.delta() else {
            return Vec::new();
        };
        let listed = delta
            .tool_calls
            .as_deref()
            .map(RawValue::get)
            .map(listed)
            .unwrap_or_default();
        let single = delta
            .function_call
            .as_deref()
            .map(|call| fragment(call.get()));
        listed.into_iter().chain(single).collect()
    }

    /// Why the provider stopped, if it did. An empty reason is none; one that we do not know is an end all the same.
    pub(crate) fn finish_reason(&self) -> Option<FinishReason> {
        let reason = self
            .first()?
            .finish_reason
            .as_deref()
            .filter(|reason| !reason.is_empty())?;
        Some(match reason {
            "length" | "max_tokens" | "model_length" => FinishReason::Length,
            "content_filter" | "safety" => FinishReason::ContentFilter,
            _ => FinishReason::Stop,
        })
    }

    /// Tokens used, if it tells them.
    pub(crate) fn usage(&self) -> Option<TokenUsage> {
        let told = |field: &str| number(self.usage.as_ref()?.get(field)?);
        // Some servers send a running count of zeros with every chunk.
        let completion_tokens = told("completion_tokens").filter(|tokens| *tokens > 0)?;
        Some(TokenUsage {
            prompt_tokens: told("prompt_tokens").unwrap_or(0),
            completion_tokens,
            estimated: false,
        })
    }

    fn first(&self) -> Option<&Choice> {
        self.choices.as_ref()?.first()
    }

    fn delta(&self) -> Option<&Delta> {
        let choice = self.first()?;
        choice.delta.as_ref().or(choice.message.as_ref())
    }
}

/// A list of calls, or one that stands alone.
fn listed(json: &str) -> Vec<Fragment> {
    match serde_json::from_str::<Vec<Box<RawValue>>>(json) {
        Ok(calls) => calls.iter().map(|call| fragment(call.get())).collect(),
        Err(_) => vec![fragment(json)],
    }
}

fn fragment(json: &str) -> Fragment {
    let Ok(call) = serde_json::from_str::<RawCall>(json) else {
        return Fragment::unreadable();
    };
    let RawFunction { name, arguments } = call.function.unwrap_or(call.flat);
    Fragment {
        index: call.index.as_ref().and_then(number),
        id: call.id.as_ref().map(text).unwrap_or_default(),
        name: name.unwrap_or_default(),
        arguments: arguments.as_ref().map(text).unwrap_or_default(),
        readable: true,
    }
}

fn number(value: &Value) -> Option<u64> {
    value
        .as_u64()
        .or_else(|| value.as_str()?.trim().parse().ok())
}

/// Arguments that came as an object are its JSON.
fn text(value: &Value) -> String {
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
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = TextBytes;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("text")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<TextBytes, E> {
                Ok(TextBytes(bytes.to_vec()))
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn chunk(json: &str) -> Chunk {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn text_reason_and_usage_may_share_a_chunk_or_come_alone() {
        let all = chunk(
            r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":2,"completion_tokens":3}}"#,
        );
        assert_eq!(
            (all.text(), all.finish_reason()),
            (&b"a"[..], Some(FinishReason::Stop))
        );
        assert_eq!(all.usage().unwrap().completion_tokens, 3);
        let alone = chunk(
            r#"{"choices":[],"usage":{"prompt_tokens":2,"completion_tokens":3,"details":{}}}"#,
        );
        assert_eq!(
            (alone.text(), alone.usage().unwrap().prompt_tokens),
            (&b""[..], 2)
        );
    }

    #[test]
    fn missing_null_and_unknown_fields_say_nothing() {
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
                chunk.text().is_empty() && chunk.finish_reason().is_none() && !chunk.is_error(),
                "{json}"
            );
        }
    }

    #[test]
    fn an_error_in_either_form_is_one() {
        assert!(chunk(r#"{"error":{"message":"m","code":500}}"#).is_error());
        assert!(chunk(r#"{"error":"text"}"#).is_error());
        assert!(chunk(r#"{"object":"error","message":"m"}"#).is_error());
    }

    #[test]
    fn half_a_surrogate_pair_is_kept_for_its_other_half() {
        let mut text = super::super::assembler::Assembler::default();
        let first = text.push(chunk(r#"{"choices":[{"delta":{"content":"\ud83e"}}]}"#).text());
        let second = text.push(chunk(r#"{"choices":[{"delta":{"content":"\udd80"}}]}"#).text());
        assert_eq!((first.as_str(), second.as_str()), ("", "\u{1f980}"));
    }

    proptest! {
        #[test]
        fn any_text_is_a_chunk_or_an_error_without_a_panic(text: String) {
            let _ = serde_json::from_str::<Chunk>(&text);
        }
    }
}
