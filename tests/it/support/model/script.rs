//! What a scripted model does with one request: a table of the ways in which providers answer, fail and misbehave.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// Stands in a text for the number of the call, so that the texts of two calls differ in every word.
const CALL_MARK: &str = "###";

/// A behaviour, built from a text and bent from there.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    /// The whole text.
    pub(crate) text: String,
    /// Characters in a chunk.
    pub(crate) chunk_chars: usize,
    /// Before each chunk.
    pub(crate) delay: Duration,
    /// Opened before each chunk, and never by itself.
    pub(crate) gate: Option<Gate>,
    /// What follows the text.
    pub(crate) end: End,
    /// What comes instead of text, the first so many times.
    pub(crate) refusals: Refusals,
    /// An answer that is none, with its content type.
    pub(crate) instead: Option<(&'static str, String)>,
    /// Goes on where a last message of the assistant ends.
    pub(crate) continues_prefix: bool,
    /// Breaks off after so many characters when there is no prefix to go on from.
    pub(crate) first_call_chars: Option<usize>,
    /// A stream of exactly these pieces, in place of everything above.
    pub(crate) raw: Option<Vec<Raw>>,
    /// One script for each call, the last one for all that follow; in place of everything above.
    pub(crate) in_turn: Vec<Script>,
}

/// A piece of a stream, as bytes on the wire of their own.
#[derive(Clone, Debug)]
pub(crate) enum Raw {
    /// An event with this delta.
    Delta(Value),
    /// An event with this reason to end.
    Finish(&'static str),
    /// An event with any data.
    Event(Value),
    /// Anything.
    Bytes(Vec<u8>),
    /// The connection breaks.
    Cut,
}

impl Raw {
    /// Text.
    pub(crate) fn text(text: &str) -> Self {
        Self::Delta(json!({ "content": text }))
    }

    /// A whole call of a tool.
    pub(crate) fn call(index: u32, name: &str, arguments: &Value) -> Self {
        let function = json!({ "name": name, "arguments": arguments.to_string() });
        Self::Delta(
            json!({"tool_calls": [{"index": index, "id": format!("call_{index}"), "function": function}]}),
        )
    }

    /// A piece of the arguments of a call that has begun.
    pub(crate) fn arguments(index: u32, piece: &str) -> Self {
        Self::Delta(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))
    }
}

/// What follows the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// This finish reason, usage and `[DONE]`.
    Finish(&'static str),
    /// `[DONE]`, and nobody said why.
    NoFinishReason,
    /// The transfer ends cleanly, without a word.
    Nothing,
    /// The connection breaks.
    Cut,
    /// An event with an error.
    ErrorEvent,
    /// An event that is no JSON.
    Garbage,
    /// Silence.
    Silence,
}

/// Lets chunks through one by one, when a test says so: what arrives before the next was let through, came by itself.
#[derive(Clone, Debug)]
pub(crate) struct Gate(Arc<Semaphore>);

/// Error answers before the real one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusals {
    /// How many times; `u32::MAX` is always.
    pub(crate) times: u32,
    /// Status.
    pub(crate) status: u16,
    /// Retry-After in seconds.
    pub(crate) retry_after_s: Option<u32>,
}

impl Gate {
    /// Lets so many chunks through.
    pub(crate) fn open(&self, chunks: usize) {
        self.0.add_permits(chunks);
    }

    pub(super) async fn pass(&self) {
        self.0.acquire().await.unwrap().forget();
    }
}

impl Script {
    /// Says this, in small chunks, at once.
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

    /// Exactly these pieces.
    pub(crate) fn raw(pieces: Vec<Raw>) -> Self {
        Self {
            raw: Some(pieces),
            ..Self::says("")
        }
    }

    /// Searches for products, and says nothing yet.
    pub(crate) fn searches(query: &str) -> Self {
        let call = Raw::call(0, "search_products", &json!({ "query": query }));
        Self::raw(vec![call, Raw::Finish("tool_calls")])
    }

    /// One script for each call; the last one for all that follow.
    pub(crate) fn in_turn(scripts: Vec<Self>) -> Self {
        Self {
            in_turn: scripts,
            ..Self::says("")
        }
    }

    /// The script of the `number`-th call, counted from 0.
    pub(crate) fn of_turn(&self, number: usize) -> &Self {
        self.in_turn
            .get(number.min(self.in_turn.len().saturating_sub(1)))
            .unwrap_or(self)
    }

    /// `words` numbered words, one per chunk, with a pause before each.
    pub(crate) fn counts(words: usize, delay: Duration) -> Self {
        let text: String = (0..words).map(|number| format!("w{number:04} ")).collect();
        Self::says(&text).chunk_chars(6).paced(delay)
    }

    /// The same, but each word begins with the number of the call: two texts that were joined are seen.
    #[cfg(feature = "real-services")]
    pub(crate) fn counts_by_call(words: usize, delay: Duration) -> Self {
        let text: String = (0..words)
            .map(|number| format!("{CALL_MARK}w{number:04} "))
            .collect();
        Self::says(&text).chunk_chars(9).paced(delay)
    }

    /// Never answers.
    pub(crate) fn silent() -> Self {
        Self::says("").ends(End::Silence)
    }

    /// Always this status.
    pub(crate) fn refuses(status: u16) -> Self {
        Self::says("never said").refuses_times(u32::MAX, status, None)
    }

    /// Answers 200 with this instead of a stream of events.
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

    /// A pause before each chunk.
    pub(crate) fn paced(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Each chunk waits until the gate lets it through.
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

    /// What follows the text.
    pub(crate) fn ends(self, end: End) -> Self {
        Self { end, ..self }
    }

    /// Errors before the real answer.
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

    /// Goes on where a last message of the assistant ends.
    pub(crate) fn continues_prefix(self) -> Self {
        Self {
            continues_prefix: true,
            ..self
        }
    }

    /// Breaks off after so many characters, unless it is asked to go on from there.
    pub(crate) fn breaks_off_once(self, first_call_chars: usize) -> Self {
        Self {
            first_call_chars: Some(first_call_chars),
            ..self
        }
    }

    /// The whole text of the one call whose text begins like this.
    pub(crate) fn text_that_begins(&self, beginning: &str) -> String {
        match beginning.get(..CALL_MARK.len()) {
            Some(number) => self.text.replace(CALL_MARK, number),
            None => self.text.clone(),
        }
    }

    /// What the `number`-th call does, which brings this prefix: all of it, or what is left to say, or the part before
    /// a break.
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

    /// The text in chunks.
    pub(crate) fn chunks(&self) -> Vec<String> {
        let text: Vec<char> = self.text.chars().collect();
        text.chunks(self.chunk_chars.max(1))
            .map(|chunk| chunk.iter().collect())
            .collect()
    }
}
