//! Makes one reply out of as many calls as it takes: retries and the fallback before the first token, at most one
//! continuation after it, and never a second beginning.

use std::time::Duration;

use futures::StreamExt;
use switchboard_schemas::{
    conversation::{FinishReason, Usage},
    reply_event::ReplyFailure,
};
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    CallError, Endpoint, Prompt,
    assembler::Assembler,
    chunk::Chunk,
    openai::{Chunks, ModelClient},
    policy::{self, Decision, Limits, Standing},
};
use crate::config::WorkersConfig;

/// How long the last chunk, which tells the tokens, is waited for once the reply is finished.
const USAGE_WAIT: Duration = Duration::from_millis(500);

/// Takes the text as it comes.
pub(crate) trait TextSink: Send {
    /// Takes whole characters; `false` when there is no room for more.
    fn push(&mut self, model: &str, text: &str) -> bool;
    /// The text so far, with what an earlier attempt wrote.
    fn text(&self) -> String;
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Generated {
    /// How it ended.
    pub(crate) end: Result<FinishReason, ReplyFailure>,
    /// Tokens, if the provider told them.
    pub(crate) usage: Option<Usage>,
    /// From the beginning to the first text.
    pub(crate) first_text: Option<Duration>,
    /// From the beginning to the end.
    pub(crate) took: Duration,
    /// Calls after the first.
    pub(crate) retries: u32,
}

/// One reply in the making.
pub(crate) struct Generation<'a> {
    client: &'a ModelClient,
    config: &'a WorkersConfig,
    endpoints: Vec<Endpoint>,
    prompt: &'a Prompt,
    sink: &'a mut dyn TextSink,
    begun: Instant,
    deadline: Instant,
    first_text: Option<Duration>,
    usage: Option<Usage>,
    retries: u32,
}

/// How a stream of chunks ended.
enum StreamEnd {
    Finished(FinishReason),
    Failed(CallError),
}

impl<'a> Generation<'a> {
    /// `endpoints` in the order in which they are asked; when the sink holds text already, only those that can go on
    /// with it. `deadline` bounds the whole.
    pub(crate) fn new(
        client: &'a ModelClient,
        config: &'a WorkersConfig,
        endpoints: Vec<Endpoint>,
        prompt: &'a Prompt,
        sink: &'a mut dyn TextSink,
        deadline: Instant,
    ) -> Self {
        let begun = Instant::now();
        let deadline = deadline.min(begun + Duration::from_millis(config.reply_timeout_ms));
        Self { client, config, endpoints, prompt, sink, begun, deadline, first_text: None, usage: None, retries: 0 }
    }

    /// Runs to the end. Dropping it ends the call.
    pub(crate) async fn run(mut self) -> Generated {
        let end = self.first_stream().await;
        let took = self.begun.elapsed();
        Generated { end, usage: self.usage, first_text: self.first_text, took, retries: self.retries }
    }

    /// Tries until one stream has given text, then follows it.
    async fn first_stream(&mut self) -> Result<FinishReason, ReplyFailure> {
        let first_token_limit =
            (self.begun + Duration::from_millis(self.config.first_token_total_ms)).min(self.deadline);
        let (mut index, mut tries) = (0, 0);
        loop {
            let Some(endpoint) = self.endpoints.get(index).cloned() else { return Err(ReplyFailure::ModelUnavailable) };
            tries += 1;
            let error = match self.call(&endpoint, first_token_limit).await {
                StreamEnd::Finished(reason) => return self.finished(reason),
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
            tracing::warn!(%error, tries, fallback = index > 0, "model call failed before its first token");
            match policy::after(&error, standing, self.limits()) {
                Decision::Again(pause) => sleep(pause).await,
                Decision::Fallback => (index, tries) = (index + 1, 0),
                Decision::Fail(failure) => return Err(failure),
            }
            self.retries += 1;
        }
    }

    /// After the first text: goes on from there once, where the provider can do that.
    async fn continuation(&mut self, endpoint: &Endpoint, error: CallError) -> Result<FinishReason, ReplyFailure> {
        tracing::warn!(%error, continues = endpoint.continues_prefix, "model call broke off after text");
        if !endpoint.continues_prefix || Instant::now() >= self.deadline {
            return Err(policy::failure(&error));
        }
        self.retries += 1;
        match self.call(endpoint, self.deadline).await {
            StreamEnd::Finished(reason) => self.finished(reason),
            StreamEnd::Failed(error) => Err(policy::failure(&error)),
        }
    }

    /// An end without any text is no answer.
    fn finished(&self, reason: FinishReason) -> Result<FinishReason, ReplyFailure> {
        if self.sink.text().is_empty() { Err(ReplyFailure::ModelError) } else { Ok(reason) }
    }

    async fn call(&mut self, endpoint: &Endpoint, limit: Instant) -> StreamEnd {
        let prefix = self.sink.text();
        let limit = limit.min(Instant::now() + Duration::from_millis(self.config.first_token_timeout_ms));
        let opened = timeout_at(limit, self.client.stream(endpoint, self.prompt, &prefix)).await;
        match opened {
            Ok(Ok(chunks)) => self.follow(endpoint, chunks, limit).await,
            Ok(Err(error)) => StreamEnd::Failed(error),
            Err(_) => StreamEnd::Failed(CallError::Silent),
        }
    }

    async fn follow(&mut self, endpoint: &Endpoint, mut chunks: Chunks, first_limit: Instant) -> StreamEnd {
        let idle = Duration::from_millis(self.config.token_idle_timeout_ms);
        let mut assembler = Assembler::default();
        let mut limit = first_limit;
        loop {
            let chunk = match timeout_at(limit, chunks.next()).await {
                Ok(Some(Ok(chunk))) if chunk.is_error() => return StreamEnd::Failed(CallError::Reported),
                Ok(Some(Ok(chunk))) => chunk,
                Ok(Some(Err(error))) => return StreamEnd::Failed(error),
                Ok(None) => return StreamEnd::Failed(CallError::BrokenOff),
                Err(_) => return StreamEnd::Failed(CallError::Silent),
            };
            self.note_usage(&chunk);
            let reason = chunk.finish_reason();
            let mut text = assembler.push(chunk.text());
            if reason.is_some() {
                text.push_str(&assembler.finish());
            }
            if !text.is_empty() {
                self.first_text.get_or_insert_with(|| self.begun.elapsed());
                limit = (Instant::now() + idle).min(self.deadline);
                if !self.sink.push(&endpoint.model, &text) {
                    return StreamEnd::Finished(FinishReason::Length);
                }
            }
            if let Some(reason) = reason {
                self.read_usage(chunks).await;
                return StreamEnd::Finished(reason);
            }
        }
    }

    fn note_usage(&mut self, chunk: &Chunk) {
        self.usage = chunk.usage().or(self.usage);
    }

    /// The count of tokens comes with the last text, or in a chunk of its own after it.
    async fn read_usage(&mut self, mut chunks: Chunks) {
        let limit = Instant::now() + USAGE_WAIT;
        while self.usage.is_none() {
            match timeout_at(limit, chunks.next()).await {
                Ok(Some(Ok(chunk))) => self.note_usage(&chunk),
                _ => return,
            }
        }
    }

    const fn limits(&self) -> Limits {
        Limits {
            retries_max: self.config.provider_retries_max,
            delay_min: Duration::from_millis(self.config.provider_retry_delay_min_ms),
            delay_max: Duration::from_millis(self.config.provider_retry_delay_max_ms),
        }
    }
}
