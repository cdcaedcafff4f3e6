//! Forms of requests: parameters that a model refused are not sent to it again for an hour.
//!
//! Nothing is known about models in advance. A refusal that names a parameter of the request is
//! answered by another request without it, or in its other form. The entry expires, because a
//! provider may change its model.

use std::time::Duration;

use moka::sync::Cache;

use super::{CallError, ModelEndpoint, refusal::RefusalBody};

/// Models that are remembered.
const MODELS_MAX: u64 = 1_000;
/// Time for which a form is remembered.
const MODEL_TTL: Duration = Duration::from_secs(60 * 60);

/// A part of requests that models may refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestParameter {
    /// Limit of the answer in the old form; without it, [`Self::MaxCompletionTokens`] is sent.
    MaxTokens,
    MaxCompletionTokens,
    /// Limit of the answer in the Responses API.
    MaxOutputTokens,
    Temperature,
    ReasoningEffort,
    StreamOptions,
    ToolChoice,
    ContinueFinalMessage,
    AddGenerationPrompt,
    ResponseFormat,
    /// Encrypted thoughts that are requested in order to be sent back.
    Include,
    Store,
    /// Instructions in a message of their own; without it, the first user message begins with them.
    SystemRole,
    /// Unknown fields of earlier answers.
    Extras,
    /// Answers without their thoughts; otherwise each has an empty `reasoning_content` (DeepSeek).
    AnswersWithoutThoughts,
    /// Thoughts before tool calls; without it, a request with tools asks for no reasoning.
    ReasoningWithTools,
    /// That request for no reasoning.
    NoReasoning,
    /// A stream instead of one document.
    Stream,
    /// Pictures of visitors; without it, words say that there are some.
    Images,
}

/// Names by which providers refer to a parameter, in lower case.
const NAMES: [(RequestParameter, &[&str]); 17] = [
    (RequestParameter::MaxTokens, &["max_tokens", "maxtokens"]),
    (
        RequestParameter::MaxCompletionTokens,
        &["max_completion_tokens"],
    ),
    (RequestParameter::MaxOutputTokens, &["max_output_tokens"]),
    (RequestParameter::Temperature, &["temperature"]),
    (
        RequestParameter::ReasoningEffort,
        &[
            "reasoning_effort",
            "reasoningeffort",
            "reasoning.effort",
            "reasoning",
            "thinking",
        ],
    ),
    (
        RequestParameter::StreamOptions,
        &["stream_options", "include_usage"],
    ),
    (RequestParameter::ToolChoice, &["tool_choice"]),
    (
        RequestParameter::ContinueFinalMessage,
        &["continue_final_message"],
    ),
    (
        RequestParameter::AddGenerationPrompt,
        &["add_generation_prompt"],
    ),
    (
        RequestParameter::ResponseFormat,
        &["response_format", "json_schema", "text.format"],
    ),
    (RequestParameter::Include, &["include", "encrypted_content"]),
    (RequestParameter::Store, &["store"]),
    (
        RequestParameter::Extras,
        &["reasoning_content", "reasoning_details", "reasoning"],
    ),
    (RequestParameter::ReasoningWithTools, &["reasoning_effort"]),
    (RequestParameter::NoReasoning, &["reasoning_effort"]),
    (RequestParameter::Stream, &["stream"]),
    (
        RequestParameter::Images,
        &[
            "image_url",
            "input_image",
            "image",
            "images",
            "vision",
            "multimodal",
            "multi-modal",
        ],
    ),
];
/// The two forms of the limit of an answer, and that of the Responses API.
const LIMITS: [RequestParameter; 3] = [
    RequestParameter::MaxTokens,
    RequestParameter::MaxCompletionTokens,
    RequestParameter::MaxOutputTokens,
];

/// Parts of one request that models may refuse.
#[derive(Debug, Default)]
pub(super) struct SentParameters {
    form: RequestForm,
    parameters: Vec<RequestParameter>,
    /// Names of the unknown fields of earlier answers.
    extras: Vec<String>,
}

impl SentParameters {
    pub(super) fn new(form: RequestForm) -> Self {
        Self {
            form,
            ..Self::default()
        }
    }

