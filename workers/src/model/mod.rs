//! Client of model providers: OpenAI's chat completions for every provider and the demo model, or
//! its Responses API.
//!
//! Reading order: [`generation`] produces one answer with as many calls as [`retry_policy`] allows;
//! [`openai`] makes one call to an endpoint of [`providers`], in the form that [`request_forms`]
//! has learned; [`event_stream`], [`chunk`] or [`responses`], and [`tool_calls`] parse the response
//! into an [`output`].

mod assembler;
mod borrowed_json;
mod chunk;
pub(crate) mod connection_test;
pub(crate) mod context_limits;
mod event_stream;
mod finish_reason;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
pub(crate) mod generation;
mod model_request;
mod model_stream;
pub(crate) mod openai;
mod output;
pub(crate) mod prompt;
pub(crate) mod providers;
mod refusal;
mod request;
mod request_forms;
mod response_body;
mod responses;
mod responses_request;
mod retry_after;
pub(crate) mod retry_policy;
#[cfg(test)]
mod tests;
mod thoughts;
pub(crate) mod tool_calls;

use std::time::Duration;

use secrecy::SecretString;
use switchboard_schemas::{
    provider::{ProviderApi, ProviderError},
    time::whole_millis,
};

pub(crate) use prompt::{ModelPrompt, PromptMessage, PromptRole};

use crate::outgoing::AddressReach;

#[derive(Clone, Debug)]
pub(crate) struct ModelEndpoint {
    /// Base URL of the API, without a trailing slash.
    pub(crate) base_url: String,
    /// API key, if the provider needs one.
    pub(crate) api_key: Option<SecretString>,
    pub(crate) model: String,
    /// Dialect in which the provider is called.
    pub(crate) api: ProviderApi,
    /// True if the provider continues an assistant message that ends the prompt.
    pub(crate) continues_prefix: bool,
    /// True if the model sees pictures.
    pub(crate) vision: bool,
    /// Longest silence before the first token; `None` for that of the installation.
    pub(crate) first_token_timeout: Option<Duration>,
    /// Addresses to which the base URL may lead: any, if the operator chose it.
    pub(crate) reach: AddressReach,
}

impl ModelEndpoint {
    /// Returns the host for logs; the whole URL could contain a password.
    pub(crate) fn host(&self) -> String {
        let url = reqwest::Url::parse(&self.base_url).ok();
        url.as_ref()
            .and_then(reqwest::Url::host_str)
            .unwrap_or_default()
            .to_owned()
    }

    /// Returns the key under which facts about the model are remembered.
    pub(crate) fn cache_key(&self) -> [String; 2] {
        [self.base_url.clone(), self.model.clone()]
    }
}

/// A call that failed, with the provider's own words for members of the organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FailedCall {
    pub(crate) error: CallError,
    /// Never logged: it can quote the prompt.
    pub(crate) message: Option<String>,
}

impl FailedCall {
    /// Returns the failure as members of the organization may see it; `None` if the provider said
    /// nothing.
    pub(crate) fn provider_error(&self) -> Option<ProviderError> {
        let (status, pause) = match self.error {
            CallError::Overloaded {
                status,
                retry_after,
            } => (Some(status), retry_after),
            CallError::Refused { status } | CallError::TooLong { status } => (Some(status), None),
            CallError::Reported => (None, None),
            _ => return None,
        };
        Some(ProviderError {
            status,
            message: self.message.clone(),
            retry_after_ms: pause.map(whole_millis),
        })
    }
}

impl From<CallError> for FailedCall {
    fn from(error: CallError) -> Self {
        Self {
            error,
            message: None,
        }
    }
}

/// Failure of one model call. No variant holds text of the provider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// The connection failed.
    #[error("provider cannot be reached: {cause}")]
    Unreachable {
        /// Cause as the operating system or TLS reports it.
        cause: String,
    },
    /// The address leads to a network that the operator has not allowed.
    #[error("provider is in a network that is not public (workers.provider_private_networks)")]
    AddressRefused,
    /// The address or the key cannot be part of a request.
    #[error("provider has an invalid address or key")]
    InvalidEndpoint,
    /// Status 408, 425, 429, 498 or 5xx.
    #[error("provider is overloaded or failing, status {status}")]
    Overloaded {
        /// HTTP status of the response.
        status: u16,
        /// Pause that the provider asks for.
        retry_after: Option<Duration>,
    },
    /// Any other 4xx status.
    #[error("provider rejected the request, status {status}")]
    Refused {
        /// HTTP status of the response.
        status: u16,
    },
    /// Status 400, 413 or 422 with a message about the context length.
    #[error("provider rejected the length of the prompt, status {status}")]
    TooLong {
        /// HTTP status of the response.
        status: u16,
    },
    /// A redirect, a page, another content type, or bytes that are no chunk.
    #[error("provider sent an invalid response")]
    NotAnAnswer,
    /// An error object inside the stream, or a finish reason of an interruption.
    #[error("provider reported an error inside its stream")]
    Reported,
    /// The stream ended without a finish reason, or with an unknown one alone.
    #[error("provider broke off")]
    BrokenOff,
    /// Nothing arrived in time.
    #[error("provider stayed silent")]
    Silent,
}
