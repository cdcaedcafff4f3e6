//! Scripts of the model server: replies, failures and protocol errors of one request.

use std::{fmt, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// Placeholder for the number of the call, so that the texts of two calls differ in every word.
const CALL_MARK: &str = "###";

/// Behavior of the model for one request: a text with optional faults.
#[derive(Clone, Debug)]
pub struct Script {
    /// The whole text.
    pub text: String,
    chunk_chars: usize,
    /// Pause before each chunk.
    pub(crate) delay: Duration,
    pub(crate) gate: Option<Gate>,
    pub(crate) end: End,
    continues_prefix: bool,
    first_call_chars: Option<usize>,
    /// Exact pieces of the stream, in place of the text.
    pub(crate) raw: Option<Vec<Raw>>,
    /// Status, headers and body, in place of a stream.
    pub(crate) answer: Option<(u16, Headers, String)>,
    /// Scripts of the first calls, in place of this one.
    before: Vec<Script>,
    /// Scripts for requests whose body fulfills a condition.
    exceptions: Vec<Exception>,
}

#[derive(Clone)]
struct Exception {
    condition: Condition,
    script: Script,
}

impl fmt::Debug for Exception {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.script.fmt(formatter)
    }
}

type Headers = Vec<(&'static str, String)>;
type Condition = Arc<dyn Fn(&Value) -> bool + Send + Sync>;

/// A piece of a stream, sent separately.
#[derive(Clone, Debug)]
pub enum Raw {
    /// An event with this delta.
    Delta(Value),
    /// An event with this finish reason.
    Finish(&'static str),
    /// An event with any data.
    Event(Value),
    /// Any bytes, for example a comment or half a character.
    Bytes(Vec<u8>),
    /// Silence on an open connection.
    Hang,
    /// A connection that breaks.
    Cut,
}

impl Raw {
    /// Creates an event with this text.
    pub fn text(text: &str) -> Self {
        Self::Delta(json!({ "content": text }))
    }

    /// Creates bytes, which need not be an event.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Bytes(bytes.into())
    }

    /// Creates a complete tool call.
    pub fn call(index: u32, name: &str, arguments: &Value) -> Self {
        let function = json!({ "name": name, "arguments": arguments.to_string() });
        Self::Delta(
            json!({"tool_calls": [{"index": index, "id": format!("call_{index}"), "function": function}]}),
        )
    }

    /// Creates a fragment of the arguments of a started tool call.
    pub fn arguments(index: u32, piece: &str) -> Self {
        Self::Delta(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))
    }
}

/// End of the stream after the text.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// This finish reason, usage and `[DONE]`.
    Finish(&'static str),
    /// `[DONE]` without a finish reason.
    NoFinishReason,
    /// A clean end of the transfer without `[DONE]`.
    Nothing,
    /// A connection that breaks.
    Cut,
    /// An event with an error.
    ErrorEvent,
    /// An event that is not JSON.
    Garbage,
    /// Silence on an open connection.
    Silence,
}

/// A gate that releases chunks one by one, so that a test knows which chunks were sent.
#[derive(Clone, Debug)]
pub struct Gate(Arc<Semaphore>);

impl Gate {
    /// Releases a number of chunks.
    pub fn open(&self, chunks: usize) {
        self.0.add_permits(chunks);
    }

    pub(crate) async fn pass(&self) {
        self.0.acquire().await.unwrap().forget();
    }
}

