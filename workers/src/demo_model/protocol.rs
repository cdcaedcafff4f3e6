//! The OpenAI chat protocol as far as the demo model speaks it: what it reads of a request and the chunks of an answer.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use switchboard_schemas::time::Timestamp;

use super::{DEMO_MODEL, conversation::Conversation, wishes::Wishes};

/// Longest piece of a stream, in characters: scripts without spaces between words stream as well.
const PIECE_CHARS_MAX: usize = 16;

/// A request for a chat completion; everything else in it is ignored. Parts that clients write in many ways stay JSON.
#[derive(Deserialize)]
pub(super) struct ChatRequest {
    pub(super) messages: Vec<Message>,
    #[serde(default)]
    stream: Value,
    #[serde(default)]
    stream_options: Value,
    #[serde(default)]
    response_format: Value,
    max_tokens: Option<usize>,
    max_completion_tokens: Option<usize>,
    tools: Option<Vec<Value>>,
    #[serde(default)]
    tool_choice: Value,
}

/// One message of the conversation.
#[derive(Deserialize)]
pub(super) struct Message {
    pub(super) role: String,
    #[serde(default)]
    content: Value,
    tool_calls: Option<Vec<Value>>,
}

impl ChatRequest {
    /// Whether the answer is to be streamed.
    pub(super) fn streams(&self) -> bool {
        self.stream == true
    }

    /// Whether the caller asks for anything but prose.
    pub(super) fn wants_structured_output(&self) -> bool {
        self.response_format["type"]
            .as_str()
            .is_some_and(|format| format != "text")
    }

    /// A call of the tool that shows products, if there is one, with what the question says of them.
    fn product_tool_call(&self, question: &str) -> Option<Value> {
        let functions = self.tools.iter().flatten().map(|tool| &tool["function"]);
        let named = |function: &&Value| {
            function["name"]
                .as_str()
                .is_some_and(|name| name.contains("product"))
        };
        let function = functions.into_iter().find(named)?;
        let parameters = &function["parameters"];
        let required = parameters["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        let wishes = Wishes::of(question);
        let mut arguments: Map<String, Value> = required
            .map(|key| (key.to_owned(), wishes.words.clone().into()))
            .collect();
        let known = |key: &str| parameters["properties"].get(key).is_some();
        if known("query") && !wishes.words.is_empty() {
            arguments.insert("query".into(), wishes.words.into());
        }
        if let Some(price) = wishes.price_max.filter(|_| known("price_max")) {
            arguments.insert("price_max".into(), price.into());
        }
        let called =
            json!({ "name": function["name"], "arguments": Value::from(arguments).to_string() });
        Some(json!({ "index": 0, "id": "call_products", "type": "function", "function": called }))
    }
}

impl Message {
    /// Its text; several parts stand on lines of their own.
    pub(super) fn text(&self) -> String {
        let parts = self
            .content
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|part| part["text"].as_str());
        self.content
            .as_str()
            .map_or_else(|| parts.collect::<Vec<_>>().join("\n"), str::to_owned)
    }

    /// Whether it is text that an assistant has begun, and not a call of a tool.
    pub(super) fn is_assistant_text(&self) -> bool {
        self.role == "assistant" && self.tool_calls.as_ref().is_none_or(Vec::is_empty)
    }
}

/// What the demo model says to one request.
pub(super) enum Answer {
    /// Text, in the pieces in which it streams, and whether the token limit cut it.
    Text { pieces: Vec<String>, cut: bool },
    /// A call of a tool; the text comes when its result is known.
    ToolCall(Value),
}

impl Answer {
    /// Decides and words the answer.
    pub(super) fn to(request: &ChatRequest, conversation: &Conversation) -> Self {
        // A caller may forbid calls and still declare the tools that were called before.
        if conversation.wants_tool()
            && request.tool_choice != "none"
            && let Some(call) = request.product_tool_call(conversation.question())
        {
            return Self::ToolCall(call);
        }
        let mut pieces = pieces(&conversation.rest_of_reply());
        let limit = request
            .max_completion_tokens
            .or(request.max_tokens)
            .unwrap_or(usize::MAX);
        let cut = pieces.len() > limit;
        pieces.truncate(limit);
        Self::Text { pieces, cut }
    }

