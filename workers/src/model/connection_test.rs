//! Tests a provider as an agent would use it, and says in plain words what works.

use std::time::Duration;

use secrecy::SecretString;
use serde_json::json;
use switchboard_schemas::{
    conversation::FinishReason,
    provider::{
        Provider, ProviderApi, ProviderError, ProviderTestOutcome, ProviderTestReport,
        ProviderTestStep, ProviderTestStepName,
    },
    time::whole_millis,
};
use tokio::time::{Instant, timeout};

use super::{
    CallError, FailedCall, ModelEndpoint, ModelPrompt, PromptMessage, PromptRole,
    openai::ModelClient,
    prompt::{ToolDeclaration, ToolOffer},
    providers::configured_endpoint,
};
use crate::{config::WorkersConfig, outgoing::AddressReach};

/// Longest answer of a step, in tokens. Thoughts count too.
const ANSWER_TOKENS_MAX: u32 = 256;
/// Longest duration of listing the models.
const MODELS_TIMEOUT: Duration = Duration::from_secs(5);
/// Models that are named in the report.
const NAMED_MODELS_MAX: usize = 5;

type StepOutcome = Result<(ProviderTestOutcome, String), FailedCall>;

/// Tests providers through connections of its own.
#[derive(Clone)]
pub struct ProviderTester {
    client: ModelClient,
    first_token_timeout: Duration,
}

impl ProviderTester {
    /// Creates a tester with the bounds of the workers.
    ///
    /// # Errors
    /// Fails if no TLS provider is installed.
    pub fn new(config: &WorkersConfig) -> anyhow::Result<Self> {
        Ok(Self {
            client: ModelClient::new(config)?,
            first_token_timeout: Duration::from_millis(config.first_token_timeout_ms),
        })
    }

    /// Lists the models of a provider, sends a message and asks for the call of a tool.
    pub async fn test(
        &self,
        provider: &Provider,
        api_key: Option<SecretString>,
    ) -> ProviderTestReport {
        let client = self.client.forgetful();
        let endpoint = configured_endpoint(provider, api_key, None);
        let answer_timeout = endpoint
            .first_token_timeout
            .unwrap_or(self.first_token_timeout);
        let tested = |name, timeout| TestedStep {
            name,
            timeout,
            endpoint: &endpoint,
        };
        let models = tested(ProviderTestStepName::Models, MODELS_TIMEOUT)
            .run(list_models(&client, &endpoint))
            .await;
        let mut message = tested(ProviderTestStepName::Message, answer_timeout)
            .run(send_message(&client, &endpoint))
            .await;
        let works = message.outcome != ProviderTestOutcome::Failed;
        let is_not_found = |error: &ProviderError| matches!(error.status, Some(404 | 405));
        if message.provider_error.as_ref().is_some_and(is_not_found) {
            message.detail = words_for_404(&endpoint, &models);
        }
        let tool_call = if works {
            tested(ProviderTestStepName::ToolCall, answer_timeout)
                .run(call_tool(&client, &endpoint))
                .await
        } else {
            ProviderTestStep {
                name: ProviderTestStepName::ToolCall,
                outcome: ProviderTestOutcome::Skipped,
                detail: "Not tried, because the message failed.".to_owned(),
                took_ms: 0,
                provider_error: None,
            }
        };
        ProviderTestReport {
            works,
            steps: vec![models, message, tool_call],
            left_out: client.refused_names(&endpoint),
        }
    }
}

/// One step of a test.
struct TestedStep<'a> {
    name: ProviderTestStepName,
    timeout: Duration,
    endpoint: &'a ModelEndpoint,
}

impl TestedStep<'_> {
    async fn run(self, step: impl Future<Output = StepOutcome>) -> ProviderTestStep {
        let begun = Instant::now();
        let outcome = timeout(self.timeout, step).await;
        let outcome = outcome.unwrap_or_else(|_| Err(CallError::Silent.into()));
        let (outcome, detail, provider_error) = match outcome {
            Ok((outcome, detail)) => (outcome, detail, None),
            Err(failed) => (
                ProviderTestOutcome::Failed,
                self.words_for(&failed.error),
                failed.provider_error(),
            ),
        };
        ProviderTestStep {
            name: self.name,
            outcome,
            detail,
            took_ms: whole_millis(begun.elapsed()),
            provider_error,
        }
    }

    /// Returns a failure in words for people.
    fn words_for(&self, error: &CallError) -> String {
        match error {
            // One answer for both, so that nothing can be scanned.
            CallError::Unreachable { .. } | CallError::AddressRefused
                if self.endpoint.reach == AddressReach::Public =>
            {
                "The address cannot be reached, or is in a network that is not public.".to_owned()
            }
            CallError::Unreachable { cause } => format!("The address cannot be reached: {cause}."),
            CallError::AddressRefused => "The address is in a network that is not allowed.".to_owned(),
            CallError::InvalidEndpoint => "The base URL or the key is not valid.".to_owned(),
            CallError::Refused { status: 401 | 403 } if self.endpoint.api_key.is_none() => {
                "No key is stored, and the provider wants one.".to_owned()
            }
            CallError::Refused { status: 401 | 403 } => "The provider refused the key.".to_owned(),
            CallError::Refused { status: 402 } => "The provider asks for a payment.".to_owned(),
            CallError::Refused { status } => {
                format!("The provider refused the request, status {status}.")
            }
            CallError::TooLong { .. } => "The model's context is too small even for a test.".to_owned(),
            CallError::Overloaded { status: 429, .. } => {
                "The limit of requests or the quota is used up.".to_owned()
            }
            CallError::Overloaded { status, .. } => {
                format!("The provider is overloaded or failing, status {status}.")
            }
            CallError::NotAnAnswer => {
                "The address answers, but not in the OpenAI protocol. Compare it with docs/providers.md."
                    .to_owned()
            }
            CallError::Reported => "The provider reported an error.".to_owned(),
            CallError::BrokenOff => "The connection broke.".to_owned(),
            CallError::Silent => format!("Nothing came within {} s.", self.timeout.as_secs()),
        }
    }
}

