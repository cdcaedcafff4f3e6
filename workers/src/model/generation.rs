//! Produces one answer with as many calls as needed: retries and the fallback before the first
//! token, at most one continuation after it, and never a second beginning. An answer is text or
//! tool calls; [`crate::tools`] makes one reply out of several answers.

mod stream_reader;

use std::time::Duration;

use switchboard_schemas::{
    conversation::{FinishReason, TokenUsage},
    reply_event::ReplyFailure,
};
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    CallError, FailedCall, ModelEndpoint, ModelPrompt, PromptRole,
    openai::ModelClient,
    prompt::{ProviderFields, ToolOffer},
    retry_policy::{self, CallState, RetryDecision, RetryLimits},
    tool_calls::ToolCall,
};
use crate::config::WorkersConfig;

/// Receives the text of an answer as it streams.
pub(crate) trait TextSink: Send {
    /// Takes a piece of text that ends between two characters.
    fn push(&mut self, model: &str, text: &str) -> PushResult;
    /// Returns the text that was displayed so far, including text of earlier attempts.
    fn text(&self) -> String;
    /// Returns the bytes that were displayed or are buffered.
    fn len(&self) -> usize;
    /// Drops the text of a failed call that was not displayed; another call begins.
    fn discard_undisplayed(&mut self) {}
}

/// Fate of a pushed piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PushResult {
    /// A client can see it.
    Displayed,
    /// It is buffered, because a tool call may follow.
    Buffered,
    /// It was displayed, and the reply has no room for more.
    Full,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AnswerEnd {
    /// The model finished its text.
    Text(FinishReason),
    /// The model waits for the results of these calls, and may need its own fields back.
    ToolCalls(Vec<ToolCall>, ProviderFields),
}

/// Result of one or more model calls.
#[derive(Debug)]
pub(crate) struct GenerationResult<E = FinishReason> {
    pub(crate) end: Result<E, ReplyFailure>,
    /// Token usage, if the provider reported it.
    pub(crate) usage: Option<TokenUsage>,
    /// Time from the start to the first text that was displayed.
    pub(crate) first_text: Option<Duration>,
    /// Time from the start to the end.
    pub(crate) took: Duration,
    /// Calls after the first.
    pub(crate) retries: u32,
    /// Index of the endpoint that was called last.
    pub(crate) endpoint: usize,
    /// Answers that ended with a reason that nobody knows.
    pub(crate) unknown_finishes: u32,
    /// The call that made the answer fail, if one did.
    pub(crate) failed_call: Option<Box<FinalFailure>>,
}

/// The last failed call of an answer.
#[derive(Clone, Debug)]
pub(crate) struct FinalFailure {
    pub(crate) endpoint: ModelEndpoint,
    pub(crate) call: FailedCall,
}

impl GenerationResult {
    /// Creates the result of a failure without any call.
    pub(crate) const fn failed(failure: ReplyFailure) -> Self {
        let (end, took) = (Err(failure), Duration::ZERO);
        Self {
            end,
            usage: None,
            first_text: None,
            took,
            retries: 0,
            endpoint: 0,
            unknown_finishes: 0,
            failed_call: None,
        }
    }
}

/// One answer that is being produced.
pub(crate) struct AnswerGeneration<'a> {
    client: &'a ModelClient,
    config: &'a WorkersConfig,
    endpoints: Vec<ModelEndpoint>,
    prompt: &'a ModelPrompt,
    sink: &'a mut dyn TextSink,
    /// Byte of the reply at which this answer begins.
    from: usize,
    begun: Instant,
    deadline: Instant,
    first_text: Option<Duration>,
    usage: Option<TokenUsage>,
    retries: u32,
    endpoint: usize,
    unknown_finishes: u32,
    failed_call: Option<Box<FinalFailure>>,
    /// Set when the provider refuses tools: it is called without them.
    without_tools: bool,
    /// Set after a break-off: the next call continues displayed text.
    continues: bool,
}

