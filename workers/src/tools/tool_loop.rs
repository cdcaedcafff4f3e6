//! Alternates between a model and its tools until the model has completed the reply.
//!
//! Tools run before the first text byte is displayed, except for calls that follow a long text.
//! Only the attempt that made the calls runs them: a reply that another worker continues offers no
//! tools. Rounds, calls, their duration and their sizes are bounded; exceeding a bound costs the
//! call and never the reply.

use std::time::Duration;

use futures::future::join_all;
use serde_json::Value;
use switchboard_schemas::{
    conversation::{FinishReason, TokenUsage},
    reply_event::{ReplyFailure, ToolProgress, ToolStatus},
};
use tokio::time::Instant;

use super::{
    ToolFailure, arguments,
    buffering_sink::{BufferLimits, BufferingSink, ReplySink},
    call_runner::{self, ToolCallLimits, ToolCallResult},
    displayed_results::DisplayedResults,
    registry::AgentToolbox,
};
use crate::{
    config::WorkersConfig,
    metrics::WorkerMetrics,
    model::{
        ModelEndpoint, ModelPrompt, PromptMessage,
        generation::{AnswerEnd, AnswerGeneration, FinalFailure, GenerationResult, TextSink},
        openai::ModelClient,
        prompt::{PromptToolCall, ProviderFields},
        tool_calls::{ID_BYTES_MAX, ToolCall},
    },
};

/// Replaces a name that no provider would accept back.
const ODD_NAME: &str = "unknown_tool";
const NAME_CHARS_MAX: usize = 64;

#[derive(Clone, Copy)]
pub(crate) struct ToolLoopContext<'a> {
    pub(crate) client: &'a ModelClient,
    /// Bounds of the loop.
    pub(crate) config: &'a WorkersConfig,
    /// Counters of tool calls.
    pub(crate) metrics: &'a WorkerMetrics,
    pub(crate) toolbox: &'a AgentToolbox,
}

/// One reply that is being produced.
pub(crate) struct ToolLoop<'a> {
    context: ToolLoopContext<'a>,
    endpoints: Vec<ModelEndpoint>,
    prompt: ModelPrompt,
    sink: BufferingSink<'a>,
    displayed: DisplayedResults,
    started: Instant,
    deadline: Instant,
    /// Time that tool calls took so far.
    tools_took: Duration,
    calls: u32,
    result_bytes: usize,
    usage: Option<TokenUsage>,
    first_text: Option<Duration>,
    retries: u32,
    unknown_finishes: u32,
    failed_call: Option<Box<FinalFailure>>,
}

impl<'a> ToolLoop<'a> {
    /// Creates the loop for `prompt`, whose tools are those of the toolbox; without tools it is one
    /// answer. If the sink already holds text, the endpoints must be able to continue it and there
    /// must be no tools.
    pub(crate) fn new(
        context: ToolLoopContext<'a>,
        endpoints: Vec<ModelEndpoint>,
        prompt: ModelPrompt,
        sink: &'a mut dyn ReplySink,
        deadline: Instant,
    ) -> Self {
        let started = Instant::now();
        let config = context.config;
        let limits = BufferLimits {
            bytes_max: config.tool_text_hold_bytes,
            time: Duration::from_millis(config.tool_text_hold_ms),
        };
        let sink = BufferingSink::new(sink, limits, !prompt.tools.is_empty());
        Self {
            context,
            endpoints,
            prompt,
            sink,
            displayed: DisplayedResults::default(),
            started,
            deadline: deadline.min(started + Duration::from_millis(config.reply_timeout_ms)),
            tools_took: Duration::ZERO,
            calls: 0,
            result_bytes: 0,
            usage: None,
            first_text: None,
            retries: 0,
            unknown_finishes: 0,
            failed_call: None,
        }
    }

    /// Runs to the end. Dropping the future stops all calls.
    pub(crate) async fn run(mut self) -> GenerationResult {
        let end = self.run_rounds().await;
        let Self {
            usage,
            first_text,
            retries,
            unknown_finishes,
            failed_call,
            ..
        } = self;
        GenerationResult {
            end,
            usage,
            first_text,
            took: self.started.elapsed(),
            retries,
            endpoint: 0,
            unknown_finishes,
            failed_call,
        }
    }