    /// Returns true if a `wanted` part is sent, and notes it.
    pub(super) fn sends(&mut self, parameter: RequestParameter, wanted: bool) -> bool {
        let is_sent = wanted && self.form.sends(parameter);
        if is_sent {
            self.parameters.push(parameter);
        }
        is_sent
    }

    pub(super) fn push_extra(&mut self, name: &str) {
        self.extras.push(name.to_lowercase());
    }

    /// Returns the form without the sent parameter that a refusal names; `None` if it names none,
    /// so that another request would be refused again.
    pub(super) fn adapted(
        &self,
        error: &CallError,
        refusal: &RefusalBody,
    ) -> Option<(RequestForm, RequestParameter)> {
        let is_about_length = match error {
            CallError::Refused { status: 400 | 422 } => false,
            CallError::TooLong { .. } => true,
            _ => return None,
        };
        let refused = self.refused_parameter(refusal, is_about_length)?;
        Some((self.form.without(refused), refused))
    }

    fn refused_parameter(
        &self,
        refusal: &RefusalBody,
        is_about_length: bool,
    ) -> Option<RequestParameter> {
        let is_sent = |parameter| self.parameters.contains(&parameter);
        let named_by = |is_named: &dyn Fn(&str) -> bool| {
            let mut table = NAMES.iter().filter(|(parameter, _)| is_sent(*parameter));
            let found = table.find(|(_, words)| words.iter().any(|word| is_named(word)));
            found.map(|(parameter, _)| *parameter)
        };
        if is_sent(RequestParameter::ReasoningWithTools)
            && refusal.names("reasoning_effort")
            && refusal.contains_all(&["tool"])
        {
            return Some(RequestParameter::ReasoningWithTools);
        }
        if is_sent(RequestParameter::AnswersWithoutThoughts)
            && refusal.contains_all(&["reasoning_content"])
            && ["pass", "missing", "required"]
                .iter()
                .any(|word| refusal.contains_all(&[word]))
        {
            return Some(RequestParameter::AnswersWithoutThoughts);
        }
        // What is named apart from the words is what is meant.
        let param = refusal.param.as_deref();
        let meant = param.and_then(|param| named_by(&|word| param == word));
        if meant.is_some() {
            return meant;
        }
        let named = named_by(&|word| refusal.names(word));
        if is_about_length {
            // An answer of the wanted length does not fit behind the prompt.
            return named.filter(|parameter| LIMITS.contains(parameter));
        }
        if is_sent(RequestParameter::SystemRole) && is_about_roles(refusal) {
            return Some(RequestParameter::SystemRole);
        }
        if self.extras.iter().any(|name| refusal.names(name)) {
            return Some(RequestParameter::Extras);
        }
        // Some servers name only the form that they want.
        let wants_limit = || refusal.names("max_completion_tokens") || refusal.names("max_tokens");
        let other_form = LIMITS
            .into_iter()
            .find(|limit| is_sent(*limit))
            .filter(|_| wants_limit());
        // Others refuse unknown fields without a word about which.
        let extras = || is_sent(RequestParameter::Extras).then_some(RequestParameter::Extras);
        named.or(other_form).or_else(extras)
    }
}

/// Parameters that a model refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RequestForm {
    refused: u32,
}

impl RequestForm {
    /// Returns true unless the model refused the parameter.
    pub(super) const fn sends(self, parameter: RequestParameter) -> bool {
        self.refused & (1 << parameter as u16) == 0
    }

    /// Returns the names of what the model refused.
    pub(super) fn refused_names(self) -> Vec<String> {
        let refused = NAMES
            .iter()
            .filter(|(parameter, _)| !self.sends(*parameter));
        let mut names: Vec<_> = refused.map(|(_, names)| names[0].to_owned()).collect();
        if !self.sends(RequestParameter::SystemRole) {
            names.push("system role".to_owned());
        }
        names
    }

    pub(super) const fn without(self, parameter: RequestParameter) -> Self {
        Self {
            refused: self.refused | (1 << parameter as u16),
        }
    }
}

/// Returns true if a model knows no role for instructions.
fn is_about_roles(refusal: &RefusalBody) -> bool {
    [
        &["system", "role"][..],
        &["developer instruction"],
        &["role", "user", "assistant"],
        &["roles", "alternate"],
    ]
    .iter()
    .any(|words| refusal.contains_all(words))
}

