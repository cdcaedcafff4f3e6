//! Generates a reply: loads the agent, builds the prompt and calls the model.
//!
//! Context sizes differ, and only the provider knows its own. If a model refuses a prompt for its
//! length before any text was displayed, it is called again with a shorter one.

use std::{sync::Arc, time::Duration};

use switchboard_backends::StoreError;
use switchboard_schemas::{
    agent::{ActivationStatus, Agent},
    conversation::{ConversationSummary, FinishReason, Message},
    conversation_job::ReplyJob,
    reply_event::{ReplyFailure, ReplyHead},
    time::{Timestamp, whole_millis},
};
use tokio::time::Instant;

use super::{
    InferenceHandler,
    attachments::FileAudience,
    history::ConversationHistory,
    prompt_builder::{self, PromptFacts, PromptSources, RenderedPrompt},
    prompt_files::PromptFiles,
    reply_outcome::ReplyOutcome,
    reply_writer::ReplyWriter,
};
use crate::{
    model::{CallError, ModelEndpoint, ModelPrompt, generation::GenerationResult},
    retry::{self, RetryDelays},
    tools::{
        registry::AgentToolbox,
        tool_loop::{ToolLoop, ToolLoopContext},
    },
};

/// Most prompts for one reply after the first, each with half the tokens; the last one contains
/// nothing of the past.
const SHORTER_PROMPTS_MAX: u32 = 3;

/// Longest time for which a reply waits for its files.
const FILES_WAIT_MAX: Duration = Duration::from_secs(45);

/// A reply whose text is in the writer.
pub(super) struct GeneratedReply {
    pub(super) outcome: ReplyOutcome,
    /// Facts about the last prompt, if the model was called.
    pub(super) prompt: PromptFacts,
    /// Milliseconds from acceptance to the first model call of this attempt.
    pub(super) asked_ms: Option<u64>,
}

impl From<ReplyOutcome> for GeneratedReply {
    fn from(outcome: ReplyOutcome) -> Self {
        Self {
            outcome,
            prompt: PromptFacts::default(),
            asked_ms: None,
        }
    }
}

pub(super) struct ReplyGenerator<'a> {
    inference: &'a InferenceHandler,
    job: &'a ReplyJob,
    writer: &'a ReplyWriter,
    /// Latest end of the generation.
    deadline: Instant,
    /// Agent to use instead of the one in the catalog.
    draft: Option<Arc<Agent>>,
}

/// Everything that one reply is generated from.
struct ReplyInput<'a> {
    agent: Arc<Agent>,
    toolbox: AgentToolbox,
    files: PromptFiles,
    history: &'a ConversationHistory,
    /// Displayed text of an earlier attempt, which the model continues.
    displayed: String,
}

/// The last prompt of a reply with its result.
struct PromptAttempt {
    /// `None` if the reply was cancelled during the call.
    generated: Option<GenerationResult>,
    rendered: RenderedPrompt,
    facts: PromptFacts,
    /// Milliseconds from acceptance to the call.
    started_ms: u64,
}

impl<'a> ReplyGenerator<'a> {
    pub(super) const fn new(
        inference: &'a InferenceHandler,
        job: &'a ReplyJob,
        writer: &'a ReplyWriter,
        deadline: Instant,
    ) -> Self {
        Self {
            inference,
            job,
            writer,
            deadline,
            draft: None,
        }
    }

    /// Uses an agent that is not saved instead of the one in the catalog.
    pub(super) fn with_draft(mut self, draft: Arc<Agent>) -> Self {
        self.draft = Some(draft);
        self
    }