    async fn run_rounds(&mut self) -> Result<FinishReason, ReplyFailure> {
        let mut rounds = 0;
        loop {
            // A continued reply has no tools and is one answer.
            let from = if self.prompt.tools.is_empty() {
                0
            } else {
                self.sink.begin_answer()
            };
            self.prompt.may_call = rounds < self.context.config.tool_rounds_max;
            let (calls, extras) = match self.next_answer(from).await? {
                AnswerEnd::Text(reason) => return self.end_reply(reason),
                AnswerEnd::ToolCalls(calls, extras) => (calls, extras),
            };
            if !self.prompt.may_call {
                tracing::info!(rounds, "model called tools after the last round");
                self.context
                    .metrics
                    .tool_calls
                    .with_label_values(&["any", "too-many-rounds"])
                    .inc();
                return self.end_reply(FinishReason::Stop);
            }
            rounds += 1;
            self.run_calls(rounds, calls, extras).await;
        }
    }

    async fn next_answer(&mut self, from: usize) -> Result<AnswerEnd, ReplyFailure> {
        let before = self.started.elapsed();
        let ToolLoopContext { client, config, .. } = self.context;
        let (endpoints, prompt) = (self.endpoints.clone(), &self.prompt);
        let answer = AnswerGeneration::new(
            client,
            config,
            endpoints,
            prompt,
            &mut self.sink,
            from,
            self.deadline,
        )
        .run()
        .await;
        // The next answer is requested from the endpoint that gave this one.
        self.endpoints
            .drain(..answer.endpoint.min(self.endpoints.len().saturating_sub(1)));
        self.first_text = self
            .first_text
            .or(answer.first_text.map(|first| before + first));
        self.retries += answer.retries;
        self.usage = sum_usage(self.usage, answer.usage);
        self.unknown_finishes += answer.unknown_finishes;
        self.failed_call = answer.failed_call;
        answer.end
    }

    /// Ends the reply: displays the buffered text, or words for what is displayed if the model
    /// wrote nothing.
    fn end_reply(&mut self, reason: FinishReason) -> Result<FinishReason, ReplyFailure> {
        let model = self.model_name();
        // Filtered content is no answer, even with products beside it.
        if self.sink.is_silent()
            && reason != FinishReason::ContentFilter
            && let Some(list) = self.displayed.words()
        {
            tracing::info!("model wrote no text about what is displayed");
            self.sink.begin_answer();
            self.sink.push(&model, &list);
        }
        if self.sink.is_silent() {
            return Err(ReplyFailure::ModelError);
        }
        self.sink.release_buffer(&model);
        self.first_text
            .get_or_insert_with(|| self.started.elapsed());
        Ok(reason)
    }

    async fn run_calls(&mut self, round: u32, calls: Vec<ToolCall>, extras: ProviderFields) {
        let sent = sent_calls(round, &calls);
        self.prompt.messages.push(PromptMessage::assistant_calls(
            self.sink.answer_text(),
            sent.clone(),
            extras,
        ));
        let model = self.model_name();
        self.report_progress(&model, &calls, |_| ToolStatus::Started);
        let started = Instant::now();
        let results = self.run_concurrently(&calls).await;
        self.tools_took += started.elapsed();
        self.display_results(&model, &results);
        let status = |at: usize| {
            if results[at].succeeded {
                ToolStatus::Finished
            } else {
                ToolStatus::Failed
            }
        };
        self.report_progress(&model, &calls, status);
        for (call, result) in sent.iter().zip(results) {
            let text = self.bound_result(result.text);
            self.prompt
                .messages
                .push(PromptMessage::tool_result(&call.id, text));
        }
        self.displayed.update_note(&mut self.prompt.messages);
    }

    /// Runs the calls concurrently, as far as the bounds allow. Returns one result for each call.
    async fn run_concurrently(&mut self, calls: &[ToolCall]) -> Vec<ToolCallResult> {
        let ToolLoopContext {
            config,
            metrics,
            toolbox,
            ..
        } = self.context;
        let left = config
            .tool_calls_max
            .saturating_sub(self.calls)
            .min(config.tool_calls_per_round_max);
        let allowed = calls.len().min(left as usize);
        self.calls += u32::try_from(allowed).unwrap_or(u32::MAX);
        let limits = self.call_limits();
        let mut results = join_all(
            calls[..allowed]
                .iter()
                .map(|call| call_runner::run_call(toolbox, call, limits, metrics)),
        )
        .await;
        for _ in allowed..calls.len() {
            metrics
                .tool_calls
                .with_label_values(&["any", "too-many"])
                .inc();
            results.push(call_runner::failed_result(&ToolFailure::TooMany));
        }
        results
    }

