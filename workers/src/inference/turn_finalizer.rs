//! Gives a turn its one final state: finalized, stored, announced, completed.
//!
//! The order is the guarantee. The reply is finalized first, so that no other text can be stored.
//! Where the relay cannot say so for certain, the store decides between the ends of all attempts.
//! The reply is stored before the client sees its end and before its event is published, because an
//! attempt that finds no trace of a reply generates another text. The claim is done once the event
//! is published; until then, the next holder has to publish it.

use switchboard_backends::{
    relay::LEASE,
    store::{ReplyRecord, TurnEnd},
};
use switchboard_schemas::{
    conversation::{FinishReason, ReplyStatus, ReplySteps},
    conversation_job::ReplyJob,
    reply_event::{ReplyEnd, ReplyFailure},
    time::Timestamp,
};
use tokio::time::{Instant, timeout_at};

use super::{
    InferenceHandler,
    announcement::AnnouncementSender,
    events,
    history::PendingTurn,
    prompt_builder::PromptFacts,
    reply_generator::GeneratedReply,
    reply_outcome::{FinishedTurn, ReplyOutcome, text_digest},
    reply_writer::{FinalizeResult, ReplyWriter},
    turn_store::{SettledEnd, TurnStore},
};
use crate::job_loop::JobEnd;

/// Result of a turn that has to be stored.
pub(super) enum TurnCompletion {
    /// Generated, or failed, in this attempt.
    Generated(GeneratedReply),
    /// Finalized by an earlier attempt.
    Finalized(ReplyEnd),
}

/// Finalizes, stores and announces one turn.
pub(super) struct TurnFinalizer<'a> {
    inference: &'a InferenceHandler,
    job: &'a ReplyJob,
    writer: &'a ReplyWriter,
    store: &'a dyn TurnStore,
    /// Latest end of storing and announcing.
    deadline: Instant,
    /// Times until the claim of this attempt.
    steps: ReplySteps,
}

impl<'a> TurnFinalizer<'a> {
    pub(super) fn new(
        inference: &'a InferenceHandler,
        job: &'a ReplyJob,
        queued_at: Timestamp,
        writer: &'a ReplyWriter,
        store: &'a dyn TurnStore,
        deadline: Instant,
    ) -> Self {
        Self {
            inference,
            job,
            writer,
            store,
            deadline,
            steps: steps_until_claim(job, queued_at),
        }
    }

    /// Brings a turn with a completion to its final state.
    pub(super) async fn finish_turn(
        &self,
        turn: &PendingTurn,
        completion: TurnCompletion,
        announcement: AnnouncementSender,
    ) -> JobEnd {
        let finished = match completion {
            TurnCompletion::Generated(reply) => self.finalize_reply(turn.position, reply).await,
            TurnCompletion::Finalized(end) => Some(self.adopt_finalized(turn.position, end).await),
        };
        let Some(finished) = finished else {
            return JobEnd::RetryAfter(LEASE);
        };
        let own = finished.turn_end(self.job, turn.history.tombstone.clone());
        if self.writer.holds_finalized_reply().await {
            return self.store_and_complete(turn, own, announcement).await;
        }
        match self.store.settle_end(&own).await {
            Some(SettledEnd::Unstored(settled)) => {
                if *settled != own {
                    // The log of this claim has another text: the relay must not finalize it.
                    self.writer.mark_finalized().await;
                }
                self.store_and_complete(turn, *settled, announcement).await
            }
            Some(SettledEnd::Stored(record)) => self.announce_stored(&record).await,
            Some(SettledEnd::Deleted) => self.end_deleted().await,
            None => JobEnd::RetryAfter(self.inference.config.parked_delay()),
        }
    }

    /// Announces and completes a turn whose reply an earlier attempt stored.
    pub(super) async fn announce_stored(&self, record: &ReplyRecord) -> JobEnd {
        if let Err(end) = self.store.republish_events(record).await {
            return end;
        }
        self.complete_ended(&record.end, record.message_count())
            .await
    }

    /// Completes a turn that was deleted with its conversation, so that neither its text nor an
    /// event comes back.
    pub(super) async fn end_deleted(&self) -> JobEnd {
        let waited_ms = Timestamp::now().millis_since(self.job.turn.accepted_at);
        self.complete_ended(&ReplyEnd::cancelled_in_queue(waited_ms), 0)
            .await
    }

    /// Completes the claim of a reply that has nothing left to store or announce.
    async fn complete_ended(&self, end: &ReplyEnd, message_count: u64) -> JobEnd {
        self.writer.mark_finalized().await;
        if self.writer.complete(end, message_count, true).await {
            JobEnd::Finished
        } else {
            JobEnd::RetryAfter(LEASE)
        }
    }