    const fn finish_reason(&self) -> &'static str {
        match self {
            Self::Text { cut: false, .. } => "stop",
            Self::Text { cut: true, .. } => "length",
            Self::ToolCall(_) => "tool_calls",
        }
    }

    const fn tokens(&self) -> usize {
        match self {
            Self::Text { pieces, .. } => pieces.len(),
            Self::ToolCall(_) => 1,
        }
    }
}

/// The fields around every answer to one request.
pub(super) struct Envelope {
    id: String,
    created: i64,
    prompt_tokens: usize,
    include_usage: bool,
}

impl Envelope {
    pub(super) fn new(request: &ChatRequest) -> Self {
        let now = Timestamp::now().micros();
        Self {
            id: format!("chatcmpl-demo-{now}"),
            created: now / 1_000_000,
            prompt_tokens: request
                .messages
                .iter()
                .map(|message| pieces(&message.text()).len())
                .sum(),
            include_usage: request.stream_options["include_usage"] == true,
        }
    }

    /// The answer as one body.
    pub(super) fn whole(&self, answer: &Answer) -> Value {
        let message = match answer {
            Answer::Text { pieces, .. } => {
                json!({ "role": "assistant", "content": pieces.concat() })
            }
            Answer::ToolCall(call) => {
                json!({ "role": "assistant", "content": null, "tool_calls": [call] })
            }
        };
        let choice =
            json!({ "index": 0, "message": message, "finish_reason": answer.finish_reason() });
        self.wrap("chat.completion", json!([choice]), Some(self.usage(answer)))
    }

    /// The answer as the chunks of a stream, one for each word.
    pub(super) fn chunks(&self, answer: &Answer) -> Vec<Value> {
        let said = match answer {
            Answer::Text { pieces, .. } => pieces
                .iter()
                .map(|piece| json!({ "content": piece }))
                .collect(),
            Answer::ToolCall(call) => vec![json!({ "tool_calls": [call] })],
        };
        let opening = json!({ "role": "assistant", "content": "" });
        let deltas = std::iter::once(opening)
            .chain(said)
            .map(|delta| (delta, Value::Null));
        let mut chunks: Vec<Value> = deltas
            .chain([(json!({}), answer.finish_reason().into())])
            .map(|(delta, reason)| json!([{ "index": 0, "delta": delta, "finish_reason": reason }]))
            .map(|choices| self.wrap("chat.completion.chunk", choices, None))
            .collect();
        if self.include_usage {
            chunks.push(self.wrap("chat.completion.chunk", json!([]), Some(self.usage(answer))));
        }
        chunks
    }

    fn wrap(&self, object: &str, choices: Value, usage: Option<Value>) -> Value {
        json!({ "id": self.id, "object": object, "created": self.created, "model": DEMO_MODEL, "choices": choices, "usage": usage })
    }

    fn usage(&self, answer: &Answer) -> Value {
        let (prompt, completion) = (self.prompt_tokens, answer.tokens());
        json!({ "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion })
    }
}

/// An error as clients of this protocol expect it.
pub(super) fn error_body(code: &str, message: &str) -> Value {
    json!({ "error": { "message": message, "type": "invalid_request_error", "param": null, "code": code } })
}

/// Words with the white space behind them; what the demo model counts as tokens.
fn pieces(text: &str) -> Vec<String> {
    let cut_words = |word: &str| {
        let characters: Vec<char> = word.chars().collect();
        characters
            .chunks(PIECE_CHARS_MAX)
            .map(|piece| piece.iter().collect())
            .collect::<Vec<String>>()
    };
    text.split_inclusive(char::is_whitespace)
        .flat_map(cut_words)
        .collect()
}
