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
