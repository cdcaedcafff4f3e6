//! Requests of the Responses API, in the form that the endpoint's model accepts.

use serde::Serialize;
use serde_json::{Value, json};
use switchboard_schemas::agent::ReasoningEffort;

use super::{
    ModelPrompt, PromptMessage, PromptRole,
    prompt::ToolOffer,
    request::{RequestSource, messages_for},
    request_forms::{RequestParameter, SentParameters},
    responses::REASONING_ITEMS,
};

/// Least limit of an answer that the API accepts, in tokens.
const OUTPUT_TOKENS_MIN: u32 = 16;
/// Thoughts that the server gives out instead of storing them.
const ENCRYPTED_REASONING: &str = "reasoning.encrypted_content";

#[derive(Serialize)]
pub(super) struct ResponsesRequest<'a> {
    model: &'a str,
    input: Vec<Value>,
    pub(super) stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    include: Option<[&'static str; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Value>,
    /// Parts of this request that a model may refuse.
    #[serde(skip)]
    pub(super) sent: SentParameters,
}

impl<'a> ResponsesRequest<'a> {
    /// Creates a request, which is streamed unless it asks for a form of the answer.
    pub(super) fn new(source: RequestSource<'a>) -> Self {
        let RequestSource {
            endpoint,
            prompt,
            offer,
            form,
            ..
        } = source;
        let mut sent = SentParameters::new(form);
        let mut messages = messages_for(source, &mut sent);
        let has_instructions = messages
            .first()
            .is_some_and(|first| first.role == PromptRole::System);
        let instructions = has_instructions.then(|| messages.remove(0).content);
        let mut sends = |parameter, wanted| sent.sends(parameter, wanted);
        let effort = prompt.reasoning_effort.map(ReasoningEffort::as_str);
        let has_tools = offer != ToolOffer::None;
        Self {
            model: &endpoint.model,
            input: messages.iter().flat_map(input_items).collect(),
            stream: sends(RequestParameter::Stream, prompt.response_format.is_none()),
            instructions,
            store: sends(RequestParameter::Store, true).then_some(false),
            include: sends(RequestParameter::Include, has_tools).then_some([ENCRYPTED_REASONING]),
            max_output_tokens: sends(RequestParameter::MaxOutputTokens, true)
                .then_some(prompt.max_tokens.max(OUTPUT_TOKENS_MIN)),
            temperature: prompt
                .temperature
                .filter(|_| sends(RequestParameter::Temperature, true)),
            reasoning: effort
                .filter(|_| sends(RequestParameter::ReasoningEffort, true))
                .map(|effort| json!({ "effort": effort })),
            tools: if has_tools { tools(prompt) } else { Vec::new() },
            tool_choice: sends(RequestParameter::ToolChoice, offer == ToolOffer::Declared)
                .then_some("none"),
            text: prompt
                .response_format
                .as_ref()
                .filter(|_| sends(RequestParameter::ResponseFormat, true))
                .map(text_format),
            sent,
        }
    }
}

/// Returns a message as the items of the API: thoughts and calls stand beside the text, not in it.
fn input_items(message: &PromptMessage) -> Vec<Value> {
    if let Some(call_id) = &message.call_id {
        return vec![
            json!({"type": "function_call_output", "call_id": call_id, "output": message.content}),
        ];
    }
    let thoughts = message.extras.fields.get(REASONING_ITEMS);
    let mut items = thoughts
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    if !message.images.is_empty() {
        let text = json!({"type": "input_text", "text": message.content});
        let images = message
            .images
            .iter()
            .map(|image| json!({"type": "input_image", "image_url": image.data_url()}));
        let parts: Vec<_> = std::iter::once(text).chain(images).collect();
        items.push(json!({"role": message.role, "content": parts}));
    } else if !message.content.trim().is_empty() {
        items.push(json!({"role": message.role, "content": message.content}));
    }
    items.extend(message.calls.iter().map(|call| {
        let mut item = json!({
            "type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments
        });
        for (name, value) in &call.extras {
            item[name] = value.clone();
        }
        item
    }));
    items
}

fn tools(prompt: &ModelPrompt) -> Vec<Value> {
    let tools = prompt.tools.iter().map(|tool| {
        json!({
            "type": "function", "name": tool.name, "description": tool.description,
            "parameters": tool.parameters, "strict": false
        })
    });
    tools.collect()
}

/// Returns the format of an answer, which chat completions nest one level deeper.
fn text_format(format: &Value) -> Value {
    let mut flat = format["json_schema"].clone();
    flat["type"] = format["type"].clone();
    json!({ "format": flat })
}
