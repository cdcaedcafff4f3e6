//! Requests of chat completions, in the form that the endpoint's model accepts.

use serde::Serialize;
use serde_json::Value;
use switchboard_schemas::agent::ReasoningEffort;

use super::{
    ModelEndpoint, ModelPrompt, PromptMessage, PromptRole,
    prompt::{ToolDeclaration, ToolOffer},
    request_forms::{RequestForm, RequestParameter, SentParameters},
};

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

impl<'a> ChatCompletionRequest<'a> {
    /// Creates a request, which is streamed unless it asks for a form of the answer. With a
    /// `prefix`, the endpoint is asked to continue that text.
    pub(super) fn new(
        endpoint: &'a ModelEndpoint,
        prompt: &'a ModelPrompt,
        prefix: &str,
        offer: ToolOffer,
        form: RequestForm,
    ) -> Self {
        let mut sent = SentParameters::default();
        let continues = !prefix.is_empty();
        let messages = messages_for(endpoint, prompt, form, &mut sent);
        let tools = if offer == ToolOffer::None {
            &[]
        } else {
            prompt.tools.as_slice()
        };
        let mut sends = |parameter, wanted: bool| {
            let is_sent = wanted && form.sends(parameter);
            if is_sent {
                sent.push(parameter);
            }
            is_sent
        };
        let old_limit = sends(RequestParameter::MaxTokens, true);
        let new_limit = sends(RequestParameter::MaxCompletionTokens, !old_limit);
        let has_tools = !tools.is_empty();
        let reasoning_effort = if has_tools && !sends(RequestParameter::ReasoningWithTools, true) {
            sends(RequestParameter::NoReasoning, true).then_some(NO_REASONING)
        } else {
            prompt
                .reasoning_effort
                .map(ReasoningEffort::as_str)
                .filter(|_| sends(RequestParameter::ReasoningEffort, true))
        };
        let stream = sends(RequestParameter::Stream, prompt.response_format.is_none());
        let mut request = Self {
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
            sent: SentParameters::default(),
        };
        if continues {
            let text = PromptMessage::text(PromptRole::Assistant, prefix);
            request.messages.push(text);
        }
        request.sent = sent;
        request
    }
}

/// Returns the messages of a prompt for this endpoint: fields of another provider stay away, and a
/// model without a role for instructions finds them in the first message.
pub(super) fn messages_for(
    endpoint: &ModelEndpoint,
    prompt: &ModelPrompt,
    form: RequestForm,
    sent: &mut SentParameters,
) -> Vec<PromptMessage> {
    let mut messages = prompt.messages.clone();
    let source = endpoint.cache_key();
    for message in &mut messages {
        if message.extras.source != source || !form.sends(RequestParameter::Extras) {
            message.clear_extras();
        }
        for name in message.extra_names() {
            sent.push(RequestParameter::Extras);
            sent.push_extra(name);
        }
    }
    for message in &mut messages {
        let is_answer = message.role == PromptRole::Assistant;
        if is_answer && !message.extras.fields.contains_key(THOUGHTS) {
            if form.sends(RequestParameter::AnswersWithoutThoughts) {
                sent.push(RequestParameter::AnswersWithoutThoughts);
            } else {
                message.extras.fields.insert(THOUGHTS.to_owned(), "".into());
            }
        }
    }
    let instructions = messages
        .first()
        .filter(|first| first.role == PromptRole::System);
    let Some(instructions) = instructions.map(|first| first.content.clone()) else {
        return messages;
    };
    if form.sends(RequestParameter::SystemRole) {
        sent.push(RequestParameter::SystemRole);
        return messages;
    }
    messages.remove(0);
    match messages.first_mut() {
        Some(first) if first.role == PromptRole::User => {
            first.content = format!("{instructions}\n\n{}", first.content);
        }
        _ => messages.insert(0, PromptMessage::text(PromptRole::User, instructions)),
    }
    messages
}
