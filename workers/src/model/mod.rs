//! The boundary to model providers: one protocol, OpenAI's chat completions, for every provider and the demo model.
//!
//! Reading order: [`generation`] makes one reply out of as many calls as [`policy`] allows; [`openai`] makes one call to what [`providers`] finds;
//! [`chunk`] and [`assembler`] read what comes back, whatever it is.

pub(crate) mod assembler;
pub(crate) mod chunk;
pub(crate) mod generation;
pub(crate) mod openai;
pub(crate) mod policy;
pub(crate) mod providers;
#[cfg(test)]
mod tests;

use std::time::Duration;

use secrecy::SecretString;
use serde::Serialize;

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

/// What a model is asked.
#[derive(Clone, Debug)]
pub(crate) struct Prompt {
    /// System instructions, history, message.
    pub(crate) messages: Vec<PromptMessage>,
    /// Sampling temperature; the provider's own when absent.
    pub(crate) temperature: Option<f32>,
    /// Longest answer.
    pub(crate) max_tokens: u32,
}

/// One message of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct PromptMessage {
    /// Who speaks.
    pub(crate) role: Role,
    /// Text.
    pub(crate) content: String,
}

/// Who speaks in a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// The organization's instructions.
    System,
    /// The visitor.
    User,
    /// The agent.
    Assistant,
}

/// What went wrong with one call. No variant holds what the provider wrote.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// No connection.
    #[error("provider cannot be reached")]
    Unreachable,
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