    /// Generates the reply into the writer, continuing text that was displayed before.
    pub(super) async fn generate_reply(&self, history: &ConversationHistory) -> GeneratedReply {
        let displayed = self.writer.whole_text();
        if let Some(outcome) = self.outcome_without_call(&displayed) {
            return outcome.into();
        }
        let (agent, endpoints) = match self.load_agent().await {
            Ok(loaded) => loaded,
            Err(failure) => return ReplyOutcome::failed(failure).into(),
        };
        // Continued text needs no tools: their results were found before it.
        let toolbox = if displayed.is_empty() {
            let conversation = &self.job.turn.conversation_id;
            self.inference.tools.toolbox_for(&agent, conversation).await
        } else {
            AgentToolbox::default()
        };
        let Some(files) = self.read_files(&agent, &endpoints, history).await else {
            return ReplyOutcome::cancelled().into();
        };
        let asked_ms = Some(self.ms_since_acceptance());
        let input = ReplyInput {
            agent,
            toolbox,
            files,
            history,
            displayed,
        };
        let attempt = self
            .call_with_fitting_prompt(&input, endpoints.clone())
            .await;
        let prompt = &attempt.rendered.prompt;
        let outcome = match &attempt.generated {
            None => self.with_estimated_usage(ReplyOutcome::cancelled(), prompt),
            Some(generated) => {
                self.observe_generation(generated);
                // A playground run has no next message that could use a summary.
                if self.draft.is_none() {
                    self.inference.summaries.start_if_due(
                        &self.job.turn.conversation_id,
                        &history.messages,
                        attempt.rendered.window_tokens,
                        endpoints,
                    );
                }
                let outcome = ReplyOutcome {
                    end: generated.end,
                    usage: generated.usage.unwrap_or_default(),
                    first_text_ms: generated
                        .first_text
                        .map(|first| attempt.started_ms + whole_millis(first)),
                    provider_error: generated
                        .failed_call
                        .as_ref()
                        .and_then(|failed| failed.call.provider_error()),
                };
                if generated.usage.is_some() {
                    outcome
                } else {
                    self.with_estimated_usage(outcome, prompt)
                }
            }
        };
        GeneratedReply {
            outcome,
            prompt: attempt.facts,
            asked_ms,
        }
    }

    /// Returns the outcome if the model must not be called at all.
    fn outcome_without_call(&self, displayed: &str) -> Option<ReplyOutcome> {
        let config = &self.inference.config;
        if self.writer.cancelled().is_cancelled() {
            return Some(ReplyOutcome::cancelled());
        }
        (displayed.len() >= config.reply_bytes_max).then(|| ReplyOutcome {
            end: Ok(FinishReason::Length),
            ..ReplyOutcome::cancelled()
        })
    }

    /// Returns the agent and the endpoints that may answer for it.
    async fn load_agent(&self) -> Result<(Arc<Agent>, Vec<ModelEndpoint>), ReplyFailure> {
        let delays = RetryDelays::of_store(&self.inference.config);
        let loaded = retry::retry_until(self.deadline, delays, "read the agent", || async {
            let agent = match &self.draft {
                Some(draft) => Some(Arc::clone(draft)),
                None => self.inference.catalog.agent(&self.job.agent_id).await?,
            };
            let Some(agent) = agent else { return Ok(None) };
            let endpoints = self.inference.providers.endpoints_of(&agent).await?;
            Ok::<_, StoreError>(Some((agent, endpoints)))
        });
        let is_available = |agent: &Agent| {
            self.draft.is_some() || agent.settings.status == ActivationStatus::Active
        };
        loaded
            .await
            .ok_or(ReplyFailure::Internal)?
            .filter(|(agent, _)| agent.org_id == self.job.turn.org_id && is_available(agent))
            .ok_or(ReplyFailure::AgentUnavailable)
    }

