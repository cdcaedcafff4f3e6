//! Runs one turn from its claim to its final state.
//!
//! The job on the bus is durable, so the user message is stored and announced beside the model
//! call. Only a history that is not cached is read from a store before it.

use std::{sync::Arc, time::Duration};

use switchboard_backends::relay::{ClaimTask, LEASE};
use switchboard_schemas::{
    agent::Agent,
    conversation_job::ReplyJob,
    reply_event::{FrameBody, ReplyEnd, ReplyFailure},
    time::Timestamp,
};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{
    InferenceHandler, announcement,
    claim::{self, ClaimAttempts, ClaimedReply},
    history::{ConversationHistory, PendingTurn, TurnState},
    reply_generator::ReplyGenerator,
    reply_outcome::ReplyOutcome,
    reply_writer::ReplyWriter,
    turn_deadlines::TurnDeadlines,
    turn_finalizer::{TurnCompletion, TurnFinalizer},
    turn_store::{ConversationTurnStore, TurnStore},
};
use crate::{dead_letter::DeadLetterCause, job_loop::JobEnd};

/// Longest time for which a handoff waits for the release of its claim.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(1);

/// Answers a message of a conversation, or completes the work of an earlier attempt.
pub(super) async fn run_turn(
    inference: &InferenceHandler,
    job: &ReplyJob,
    queued_at: Timestamp,
    attempts: &ClaimAttempts,
    handoff: &CancellationToken,
) -> JobEnd {
    let claimed = match claim::claim_reply(inference, job, attempts).await {
        Ok(claimed) => claimed,
        Err(end) => return end,
    };
    let deadlines = TurnDeadlines::from_now(&inference.config);
    let attempt = claimed.writer.token().attempt;
    let store = ConversationTurnStore::new(inference, job, attempt, deadlines);
    TurnRunner::new(
        inference,
        job,
        queued_at,
        &claimed.writer,
        &store,
        deadlines,
    )
    .run(&claimed, None, handoff)
    .await
}

/// Orchestration of one claimed turn.
pub(super) struct TurnRunner<'a> {
    inference: &'a InferenceHandler,
    writer: &'a ReplyWriter,
    store: &'a dyn TurnStore,
    generator: ReplyGenerator<'a>,
    finalizer: TurnFinalizer<'a>,
}

/// Origin of the final reply.
enum CompletionSource {
    /// The model generates the reply.
    Model,
    /// The reply fails without a model call.
    Failure(ReplyFailure),
    /// An earlier attempt finalized the reply.
    Finalized(ReplyEnd),
}

impl CompletionSource {
    fn from_task(task: &ClaimTask) -> Self {
        match task {
            // `load_state` finds the stored reply of an `Announce`, so that its source is not used.
            ClaimTask::Generate | ClaimTask::Announce => Self::Model,
            ClaimTask::StoreFinalized { end } => match &end.body {
                FrameBody::End(end) => Self::Finalized((**end).clone()),
                _ => Self::Failure(ReplyFailure::Internal),
            },
            ClaimTask::GiveUp => Self::Failure(ReplyFailure::AttemptsExhausted),
        }
    }
}

impl<'a> TurnRunner<'a> {
    pub(super) fn new(
        inference: &'a InferenceHandler,
        job: &'a ReplyJob,
        queued_at: Timestamp,
        writer: &'a ReplyWriter,
        store: &'a dyn TurnStore,
        deadlines: TurnDeadlines,
    ) -> Self {
        Self {
            inference,
            writer,
            store,
            generator: ReplyGenerator::new(inference, job, writer, deadlines.reply),
            finalizer: TurnFinalizer::new(
                inference,
                job,
                queued_at,
                writer,
                store,
                deadlines.storage,
            ),
        }
    }

    /// Uses an agent that is not saved instead of the one in the catalog.
    pub(super) fn with_draft(mut self, draft: Arc<Agent>) -> Self {
        self.generator = self.generator.with_draft(draft);
        self
    }

