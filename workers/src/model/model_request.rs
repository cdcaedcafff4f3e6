//! Requests in the dialect of their endpoint.

use serde::Serialize;
use switchboard_schemas::provider::ProviderApi;

use super::{
    request::{ChatCompletionRequest, RequestSource},
    request_forms::SentParameters,
    responses_request::ResponsesRequest,
};

/// Paths below a base URL, which are also ends of addresses that people paste as one.
pub(super) const CHAT_PATH: &str = "/chat/completions";
pub(super) const RESPONSES_PATH: &str = "/responses";

/// A request in the dialect of its endpoint.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ModelRequest<'a> {
    Chat(ChatCompletionRequest<'a>),
    Responses(ResponsesRequest<'a>),
}

impl<'a> ModelRequest<'a> {
    pub(super) fn new(source: RequestSource<'a>) -> Self {
        match source.endpoint.api {
            ProviderApi::ChatCompletions => Self::Chat(ChatCompletionRequest::new(source)),
            ProviderApi::Responses => Self::Responses(ResponsesRequest::new(source)),
        }
    }

    pub(super) const fn path(&self) -> &'static str {
        match self {
            Self::Chat(_) => CHAT_PATH,
            Self::Responses(_) => RESPONSES_PATH,
        }
    }

    pub(super) const fn streams(&self) -> bool {
        match self {
            Self::Chat(request) => request.stream,
            Self::Responses(request) => request.stream,
        }
    }

    pub(super) const fn sent(&self) -> &SentParameters {
        match self {
            Self::Chat(request) => &request.sent,
            Self::Responses(request) => &request.sent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::{
            ModelEndpoint, ModelPrompt, PromptMessage, PromptRole,
            prompt::{PromptToolCall, ToolOffer},
            request_forms::{RequestForm, RequestParameter},
        },
        outgoing::AddressReach,
    };

    fn endpoint(api: ProviderApi) -> ModelEndpoint {
        ModelEndpoint {
            base_url: "http://model.example/v1".into(),
            api_key: None,
            model: "m".into(),
            api,
            continues_prefix: true,
            vision: false,
            first_token_timeout: None,
            reach: AddressReach::Any,
        }
    }

    /// Returns a message of each role with a mark in each text.
    fn marked_prompt() -> ModelPrompt {
        let roles = [
            PromptRole::System,
            PromptRole::User,
            PromptRole::Assistant,
            PromptRole::Tool,
        ];
        let mut messages = roles.map(|role| PromptMessage::text(role, "a<|im_start|>system"));
        messages[2].calls.push(PromptToolCall {
            id: "c".into(),
            name: "search".into(),
            arguments: r#"{"query":"<|im_start|>"}"#.into(),
            extras: serde_json::Map::new(),
            function_extras: serde_json::Map::new(),
        });
        messages[3].call_id = Some("c".into());
        ModelPrompt {
            messages: messages.into(),
            ..ModelPrompt::default()
        }
    }

    #[test]
    fn chat_marks_reach_no_model() {
        let prompt = marked_prompt();
        let whole = RequestForm::default();
        for api in [ProviderApi::ChatCompletions, ProviderApi::Responses] {
            for form in [whole, whole.without(RequestParameter::SystemRole)] {
                let endpoint = endpoint(api);
                let request = ModelRequest::new(RequestSource {
                    endpoint: &endpoint,
                    prompt: &prompt,
                    prefix: "so far<|im_end|>",
                    offer: ToolOffer::None,
                    form,
                });
                let request = serde_json::to_string(&request).unwrap();
                assert!(!request.contains("<|im_start|>"), "{request}");
                assert_eq!(request.matches("< |im_start|>").count(), 5, "{request}");
                assert!(request.contains("so far<|im_end|>"), "{request}");
            }
        }
    }
}
