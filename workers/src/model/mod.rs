//! The boundary to model providers: one protocol, OpenAI's chat completions, for every provider and the demo model.
//!
//! Reading order: [`generation`] makes one reply out of as many calls as [`policy`] allows; [`openai`] makes one call to
//! what [`providers`] finds; [`chunk`], [`assembler`] and [`tool_calls`] read what comes back, whatever it is.

pub(crate) mod assembler;
pub(crate) mod chunk;
pub(crate) mod contexts;
pub(crate) mod generation;
pub(crate) mod openai;
pub(crate) mod policy;
pub(crate) mod prompt;
pub(crate) mod providers;
mod refusal;
#[cfg(test)]
mod tests;
pub(crate) mod tool_calls;

use std::time::Duration;

use secrecy::SecretString;

pub(crate) use prompt::{Prompt, PromptMessage, Role};

/// Where a model is called.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    /// Base of the API, without a slash at its end.
    pub(crate) base_url: String,
    /// Key, if it wants one.
    pub(crate) api_key: Option<SecretString>,
    /// Model.
    pub(crate) model: String,
    /// Whether it goes on with an assistant message that ends the prompt.
    pub(crate) continues_prefix: bool,
}

impl Endpoint {
    /// Its host, for logs; an address as a whole could hold a password.
    pub(crate) fn host(&self) -> String {
        let url = reqwest::Url::parse(&self.base_url).ok();
        url.as_ref()
            .and_then(reqwest::Url::host_str)
            .unwrap_or_default()
            .to_owned()
    }
}

/// What went wrong with one call. No variant holds what the provider wrote.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// No connection.
    #[error("provider cannot be reached: {cause}")]
    Unreachable {
        /// What the operating system or TLS says of it.
        cause: String,
    },
    /// 429, 408 or 5xx.
    #[error("provider is overloaded or failing, status {status}")]
    Overloaded {
        /// HTTP status.
        status: u16,
        /// When it wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// Any other 4xx.
    #[error("provider refused, status {status}")]
    Refused {
        /// HTTP status.
        status: u16,
    },
    /// 400 or 413, with the word that the prompt is longer than the model's context.
    #[error("provider refused a prompt of this length, status {status}")]
    TooLong {
        /// HTTP status.
        status: u16,
    },
    /// A redirect, a page, another type, or bytes that are no chunk.
    #[error("provider sent what is no answer")]
    NotAnAnswer,
    /// An error object inside the stream.
    #[error("provider reported an error inside its stream")]
    Reported,
    /// The stream ended without saying that it is complete.
    #[error("provider broke off")]
    BrokenOff,
    /// Nothing came in time.
    #[error("provider stayed silent")]
    Silent,
}
