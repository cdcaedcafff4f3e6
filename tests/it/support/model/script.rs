//! Scripts of the model server: replies, failures and protocol errors of one request.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// Placeholder for the number of the call, so that the texts of two calls differ in every word.
const CALL_MARK: &str = "###";

/// Behavior of the model for one request: a text with optional faults.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) text: String,
    /// Characters in a chunk.
    pub(crate) chunk_chars: usize,
    /// Pause before each chunk.
    pub(crate) delay: Duration,
    /// Gate that each chunk waits for.
    pub(crate) gate: Option<Gate>,
    /// End of the stream after the text.
    pub(crate) end: End,
    /// Errors returned instead of text by the first calls.
    pub(crate) refusals: Refusals,
    /// Content type and body sent instead of an event stream.
    pub(crate) instead: Option<(&'static str, String)>,
    /// Continues a final assistant message of the request.
    pub(crate) continues_prefix: bool,
    /// Breaks off after a number of characters unless the request has a prefix.
    pub(crate) first_call_chars: Option<usize>,
    /// Exact pieces of the stream; replaces everything above.
    pub(crate) raw: Option<Vec<Raw>>,
    /// One script for each call, the last one for all later calls; replaces everything above.
    pub(crate) in_turn: Vec<Script>,
}

/// A piece of a stream, sent separately.
#[derive(Clone, Debug)]
pub(crate) enum Raw {
    /// An event with this delta.
    Delta(Value),
    /// An event with this finish reason.
    Finish(&'static str),
    /// An event with any data.
    Event(Value),
    Bytes(Vec<u8>),
    Cut,
}

impl Raw {
    pub(crate) fn text(text: &str) -> Self {
        Self::Delta(json!({ "content": text }))
    }

    /// Creates a complete tool call.
    pub(crate) fn call(index: u32, name: &str, arguments: &Value) -> Self {
        let function = json!({ "name": name, "arguments": arguments.to_string() });
        Self::Delta(
            json!({"tool_calls": [{"index": index, "id": format!("call_{index}"), "function": function}]}),
        )
    }

    /// Creates a fragment of the arguments of a started tool call.
    pub(crate) fn arguments(index: u32, piece: &str) -> Self {
        Self::Delta(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))
    }
}

/// End of the stream after the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// This finish reason, usage and `[DONE]`.
    Finish(&'static str),
    /// `[DONE]` without a finish reason.
    NoFinishReason,
    /// A clean end of the transfer without `[DONE]`.
    Nothing,
    Cut,
    /// An event with an error.
    ErrorEvent,
    /// An event that is not JSON.
    Garbage,
    Silence,
}

/// A gate that releases chunks one by one, so that a test knows which chunks were sent.
#[derive(Clone, Debug)]
pub(crate) struct Gate(Arc<Semaphore>);

/// Error responses before the real response.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusals {
    /// Number of calls that fail; `u32::MAX` for all.
    pub(crate) times: u32,
    pub(crate) status: u16,
    /// Value of Retry-After in seconds.
    pub(crate) retry_after_s: Option<u32>,
}

impl Gate {
    /// Releases a number of chunks.
    pub(crate) fn open(&self, chunks: usize) {
        self.0.add_permits(chunks);
    }

    pub(super) async fn pass(&self) {
        self.0.acquire().await.unwrap().forget();
    }
}

