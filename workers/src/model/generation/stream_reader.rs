//! Follows one stream to its end: text is forwarded as it arrives, tool calls are collected until
//! they are complete.
//!
//! Anything that arrives is a sign of life: thoughts, comments and empty events too. A finish
//! reason does not end the answer, because some servers send one with every chunk; the end of the
//! stream does, or a moment of silence behind a regular reason, because some never close it.

use std::time::Duration;

use switchboard_schemas::conversation::FinishReason;
use tokio::time::{Instant, timeout_at};

use super::{AnswerEnd, AnswerGeneration, PushResult, StreamEnd};
use crate::model::{
    CallError, ModelEndpoint,
    finish_reason::FinishKind,
    model_stream::ModelStream,
    output::ModelOutput,
    prompt::{ProviderFields, ToolOffer},
    tool_calls::ToolCalls,
};

/// Time to wait for more behind a finish reason.
const AFTER_FINISH_WAIT: Duration = Duration::from_secs(2);

impl AnswerGeneration<'_> {
    /// Follows a stream whose first token must arrive before `first_limit`.
    pub(super) async fn follow_stream(
        &mut self,
        endpoint: &ModelEndpoint,
        mut stream: ModelStream,
        first_limit: Instant,
    ) -> StreamEnd {
        // A call after continued text, or one that was not offered, is ignored. A call after the
        // last round is collected, so that it differs from an answer without text.
        let collects_calls = !self.continues && self.tool_offer() != ToolOffer::None;
        let mut output = ModelOutput::new(collects_calls, self.continues);
        let mut calls = ToolCalls::default();
        let mut progress = StreamProgress::default();
        loop {
            let limit = self.silence_limit(endpoint, &progress, first_limit);
            let read = timeout_at(limit, stream.read(&mut output)).await;
            let is_open = matches!(read, Ok(Ok(true))) && !output.is_done;
            if !is_open {
                output.finish_text();
            }
            if output.is_done {
                stream.await_end().await;
            }
            let has_news = !output.text.is_empty() || !output.fragments.is_empty();
            let is_finished = matches!(output.finish, Some(FinishKind::Regular(_)));
            progress.note_read(has_news, is_finished);
            self.usage = output.usage.or(self.usage);
            if !self.push_text(endpoint, &mut output.text) {
                return StreamEnd::Finished(AnswerEnd::Text(FinishReason::Length));
            }
            for fragment in output.fragments.drain(..) {
                calls.push_fragment(fragment);
            }
            if let Some(failed) = output.failure.take() {
                return StreamEnd::Failed(failed.redacted_for(endpoint));
            }
            if is_open {
                continue;
            }
            // With a reason in each chunk, only a whole stream is a whole answer.
            let is_broken = matches!(read, Ok(Err(_))) || output.is_cut;
            if is_broken && progress.finishes_early {
                return StreamEnd::Failed(CallError::BrokenOff.into());
            }
            // Fragments of calls are dropped as well: a part of a call is never run.
            let Some(reason) = self.finish_reason(&output) else {
                return StreamEnd::Failed(match read {
                    Err(_) => CallError::Silent.into(),
                    _ => CallError::BrokenOff.into(),
                });
            };
            let extras = ProviderFields {
                source: endpoint.cache_key(),
                fields: output.extras,
            };
            return StreamEnd::Finished(answer_end(calls, reason, extras));
        }
    }

    /// Returns the end of the wait for the next bytes.
    fn silence_limit(
        &self,
        endpoint: &ModelEndpoint,
        progress: &StreamProgress,
        first_limit: Instant,
    ) -> Instant {
        let now = Instant::now();
        let idle = Duration::from_millis(self.config.token_idle_timeout_ms);
        match progress.finished_at {
            Some(finished_at) if progress.has_begun && !progress.finishes_early => {
                (finished_at + AFTER_FINISH_WAIT).min(self.deadline)
            }
            _ if progress.has_begun => (now + idle).min(self.deadline),
            Some(_) => (now + idle).min(first_limit),
            None => (now + self.first_token_timeout(endpoint)).min(first_limit),
        }
    }

    /// Returns the reason with which the answer is complete. One that nobody knows completes it
    /// only if the stream also ended as it should.
    fn finish_reason(&mut self, output: &ModelOutput) -> Option<FinishReason> {
        match output.finish? {
            FinishKind::Regular(reason) => Some(reason),
            FinishKind::Interrupted => None,
            FinishKind::Unknown => {
                self.unknown_finishes += 1;
                (output.is_done || output.usage.is_some()).then_some(FinishReason::Stop)
            }
        }
    }

    fn push_text(&mut self, endpoint: &ModelEndpoint, text: &mut String) -> bool {
        if text.is_empty() {
            return true;
        }
        let pushed = self.sink.push(&endpoint.model, text);
        text.clear();
        if pushed != PushResult::Buffered {
            self.first_text.get_or_insert_with(|| self.begun.elapsed());
        }
        pushed != PushResult::Full
    }
}

/// State of a stream that is being followed.
#[derive(Default)]
struct StreamProgress {
    /// True once text or a call has arrived.
    has_begun: bool,
    /// Time of the latest regular finish reason or of what came behind it.
    finished_at: Option<Instant>,
    /// True if text came behind a finish reason: then the reason says nothing about the end.
    finishes_early: bool,
}

impl StreamProgress {
    fn note_read(&mut self, has_news: bool, is_finished: bool) {
        self.finishes_early |= has_news && self.finished_at.is_some();
        self.has_begun |= has_news;
        if is_finished && (has_news || self.finished_at.is_none()) {
            self.finished_at = Some(Instant::now());
        }
    }
}

/// Some servers end tool calls with "stop" instead of "tool_calls", so that the calls themselves
/// decide.
fn answer_end(calls: ToolCalls, reason: FinishReason, extras: ProviderFields) -> AnswerEnd {
    let calls = calls.into_calls(reason != FinishReason::Stop);
    if calls.is_empty() {
        AnswerEnd::Text(reason)
    } else {
        AnswerEnd::ToolCalls(calls, extras)
    }
}
