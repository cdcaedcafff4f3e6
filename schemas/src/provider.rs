//! Model providers: OpenAI-compatible endpoints that an organization configures.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::{OrgId, ProviderId};

/// A model provider without its API key, which the catalog returns separately and only to workers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Provider {
    /// Id of the provider, derived from the slug.
    pub id: ProviderId,
    /// Organization that owns the provider.
    pub org_id: OrgId,
    /// Name of the provider in documents and commands.
    pub slug: String,
    /// Base URL of the OpenAI-compatible API, for instance `https://api.example/v1`.
    pub base_url: String,
    /// Dialect in which the endpoint is called.
    #[serde(default)]
    pub api: ProviderApi,
    /// Model for agents that name none.
    pub model: String,
    /// Model for embeddings, if the provider has one.
    pub embedding_model: Option<String>,
    /// `true` if the endpoint continues an unfinished assistant message at the end of the prompt,
    /// so that a reply whose worker died continues where it stopped.
    #[serde(default)]
    pub continues_prefix: bool,
    /// `true` if the models see pictures.
    #[serde(default)]
    pub vision: bool,
    /// Longest silence before the first token, in milliseconds; that of the installation if absent.
    #[serde(default)]
    pub first_token_timeout_ms: Option<u32>,
    /// `true` if the operator of the installation chose the base URL, which then may lead to a
    /// private network.
    #[serde(default)]
    pub chosen_by_operator: bool,
}

/// A dialect of the OpenAI protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderApi {
    /// `/chat/completions`, which nearly all providers speak.
    #[default]
    ChatCompletions,
    /// `/responses`, in which newer models of OpenAI use tools together with reasoning.
    Responses,
}

/// Returns true if a key can be sent: it is one word of printable ASCII characters. White space
/// around it is left out.
#[must_use]
pub fn is_sendable_key(key: &str) -> bool {
    key.trim().chars().all(|letter| letter.is_ascii_graphic())
}

impl Provider {
    /// Returns the longest silence before the first token, if the provider has its own.
    #[must_use]
    pub fn first_token_timeout(&self) -> Option<Duration> {
        self.first_token_timeout_ms
            .map(|millis| Duration::from_millis(u64::from(millis)))
    }
}

/// An error response of a model provider. Its message can quote the prompt, so that only members of
/// the organization may see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderError {
    /// HTTP status of the response; `null` for an error inside a stream.
    #[schema(required)]
    pub status: Option<u16>,
    /// The provider's own words, without its key.
    #[schema(required)]
    pub message: Option<String>,
    /// The pause that the provider asks for, in milliseconds.
    #[schema(required)]
    pub retry_after_ms: Option<u64>,
}

/// Result of a test of a provider, step by step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderTestReport {
    /// `true` if agents with this provider can answer.
    pub works: bool,
    /// The steps in their order.
    pub steps: Vec<ProviderTestStep>,
    /// The parts of a request that the model refused: they are left out, or sent in another form.
    pub left_out: Vec<String>,
}

/// A step of a provider's test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderTestStep {
    /// The name of the step.
    pub name: ProviderTestStepName,
    /// The outcome of the step.
    pub outcome: ProviderTestOutcome,
    /// The outcome in words.
    pub detail: String,
    /// The duration of the step, in milliseconds.
    pub took_ms: u64,
    /// The provider's own error.
    #[schema(required)]
    pub provider_error: Option<ProviderError>,
}

/// The name of a step of a provider's test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderTestStepName {
    /// Lists the models, where the endpoint can.
    Models,
    /// Sends a message.
    Message,
    /// Asks for the call of a tool.
    ToolCall,
}

/// The outcome of a step of a provider's test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProviderTestOutcome {
    /// All is well.
    Worked,
    /// Agents can answer, but something is missing.
    Partly,
    /// The step failed.
    Failed,
    /// The step was left out, because an earlier one failed.
    Skipped,
}