    /// Reads the files of the conversation; `None` if the reply was cancelled meanwhile. The model
    /// is told of files that cannot be read in time.
    async fn read_files(
        &self,
        agent: &Agent,
        endpoints: &[ModelEndpoint],
        history: &ConversationHistory,
    ) -> Option<PromptFiles> {
        let has_files = |message: &Message| !message.attachments.is_empty();
        if self.job.turn.attachments.is_empty() && !history.messages.iter().any(has_files) {
            return Some(PromptFiles::default());
        }
        let audience = FileAudience {
            job: self.job,
            agent,
            sees_pictures: endpoints.iter().any(|endpoint| endpoint.vision),
            is_playground: self.draft.is_some(),
        };
        let delays = RetryDelays::of_store(&self.inference.config);
        let attachments = &self.inference.attachments;
        let deadline = self.deadline.min(Instant::now() + FILES_WAIT_MAX);
        tokio::select! {
            biased;
            () = self.writer.cancelled().cancelled() => None,
            files = attachments.read_files(&audience, &history.messages, deadline, delays) => Some(files),
        }
    }

    /// Calls the model, with shorter and shorter prompts while it refuses their length.
    async fn call_with_fitting_prompt(
        &self,
        input: &ReplyInput<'_>,
        mut endpoints: Vec<ModelEndpoint>,
    ) -> PromptAttempt {
        let limits = &self.inference.contexts;
        let mut tokens_max =
            limits.prompt_limit(endpoints.first(), self.inference.config.prompt_tokens_max);
        let (mut shortened, mut retries) = (0, 0);
        loop {
            let mut attempt = if shortened < SHORTER_PROMPTS_MAX {
                self.call_once(input, &endpoints, Some(tokens_max)).await
            } else {
                self.call_once(input, &endpoints, None).await
            };
            let can_shorten = shortened < SHORTER_PROMPTS_MAX
                && (contains_past(&attempt.rendered.prompt) || input.files.has_text())
                && self.writer.whole_text().len() == input.displayed.len();
            let refused_by = attempt
                .generated
                .as_ref()
                .and_then(|generated| generated.failed_call.as_deref())
                .filter(|failed| matches!(failed.call.error, CallError::TooLong { .. }))
                .filter(|_| can_shorten)
                .map(|failed| failed.endpoint.clone());
            if let Some(endpoint) = refused_by {
                retries += 1 + attempt.generated.map_or(0, |generated| generated.retries);
                shortened += 1;
                // Endpoints before the one that refused did not answer.
                let is_same = |other: &ModelEndpoint| {
                    other.base_url == endpoint.base_url && other.model == endpoint.model
                };
                endpoints.drain(..endpoints.iter().position(is_same).unwrap_or_default());
                let refused = prompt_builder::prompt_cost(&attempt.rendered.prompt);
                tokens_max = limits.prompt_limit(Some(&endpoint), tokens_max.min(refused) / 2);
                tracing::info!(
                    provider.host = endpoint.host(),
                    endpoint.model,
                    tokens_max,
                    "shortened the prompt"
                );
                continue;
            }
            self.count_truncation(&attempt.rendered);
            if let Some(generated) = &mut attempt.generated {
                generated.retries += retries;
                if let Some(endpoint) = endpoints.first()
                    && shortened > 0
                    && generated.end.is_ok()
                {
                    limits.record_limit(endpoint, tokens_max);
                }
            }
            return attempt;
        }
    }

    /// Calls the model with one prompt. Without `tokens_max` the prompt contains nothing of the
    /// past, not even a summary.
    async fn call_once(
        &self,
        input: &ReplyInput<'_>,
        endpoints: &[ModelEndpoint],
        tokens_max: Option<usize>,
    ) -> PromptAttempt {
        let (rendered, facts) = self.render_prompt(input, tokens_max);
        let started_ms = self.ms_since_acceptance();
        let generated = tokio::select! {
            biased;
            // Dropping the call closes the connection to the provider.
            () = self.writer.cancelled().cancelled() => None,
            generated = self.run_tool_loop(input, endpoints.to_vec(), rendered.prompt.clone()) => Some(generated),
        };
        PromptAttempt {
            generated,
            rendered,
            facts,
            started_ms,
        }
    }

