//! Makes one answer out of as many calls as it takes: retries and the fallback before the first token, at most one
//! continuation after it, and never a second beginning. An answer is text, or calls of tools; [`crate::tools`] makes one
//! reply out of several.

mod follow;

use std::time::Duration;

use switchboard_schemas::{
    conversation::{FinishReason, TokenUsage},
    reply_event::ReplyFailure,
};
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    CallError, Endpoint, Prompt, Role,
    openai::ModelClient,
    policy::{self, Decision, Limits, Standing},
    prompt::ToolOffer,
    tool_calls::ToolCall,
};
use crate::config::WorkersConfig;

/// Takes the text as it comes.
pub(crate) trait TextSink: Send {
    /// Takes whole characters.
    fn push(&mut self, model: &str, text: &str) -> Pushed;
    /// The text that was shown so far, with what an earlier attempt wrote.
    fn text(&self) -> String;
    /// Bytes that were shown or wait to be.
    fn len(&self) -> usize;
    /// A call begins anew: what it said before, and was not shown, was never said.
    fn forget_unshown(&mut self) {}
}

/// What became of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// A client can see it.
    Shown,
    /// It waits, because a tool call may follow.
    Held,
    /// It was shown, and there is no room for more.
    Full,
}

/// How an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AnswerEnd {
    /// All was said.
    Said(FinishReason),
    /// The model waits for the results of these.
    Called(Vec<ToolCall>),
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Generated<E = FinishReason> {
    /// How it ended.
    pub(crate) end: Result<E, ReplyFailure>,
    /// Tokens, if the provider told them.
    pub(crate) usage: Option<TokenUsage>,
    /// From the beginning to the first text that was shown.
    pub(crate) first_text: Option<Duration>,
    /// From the beginning to the end.
    pub(crate) took: Duration,
    /// Calls after the first.
    pub(crate) retries: u32,
    /// Which of the endpoints answered last.
    pub(crate) endpoint: usize,
    /// Who refused the prompt for its length, if that is how it ended.
    pub(crate) too_long: Option<Endpoint>,
}

impl Generated {
    /// Without a call.
    pub(crate) const fn nothing(failure: ReplyFailure) -> Self {
        let (end, took) = (Err(failure), Duration::ZERO);
        Self {
            end,
            usage: None,
            first_text: None,
            took,
            retries: 0,
            endpoint: 0,
            too_long: None,
        }
    }
}

/// One answer in the making.
pub(crate) struct Generation<'a> {
    client: &'a ModelClient,
    config: &'a WorkersConfig,
    endpoints: Vec<Endpoint>,
    prompt: &'a Prompt,
    sink: &'a mut dyn TextSink,
    /// Byte of the reply at which this answer begins.
    from: usize,
    begun: Instant,
    deadline: Instant,
    first_text: Option<Duration>,
    usage: Option<TokenUsage>,
    retries: u32,
    endpoint: usize,
    too_long: Option<Endpoint>,
    /// The provider takes no tools: it is asked without them.
    without_tools: bool,
    /// Text was shown: what follows is text.
    continues: bool,
}

/// How a stream of chunks ended.
enum StreamEnd {
    Finished(AnswerEnd),
    Failed(CallError),
}

