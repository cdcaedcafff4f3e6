//! Converts the outcome of a reply into its end frame, its record and its stored message. Pure.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use switchboard_backends::store::{ReplyRecord, TurnEnd, deletion::Tombstone};
use switchboard_schemas::{
    conversation::{
        FinishReason, Message, MessageAuthor, ReplyFacts, ReplyStatus, ReplySteps, TokenUsage,
    },
    conversation_job::ReplyJob,
    provider::ProviderError,
    reply_event::{ReplyEnd, ReplyFailure, ReplyHead},
    time::Timestamp,
};

use super::prompt_builder::PromptFacts;

/// Outcome of the work on a reply, before it is finalized.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReplyOutcome {
    /// Finish reason, or the failure that cut the reply off.
    pub(crate) end: Result<FinishReason, ReplyFailure>,
    /// Token usage, as reported or estimated.
    pub(crate) usage: TokenUsage,
    /// Milliseconds from acceptance to the first text.
    pub(crate) first_text_ms: Option<u64>,
    /// Error of the provider that caused the failure.
    pub(crate) provider_error: Option<ProviderError>,
}

impl ReplyOutcome {
    /// Creates the outcome of a failure without any usage.
    pub(crate) fn failed(failure: ReplyFailure) -> Self {
        Self {
            end: Err(failure),
            usage: TokenUsage::default(),
            first_text_ms: None,
            provider_error: None,
        }
    }

    /// Creates the outcome of a cancellation without any usage.
    pub(crate) fn cancelled() -> Self {
        Self {
            end: Ok(FinishReason::Cancelled),
            usage: TokenUsage::default(),
            first_text_ms: None,
            provider_error: None,
        }
    }

    /// Returns the content of the end frame for this outcome of `text`.
    pub(crate) fn reply_end(&self, text: &str, accepted_at: Timestamp, now: Timestamp) -> ReplyEnd {
        let status = match self.end {
            Ok(FinishReason::Cancelled) => ReplyStatus::Cancelled,
            Ok(_) => ReplyStatus::Completed,
            Err(_) if text.is_empty() => ReplyStatus::Failed,
            Err(_) => ReplyStatus::Incomplete,
        };
        ReplyEnd {
            status,
            finish_reason: self.end.ok(),
            usage: self.usage,
            length: text.len() as u64,
            sha256: text_digest(text),
            response_time_ms: now.millis_since(accepted_at),
            failure: self.end.err(),
            provider_error: self.provider_error.clone().filter(|_| self.end.is_err()),
        }
    }
}

/// Returns the SHA-256 digest of a text in hexadecimal.
pub(crate) fn text_digest(text: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(text.as_bytes()))
}

/// A turn at its end, with everything that is stored of it.
#[derive(Clone, Debug)]
pub(crate) struct FinishedTurn {
    /// Position of the user message in the conversation.
    pub(crate) user_position: u64,
    pub(crate) head: Option<ReplyHead>,
    pub(crate) text: String,
    /// Content of the end frame.
    pub(crate) end: ReplyEnd,
    pub(crate) generation: u32,
    /// Attempt that stores the turn.
    pub(crate) attempt: u32,
    /// Time of the end.
    pub(crate) finished_at: Timestamp,
    /// Facts about the prompt, if this attempt called the model.
    pub(crate) prompt: PromptFacts,
    /// Times from acceptance to each step.
    pub(crate) steps: ReplySteps,
}

impl FinishedTurn {
    /// Returns the record that is stored under the reply's id.
    fn reply_record(&self, job: &ReplyJob) -> ReplyRecord {
        ReplyRecord {
            user_message_id: job.turn.message_id.clone(),
            user_position: self.user_position,
            position: (!self.text.is_empty()).then_some(self.user_position + 1),
            head: self.head.clone(),
            end: self.end.clone(),
            generation: self.generation,
            attempt: self.attempt,
            finished_at: self.finished_at,
            first_text_ms: self.steps.first_text_ms,
        }
    }

    /// Returns the assistant message; `None` without text.
    fn reply_message(&self, job: &ReplyJob) -> Option<Message> {
        let head = self.head.as_ref()?;
        let facts = ReplyFacts {
            agent_id: head.agent_id.clone(),
            agent_name: head.agent_name.clone(),
            status: self.end.status,
            finish_reason: self.end.finish_reason,
            usage: self.end.usage,
            response_time_ms: self.end.response_time_ms,
            model: head.model.clone(),
            routing_reason: head.routing_reason.clone(),
            routing: job.routed.as_ref().and_then(|routed| routed.facts.clone()),
            ui_spec: head.ui_spec.clone(),
            generation: self.generation,
            truncation: self.prompt.truncation,
            summary: self.prompt.summary.clone(),
            steps: Some(self.steps),
        };
        (!self.text.is_empty()).then(|| Message {
            id: job.turn.reply_id(),
            position: self.user_position + 1,
            content: self.text.clone(),
            attachments: Vec::new(),
            created_at: self.finished_at,
            author: MessageAuthor::Assistant(Box::new(facts)),
        })
    }

    /// Returns the write that ends the turn in the store.
    pub(crate) fn turn_end(&self, job: &ReplyJob, tombstone: Option<Tombstone>) -> TurnEnd {
        TurnEnd {
            org_id: job.turn.org_id.clone(),
            accepted_at: job.turn.accepted_at,
            tombstone,
            attempt: self.attempt,
            user_message_id: job.turn.message_id.clone(),
            agent_id: Some(job.agent_id.clone()),
            team_id: job.routed.as_ref().map(|routed| routed.team_id.clone()),
            message: self.reply_message(job),
            record: self.reply_record(job),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(end: Result<FinishReason, ReplyFailure>, text: &str) -> ReplyStatus {
        let outcome = ReplyOutcome {
            end,
            usage: TokenUsage::default(),
            first_text_ms: None,
            provider_error: None,
        };
        outcome
            .reply_end(
                text,
                Timestamp::from_micros(0),
                Timestamp::from_micros(5_000),
            )
            .status
    }

    #[test]
    fn text_is_completed_only_if_finished() {
        assert_eq!(status(Ok(FinishReason::Stop), "a"), ReplyStatus::Completed);
        assert_eq!(
            status(Ok(FinishReason::Length), "a"),
            ReplyStatus::Completed
        );
        assert_eq!(
            status(Err(ReplyFailure::ModelError), "a"),
            ReplyStatus::Incomplete
        );
        assert_eq!(
            status(Err(ReplyFailure::ModelError), ""),
            ReplyStatus::Failed
        );
        assert_eq!(
            status(Ok(FinishReason::Cancelled), "a"),
            ReplyStatus::Cancelled
        );
        assert_eq!(
            status(Ok(FinishReason::Cancelled), ""),
            ReplyStatus::Cancelled
        );
    }

    #[test]
    fn end_contains_length_and_digest_of_the_bytes() {
        let outcome = ReplyOutcome::cancelled();
        let end = outcome.reply_end(
            "é",
            Timestamp::from_micros(0),
            Timestamp::from_micros(5_000),
        );
        assert_eq!((end.length, end.response_time_ms), (2, 5));
        assert_eq!(
            end.sha256,
            "4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c"
        );
    }
}
