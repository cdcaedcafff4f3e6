//! Lets a model and its tools take turns until the model has said its reply.
//!
//! Tools run before the first text byte is shown, but for calls that follow a long text. Only the attempt that made the
//! calls runs them: a reply that another worker goes on with, after text, offers no tools. The rounds, the calls, their
//! time and their sizes are bounded, and what exceeds a bound costs the call and never the reply.

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
    call::{self, CallLimits, CallResult},
    holding_sink::{HoldLimits, HoldingSink, ReplySink},
    registry::Toolbox,
    shown::Shown,
};
use crate::{
    config::WorkersConfig,
    metrics::WorkerMetrics,
    model::{
        Endpoint, Prompt, PromptMessage,
        generation::{AnswerEnd, Generated, Generation, TextSink},
        openai::ModelClient,
        prompt::SentCall,
        tool_calls::ToolCall,
    },
};

/// Stands for a name that no provider would take back.
const ODD_NAME: &str = "unknown_tool";
const NAME_CHARS_MAX: usize = 64;

/// What a reply is made with.
#[derive(Clone, Copy)]
pub(crate) struct Means<'a> {
    /// Calls models.
    pub(crate) client: &'a ModelClient,
    /// Bounds.
    pub(crate) config: &'a WorkersConfig,
    /// What is counted.
    pub(crate) metrics: &'a WorkerMetrics,
    /// The agent's tools.
    pub(crate) toolbox: &'a Toolbox,
}

/// One reply in the making.
pub(crate) struct Rounds<'a> {
    means: Means<'a>,
    endpoints: Vec<Endpoint>,
    prompt: Prompt,
    sink: HoldingSink<'a>,
    shown: Shown,
    begun: Instant,
    deadline: Instant,
    /// Time that tools took so far.
    tools_took: Duration,
    calls: u32,
    result_bytes: usize,
    usage: Option<TokenUsage>,
    first_text: Option<Duration>,
    retries: u32,
    too_long: Option<Endpoint>,
}

impl<'a> Rounds<'a> {
    /// Makes the reply to `prompt`, whose tools are those of the toolbox; without tools it is one answer. When the sink
    /// holds text already, the endpoints must be able to go on with it, and there are no tools.
    pub(crate) fn new(
        means: Means<'a>,
        endpoints: Vec<Endpoint>,
        prompt: Prompt,
        sink: &'a mut dyn ReplySink,
        deadline: Instant,
    ) -> Self {
        let begun = Instant::now();
        let config = means.config;
        let limits = HoldLimits {
            bytes_max: config.tool_text_hold_bytes,
            time: Duration::from_millis(config.tool_text_hold_ms),
        };
        let sink = HoldingSink::new(sink, limits, !prompt.tools.is_empty());
        Self {
            means,
            endpoints,
            prompt,
            sink,
            shown: Shown::default(),
            begun,
            deadline: deadline.min(begun + Duration::from_millis(config.reply_timeout_ms)),
            tools_took: Duration::ZERO,
            calls: 0,
            result_bytes: 0,
            usage: None,
            first_text: None,
            retries: 0,
            too_long: None,
        }
    }

    /// Runs to the end. Dropping it ends whatever runs.
    pub(crate) async fn run(mut self) -> Generated {
        let end = self.take_turns().await;
        let Self {
            usage,
            first_text,
            retries,
            too_long,
            ..
        } = self;
        Generated {
            end,
            usage,
            first_text,
            took: self.begun.elapsed(),
            retries,
            endpoint: 0,
            too_long,
        }
    }

    async fn take_turns(&mut self) -> Result<FinishReason, ReplyFailure> {
        let mut rounds = 0;
        loop {
            // A reply that goes on with logged text has no tools, and is all one answer.
            let from = if self.prompt.tools.is_empty() {
                0
            } else {
                self.sink.begin_answer()
            };
            self.prompt.may_call = rounds < self.means.config.tool_rounds_max;
            let calls = match self.answer(from).await? {
                AnswerEnd::Said(reason) => return self.said(reason),
                AnswerEnd::Called(calls) => calls,
            };
            if !self.prompt.may_call {
                tracing::info!(rounds, "a model called tools when it was to answer");
                self.means
                    .metrics
                    .tool_calls
                    .with_label_values(&["any", "too-many-rounds"])
                    .inc();
                return self.said(FinishReason::Stop);
            }
            rounds += 1;
            self.run_calls(rounds, calls).await;
        }
    }