    fn render_prompt(
        &self,
        input: &ReplyInput<'_>,
        tokens_max: Option<usize>,
    ) -> (RenderedPrompt, PromptFacts) {
        let head = self.writer.head().filter(|_| !input.displayed.is_empty());
        let past = &input.history.messages;
        let summary: Option<(ConversationSummary, bool)> = tokens_max.and_then(|_| {
            let id = &self.job.turn.conversation_id;
            self.inference.summaries.latest_summary(id, past)
        });
        let rendered = prompt_builder::build_prompt(PromptSources {
            settings: &input.agent.settings,
            past,
            summary: summary.as_ref().map(|(summary, _)| summary),
            content: &self.job.turn.content,
            files: &input.files,
            tools: input.toolbox.declarations(),
            current_grid: head.as_ref().and_then(|head| head.ui_spec.as_ref()),
            tokens_max: tokens_max.unwrap_or_default(),
        });
        let facts = PromptFacts {
            truncation: rendered.truncation,
            summary: summary
                .and_then(|(summary, is_stored_next)| is_stored_next.then_some(summary)),
        };
        (rendered, facts)
    }

    async fn run_tool_loop(
        &self,
        input: &ReplyInput<'_>,
        mut endpoints: Vec<ModelEndpoint>,
        prompt: ModelPrompt,
    ) -> GenerationResult {
        if !input.displayed.is_empty() {
            endpoints.retain(|endpoint| endpoint.continues_prefix);
            if endpoints.is_empty() {
                // Displayed text is never started over, and no endpoint can continue it.
                return GenerationResult::failed(ReplyFailure::Internal);
            }
        }
        let head = ReplyHead {
            conversation_id: self.job.turn.conversation_id.clone(),
            agent_id: input.agent.id.clone(),
            agent_name: input.agent.name.clone(),
            routing_reason: self.job.routed.as_ref().map(|routed| routed.reason.clone()),
            model: String::new(),
            ui_spec: None,
        };
        let mut sink = self.writer.open_sink(head);
        let context = ToolLoopContext {
            client: &self.inference.model,
            config: &self.inference.config,
            metrics: &self.inference.metrics,
            toolbox: &input.toolbox,
        };
        ToolLoop::new(context, endpoints, prompt, &mut sink, self.deadline)
            .run()
            .await
    }

    fn with_estimated_usage(&self, outcome: ReplyOutcome, prompt: &ModelPrompt) -> ReplyOutcome {
        let text = self.writer.whole_text();
        if text.is_empty() {
            return outcome;
        }
        ReplyOutcome {
            usage: prompt_builder::estimate_usage(prompt, &text),
            ..outcome
        }
    }

    fn count_truncation(&self, rendered: &RenderedPrompt) {
        let Some(truncation) = rendered.truncation else {
            return;
        };
        let (messages, summarized) = (truncation.messages, truncation.summarized);
        tracing::debug!(
            messages,
            summarized,
            summary = rendered.has_summary,
            "truncated the conversation in the prompt"
        );
        let counters = &self.inference.metrics.left_out;
        counters.with_label_values(&["true"]).inc_by(summarized);
        counters
            .with_label_values(&["false"])
            .inc_by(messages - summarized);
    }

    fn observe_generation(&self, generated: &GenerationResult) {
        let metrics = &self.inference.metrics;
        if let Some(first) = generated.first_text {
            metrics.first_token.observe(first.as_secs_f64());
        }
        metrics.model_call.observe(generated.took.as_secs_f64());
        metrics
            .retries
            .with_label_values(&["model"])
            .inc_by(u64::from(generated.retries));
        metrics
            .unknown_finishes
            .with_label_values::<&str>(&[])
            .inc_by(u64::from(generated.unknown_finishes));
    }

    fn ms_since_acceptance(&self) -> u64 {
        Timestamp::now().millis_since(self.job.turn.accepted_at)
    }
}

/// Returns true if the prompt contains more than instructions and the new message.
const fn contains_past(prompt: &ModelPrompt) -> bool {
    prompt.messages.len() > 2
}
