//! How a turn ended, as it is sealed, stored and told. Pure.

use sha2::{Digest, Sha256};
use switchboard_backends::store::{ReplyRecord, TurnEnd, deletion::Tombstone};
use switchboard_schemas::{
    conversation::{
        ContextTruncation, ConversationSummary, FinishReason, Message, MessageAuthor, ReplyFacts,
        ReplyStatus, ReplySteps, TokenUsage,
    },
    conversation_job::ReplyJob,
    reply_event::{ReplyEnd, ReplyFailure, ReplyHead},
    time::Timestamp,
};

/// How the work on a reply ended, before anyone was told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Outcome {
    /// Why it is complete, or why it is not.
    pub(crate) end: Result<FinishReason, ReplyFailure>,
    /// Tokens.
    pub(crate) usage: TokenUsage,
    /// Milliseconds from acceptance to the first text.
    pub(crate) first_text_ms: Option<u64>,
}

impl Outcome {
    /// An end without a model call.
    pub(crate) fn failed(failure: ReplyFailure) -> Self {
        Self {
            end: Err(failure),
            usage: TokenUsage::default(),
            first_text_ms: None,
        }
    }

    /// Stopped by request.
    pub(crate) fn cancelled() -> Self {
        Self {
            end: Ok(FinishReason::Cancelled),
            usage: TokenUsage::default(),
            first_text_ms: None,
        }
    }

    /// The end frame's content for this outcome over `text`.
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
            sha256: digest(text),
            response_time_ms: now.millis_since(accepted_at),
            failure: self.end.err(),
        }
    }
}

/// SHA-256 in hexadecimal.
pub(crate) fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Everything that is known of a turn at its end.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    /// Place of the user message.
    pub(crate) user_position: u64,
    /// How the reply began.
    pub(crate) head: Option<ReplyHead>,
    /// Its text.
    pub(crate) text: String,
    /// How it ended.
    pub(crate) end: ReplyEnd,
    /// The generation of its text.
    pub(crate) generation: u32,
    /// The attempt that writes.
    pub(crate) attempt: u32,
    /// When it ended.
    pub(crate) finished_at: Timestamp,
    /// Milliseconds from acceptance to the first text.
    pub(crate) first_text_ms: Option<u64>,
    /// What the model was told, if this attempt asked one.
    pub(crate) told: ToldFacts,
    /// When it came how far.
    pub(crate) steps: ReplySteps,
}

/// What is kept of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ToldFacts {
    /// What did not fit.
    pub(crate) left_out: Option<ContextTruncation>,
    /// The summary, if it is to be kept with this reply.
    pub(crate) summary: Option<ConversationSummary>,
}

impl Ended {
    /// What is kept under the reply's id.
    pub(crate) fn record(&self, job: &ReplyJob) -> ReplyRecord {
        ReplyRecord {
            user_message_id: job.turn.message_id.clone(),
            user_position: self.user_position,
            position: (!self.text.is_empty()).then_some(self.user_position + 1),
            head: self.head.clone(),
            end: self.end.clone(),
            generation: self.generation,
            attempt: self.attempt,
            finished_at: self.finished_at,
            first_text_ms: self.first_text_ms,
        }
    }

    /// The assistant message, if there is text.
    pub(crate) fn message(&self, job: &ReplyJob) -> Option<Message> {
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
            truncation: self.told.left_out,
            summary: self.told.summary.clone(),
            steps: Some(self.steps),
        };
        (!self.text.is_empty()).then(|| Message {
            id: job.turn.reply_id(),
            position: self.user_position + 1,
            content: self.text.clone(),
            created_at: self.finished_at,
            author: MessageAuthor::Assistant(Box::new(facts)),
        })
    }

    /// What the store is told.
    pub(crate) fn turn_end(&self, job: &ReplyJob, tombstone: Option<Tombstone>) -> TurnEnd {
        TurnEnd {
            org_id: job.turn.org_id.clone(),
            accepted_at: job.turn.accepted_at,
            tombstone,
            attempt: self.attempt,
            user_message_id: job.turn.message_id.clone(),
            agent_id: Some(job.agent_id.clone()),
            team_id: job.routed.as_ref().map(|routed| routed.team_id.clone()),
            message: self.message(job),
            record: self.record(job),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(end: Result<FinishReason, ReplyFailure>, text: &str) -> ReplyStatus {
        let outcome = Outcome {
            end,
            usage: TokenUsage::default(),
            first_text_ms: None,
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
    fn only_what_the_provider_finished_is_complete() {
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
    fn the_end_tells_length_and_digest_of_the_bytes() {
        let outcome = Outcome::cancelled();
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