    async fn answer(&mut self, from: usize) -> Result<AnswerEnd, ReplyFailure> {
        let before = self.begun.elapsed();
        let Means { client, config, .. } = self.means;
        let (endpoints, prompt) = (self.endpoints.clone(), &self.prompt);
        let answer = Generation::new(
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
        // The next answer is asked of whoever gave this one.
        self.endpoints
            .drain(..answer.endpoint.min(self.endpoints.len().saturating_sub(1)));
        self.first_text = self
            .first_text
            .or(answer.first_text.map(|first| before + first));
        self.retries += answer.retries;
        self.usage = sum(self.usage, answer.usage);
        self.too_long = answer.too_long;
        answer.end
    }

    /// The model has spoken: what is held is shown.
    fn said(&mut self, reason: FinishReason) -> Result<FinishReason, ReplyFailure> {
        let model = self.model();
        // What a filter withheld is no answer, whatever stands beside it.
        if self.sink.is_silent()
            && reason != FinishReason::ContentFilter
            && let Some(list) = self.shown.list()
        {
            tracing::info!("a model found products and said nothing of them");
            self.sink.begin_answer();
            self.sink.push(&model, &list);
        }
        if self.sink.is_silent() {
            return Err(ReplyFailure::ModelError);
        }
        self.sink.release(&model);
        self.first_text.get_or_insert_with(|| self.begun.elapsed());
        Ok(reason)
    }

    async fn run_calls(&mut self, round: u32, calls: Vec<ToolCall>) {
        let sent = sent_calls(round, &calls);
        self.prompt
            .messages
            .push(PromptMessage::calling(self.sink.answer(), sent.clone()));
        let model = self.model();
        self.tell(&model, &calls, |_| ToolStatus::Started);
        let begun = Instant::now();
        let results = self.results(&calls).await;
        self.tools_took += begun.elapsed();
        self.show(&model, &results);
        let status = |at: usize| {
            if results[at].succeeded {
                ToolStatus::Finished
            } else {
                ToolStatus::Failed
            }
        };
        self.tell(&model, &calls, status);
        for (call, result) in sent.iter().zip(results) {
            let text = self.within_the_reply(result.text);
            self.prompt
                .messages
                .push(PromptMessage::result(&call.id, text));
        }
        self.shown.note(&mut self.prompt.messages);
    }

    /// Runs them side by side, as far as the bounds allow; gives one result for each.
    async fn results(&mut self, calls: &[ToolCall]) -> Vec<CallResult> {
        let Means {
            config,
            metrics,
            toolbox,
            ..
        } = self.means;
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
                .map(|call| call::run(toolbox, call, limits, metrics)),
        )
        .await;
        for _ in allowed..calls.len() {
            metrics
                .tool_calls
                .with_label_values(&["any", "too-many"])
                .inc();
            results.push(call::failed(&ToolFailure::TooMany));
        }
        results
    }

    fn call_limits(&self) -> CallLimits {
        let config = self.means.config;
        // Before the first byte a visitor waits and sees nothing.
        let waits = self.sink.text().is_empty();
        let total = if waits {
            config.tools_before_text_timeout_ms
        } else {
            config.tools_timeout_ms
        };
        let left = Duration::from_millis(total).saturating_sub(self.tools_took);
        CallLimits {
            timeout: Duration::from_millis(config.tool_timeout_ms),
            deadline: (Instant::now() + left).min(self.deadline),
            result_bytes_max: config.tool_result_bytes_max,
        }
    }

    fn show(&mut self, model: &str, results: &[CallResult]) {
        let found: Vec<Value> = results
            .iter()
            .filter_map(|result| result.ui.clone())
            .collect();
        if let Some(ui) = self.shown.replace(&found) {
            self.sink.inner().show(model, ui.clone());
            self.sink.hold_no_longer();
        }
    }

    /// A name that is no tool's is a model's own words, and no event's.
    fn tell(&mut self, model: &str, calls: &[ToolCall], status: impl Fn(usize) -> ToolStatus) {
        for (at, call) in calls
            .iter()
            .enumerate()
            .filter(|(_, call)| self.means.toolbox.get(&call.name).is_some())
        {
            self.sink.inner().tool(
                model,
                ToolProgress {
                    name: call.name.clone(),
                    status: status(at),
                },
            );
        }
    }

    /// Results of one reply have a bound together, because each is sent again with every round.
    fn within_the_reply(&mut self, text: String) -> String {
        if self.result_bytes + text.len() > self.means.config.tool_results_bytes_max {
            return call::failed(&ToolFailure::TooMany).text;
        }
        self.result_bytes += text.len();
        text
    }

    fn model(&self) -> String {
        self.endpoints
            .first()
            .map(|endpoint| endpoint.model.clone())
            .unwrap_or_default()
    }
}

/// The calls as the model is reminded of them: with ids that tell them apart, names that are some, and arguments that are
/// JSON, because servers read all of it again.
fn sent_calls(round: u32, calls: &[ToolCall]) -> Vec<SentCall> {
    let sent = |(at, call): (usize, &ToolCall)| {
        let alone = calls.iter().filter(|other| other.id == call.id).count() == 1;
        let id = if alone && is_plain(&call.id) {
            call.id.clone()
        } else {
            format!("call_{round}_{at}")
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
            .and_then(|text| arguments::object(text));
        SentCall {
            id,
            name,
            arguments: Value::from(read.unwrap_or_default()).to_string(),
        }
    };
    calls.iter().enumerate().map(sent).collect()
}

fn is_plain(name: &str) -> bool {
    let plain = |character: char| character.is_ascii_alphanumeric() || "_-".contains(character);
    !name.is_empty() && name.len() <= NAME_CHARS_MAX && name.chars().all(plain)
}

/// Of two answers of one reply. A sum of what is known would pass for all of it, so that one unknown makes it unknown.
fn sum(before: Option<TokenUsage>, answer: Option<TokenUsage>) -> Option<TokenUsage> {
    let (before, answer) = (before.unwrap_or_default(), answer?);
    Some(TokenUsage {
        prompt_tokens: before.prompt_tokens + answer.prompt_tokens,
        completion_tokens: before.completion_tokens + answer.completion_tokens,
        estimated: before.estimated || answer.estimated,
    })
}