    /// Runs the claimed task beside the writer, until it ends, the claim is lost or `handoff` is
    /// cancelled. `failure` replaces the model call if the turn cannot be answered.
    pub(super) async fn run(
        &self,
        claimed: &ClaimedReply,
        failure: Option<ReplyFailure>,
        handoff: &CancellationToken,
    ) -> JobEnd {
        let source = match CompletionSource::from_task(&claimed.task) {
            CompletionSource::Model => failure
                .or_else(|| {
                    self.is_overdue(claimed)
                        .then_some(ReplyFailure::DeadlineExceeded)
                })
                .map_or(CompletionSource::Model, CompletionSource::Failure),
            source => source,
        };
        // A cached history may be used if it is as long as the relay counts. That holds for a first
        // attempt only: after an earlier one the store may have more messages.
        let is_first = claimed.task == ClaimTask::Generate && self.writer.token().attempt == 1;
        let message_count = claimed.message_count.filter(|_| is_first);
        let end = tokio::select! {
            biased;
            // Another worker holds the claim; claiming again later tells what it did.
            () = self.writer.fenced().cancelled() => JobEnd::RetryAfter(LEASE),
            () = handoff.cancelled() => self.release_for_retry().await,
            // Never returns.
            () = self.writer.drive() => JobEnd::RetryAfter(LEASE),
            end = Box::pin(self.run_source(source, message_count)) => end,
        };
        match end {
            JobEnd::Finished if claimed.task == ClaimTask::GiveUp => self.dead_letter_exhausted(),
            end => end,
        }
    }

    /// Returns true if the message has waited too long to be answered at all.
    fn is_overdue(&self, claimed: &ClaimedReply) -> bool {
        let queue_wait_max = Duration::from_millis(self.inference.config.turn_begin_max_ms);
        self.writer.whole_text().is_empty() && claimed.queue_wait > queue_wait_max
    }

    async fn run_source(&self, source: CompletionSource, message_count: Option<u64>) -> JobEnd {
        // The first heartbeat shows that the turn has started, and learns about a cancellation.
        let (state, ()) = tokio::join!(
            self.store.load_state(message_count),
            self.writer.flush(true)
        );
        match state {
            Some(TurnState::Pending(turn)) => {
                Box::pin(self.finish_pending_turn(&turn, source)).await
            }
            Some(TurnState::Final(record)) => self.finalizer.announce_stored(&record).await,
            Some(TurnState::Deleted) => self.finalizer.end_deleted().await,
            None => self.release_for_retry().await,
        }
    }

    /// Brings a pending turn to its end, publishing its events beside the work.
    async fn finish_pending_turn(&self, turn: &PendingTurn, source: CompletionSource) -> JobEnd {
        // Before the message is stored: what it names is kept as long as it is.
        if !self.store.attach_files().await {
            return JobEnd::RetryAfter(self.inference.config.parked_delay());
        }
        let (announcement, publication) = announcement::channel();
        let work = async {
            let (completion, stored) = tokio::join!(
                self.obtain_completion(&turn.history, source),
                self.store_user_message(turn)
            );
            if !stored {
                return JobEnd::RetryAfter(self.inference.config.parked_delay());
            }
            self.finalizer
                .finish_turn(turn, completion, announcement)
                .await
        };
        tokio::select! {
            end = work => end,
            () = self.store.publish_events(turn.position, publication) => JobEnd::RetryAfter(LEASE),
        }
    }

    async fn obtain_completion(
        &self,
        history: &ConversationHistory,
        source: CompletionSource,
    ) -> TurnCompletion {
        match source {
            CompletionSource::Model => {
                TurnCompletion::Generated(self.generator.generate_reply(history).await)
            }
            CompletionSource::Failure(failure) => {
                TurnCompletion::Generated(ReplyOutcome::failed(failure).into())
            }
            CompletionSource::Finalized(end) => TurnCompletion::Finalized(end),
        }
    }

    /// Stores the user message; until then nothing of the reply is displayed.
    async fn store_user_message(&self, turn: &PendingTurn) -> bool {
        let stored = self.store.store_user_message(turn).await;
        if stored {
            self.writer.mark_user_message_stored();
        }
        stored
    }

    /// Ends the lease, so that the next holder starts at once: while draining, and when the state
    /// could not be read.
    async fn release_for_retry(&self) -> JobEnd {
        let deadline = Instant::now() + RELEASE_TIMEOUT;
        let _ = timeout_at(deadline, self.inference.release_claim(self.writer.token())).await;
        JobEnd::RetryAfter(Duration::from_millis(
            self.inference.config.store_retry_delay_max_ms,
        ))
    }

    /// Sends the job whose attempts all died to the dead letter topic; its reply has failed
    /// visibly.
    fn dead_letter_exhausted(&self) -> JobEnd {
        JobEnd::DeadLetter(DeadLetterCause {
            class: "attempts-exhausted",
            reason: "every attempt died before the reply had its final state".to_owned(),
            attempts: self.writer.token().attempt,
        })
    }
}
