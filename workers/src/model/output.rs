//! Output of a model as it arrives, in terms of no protocol: the dialects fill it, and one reader
//! follows it.

use serde_json::{Map, Value};
use switchboard_schemas::conversation::TokenUsage;

use super::{
    CallError, FailedCall, assembler::TextAssembler, finish_reason::FinishKind,
    thoughts::ThoughtFilter, tool_calls::ToolCallFragment,
};

/// Largest sum of the unknown fields of one message that go back to their provider, in bytes.
const EXTRAS_BYTES_MAX: usize = 256 << 10;

/// Output of one call so far. Text and fragments are those that the follower has not taken yet.
#[derive(Default)]
pub(super) struct ModelOutput {
    /// New text, in whole characters.
    pub(super) text: String,
    /// New fragments of tool calls.
    pub(super) fragments: Vec<ToolCallFragment>,
    /// Latest finish reason.
    pub(super) finish: Option<FinishKind>,
    /// Latest usage: some servers count while they send.
    pub(super) usage: Option<TokenUsage>,
    /// Failure that the provider reported, or the first event that is none of the protocol.
    pub(super) failure: Option<FailedCall>,
    /// True if the response ended within an event.
    pub(super) is_cut: bool,
    /// True once the provider has said that nothing follows.
    pub(super) is_done: bool,
    /// True if calls and unknown fields are wanted.
    pub(super) collects_calls: bool,
    /// Unknown fields of the message.
    pub(super) extras: Map<String, Value>,
    extras_bytes: usize,
    has_begun: bool,
    assembler: TextAssembler,
    thoughts: ThoughtFilter,
}

impl ModelOutput {
    /// Creates the output of a call. If it `continues` displayed text, tags of thoughts are text.
    pub(super) fn new(collects_calls: bool, continues: bool) -> Self {
        Self {
            collects_calls,
            thoughts: ThoughtFilter::new(!continues),
            ..Self::default()
        }
    }

    /// Adds text, in which surrogates may stand as three bytes each (WTF-8).
    pub(super) fn push_text(&mut self, bytes: &[u8]) {
        let begin = self.text.len();
        self.has_begun |= !bytes.is_empty();
        self.assembler.push_bytes(bytes, &mut self.text);
        self.thoughts.filter(&mut self.text, begin);
    }

    /// Adds a fragment of a tool call, if calls are wanted.
    pub(super) fn push_fragment(&mut self, fragment: ToolCallFragment) {
        self.has_begun = true;
        if self.collects_calls {
            self.fragments.push(fragment);
        }
    }

    /// Returns true once text or a call has arrived.
    pub(super) const fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Ends the text: an incomplete character becomes U+FFFD.
    pub(super) fn finish_text(&mut self) {
        let begin = self.text.len();
        self.assembler.finish(&mut self.text);
        self.thoughts.filter(&mut self.text, begin);
        self.thoughts.finish(&mut self.text);
    }

    /// Notes a finish reason.
    pub(super) fn note_finish(&mut self, reason: &str) {
        if let Some(kind) = FinishKind::parse(reason) {
            self.finish = Some(kind);
            if kind == FinishKind::Interrupted {
                self.fail(CallError::Reported);
            }
        }
    }

    /// Notes a further finish reason if it says that the answer is not whole.
    pub(super) fn note_interruption(&mut self, reason: &str) {
        if FinishKind::parse(reason) == Some(FinishKind::Interrupted) {
            self.fail(CallError::Reported);
        }
    }

    /// Notes the first failure.
    pub(super) fn fail(&mut self, failed: impl Into<FailedCall>) {
        self.failure.get_or_insert_with(|| failed.into());
    }

    /// Adds an unknown field of the message: texts and lists arrive in pieces, anything else whole.
    pub(super) fn add_extra(&mut self, name: &str, json: &str) {
        self.extras_bytes += json.len();
        let Ok(value) = serde_json::from_str::<Value>(json) else {
            return;
        };
        if value.is_null() || self.extras_bytes > EXTRAS_BYTES_MAX {
            return;
        }
        let is_thought = ["reason", "think", "thought"]
            .iter()
            .any(|word| name.contains(word));
        let known = self.extras.entry(name).or_insert(Value::Null);
        merge_extra(known, value, is_thought);
    }
}

/// Adds a piece of an unknown field to the pieces before it: texts are joined, entries of lists too
/// if they carry the same `index` (`reasoning_details` of OpenRouter), objects field by field, and
/// anything else replaces what was there. An equal text is a repeat, unless texts are pieces of
/// thoughts.
pub(super) fn merge_extra(known: &mut Value, piece: Value, is_thought: bool) {
    match (known, piece) {
        (Value::String(known), Value::String(piece)) => {
            if is_thought || *known != piece {
                known.push_str(&piece);
            }
        }
        (Value::Array(known), Value::Array(piece)) => {
            for entry in piece {
                let begun = known.iter_mut().rfind(|begun| continues(begun, &entry));
                match begun {
                    Some(begun) => merge_entry(begun, entry),
                    None => known.push(entry),
                }
            }
        }
        (Value::Object(known), Value::Object(piece)) => merge_objects(known, piece),
        (known, piece) => *known = piece,
    }
}

fn merge_objects(known: &mut Map<String, Value>, piece: Map<String, Value>) {
    for (name, value) in piece {
        match (known.get_mut(&name), value) {
            (Some(Value::Object(known)), Value::Object(piece)) => merge_objects(known, piece),
            (Some(known), value) => *known = value,
            (None, value) => {
                known.insert(name, value);
            }
        }
    }
}

/// Returns true if an entry is the next piece of another: it has the same index, or it is a thought
/// that has not been signed yet (`thinking_blocks` of LiteLLM).
fn continues(begun: &Value, entry: &Value) -> bool {
    let is_same = |name: &str| begun.get(name) == entry.get(name);
    let is_thought = entry["type"] == "thinking" && entry["index"].is_null();
    let is_unsigned = begun["signature"].as_str().is_none_or(str::is_empty);
    is_same("type") && is_same("index") && (entry["index"].is_number() || is_thought && is_unsigned)
}

/// Names of entries that are the same in each piece.
const CONSTANT_NAMES: [&str; 3] = ["type", "id", "format"];

fn merge_entry(known: &mut Value, piece: Value) {
    let Value::Object(piece) = piece else { return };
    for (name, value) in piece {
        match (&mut known[&name], value) {
            (_, Value::Null) => {}
            (Value::String(text), Value::String(piece))
                if !CONSTANT_NAMES.contains(&name.as_str()) =>
            {
                text.push_str(&piece);
            }
            (known, value) => *known = value,
        }
    }
}