    /// Finalizes the reply of this attempt; `None` if another worker holds the claim.
    async fn finalize_reply(&self, position: u64, reply: GeneratedReply) -> Option<FinishedTurn> {
        let text = self.writer.whole_text();
        let (accepted_at, now) = (self.job.turn.accepted_at, Timestamp::now());
        let mut end = reply.outcome.reply_end(&text, accepted_at, now);
        let mut result = self.writer.finalize(&end).await;
        if result == FinalizeResult::Cancelled {
            // The cancellation came first: the reply ends as cancelled, whatever the model
            // returned.
            end = ReplyOutcome {
                end: Ok(FinishReason::Cancelled),
                ..reply.outcome.clone()
            }
            .reply_end(&text, accepted_at, now);
            result = self.writer.finalize(&end).await;
        }
        if result == FinalizeResult::Fenced {
            return None;
        }
        let steps = ReplySteps {
            asked_ms: reply.asked_ms,
            first_text_ms: reply.outcome.first_text_ms,
            ..self.steps
        };
        Some(
            self.finished_turn(position, text, end, reply.prompt, steps)
                .await,
        )
    }

    /// Takes over the end that an earlier attempt finalized.
    async fn adopt_finalized(&self, position: u64, end: ReplyEnd) -> FinishedTurn {
        let text = self.writer.whole_text();
        let end = if text_digest(&text) == end.sha256 {
            end
        } else {
            // The log has expired after finalization: the remaining text is only an incomplete
            // reply.
            tracing::error!("the log of a finalized reply is not complete");
            let outcome = ReplyOutcome {
                usage: end.usage,
                ..ReplyOutcome::failed(ReplyFailure::Internal)
            };
            outcome.reply_end(&text, self.job.turn.accepted_at, Timestamp::now())
        };
        self.writer.mark_finalized().await;
        self.finished_turn(position, text, end, PromptFacts::default(), self.steps)
            .await
    }

    async fn finished_turn(
        &self,
        user_position: u64,
        text: String,
        end: ReplyEnd,
        prompt: PromptFacts,
        steps: ReplySteps,
    ) -> FinishedTurn {
        FinishedTurn {
            user_position,
            head: self.writer.head(),
            text,
            end,
            generation: self.writer.generation().await,
            attempt: self.writer.token().attempt,
            finished_at: Timestamp::now(),
            prompt,
            steps,
        }
    }

    async fn store_and_complete(
        &self,
        turn: &PendingTurn,
        turn_end: TurnEnd,
        announcement: AnnouncementSender,
    ) -> JobEnd {
        let (end, message) = (&turn_end.record.end, turn_end.message.as_ref());
        let text = message.map_or("", |message| &message.content);
        let Some(message_count) = self.store.store_reply(turn, &turn_end).await else {
            return JobEnd::RetryAfter(self.inference.config.parked_delay());
        };
        self.count_end(end);
        let event = events::assistant_message(self.job, &turn_end.record, text);
        // The client gets its end now; the claim is not done until the event is published as well.
        if !self.writer.complete(end, message_count, false).await {
            return JobEnd::RetryAfter(LEASE);
        }
        let published = announcement.send_event(event);
        let is_published = timeout_at(self.deadline, published.cancelled())
            .await
            .is_ok();
        if is_published && self.writer.complete(end, message_count, true).await {
            JobEnd::Finished
        } else {
            JobEnd::RetryAfter(LEASE)
        }
    }

    fn count_end(&self, end: &ReplyEnd) {
        let metrics = &self.inference.metrics;
        let status = match end.status {
            ReplyStatus::Completed => "completed",
            ReplyStatus::Incomplete => "incomplete",
            ReplyStatus::Cancelled => "cancelled",
            _ => "failed",
        };
        metrics.replies.with_label_values(&[status]).inc();
        metrics
            .tokens
            .with_label_values(&["prompt"])
            .inc_by(end.usage.prompt_tokens);
        metrics
            .tokens
            .with_label_values(&["completion"])
            .inc_by(end.usage.completion_tokens);
    }
}

/// Returns the times from acceptance to each step up to the claim, which is now.
fn steps_until_claim(job: &ReplyJob, queued_at: Timestamp) -> ReplySteps {
    let since_acceptance = |at: Timestamp| at.millis_since(job.turn.accepted_at);
    let routed_ms = job
        .routed
        .as_ref()
        .and_then(|routed| routed.routed_at)
        .map(since_acceptance);
    ReplySteps {
        routed_ms,
        // Brokers truncate times to milliseconds.
        queued_ms: Some(since_acceptance(queued_at).max(routed_ms.unwrap_or_default())),
        claimed_ms: Some(since_acceptance(Timestamp::now())),
        ..ReplySteps::default()
    }
}