enum StreamEnd {
    Finished(AnswerEnd),
    Failed(FailedCall),
}

impl<'a> AnswerGeneration<'a> {
    /// Creates a generation that calls `endpoints` in order until `deadline`. If the sink holds
    /// text to continue, every endpoint must be able to continue it and `from` is 0; otherwise the
    /// answer follows all text so far.
    pub(crate) fn new(
        client: &'a ModelClient,
        config: &'a WorkersConfig,
        endpoints: Vec<ModelEndpoint>,
        prompt: &'a ModelPrompt,
        sink: &'a mut dyn TextSink,
        from: usize,
        deadline: Instant,
    ) -> Self {
        let begun = Instant::now();
        let deadline = deadline.min(begun + Duration::from_millis(config.reply_timeout_ms));
        Self {
            client,
            config,
            endpoints,
            prompt,
            sink,
            from,
            begun,
            deadline,
            first_text: None,
            usage: None,
            retries: 0,
            endpoint: 0,
            unknown_finishes: 0,
            failed_call: None,
            without_tools: false,
            continues: false,
        }
    }

    /// Runs to the end. Dropping the future ends the call.
    pub(crate) async fn run(mut self) -> GenerationResult<AnswerEnd> {
        let end = self.first_stream().await;
        let Self {
            usage,
            first_text,
            retries,
            endpoint,
            unknown_finishes,
            failed_call,
            ..
        } = self;
        GenerationResult {
            end,
            usage,
            first_text,
            took: self.begun.elapsed(),
            retries,
            endpoint,
            unknown_finishes,
            failed_call,
        }
    }

    /// Calls endpoints until one stream has given text, then follows it.
    async fn first_stream(&mut self) -> Result<AnswerEnd, ReplyFailure> {
        let first_token_limit = (self.begun
            + Duration::from_millis(self.config.first_token_total_ms))
        .min(self.deadline);
        let (mut index, mut tries) = (0, 0);
        loop {
            let Some(endpoint) = self.endpoints.get(index).cloned() else {
                return Err(ReplyFailure::ModelUnavailable);
            };
            tries += 1;
            self.endpoint = index;
            let call = match self.call_endpoint(&endpoint, first_token_limit).await {
                StreamEnd::Finished(end) => return self.check_answer(end),
                StreamEnd::Failed(call) if self.first_text.is_some() => {
                    return self.continue_stream(&endpoint, call).await;
                }
                StreamEnd::Failed(call) => call,
            };
            let now = Instant::now();
            let patience_end = self.begun + self.first_token_timeout(&endpoint);
            let state = CallState {
                tries,
                left: first_token_limit.saturating_duration_since(now),
                pause_max: patience_end
                    .min(first_token_limit)
                    .saturating_duration_since(now),
                has_fallback: index + 1 < self.endpoints.len(),
                jitter: rand::random(),
            };
            tracing::warn!(error = %call.error, provider.host = endpoint.host(), endpoint.model, tries, fallback = index > 0,
                "model call failed before its first token");
            match retry_policy::next_step(&call.error, state, self.retry_limits()) {
                RetryDecision::Retry(pause) => sleep(pause).await,
                RetryDecision::Fallback => (index, tries) = (index + 1, 0),
                RetryDecision::Fail(_) if self.may_go_without_tools(&call) => {
                    self.without_tools = true
                }
                RetryDecision::Fail(failure) => {
                    self.failed_call = Some(Box::new(FinalFailure { endpoint, call }));
                    return Err(failure);
                }
            }
            self.retries += 1;
        }
    }

    /// Handles a stream that broke off after text: continues it once, if the provider can.
    async fn continue_stream(
        &mut self,
        endpoint: &ModelEndpoint,
        call: FailedCall,
    ) -> Result<AnswerEnd, ReplyFailure> {
        tracing::warn!(error = %call.error, provider.host = endpoint.host(), endpoint.model, continues = endpoint.continues_prefix,
            "model call broke off after text");
        if !endpoint.continues_prefix || Instant::now() >= self.deadline {
            return Err(self.fail(endpoint, call));
        }
        self.retries += 1;
        self.continues = true;
        match self.call_endpoint(endpoint, self.deadline).await {
            StreamEnd::Finished(end) => self.check_answer(end),
            StreamEnd::Failed(call) => Err(self.fail(endpoint, call)),
        }
    }