impl Script {
    /// Creates a script that sends a text in small chunks without pauses.
    pub fn says(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            chunk_chars: 8,
            delay: Duration::ZERO,
            gate: None,
            end: End::Finish("stop"),
            continues_prefix: false,
            first_call_chars: None,
            raw: None,
            answer: None,
            before: Vec::new(),
            exceptions: Vec::new(),
        }
    }

    /// Creates a script of exactly these pieces.
    pub fn raw(pieces: Vec<Raw>) -> Self {
        // Pauses keep the pieces apart, so that a split character arrives split.
        let mut script = Self::says("").paced(Duration::from_millis(2));
        script.raw = Some(pieces);
        script
    }

    /// Creates a script that calls the product search and sends no text.
    pub fn searches(query: &str) -> Self {
        Self::calls("search_products", &json!({ "query": query }))
    }

    /// Creates a script that calls a tool.
    pub fn calls(name: &str, arguments: &Value) -> Self {
        let call = Raw::call(0, name, arguments);
        Self::raw(vec![call, Raw::Finish("tool_calls")])
    }

    /// Creates a script from one script for each call; the last one applies to all later calls.
    pub fn in_turn(mut scripts: Vec<Self>) -> Self {
        let mut last = scripts.pop().unwrap_or_else(|| Self::says(""));
        last.before.splice(..0, scripts);
        last
    }

    /// Creates a script of `words` numbered words, one per chunk, with a pause before each.
    pub fn counts(words: usize, delay: Duration) -> Self {
        let text: String = (0..words).map(|number| format!("w{number:04} ")).collect();
        Self::says(&text).chunk_chars(6).paced(delay)
    }

    /// Creates a script like [`Self::counts`] whose words start with the number of the call, so
    /// that joined texts show.
    pub fn counts_by_call(words: usize, delay: Duration) -> Self {
        let words = (0..words).map(|number| format!("{CALL_MARK}w{number:04} "));
        Self::says(&words.collect::<String>())
            .chunk_chars(9)
            .paced(delay)
    }

    /// Creates a script that sends nothing on an open connection.
    pub fn silent() -> Self {
        Self::says("").ends(End::Silence)
    }

    /// Creates a script that always fails with this status.
    pub fn refuses(status: u16) -> Self {
        let error = json!({"error": {"message": "refused by script", "code": "scripted"}});
        Self::answer(status, &[("content-type", "application/json")], error)
    }

    /// Creates a script that returns 200 with this body instead of an event stream.
    pub fn instead(content_type: &str, body: impl ToString) -> Self {
        Self::answer(200, &[("content-type", content_type)], body)
    }

    /// Creates a script that returns this status, headers and body instead of an event stream.
    pub fn answer(status: u16, headers: &[(&'static str, &str)], body: impl ToString) -> Self {
        let headers = headers.iter().map(|(name, value)| (*name, (*value).into()));
        let mut script = Self::says("");
        script.answer = Some((status, headers.collect(), body.to_string()));
        script
    }

    /// Sets the number of characters in a chunk.
    pub fn chunk_chars(mut self, chunk_chars: usize) -> Self {
        self.chunk_chars = chunk_chars;
        self
    }

    /// Sets the pause before each chunk.
    pub fn paced(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Makes each chunk wait for the returned gate.
    pub fn gated(mut self) -> (Self, Gate) {
        let gate = Gate(Arc::new(Semaphore::new(0)));
        self.gate = Some(gate.clone());
        (self, gate)
    }

    /// Sets the end of the stream after the text.
    pub fn ends(mut self, end: End) -> Self {
        self.end = end;
        self
    }

    /// Fails the first calls with this status.
    pub fn refuses_times(mut self, times: usize, status: u16, retry_after_s: Option<u32>) -> Self {
        let mut refusal = Self::refuses(status);
        if let (Some(seconds), Some((_, headers, _))) = (retry_after_s, &mut refusal.answer) {
            headers.push(("retry-after", seconds.to_string()));
        }
        self.before.extend(vec![refusal; times]);
        self
    }

    /// Follows another script for requests whose body fulfills a condition.
    pub fn when(
        mut self,
        condition: impl Fn(&Value) -> bool + Send + Sync + 'static,
        script: Self,
    ) -> Self {
        let condition = Arc::new(condition);
        self.exceptions.push(Exception { condition, script });
        self
    }

    /// Continues a final assistant message of the request.
    pub fn continues_prefix(mut self) -> Self {
        self.continues_prefix = true;
        self
    }

    /// Breaks off after a number of characters unless the request continues from there.
    pub fn breaks_off_once(mut self, first_call_chars: usize) -> Self {
        self.first_call_chars = Some(first_call_chars);
        self
    }

    /// Returns the complete text of the call whose text starts with this prefix.
    pub fn text_that_begins(&self, beginning: &str) -> String {
        match beginning.get(..CALL_MARK.len()) {
            Some(number) => self.text.replace(CALL_MARK, number),
            None => self.text.clone(),
        }
    }

    /// Returns the script for the `number`-th call, counted from 1.
    pub(crate) fn for_call_number(&self, number: usize) -> &Self {
        self.before.get(number - 1).unwrap_or(self)
    }

    /// Returns the script for a request that fulfills a condition. Such a request is not counted.
    pub(crate) fn exception_for(&self, body: &Value) -> Option<&Self> {
        let mut exceptions = self.exceptions.iter();
        exceptions
            .find(|exception| (exception.condition)(body))
            .map(|exception| &exception.script)
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
    pub(crate) fn chunks(&self) -> Vec<Raw> {
        let text: Vec<char> = self.text.chars().collect();
        let chunks = text.chunks(self.chunk_chars.max(1));
        let chunks = chunks.map(|chunk| Raw::text(&String::from_iter(chunk)));
        chunks.collect()
    }

    /// Returns the pieces after the text.
    pub(crate) fn end_pieces(&self) -> Vec<Raw> {
        let done = Raw::bytes("data: [DONE]\n\n");
        match self.end {
            End::Finish(reason) => {
                let usage = json!({"choices": [], "usage": self.usage()});
                vec![Raw::Finish(reason), Raw::Event(usage), done]
            }
            End::NoFinishReason => vec![done],
            End::Nothing => vec![],
            End::Cut => vec![Raw::Cut],
            End::ErrorEvent => vec![Raw::Event(json!({"error": {"message": "overloaded"}}))],
            End::Garbage => vec![Raw::bytes("data: {\"choices\": [ no JSON\n\n"), done],
            End::Silence => vec![Raw::Hang],
        }
    }

    /// Returns the usage of a call, with a token for each word.
    pub(crate) fn usage(&self) -> Value {
        json!({"prompt_tokens": 11, "completion_tokens": self.text.split_whitespace().count()})
    }
}