/// Forms by endpoint and model. Clones share them.
#[derive(Clone)]
pub(super) struct RequestForms(Cache<[String; 2], RequestForm>);

impl RequestForms {
    pub(super) fn new() -> Self {
        Self(
            Cache::builder()
                .max_capacity(MODELS_MAX)
                .time_to_live(MODEL_TTL)
                .build(),
        )
    }

    /// Returns the form for this model.
    pub(super) fn form_for(&self, endpoint: &ModelEndpoint) -> RequestForm {
        self.0.get(&endpoint.cache_key()).unwrap_or_default()
    }

    /// Records the form that the model is sent from now on.
    pub(super) fn record(&self, endpoint: &ModelEndpoint, form: RequestForm) {
        self.0.insert(endpoint.cache_key(), form);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent() -> SentParameters {
        SentParameters {
            form: RequestForm::default(),
            parameters: vec![
                RequestParameter::MaxTokens,
                RequestParameter::Temperature,
                RequestParameter::StreamOptions,
                RequestParameter::ReasoningEffort,
                RequestParameter::SystemRole,
                RequestParameter::ReasoningWithTools,
            ],
            extras: Vec::new(),
        }
    }

    fn adapted(status: u16, body: &str) -> Option<RequestParameter> {
        let refusal = RefusalBody::parse(body.as_bytes());
        let adapted = sent().adapted(&CallError::Refused { status }, &refusal)?;
        assert!(!adapted.0.sends(adapted.1));
        Some(adapted.1)
    }

    #[test]
    fn refused_parameter_is_found_in_the_forms_of_providers() {
        for (status, body, want) in [
            (
                400,
                r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}"#,
                Some(RequestParameter::MaxTokens),
            ),
            (
                400,
                r#"{"error":{"message":"Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.","param":"temperature","code":"unsupported_value"}}"#,
                Some(RequestParameter::Temperature),
            ),
            (
                422,
                r#"{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}"#,
                Some(RequestParameter::StreamOptions),
            ),
            (
                400,
                r#"{"error":"json: unknown field \"reasoning_effort\""}"#,
                Some(RequestParameter::ReasoningEffort),
            ),
            (
                400,
                r#"{"object":"error","message":"System role not supported","code":400}"#,
                Some(RequestParameter::SystemRole),
            ),
            (
                400,
                r#"{"error":{"message":"Function tools with reasoning_effort are not supported for this model. Set reasoning_effort to 'none'.","param":"reasoning_effort"}}"#,
                Some(RequestParameter::ReasoningWithTools),
            ),
            // Not sent, not a refusal of a parameter, not a status of refused parameters.
            (
                400,
                r#"{"error":{"message":"no","param":"tool_choice"}}"#,
                None,
            ),
            (400, r#"{"error":{"message":"invalid request"}}"#, None),
            (
                401,
                r#"{"error":{"message":"no","param":"max_tokens"}}"#,
                None,
            ),
        ] {
            assert_eq!(adapted(status, body), want, "{body}");
        }
    }

    #[test]
    fn parameter_is_left_out_once() {
        let refusal = RefusalBody::parse(br#"{"error":{"param":"temperature"}}"#);
        let error = CallError::Refused { status: 400 };
        let form = RequestForm::default().without(RequestParameter::Temperature);
        let mut sent = SentParameters::new(form);
        assert!(!sent.sends(RequestParameter::Temperature, true));
        assert_eq!(sent.adapted(&error, &refusal), None);
    }

    #[test]
    fn unknown_fields_are_left_out_if_they_are_named_or_nothing_is() {
        let mut sent = sent();
        sent.sends(RequestParameter::Extras, true);
        sent.push_extra("annotations");
        let error = CallError::Refused { status: 400 };
        for body in [
            r#"{"error":{"message":"Unknown parameter: 'messages[2].annotations'"}}"#,
            r#"{"error":{"message":"bad request"}}"#,
        ] {
            let adapted = sent.adapted(&error, &RefusalBody::parse(body.as_bytes()));
            let refused = adapted.map(|(_, parameter)| parameter);
            assert_eq!(refused, Some(RequestParameter::Extras), "{body}");
        }
    }
}
