//! OpenAI's chat protocol as the demo model implements it: the fields that it reads, and the chunks
//! of an answer.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use switchboard_schemas::time::Timestamp;

use super::{DEMO_MODEL, conversation::DemoConversation, product_wishes::ProductWish};

/// Longest piece of a stream in characters, so that scripts without spaces stream as well.
const PIECE_CHARS_MAX: usize = 16;

/// A chat completion request; other fields are ignored. Fields that clients write in many ways stay
/// JSON.
#[derive(Deserialize)]
pub(super) struct ChatRequest {
    pub(super) messages: Vec<ChatMessage>,
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

#[derive(Deserialize)]
pub(super) struct ChatMessage {
    pub(super) role: String,
    #[serde(default)]
    content: Value,
    tool_calls: Option<Vec<Value>>,
}

impl ChatRequest {
    /// Returns true if the answer is to be streamed.
    pub(super) fn is_streaming(&self) -> bool {
        self.stream == true
    }

    /// Returns true if the caller asks for anything but prose.
    pub(super) fn wants_structured_output(&self) -> bool {
        self.response_format["type"]
            .as_str()
            .is_some_and(|format| format != "text")
    }

    /// Returns a call of the product tool, if there is one, with the arguments that the question
    /// contains.
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
        let wish = ProductWish::from_question(question);
        let mut arguments: Map<String, Value> = required
            .map(|key| (key.to_owned(), wish.words.clone().into()))
            .collect();
        let known = |key: &str| parameters["properties"].get(key).is_some();
        if known("query") && !wish.words.is_empty() {
            arguments.insert("query".into(), wish.words.into());
        }
        if let Some(price) = wish.price_max.filter(|_| known("price_max")) {
            arguments.insert("price_max".into(), price.into());
        }
        let called =
            json!({ "name": function["name"], "arguments": Value::from(arguments).to_string() });
        Some(json!({ "index": 0, "id": "call_products", "type": "function", "function": called }))
    }
}

impl ChatMessage {
    /// Returns its text; several parts are joined by line breaks.
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

    /// Returns true for text of an assistant, not for a tool call.
    pub(super) fn is_assistant_text(&self) -> bool {
        self.role == "assistant" && self.tool_calls.as_ref().is_none_or(Vec::is_empty)
    }
}

/// Answer of the demo model to one request.
pub(super) enum DemoAnswer {
    /// Text in the pieces in which it streams, and true if the token limit cut it.
    Text { pieces: Vec<String>, cut: bool },
    /// A tool call; the text follows once its result is known.
    ToolCall(Value),
}

impl DemoAnswer {
    /// Chooses and words the answer.
    pub(super) fn new(request: &ChatRequest, conversation: &DemoConversation) -> Self {
        // A caller may forbid calls and still declare tools that were called before.
        if conversation.wants_tool()
            && request.tool_choice != "none"
            && let Some(call) = request.product_tool_call(conversation.last_question())
        {
            return Self::ToolCall(call);
        }
        let mut pieces = split_pieces(&conversation.rest_of_reply());
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

    const fn token_count(&self) -> usize {
        match self {
            Self::Text { pieces, .. } => pieces.len(),
            Self::ToolCall(_) => 1,
        }
    }
}

/// Fields around every answer to one request.
pub(super) struct ResponseEnvelope {
    id: String,
    created: i64,
    prompt_tokens: usize,
    include_usage: bool,
}

impl ResponseEnvelope {
    pub(super) fn new(request: &ChatRequest) -> Self {
        let now = Timestamp::now().micros();
        Self {
            id: format!("chatcmpl-demo-{now}"),
            created: now / 1_000_000,
            prompt_tokens: request
                .messages
                .iter()
                .map(|message| split_pieces(&message.text()).len())
                .sum(),
            include_usage: request.stream_options["include_usage"] == true,
        }
    }

    pub(super) fn full_body(&self, answer: &DemoAnswer) -> Value {
        let message = match answer {
            DemoAnswer::Text { pieces, .. } => {
                json!({ "role": "assistant", "content": pieces.concat() })
            }
            DemoAnswer::ToolCall(call) => {
                json!({ "role": "assistant", "content": null, "tool_calls": [call] })
            }
        };
        let choice =
            json!({ "index": 0, "message": message, "finish_reason": answer.finish_reason() });
        self.wrap_choices(
            "chat.completion",
            json!([choice]),
            Some(self.usage_json(answer)),
        )
    }

    /// Returns the answer as the chunks of a stream, one for each word.
    pub(super) fn stream_chunks(&self, answer: &DemoAnswer) -> Vec<Value> {
        let said = match answer {
            DemoAnswer::Text { pieces, .. } => pieces
                .iter()
                .map(|piece| json!({ "content": piece }))
                .collect(),
            DemoAnswer::ToolCall(call) => vec![json!({ "tool_calls": [call] })],
        };
        let opening = json!({ "role": "assistant", "content": "" });
        let deltas = std::iter::once(opening)
            .chain(said)
            .map(|delta| (delta, Value::Null));
        let mut chunks: Vec<Value> = deltas
            .chain([(json!({}), answer.finish_reason().into())])
            .map(|(delta, reason)| json!([{ "index": 0, "delta": delta, "finish_reason": reason }]))
            .map(|choices| self.wrap_choices("chat.completion.chunk", choices, None))
            .collect();
        if self.include_usage {
            chunks.push(self.wrap_choices(
                "chat.completion.chunk",
                json!([]),
                Some(self.usage_json(answer)),
            ));
        }
        chunks
    }

    fn wrap_choices(&self, object: &str, choices: Value, usage: Option<Value>) -> Value {
        json!({ "id": self.id, "object": object, "created": self.created, "model": DEMO_MODEL, "choices": choices, "usage": usage })
    }

    fn usage_json(&self, answer: &DemoAnswer) -> Value {
        let (prompt, completion) = (self.prompt_tokens, answer.token_count());
        json!({ "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion })
    }
}

/// Returns an error as clients of this protocol expect it.
pub(super) fn error_body(code: &str, message: &str) -> Value {
    json!({ "error": { "message": message, "type": "invalid_request_error", "param": null, "code": code } })
}

/// Splits text into words with their trailing white space; the demo model counts them as tokens.
fn split_pieces(text: &str) -> Vec<String> {
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