impl<'a> Generation<'a> {
    /// `endpoints` in the order in which they are asked; when they are to go on with text that the sink holds, only those
    /// that can, and `from` is 0. Else the answer stands behind all text so far. `deadline` bounds the whole.
    pub(crate) fn new(
        client: &'a ModelClient,
        config: &'a WorkersConfig,
        endpoints: Vec<Endpoint>,
        prompt: &'a Prompt,
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
            too_long: None,
            without_tools: false,
            continues: false,
        }
    }

    /// Runs to the end. Dropping it ends the call.
    pub(crate) async fn run(mut self) -> Generated<AnswerEnd> {
        let end = self.first_stream().await;
        let Self {
            usage,
            first_text,
            retries,
            endpoint,
            too_long,
            ..
        } = self;
        Generated {
            end,
            usage,
            first_text,
            took: self.begun.elapsed(),
            retries,
            endpoint,
            too_long,
        }
    }

    /// Tries until one stream has given text, then follows it.
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
            let error = match self.call(&endpoint, first_token_limit).await {
                StreamEnd::Finished(end) => return self.finished(end),
                StreamEnd::Failed(error) if self.first_text.is_some() => {
                    return self.continuation(&endpoint, error).await;
                }
                StreamEnd::Failed(error) => error,
            };
            let standing = Standing {
                tries,
                left: first_token_limit.saturating_duration_since(Instant::now()),
                has_fallback: index + 1 < self.endpoints.len(),
                jitter: rand::random(),
            };
            tracing::warn!(%error, provider.host = endpoint.host(), endpoint.model, tries, fallback = index > 0,
                "model call failed before its first token");
            match policy::after(&error, standing, self.limits()) {
                Decision::Again(pause) => sleep(pause).await,
                Decision::Fallback => (index, tries) = (index + 1, 0),
                Decision::Fail(_) if self.may_go_without_tools(&error) => self.without_tools = true,
                Decision::Fail(failure) => {
                    self.too_long = matches!(error, CallError::TooLong { .. }).then_some(endpoint);
                    return Err(failure);
                }
            }
            self.retries += 1;
        }
    }

    /// After the first text: goes on from there once, where the provider can do that.
    async fn continuation(
        &mut self,
        endpoint: &Endpoint,
        error: CallError,
    ) -> Result<AnswerEnd, ReplyFailure> {
        tracing::warn!(%error, provider.host = endpoint.host(), endpoint.model, continues = endpoint.continues_prefix,
            "model call broke off after text");
        if !endpoint.continues_prefix || Instant::now() >= self.deadline {
            return Err(policy::failure(&error));
        }
        self.retries += 1;
        self.continues = true;
        match self.call(endpoint, self.deadline).await {
            StreamEnd::Finished(end) => self.finished(end),
            StreamEnd::Failed(error) => Err(policy::failure(&error)),
        }
    }

    /// An end without any text is no answer; behind calls of tools, whoever ran them knows what it is.
    fn finished(&self, end: AnswerEnd) -> Result<AnswerEnd, ReplyFailure> {
        let nothing_said =
            matches!(end, AnswerEnd::Said(_)) && self.sink.len() == 0 && !self.has_called();
        if nothing_said {
            Err(ReplyFailure::ModelError)
        } else {
            Ok(end)
        }
    }

    /// Whether the provider may have failed because tools were offered: some refuse them, and llama.cpp answers 500
    /// where its template knows none. Words without products are better than no words.
    fn may_go_without_tools(&self, error: &CallError) -> bool {
        let of_tools = match error {
            CallError::Refused { status } => matches!(status, 400 | 422),
            CallError::Overloaded { status, .. } => matches!(status, 500 | 501),
            _ => false,
        };
        // What was called already cannot be told without them.
        of_tools && !self.has_called() && !self.without_tools && !self.prompt.tools.is_empty()
    }

    fn has_called(&self) -> bool {
        self.prompt
            .messages
            .iter()
            .any(|message| message.role == Role::Tool)
    }

    fn offer(&self) -> ToolOffer {
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

    async fn call(&mut self, endpoint: &Endpoint, limit: Instant) -> StreamEnd {
        self.sink.forget_unshown();
        let text = self.sink.text();
        let prefix = text
            .get(self.from..)
            .unwrap_or_default()
            .trim_start_matches(self.separator())
            .to_owned();
        let limit =
            limit.min(Instant::now() + Duration::from_millis(self.config.first_token_timeout_ms));
        let asked = self
            .client
            .stream(endpoint, self.prompt, &prefix, self.offer());
        match timeout_at(limit, asked).await {
            Ok(Ok(chunks)) => self.follow(endpoint, chunks, limit).await,
            Ok(Err(error)) => StreamEnd::Failed(error),
            Err(_) => StreamEnd::Failed(CallError::Silent),
        }
    }

    /// What stands between this answer and the text before it, and is none of the model's own.
    const fn separator(&self) -> &'static [char] {
        if self.from == 0 { &[] } else { &['\n'] }
    }

    const fn limits(&self) -> Limits {
        Limits {
            retries_max: self.config.provider_retries_max,
            delay_min: Duration::from_millis(self.config.provider_retry_delay_min_ms),
            delay_max: Duration::from_millis(self.config.provider_retry_delay_max_ms),
        }
    }
}
