//! Follows one stream to its end: text goes out as it comes, calls of tools are collected until all of them are there.

use std::time::Duration;

use futures::StreamExt;
use switchboard_schemas::conversation::FinishReason;
use tokio::time::{Instant, timeout_at};

use super::{AnswerEnd, Generation, Pushed, StreamEnd};
use crate::model::{
    CallError, Endpoint, assembler::Assembler, chunk::Chunk, openai::Chunks, prompt::ToolOffer,
    tool_calls::ToolCalls,
};

/// How long the last chunk, which tells the tokens, is waited for once the answer is finished.
const USAGE_WAIT: Duration = Duration::from_millis(500);

impl Generation<'_> {
    pub(super) async fn follow(
        &mut self,
        endpoint: &Endpoint,
        mut chunks: Chunks,
        first_limit: Instant,
    ) -> StreamEnd {
        let idle = Duration::from_millis(self.config.token_idle_timeout_ms);
        let (mut assembler, mut calls) = (Assembler::default(), ToolCalls::default());
        let mut limit = first_limit;
        loop {
            let chunk = match timeout_at(limit, chunks.next()).await {
                Ok(Some(Ok(chunk))) if chunk.is_error() => {
                    return StreamEnd::Failed(CallError::Reported);
                }
                Ok(Some(Ok(chunk))) => chunk,
                Ok(Some(Err(error))) => return StreamEnd::Failed(error),
                // What was collected of calls goes with it: a part of a call is never run.
                Ok(None) => return StreamEnd::Failed(CallError::BrokenOff),
                Err(_) => return StreamEnd::Failed(CallError::Silent),
            };
            self.note_usage(&chunk);
            let reason = chunk.finish_reason();
            let mut text = assembler.push(chunk.text());
            if reason.is_some() {
                text.push_str(&assembler.finish());
            }
            let called = self.collect(&chunk, &mut calls);
            if called || !text.is_empty() {
                limit = (Instant::now() + idle).min(self.deadline);
            }
            if !text.is_empty() && !self.say(endpoint, &text) {
                return StreamEnd::Finished(AnswerEnd::Said(FinishReason::Length));
            }
            if let Some(reason) = reason {
                self.read_usage(chunks).await;
                return StreamEnd::Finished(end(calls, reason));
            }
        }
    }

    fn say(&mut self, endpoint: &Endpoint, text: &str) -> bool {
        let pushed = self.sink.push(&endpoint.model, text);
        if pushed != Pushed::Held {
            self.first_text.get_or_insert_with(|| self.begun.elapsed());
        }
        pushed != Pushed::Full
    }

    /// Whether the chunk held a part of a call.
    fn collect(&self, chunk: &Chunk, calls: &mut ToolCalls) -> bool {
        // A call behind text that was gone on with, or that nobody offered, is none. One behind the last round is
        // collected, so that it is told from an answer without a word.
        if self.continues || self.offer() == ToolOffer::None {
            return false;
        }
        let fragments = chunk.tool_fragments();
        let any = !fragments.is_empty();
        fragments
            .into_iter()
            .for_each(|fragment| calls.push(fragment));
        any
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
}

/// Some servers end calls with "stop" in place of "tool_calls", so that the calls themselves decide.
fn end(calls: ToolCalls, reason: FinishReason) -> AnswerEnd {
    let calls = calls.finish(reason != FinishReason::Stop);
    if calls.is_empty() {
        AnswerEnd::Said(reason)
    } else {
        AnswerEnd::Called(calls)
    }
}
