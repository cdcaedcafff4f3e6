//! Puts tool calls together that a stream brings in fragments: by several indexes, interleaved, cut anywhere, with ids
//! that are missing or repeated. Pure.
//!
//! Nothing here is ever run before the stream has said that it is complete; a call that was cut, or is too large, or of
//! which a part could not be read, is told as such, so that no half of a call is taken for a whole one.

/// Arguments of all calls of one answer.
pub(crate) const ARGUMENTS_BYTES_MAX: usize = 64 << 10;
/// Calls of one answer that are kept; a model that asks for more is told of these.
pub(crate) const CALLS_KEPT_MAX: usize = 32;
/// Longest name and longest id; the protocol's own limit of names.
const NAME_BYTES_MAX: usize = 64;

/// A part of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fragment {
    /// Which call of the answer, if the server counts them.
    pub(crate) index: Option<u64>,
    /// Name of the call, or empty.
    pub(crate) id: String,
    /// Name of the tool or a piece of it, or empty.
    pub(crate) name: String,
    /// A piece of the arguments' JSON.
    pub(crate) arguments: String,
    /// Whether it could be read.
    pub(crate) readable: bool,
}

/// A call as the whole stream told it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolCall {
    /// The provider's name for it; may be empty, and need not be unique.
    pub(crate) id: String,
    /// The tool that is meant.
    pub(crate) name: String,
    /// JSON of the arguments, unchecked; or why it must not be run.
    pub(crate) arguments: Result<String, Unusable>,
}

/// Why a call must not be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unusable {
    /// The answer was stopped in its middle.
    #[error("the call was cut off before its end; make it shorter")]
    Cut,
    /// More than [`ARGUMENTS_BYTES_MAX`].
    #[error("the arguments are too long")]
    TooLarge,
    /// A part of it was no part of a call.
    #[error("the call could not be read")]
    Unreadable,
}

/// The calls of one answer so far.
#[derive(Debug, Default)]
pub(crate) struct ToolCalls {
    drafts: Vec<Draft>,
    bytes: usize,
    unreadable: bool,
}

#[derive(Debug, Default)]
struct Draft {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    too_large: bool,
}

impl Fragment {
    /// What was none.
    pub(crate) fn unreadable() -> Self {
        Self::default()
    }
}

impl ToolCalls {
    /// Adds a fragment.
    pub(crate) fn push(&mut self, fragment: Fragment) {
        if !fragment.readable {
            // It may have belonged to any of them.
            self.unreadable = true;
            return;
        }
        let place = match self.place(&fragment) {
            Some(place) => place,
            None if self.drafts.len() == CALLS_KEPT_MAX => return,
            None => {
                self.drafts.push(Draft {
                    index: fragment.index,
                    ..Draft::default()
                });
                self.drafts.len() - 1
            }
        };
        let room = ARGUMENTS_BYTES_MAX.saturating_sub(self.bytes);
        let draft = &mut self.drafts[place];
        if draft.id.is_empty() && fragment.id.len() <= NAME_BYTES_MAX {
            draft.id = fragment.id;
        }
        // A name in pieces grows; one that is repeated with every fragment is the same name.
        if fragment.name != draft.name && draft.name.len() + fragment.name.len() <= NAME_BYTES_MAX {
            draft.name.push_str(&fragment.name);
        }
        // Some servers end with the whole call once more.
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

    /// The calls of a stream that is complete; `cut` when it stopped for another reason than that all was said.
    pub(crate) fn finish(self, cut: bool) -> Vec<ToolCall> {
        let unreadable = self.unreadable;
        let judge = move |draft: Draft| {
            let arguments = match () {
                () if cut => Err(Unusable::Cut),
                () if unreadable => Err(Unusable::Unreadable),
                () if draft.too_large => Err(Unusable::TooLarge),
                () => Ok(draft.arguments),
            };
            ToolCall {
                id: draft.id,
                name: draft.name,
                arguments,
            }
        };
        self.drafts.into_iter().map(judge).collect()
    }

    /// Where a fragment belongs; none when it begins a call.
    fn place(&self, fragment: &Fragment) -> Option<usize> {
        let last_with = |fits: &dyn Fn(&Draft) -> bool| self.drafts.iter().rposition(fits);
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

/// Whether a fragment at the place of a call is the beginning of another one: servers that give every call the same index,
/// or none. An id alone is no sign, because some draw a new one for each fragment.
fn begins_another(draft: &Draft, fragment: &Fragment) -> bool {
    if fragment.name.is_empty() || draft.name.is_empty() {
        return false;
    }
    let other_id = !fragment.id.is_empty() && !draft.id.is_empty() && fragment.id != draft.id;
    let told_whole =
        fragment.index.is_none() && fragment.id.is_empty() && is_whole(&draft.arguments);
    (other_id && is_whole(&draft.arguments)) || told_whole
}

fn is_whole(arguments: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok()
}

#[cfg(test)]
#[path = "tool_calls_tests.rs"]
mod tests;
