//! Client of model providers: one protocol, OpenAI's chat completions, for every provider and the
//! demo model.
//!
//! Reading order: [`generation`] produces one answer with as many calls as [`retry_policy`] allows;
//! [`openai`] makes one call to an endpoint of [`providers`]; [`chunk`], [`assembler`] and
//! [`tool_calls`] parse the response.

pub(crate) mod assembler;
pub(crate) mod chunk;
pub(crate) mod context_limits;
pub(crate) mod generation;
pub(crate) mod openai;
pub(crate) mod prompt;
pub(crate) mod providers;
mod refusal;
pub(crate) mod retry_policy;
#[cfg(test)]
mod tests;
pub(crate) mod tool_calls;

use std::time::Duration;

use secrecy::SecretString;

pub(crate) use prompt::{ModelPrompt, PromptMessage, PromptRole};

use crate::outgoing::AddressReach;

#[derive(Clone, Debug)]
pub(crate) struct ModelEndpoint {
    /// Base URL of the API, without a trailing slash.
    pub(crate) base_url: String,
    /// API key, if the provider needs one.
    pub(crate) api_key: Option<SecretString>,
    pub(crate) model: String,
    /// True if the provider continues an assistant message that ends the prompt.
    pub(crate) continues_prefix: bool,
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
    /// Status 429, 408 or 5xx.
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
    /// Status 400 or 413 with a message about the context length.
    #[error("provider rejected the length of the prompt, status {status}")]
    TooLong {
        /// HTTP status of the response.
        status: u16,
    },
    /// A redirect, a page, another content type, or bytes that are no chunk.
    #[error("provider sent an invalid response")]
    NotAnAnswer,
    /// An error object inside the stream.
    #[error("provider reported an error inside its stream")]
    Reported,
    /// The stream ended without a finish reason.
    #[error("provider broke off")]
    BrokenOff,
    /// Nothing arrived in time.
    #[error("provider stayed silent")]
    Silent,
}