    fn call_limits(&self) -> ToolCallLimits {
        let config = self.context.config;
        // Before the first byte a visitor waits without seeing anything.
        let waits = self.sink.text().is_empty();
        let total = if waits {
            config.tools_before_text_timeout_ms
        } else {
            config.tools_timeout_ms
        };
        let left = Duration::from_millis(total).saturating_sub(self.tools_took);
        ToolCallLimits {
            timeout: Duration::from_millis(config.tool_timeout_ms),
            deadline: (Instant::now() + left).min(self.deadline),
            result_bytes_max: config.tool_result_bytes_max,
        }
    }

    fn display_results(&mut self, model: &str, results: &[ToolCallResult]) {
        let found: Vec<Value> = results
            .iter()
            .filter_map(|result| result.ui.clone())
            .collect();
        if let Some(ui) = self.displayed.replace_ui(&found) {
            self.sink.inner_sink().show_ui(model, ui.clone());
            self.sink.stop_buffering();
        }
    }

    /// Reports progress of known tools; an unknown name is a model's own text and no event.
    fn report_progress(
        &mut self,
        model: &str,
        calls: &[ToolCall],
        status: impl Fn(usize) -> ToolStatus,
    ) {
        for (at, call) in calls
            .iter()
            .enumerate()
            .filter(|(_, call)| self.context.toolbox.find_tool(&call.name).is_some())
        {
            self.sink.inner_sink().report_tool(
                model,
                ToolProgress {
                    name: call.name.clone(),
                    status: status(at),
                },
            );
        }
    }

    /// Bounds the results of one reply together, because each is sent again with every round.
    fn bound_result(&mut self, text: String) -> String {
        if self.result_bytes + text.len() > self.context.config.tool_results_bytes_max {
            return call_runner::failed_result(&ToolFailure::TooMany).text;
        }
        self.result_bytes += text.len();
        text
    }

    fn model_name(&self) -> String {
        self.endpoints
            .first()
            .map(|endpoint| endpoint.model.clone())
            .unwrap_or_default()
    }
}

/// Returns the calls as they are sent back to the model: with unique ids, valid names and JSON
/// arguments, because servers parse all of it again.
fn sent_calls(round: u32, calls: &[ToolCall]) -> Vec<PromptToolCall> {
    let sent = |(at, call): (usize, &ToolCall)| {
        let alone = calls.iter().filter(|other| other.id == call.id).count() == 1;
        // Nine letters and digits, because Mistral takes nothing else.
        let id = if alone && is_sendable_id(&call.id) {
            call.id.clone()
        } else {
            format!("call{round:02}{at:03}")
        };
        let name = if is_plain(&call.name) {
            call.name.clone()
        } else {
            ODD_NAME.to_owned()
        };
        let read = call
            .arguments
            .as_ref()
            .ok()
            .and_then(|text| arguments::parse_object(text));
        PromptToolCall {
            id,
            name,
            arguments: Value::from(read.unwrap_or_default()).to_string(),
            extras: call.extras.clone(),
            function_extras: call.function_extras.clone(),
        }
    };
    calls.iter().enumerate().map(sent).collect()
}

fn is_sendable_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= ID_BYTES_MAX && id.bytes().all(|byte| byte.is_ascii_graphic())
}

fn is_plain(name: &str) -> bool {
    let plain = |character: char| character.is_ascii_alphanumeric() || "_-".contains(character);
    !name.is_empty() && name.len() <= NAME_CHARS_MAX && name.chars().all(plain)
}

/// Sums the usage of two answers of one reply. One unknown makes the sum unknown, because a partial
/// sum would pass for the whole.
fn sum_usage(before: Option<TokenUsage>, answer: Option<TokenUsage>) -> Option<TokenUsage> {
    let (before, answer) = (before.unwrap_or_default(), answer?);
    Some(TokenUsage {
        prompt_tokens: before.prompt_tokens + answer.prompt_tokens,
        completion_tokens: before.completion_tokens + answer.completion_tokens,
        estimated: before.estimated || answer.estimated,
    })
}