    fn fail(&mut self, endpoint: &ModelEndpoint, call: FailedCall) -> ReplyFailure {
        let failure = retry_policy::public_failure(&call.error);
        let endpoint = endpoint.clone();
        self.failed_call = Some(Box::new(FinalFailure { endpoint, call }));
        failure
    }

    /// An answer without any text is an error; after tool calls the tool loop decides.
    fn check_answer(&self, end: AnswerEnd) -> Result<AnswerEnd, ReplyFailure> {
        let nothing_said =
            matches!(end, AnswerEnd::Text(_)) && self.sink.len() == 0 && !self.has_called();
        if nothing_said {
            Err(ReplyFailure::ModelError)
        } else {
            Ok(end)
        }
    }

    /// Returns true if the provider may have failed because tools were offered: some refuse them,
    /// and llama.cpp answers 500 if its template knows none. Words without products are better than
    /// no words.
    fn may_go_without_tools(&self, call: &FailedCall) -> bool {
        let speaks_of_tools = || {
            let message = call.message.as_deref().unwrap_or_default();
            message.to_lowercase().contains("tool")
        };
        let of_tools = match &call.error {
            // A gateway has no provider of this model that takes tools (OpenRouter).
            CallError::Refused { status: 404 } => speaks_of_tools(),
            CallError::Refused { status } => matches!(status, 400 | 422),
            CallError::Overloaded { status, .. } => matches!(status, 500 | 501),
            _ => false,
        };
        // Past calls cannot be described without tools.
        of_tools && !self.has_called() && !self.without_tools && !self.prompt.tools.is_empty()
    }

    fn has_called(&self) -> bool {
        self.prompt
            .messages
            .iter()
            .any(|message| message.role == PromptRole::Tool)
    }

    fn tool_offer(&self) -> ToolOffer {
        if self.prompt.tools.is_empty() || self.without_tools {
            ToolOffer::None
        } else if self.prompt.may_call && !self.continues {
            ToolOffer::Callable
        } else if self.has_called() {
            ToolOffer::Declared
        } else {
            ToolOffer::None
        }
    }

    async fn call_endpoint(&mut self, endpoint: &ModelEndpoint, limit: Instant) -> StreamEnd {
        self.sink.discard_undisplayed();
        let text = self.sink.text();
        let prefix = text
            .get(self.from..)
            .unwrap_or_default()
            .trim_start_matches(self.separator())
            .to_owned();
        let response = self
            .client
            .start_stream(endpoint, self.prompt, &prefix, self.tool_offer());
        let silence_limit = limit.min(Instant::now() + self.first_token_timeout(endpoint));
        match timeout_at(silence_limit, response).await {
            Ok(Ok(stream)) => self.follow_stream(endpoint, stream, limit).await,
            Ok(Err(call)) => StreamEnd::Failed(call),
            Err(_) => StreamEnd::Failed(CallError::Silent.into()),
        }
    }

    fn first_token_timeout(&self, endpoint: &ModelEndpoint) -> Duration {
        let installed = Duration::from_millis(self.config.first_token_timeout_ms);
        endpoint.first_token_timeout.unwrap_or(installed)
    }

    /// Characters between this answer and the text before it, which the model did not write.
    const fn separator(&self) -> &'static [char] {
        if self.from == 0 { &[] } else { &['\n'] }
    }

    const fn retry_limits(&self) -> RetryLimits {
        RetryLimits {
            retries_max: self.config.provider_retries_max,
            delay_min: Duration::from_millis(self.config.provider_retry_delay_min_ms),
            delay_max: Duration::from_millis(self.config.provider_retry_delay_max_ms),
        }
    }
}
