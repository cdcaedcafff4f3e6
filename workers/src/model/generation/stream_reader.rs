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
        let mut has_begun = false;
        let mut finish_limit = None;
        loop {
            let silence = if has_begun {
                Duration::from_millis(self.config.token_idle_timeout_ms)
            } else {
                self.first_token_timeout(endpoint)
            };
            let bound = if has_begun {
                self.deadline
            } else {
                first_limit
            };
            let limit = finish_limit.unwrap_or(Instant::now() + silence).min(bound);
            let read = timeout_at(limit, stream.read(&mut output)).await;
            let is_open = matches!(read, Ok(Ok(true))) && !output.is_done;
            if !is_open {
                output.finish_text();
            }
            if output.is_done {
                stream.await_end().await;
            }
            let has_news = !output.text.is_empty() || !output.fragments.is_empty();
            has_begun |= has_news;
            self.usage = output.usage.or(self.usage);
            if !self.push_text(endpoint, &mut output.text) {
                return StreamEnd::Finished(AnswerEnd::Text(FinishReason::Length));
            }
            for fragment in output.fragments.drain(..) {
                calls.push_fragment(fragment);
            }
            if let Some(failed) = output.failure.take() {
                return StreamEnd::Failed(failed);
            }
            if is_open {
                let is_finished = matches!(output.finish, Some(FinishKind::Regular(_)));
                if is_finished && (has_news || finish_limit.is_none()) {
                    finish_limit = Some(Instant::now() + AFTER_FINISH_WAIT);
                }
                continue;
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
