//! Assembles tool calls from the fragments of a stream: several indexes, interleaved, cut anywhere,
//! with missing or repeated ids. Pure.
//!
//! No call is run before the stream is complete. A call that was cut, is too large or contains an
//! unreadable part is reported as such, so that half a call never passes for a whole one.

use serde_json::{Map, Value};

use super::output::merge_extra;

/// Largest sum of the arguments of all calls of one answer.
pub(crate) const ARGUMENTS_BYTES_MAX: usize = 64 << 10;
/// Calls of one answer that are kept; later ones are dropped.
pub(crate) const CALLS_KEPT_MAX: usize = 32;
/// Longest name: the protocol's own limit.
const NAME_BYTES_MAX: usize = 64;
/// Longest id. Gateways put signatures into ids.
pub(crate) const ID_BYTES_MAX: usize = 16 << 10;
/// Largest sum of the unknown fields of all calls of one answer.
const EXTRAS_BYTES_MAX: usize = 256 << 10;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ToolCallFragment {
    /// Number of the call within the answer, if the server counts them.
    pub(crate) index: Option<u64>,
    /// Id of the call, or empty.
    pub(crate) id: String,
    /// Name of the tool or a piece of it, or empty.
    pub(crate) name: String,
    /// A piece of the arguments' JSON.
    pub(crate) arguments: String,
    /// Unknown fields of the call.
    pub(crate) extras: Map<String, Value>,
    /// Unknown fields of its function.
    pub(crate) function_extras: Map<String, Value>,
    /// False if the fragment could not be parsed, as in the default.
    pub(crate) readable: bool,
}

/// A tool call of a complete stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolCall {
    /// The provider's id; may be empty and need not be unique.
    pub(crate) id: String,
    pub(crate) name: String,
    /// Unchecked JSON of the arguments, or the reason why the call must not be run.
    pub(crate) arguments: Result<String, UnusableCall>,
    /// Fields that only the provider understands; it may need them back.
    pub(crate) extras: Map<String, Value>,
    /// Such fields of the function.
    pub(crate) function_extras: Map<String, Value>,
}

/// Reason why a call must not be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnusableCall {
    /// The answer stopped inside the call.
    #[error("the call was cut off before its end; make it shorter")]
    Cut,
    /// The arguments exceed [`ARGUMENTS_BYTES_MAX`].
    #[error("the arguments are too long")]
    TooLarge,
    /// A part of it was no part of a call.
    #[error("the call could not be read")]
    Unreadable,
}

/// Tool calls of one answer so far.
#[derive(Debug, Default)]
pub(crate) struct ToolCalls {
    drafts: Vec<ToolCallDraft>,
    bytes: usize,
    extras_bytes: usize,
    unreadable: bool,
}

#[derive(Debug, Default)]
struct ToolCallDraft {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    extras: Map<String, Value>,
    function_extras: Map<String, Value>,
    too_large: bool,
}

impl ToolCalls {
    /// Adds a fragment to its call, or starts a new call.
    pub(crate) fn push_fragment(&mut self, fragment: ToolCallFragment) {
        if !fragment.readable {
            // It may have belonged to any of the calls.
            self.unreadable = true;
            return;
        }
        let place = match self.call_index(&fragment) {
            Some(place) => place,
            None if self.drafts.len() == CALLS_KEPT_MAX => return,
            None => {
                self.drafts.push(ToolCallDraft {
                    index: fragment.index,
                    ..ToolCallDraft::default()
                });
                self.drafts.len() - 1
            }
        };
        let room = ARGUMENTS_BYTES_MAX.saturating_sub(self.bytes);
        let draft = &mut self.drafts[place];
        if draft.id.is_empty() && fragment.id.len() <= ID_BYTES_MAX {
            draft.id = fragment.id;
        }
        for (known, new) in [
            (&mut draft.extras, fragment.extras),
            (&mut draft.function_extras, fragment.function_extras),
        ] {
            for (name, value) in new {
                self.extras_bytes += name.len() + size_of(&value);
                if self.extras_bytes <= EXTRAS_BYTES_MAX {
                    merge_extra(known.entry(name).or_insert(Value::Null), value, false);
                }
            }
        }
        // A name in pieces grows; a name that is repeated with every fragment is the same name.
        if fragment.name != draft.name && draft.name.len() + fragment.name.len() <= NAME_BYTES_MAX {
            draft.name.push_str(&fragment.name);
        }
        // Some servers repeat the whole call at the end.
        if fragment.arguments == draft.arguments && is_whole(&draft.arguments) {
            return;
        }
        if fragment.arguments.len() > room {
            draft.too_large = true;
            return;
        }
        self.bytes += fragment.arguments.len();
        draft.arguments.push_str(&fragment.arguments);
    }

    /// Returns the calls of a complete stream. `is_cut`: the stream stopped before the model had
    /// finished.
    pub(crate) fn into_calls(self, cut: bool) -> Vec<ToolCall> {
        let unreadable = self.unreadable;
        let judge = move |draft: ToolCallDraft| {
            let arguments = match () {
                () if cut => Err(UnusableCall::Cut),
                () if unreadable => Err(UnusableCall::Unreadable),
                () if draft.too_large => Err(UnusableCall::TooLarge),
                () => Ok(draft.arguments),
            };
            ToolCall {
                id: draft.id,
                name: draft.name,
                arguments,
                extras: draft.extras,
                function_extras: draft.function_extras,
            }
        };
        // Some servers send an empty call beside every text.
        let drafts = self.drafts.into_iter();
        drafts
            .filter(|draft| !draft.name.is_empty() || !draft.arguments.is_empty())
            .map(judge)
            .collect()
    }

    /// Returns the index of the call to which a fragment belongs; `None` if it starts a call.
    fn call_index(&self, fragment: &ToolCallFragment) -> Option<usize> {
        let last_with = |fits: &dyn Fn(&ToolCallDraft) -> bool| self.drafts.iter().rposition(fits);
        let place = if fragment.index.is_some() {
            last_with(&|draft| draft.index == fragment.index)?
        } else if !fragment.id.is_empty() {
            match last_with(&|draft| draft.id == fragment.id) {
                Some(place) => return Some(place),
                None => last_with(&|draft| draft.id.is_empty() && draft.name.is_empty())?,
            }
        } else {
            self.drafts.len().checked_sub(1)?
        };
        (!begins_another(&self.drafts[place], fragment)).then_some(place)
    }
}

/// Returns true if a fragment at the position of a call starts another call: some servers give
/// every call the same index, or none. A new id alone proves nothing, because some servers draw one
/// for each fragment.
fn begins_another(draft: &ToolCallDraft, fragment: &ToolCallFragment) -> bool {
    if fragment.name.is_empty() || draft.name.is_empty() {
        return false;
    }
    let other_id = !fragment.id.is_empty() && !draft.id.is_empty() && fragment.id != draft.id;
    let told_whole =
        fragment.index.is_none() && fragment.id.is_empty() && is_whole(&draft.arguments);
    (other_id && is_whole(&draft.arguments)) || told_whole
}

/// Returns about how many bytes a value has as JSON.
fn size_of(value: &Value) -> usize {
    value
        .as_str()
        .map_or_else(|| value.to_string().len(), str::len)
}

fn is_whole(arguments: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok()
}

#[cfg(test)]
#[path = "tool_calls_tests.rs"]
mod tests;
