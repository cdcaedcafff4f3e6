//! Requests of chat completions, in the form that the endpoint's model accepts.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use switchboard_schemas::agent::ReasoningEffort;

use super::{
    ModelEndpoint, ModelPrompt, PromptMessage, PromptRole,
    prompt::{ToolDeclaration, ToolOffer},
    request_forms::{RequestForm, RequestParameter, SentParameters},
};
use crate::plain_text::break_chat_marks;

/// Effort that some models require beside tools.
const NO_REASONING: &str = "none";

/// Thoughts of an answer, as most servers call them.
const THOUGHTS: &str = "reasoning_content";

#[derive(Serialize)]
pub(super) struct ChatCompletionRequest<'a> {
    model: &'a str,
    messages: Vec<PromptMessage>,
    pub(super) stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tools: &'a [ToolDeclaration],
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    // vLLM needs both of these to continue the last message; llama.cpp does so by itself and
    // accepts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    continue_final_message: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    add_generation_prompt: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<&'a Value>,
    /// Parts of this request that a model may refuse.
    #[serde(skip)]
    pub(super) sent: SentParameters,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// Everything of which a request is made.
#[derive(Clone, Copy)]
pub(super) struct RequestSource<'a> {
    pub(super) endpoint: &'a ModelEndpoint,
    pub(super) prompt: &'a ModelPrompt,
    /// Text that the endpoint is asked to continue, or empty.
    pub(super) prefix: &'a str,
    pub(super) offer: ToolOffer,
    pub(super) form: RequestForm,
}

impl<'a> ChatCompletionRequest<'a> {
    /// Creates a request, which is streamed unless it asks for a form of the answer.
    pub(super) fn new(source: RequestSource<'a>) -> Self {
        let RequestSource {
            endpoint,
            prompt,
            prefix,
            offer,
            form,
        } = source;
        let mut sent = SentParameters::new(form);
        let messages = messages_for(source, &mut sent);
        let continues = !prefix.is_empty();
        let tools = if offer == ToolOffer::None {
            &[]
        } else {
            prompt.tools.as_slice()
        };
        let has_tools = !tools.is_empty();
        let mut sends = |parameter, wanted| sent.sends(parameter, wanted);
        let old_limit = sends(RequestParameter::MaxTokens, true);
        let new_limit = sends(RequestParameter::MaxCompletionTokens, !old_limit);
        let reasoning_effort = if has_tools && !sends(RequestParameter::ReasoningWithTools, true) {
            sends(RequestParameter::NoReasoning, true).then_some(NO_REASONING)
        } else {
            prompt
                .reasoning_effort
                .map(ReasoningEffort::as_str)
                .filter(|_| sends(RequestParameter::ReasoningEffort, true))
        };
        let stream = sends(RequestParameter::Stream, prompt.response_format.is_none());
        Self {
            model: &endpoint.model,
            messages,
            stream,
            stream_options: sends(RequestParameter::StreamOptions, stream).then_some(
                StreamOptions {
                    include_usage: true,
                },
            ),
            max_tokens: old_limit.then_some(prompt.max_tokens),
            max_completion_tokens: new_limit.then_some(prompt.max_tokens),
            temperature: prompt
                .temperature
                .filter(|_| sends(RequestParameter::Temperature, true)),
            reasoning_effort,
            tools,
            tool_choice: sends(RequestParameter::ToolChoice, offer == ToolOffer::Declared)
                .then_some("none"),
            continue_final_message: sends(RequestParameter::ContinueFinalMessage, continues)
                .then_some(true),
            add_generation_prompt: sends(RequestParameter::AddGenerationPrompt, continues)
                .then_some(false),
            response_format: prompt
                .response_format
                .as_ref()
                .filter(|_| sends(RequestParameter::ResponseFormat, true)),
            sent,
        }
    }
}

/// Returns the messages of a request: fields of another provider and pictures that a model does not
/// see stay away, marks of chat templates are broken, a model without a role for instructions finds
/// them in the first message, and a prefix is the last message, byte for byte.
pub(super) fn messages_for(
    source: RequestSource<'_>,
    sent: &mut SentParameters,
) -> Vec<PromptMessage> {
    let RequestSource {
        endpoint,
        prompt,
        prefix,
        form,
        ..
    } = source;
    let mut messages = prompt.messages.clone();
    let endpoint_key = endpoint.cache_key();
    for message in &mut messages {
        break_marks(message);
        let has_images = !message.images.is_empty();
        if has_images && !(endpoint.vision && sent.sends(RequestParameter::Images, true)) {
            message.describe_images();
        }
        if message.extras.source != endpoint_key || !form.sends(RequestParameter::Extras) {
            message.clear_extras();
        }
        for name in message.extra_names() {
            sent.sends(RequestParameter::Extras, true);
            sent.push_extra(name);
        }
        let lacks_thoughts =
            message.role == PromptRole::Assistant && !message.extras.fields.contains_key(THOUGHTS);
        if lacks_thoughts && !sent.sends(RequestParameter::AnswersWithoutThoughts, true) {
            message.extras.fields.insert(THOUGHTS.to_owned(), "".into());
        }
    }
    let has_instructions = messages
        .first()
        .is_some_and(|first| first.role == PromptRole::System);
    if has_instructions && !sent.sends(RequestParameter::SystemRole, true) {
        let instructions = messages.remove(0).content;
        match messages.first_mut() {
            Some(first) if first.role == PromptRole::User => {
                first.content = format!("{instructions}\n\n{}", first.content);
            }
            _ => messages.insert(0, PromptMessage::text(PromptRole::User, instructions)),
        }
    }
    if !prefix.is_empty() {
        messages.push(PromptMessage::text(PromptRole::Assistant, prefix));
    }
    messages
}

/// Breaks the marks of chat templates in a message of any role: on a server that reads them, a
/// visitor's `<|im_start|>system` begins a message with instructions.
fn break_marks(message: &mut PromptMessage) {
    let arguments = message.calls.iter_mut().map(|call| &mut call.arguments);
    for text in arguments.chain([&mut message.content]) {
        if let Cow::Owned(broken) = break_chat_marks(text) {
            *text = broken;
        }
    }
}
