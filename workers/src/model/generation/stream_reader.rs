//! Follows one stream to its end: text is forwarded as it arrives, tool calls are collected until
//! they are complete.

use std::time::Duration;

use futures::StreamExt;
use switchboard_schemas::conversation::FinishReason;
use tokio::time::{Instant, timeout_at};

use super::{AnswerEnd, AnswerGeneration, PushResult, StreamEnd};
use crate::model::{
    CallError, ModelEndpoint, assembler::TextAssembler, chunk::CompletionChunk,
    openai::ChunkStream, prompt::ToolOffer, tool_calls::ToolCalls,
};

/// Time to wait for the last chunk, which contains the usage, after the answer is finished.
const USAGE_WAIT: Duration = Duration::from_millis(500);

impl AnswerGeneration<'_> {
    pub(super) async fn follow_stream(
        &mut self,
        endpoint: &ModelEndpoint,
        mut chunks: ChunkStream,
        first_limit: Instant,
    ) -> StreamEnd {
        let idle = Duration::from_millis(self.config.token_idle_timeout_ms);
        let (mut assembler, mut calls) = (TextAssembler::default(), ToolCalls::default());
        let mut limit = first_limit;
        loop {
            let chunk = match timeout_at(limit, chunks.next()).await {
                Ok(Some(Ok(chunk))) if chunk.is_error() => {
                    return StreamEnd::Failed(CallError::Reported);
                }
                Ok(Some(Ok(chunk))) => chunk,
                Ok(Some(Err(error))) => return StreamEnd::Failed(error),
                // Fragments of calls are dropped as well: a part of a call is never run.
                Ok(None) => return StreamEnd::Failed(CallError::BrokenOff),
                Err(_) => return StreamEnd::Failed(CallError::Silent),
            };
            self.note_usage(&chunk);
            let reason = chunk.finish_reason();
            let mut text = assembler.push_bytes(chunk.text_bytes());
            if reason.is_some() {
                text.push_str(&assembler.finish());
            }
            let has_calls = self.collect_calls(&chunk, &mut calls);
            if has_calls || !text.is_empty() {
                limit = (Instant::now() + idle).min(self.deadline);
            }
            if !text.is_empty() && !self.push_text(endpoint, &text) {
                return StreamEnd::Finished(AnswerEnd::Text(FinishReason::Length));
            }
            if let Some(reason) = reason {
                self.read_usage(chunks).await;
                return StreamEnd::Finished(answer_end(calls, reason));
            }
        }
    }

    fn push_text(&mut self, endpoint: &ModelEndpoint, text: &str) -> bool {
        let pushed = self.sink.push(&endpoint.model, text);
        if pushed != PushResult::Buffered {
            self.first_text.get_or_insert_with(|| self.begun.elapsed());
        }
        pushed != PushResult::Full
    }

    /// Collects fragments of tool calls. Returns true if the chunk had any.
    fn collect_calls(&self, chunk: &CompletionChunk, calls: &mut ToolCalls) -> bool {
        // A call after continued text, or one that was not offered, is ignored. A call after the
        // last round is collected, so that it differs from an answer without text.
        if self.continues || self.tool_offer() == ToolOffer::None {
            return false;
        }
        let fragments = chunk.tool_fragments();
        let any = !fragments.is_empty();
        fragments
            .into_iter()
            .for_each(|fragment| calls.push_fragment(fragment));
        any
    }

    fn note_usage(&mut self, chunk: &CompletionChunk) {
        self.usage = chunk.usage().or(self.usage);
    }

    /// Reads on for the usage: it comes with the last text or in a chunk of its own.
    async fn read_usage(&mut self, mut chunks: ChunkStream) {
        let limit = Instant::now() + USAGE_WAIT;
        while self.usage.is_none() {
            match timeout_at(limit, chunks.next()).await {
                Ok(Some(Ok(chunk))) => self.note_usage(&chunk),
                _ => return,
            }
        }
    }
}

/// Some servers end tool calls with "stop" instead of "tool_calls", so that the calls themselves
/// decide.
fn answer_end(calls: ToolCalls, reason: FinishReason) -> AnswerEnd {
    let calls = calls.into_calls(reason != FinishReason::Stop);
    if calls.is_empty() {
        AnswerEnd::Text(reason)
    } else {
        AnswerEnd::ToolCalls(calls)
    }
}