async fn list_models(client: &ModelClient, endpoint: &ModelEndpoint) -> StepOutcome {
    let models = match client.list_models(endpoint).await {
        Err(FailedCall {
            error: CallError::Refused { status: 404 | 405 } | CallError::NotAnAnswer,
            ..
        }) => {
            let detail = "The endpoint does not list its models. It need not.";
            return Ok((ProviderTestOutcome::Skipped, detail.to_owned()));
        }
        listed => listed?,
    };
    let (count, model) = (models.len(), endpoint.model.as_str());
    // Gemini lists `models/…` and takes both forms.
    let is_listed = models
        .iter()
        .any(|id| id == model || id.strip_prefix("models/") == Some(model));
    if is_listed {
        let detail = format!("{model} is one of the {count} models of this endpoint.");
        return Ok((ProviderTestOutcome::Worked, detail));
    }
    let mut named = models[..count.min(NAMED_MODELS_MAX)].join(", ");
    if count > NAMED_MODELS_MAX {
        named.push_str(" …");
    }
    let detail = format!("{model} is not one of the {count} models of this endpoint: {named}");
    Ok((ProviderTestOutcome::Partly, detail))
}

async fn send_message(client: &ModelClient, endpoint: &ModelEndpoint) -> StepOutcome {
    let prompt = prompt("Answer with the word OK.", Vec::new());
    let answer = client.complete(endpoint, &prompt, ToolOffer::None).await?;
    let is_blank = answer.text.trim().is_empty();
    let (outcome, detail) = match answer.reason {
        _ if !is_blank => (ProviderTestOutcome::Worked, "The model answered a message."),
        FinishReason::Length => (
            ProviderTestOutcome::Partly,
            "The model used up its tokens before any text. A reasoning model needs a larger limit.",
        ),
        _ => (
            ProviderTestOutcome::Failed,
            "The model answered without any text.",
        ),
    };
    Ok((outcome, detail.to_owned()))
}

async fn call_tool(client: &ModelClient, endpoint: &ModelEndpoint) -> StepOutcome {
    let tool = ToolDeclaration {
        name: "search_products".to_owned(),
        description: "Finds products of the shop.".to_owned(),
        parameters: json!({
            "type": "object", "required": ["query"],
            "properties": {"query": {"type": "string", "description": "Words to look for."}}
        }),
    };
    let prompt = prompt(
        "Call the tool search_products with the query lamp.",
        vec![tool],
    );
    let answered = client
        .complete(endpoint, &prompt, ToolOffer::Callable)
        .await;
    let answer = match answered {
        Err(FailedCall {
            error:
                CallError::Refused { status: 400 | 422 }
                | CallError::Overloaded {
                    status: 500 | 501, ..
                },
            ..
        }) => {
            let detail = "The server refuses tools. Agents answer without products.";
            return Ok((ProviderTestOutcome::Partly, detail.to_owned()));
        }
        answered => answered?,
    };
    Ok(if answer.has_called {
        (
            ProviderTestOutcome::Worked,
            "The model called a tool, so that agents can show products.".to_owned(),
        )
    } else {
        (
            ProviderTestOutcome::Partly,
            "The model answered in words instead of calling a tool. Agents may not show products."
                .to_owned(),
        )
    })
}

fn prompt(message: &str, tools: Vec<ToolDeclaration>) -> ModelPrompt {
    ModelPrompt {
        messages: vec![
            PromptMessage::text(PromptRole::System, "This is a test of the connection."),
            PromptMessage::text(PromptRole::User, message),
        ],
        may_call: !tools.is_empty(),
        tools,
        max_tokens: ANSWER_TOKENS_MAX,
        ..ModelPrompt::default()
    }
}

/// Returns what is missing if a message is answered with "not found".
fn words_for_404(endpoint: &ModelEndpoint, models: &ProviderTestStep) -> String {
    match (endpoint.api, models.outcome) {
        (ProviderApi::Responses, ProviderTestOutcome::Worked) => {
            "The provider has no Responses API. Set the API to chat completions.".to_owned()
        }
        (_, ProviderTestOutcome::Partly) => {
            format!("The provider has no model {}.", endpoint.model)
        }
        _ => "The provider has no such model, or nothing at this address. Compare the base URL with docs/providers.md."
            .to_owned(),
    }
}