impl Script {
    /// Creates a script that sends a text in small chunks without pauses.
    pub(crate) fn says(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            chunk_chars: 8,
            delay: Duration::ZERO,
            gate: None,
            end: End::Finish("stop"),
            refusals: Refusals::default(),
            instead: None,
            continues_prefix: false,
            first_call_chars: None,
            raw: None,
            in_turn: Vec::new(),
        }
    }

    /// Creates a script of exactly these pieces.
    pub(crate) fn raw(pieces: Vec<Raw>) -> Self {
        Self {
            raw: Some(pieces),
            ..Self::says("")
        }
    }

    /// Creates a script that calls the product search and sends no text.
    pub(crate) fn searches(query: &str) -> Self {
        let call = Raw::call(0, "search_products", &json!({ "query": query }));
        Self::raw(vec![call, Raw::Finish("tool_calls")])
    }

    /// Creates a script from one script for each call; the last one applies to all later calls.
    pub(crate) fn in_turn(scripts: Vec<Self>) -> Self {
        Self {
            in_turn: scripts,
            ..Self::says("")
        }
    }

    /// Returns the script of the `number`-th call, counted from 0.
    pub(crate) fn of_turn(&self, number: usize) -> &Self {
        self.in_turn
            .get(number.min(self.in_turn.len().saturating_sub(1)))
            .unwrap_or(self)
    }

    /// Creates a script of `words` numbered words, one per chunk, with a pause before each.
    pub(crate) fn counts(words: usize, delay: Duration) -> Self {
        let text: String = (0..words).map(|number| format!("w{number:04} ")).collect();
        Self::says(&text).chunk_chars(6).paced(delay)
    }

    /// Creates a script like [`Self::counts`] whose words start with the number of the call, so
    /// that joined texts show.
    #[cfg(feature = "real-services")]
    pub(crate) fn counts_by_call(words: usize, delay: Duration) -> Self {
        let text: String = (0..words)
            .map(|number| format!("{CALL_MARK}w{number:04} "))
            .collect();
        Self::says(&text).chunk_chars(9).paced(delay)
    }

    pub(crate) fn silent() -> Self {
        Self::says("").ends(End::Silence)
    }

    /// Creates a script that always fails with this status.
    pub(crate) fn refuses(status: u16) -> Self {
        Self::says("never said").refuses_times(u32::MAX, status, None)
    }

    /// Creates a script that returns 200 with this body instead of an event stream.
    pub(crate) fn instead(content_type: &'static str, body: &str) -> Self {
        Self {
            instead: Some((content_type, body.to_owned())),
            ..Self::says("")
        }
    }

    /// Characters in a chunk.
    pub(crate) fn chunk_chars(self, chunk_chars: usize) -> Self {
        Self {
            chunk_chars,
            ..self
        }
    }

    /// Sets the pause before each chunk.
    pub(crate) fn paced(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Makes each chunk wait for the returned gate.
    pub(crate) fn gated(self) -> (Self, Gate) {
        let gate = Gate(Arc::new(Semaphore::new(0)));
        (
            Self {
                gate: Some(gate.clone()),
                ..self
            },
            gate,
        )
    }

    /// End of the stream after the text.
    pub(crate) fn ends(self, end: End) -> Self {
        Self { end, ..self }
    }

    /// Adds errors before the real response.
    pub(crate) fn refuses_times(self, times: u32, status: u16, retry_after_s: Option<u32>) -> Self {
        Self {
            refusals: Refusals {
                times,
                status,
                retry_after_s,
            },
            ..self
        }
    }

    /// Continues a final assistant message of the request.
    pub(crate) fn continues_prefix(self) -> Self {
        Self {
            continues_prefix: true,
            ..self
        }
    }

    /// Breaks off after a number of characters unless the request continues from there.
    pub(crate) fn breaks_off_once(self, first_call_chars: usize) -> Self {
        Self {
            first_call_chars: Some(first_call_chars),
            ..self
        }
    }

    /// Returns the complete text of the call whose text starts with this prefix.
    pub(crate) fn text_that_begins(&self, beginning: &str) -> String {
        match beginning.get(..CALL_MARK.len()) {
            Some(number) => self.text.replace(CALL_MARK, number),
            None => self.text.clone(),
        }
    }

    /// Returns the script of the `number`-th call with this prefix: all of it, or the rest of the
    /// text, or the part before a break.
    pub(crate) fn for_call(&self, number: usize, prefix: &str) -> Self {
        let prefix = if self.continues_prefix { prefix } else { "" };
        let number = format!("{number:03}", number = number % 1_000);
        let text = self.text_that_begins(if prefix.is_empty() { &number } else { prefix });
        let mut call = self.clone();
        call.text = text.strip_prefix(prefix).unwrap_or(&text).to_owned();
        if let Some(chars) = self.first_call_chars.filter(|_| prefix.is_empty()) {
            call.text = text.chars().take(chars).collect();
            call.end = End::Cut;
        }
        call
    }

    /// Returns the text in chunks.
    pub(crate) fn chunks(&self) -> Vec<String> {
        let text: Vec<char> = self.text.chars().collect();
        text.chunks(self.chunk_chars.max(1))
            .map(|chunk| chunk.iter().collect())
            .collect()
    }
}
