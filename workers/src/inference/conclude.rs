//! Gives a turn its one final state (step 9 of the path): sealed, stored, told to the client, announced to analytics.
//!
//! The order is the promise. Sealed first, so that no other text can be stored; stored before the client sees a clean
//! end; settled only when analytics has it, or with a mark that the next holder is to announce it.

use std::time::Duration;

use switchboard_backends::{
    relay::LEASE,
    store::{ReplyRecord, SessionLink},
};
use switchboard_schemas::{
    conversation::{FinishReason, Message, MessageAuthor, ReplyStatus},
    ids::ConversationId,
    message_event::MessageEvent,
    reply_event::{ReplyEnd, ReplyFailure},
    time::Timestamp,
};
use tokio::{
    sync::oneshot::{Receiver, Sender},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{
    answer::Turn,
    events,
    history::History,
    outcome::{Ended, Outcome, digest},
    reply_writer::Sealed,
};
use crate::{dead_letter::Cause, job_loop::JobEnd};

impl Turn<'_> {
    /// Concludes what was made just now.
    pub(super) async fn conclude(
        &self,
        position: u64,
        before: &History,
        outcome: Outcome,
        tell: Sender<MessageEvent>,
        announced: &CancellationToken,
    ) -> JobEnd {
        let text = self.writer.whole_text();
        let Some(end) = self.seal_end(outcome, &text).await else {
            return JobEnd::Open(LEASE);
        };
        let first_text_ms = outcome.first_text_ms;
        self.store_and_tell(
            self.ended(position, text, end, first_text_ms).await,
            before,
            tell,
            announced,
        )
        .await
    }

    /// Fixes how the reply ends; none when the claim is another's.
    pub(super) async fn seal_end(&self, outcome: Outcome, text: &str) -> Option<ReplyEnd> {
        let (accepted_at, now) = (self.job.turn.accepted_at, Timestamp::now());
        let mut end = outcome.reply_end(text, accepted_at, now);
        let mut sealed = self.writer.seal(&end).await;
        if sealed == Sealed::Cancelled {
            // The wish to stop came before the seal: the reply ends as cancelled, whatever the model said.
            end = Outcome {
                end: Ok(FinishReason::Cancelled),
                ..outcome
            }
            .reply_end(text, accepted_at, now);
            sealed = self.writer.seal(&end).await;
        }
        (sealed != Sealed::Fenced).then_some(end)
    }

    /// Concludes what an earlier attempt sealed.
    pub(super) async fn conclude_sealed(
        &self,
        position: u64,
        before: &History,
        end: ReplyEnd,
        tell: Sender<MessageEvent>,
        announced: &CancellationToken,
    ) -> JobEnd {
        let text = self.writer.whole_text();
        let end = if digest(&text) == end.sha256 {
            end
        } else {
            // The log has expired under a sealed end: what is left is honest only as a cut.
            tracing::error!("the log of a sealed reply is not complete");
            let outcome = Outcome {
                usage: end.usage,
                ..Outcome::failed(ReplyFailure::Internal)
            };
            outcome.reply_end(&text, self.job.turn.accepted_at, Timestamp::now())
        };
        self.writer.mark_sealed().await;
        self.store_and_tell(
            self.ended(position, text, end, None).await,
            before,
            tell,
            announced,
        )
        .await
    }

    /// The reply is stored: tells analytics and the client.
    pub(super) async fn announce(&self, record: &ReplyRecord) -> JobEnd {
        let text = match self.stored_text(record).await {
            Ok(text) => text,
            Err(end) => return end,
        };
        let facts = [
            events::user_message(self.job, record.user_position),
            events::assistant_message(self.job, record, &text),
        ];
        for event in &facts {
            if !self.publish(event).await {
                return JobEnd::Open(LEASE);
            }
        }
        self.writer.mark_sealed().await;
        if self
            .writer
            .settle(&record.end, record.message_count(), true)
            .await
        {
            JobEnd::Finished
        } else {
            JobEnd::Open(LEASE)
        }
    }

    /// Publishes the user message, then what becomes of it; never returns, so that the work beside it decides.
    pub(super) async fn publish_events(
        &self,
        position: u64,
        told: Receiver<MessageEvent>,
        announced: &CancellationToken,
    ) {
        let user = self
            .publish(&events::user_message(self.job, position))
            .await;
        if let Ok(event) = told.await
            && user
            && self.publish(&event).await
        {
            announced.cancel();
        }
        std::future::pending().await
    }

    async fn ended(
        &self,
        position: u64,
        text: String,
        end: ReplyEnd,
        first_text_ms: Option<u64>,
    ) -> Ended {
        Ended {
            user_position: position,
            head: self.writer.head(),
            text,
            end,
            generation: self.writer.generation().await,
            attempt: self.writer.token().attempt,
            finished_at: Timestamp::now(),
            first_text_ms,
            told: self.told(),
            steps: self.steps(first_text_ms),
        }
    }

    async fn store_and_tell(
        &self,
        ended: Ended,
        before: &History,
        tell: Sender<MessageEvent>,
        announced: &CancellationToken,
    ) -> JobEnd {
        let turn_end = ended.turn_end(self.job, before.tombstone.clone());
        let record = &turn_end.record;
        // Analytics is told while the store writes; the receiver lives as long as this turn.
        let _ = tell.send(events::assistant_message(self.job, record, &ended.text));
        let store = &*self.inference.backends.store;
        let link = self.session_link(&ended, record.position);
        let stored = self.insist(self.conclusion_limit, "store the reply", || async {
            // Before the end is: whoever hears of it may read the conversation through the agent that answered.
            if let Some(link) = &link {
                store.link_session(link).await?;
            }
            store.finish_turn(&turn_end).await
        });
        let stored = stored.await;
        if stored.is_none() {
            return JobEnd::Open(self.inference.config.parked_delay());
        }
        self.measure_end(&ended.end);
        self.remember(before, &ended, turn_end.message.clone());
        let count = record.message_count();
        let wait = Duration::from_millis(self.inference.config.event_ack_wait_ms);
        let in_time = timeout(wait, announced.cancelled()).await.is_ok();
        if !self.writer.settle(&ended.end, count, in_time).await {
            return JobEnd::Open(LEASE);
        }
        if in_time || self.settle_late(&ended.end, count, announced).await {
            JobEnd::Finished
        } else {
            JobEnd::Open(LEASE)
        }
    }

    /// Makes a team's or a page visitor's conversation readable through the agent that answered in it.
    fn session_link(&self, ended: &Ended, position: Option<u64>) -> Option<SessionLink> {
        let turn = &self.job.turn;
        let own = ConversationId::of_agent(&turn.org_id, &self.job.agent_id, &turn.session_id);
        (turn.conversation_id != own && position.is_some()).then(|| SessionLink {
            org_id: turn.org_id.clone(),
            agent_id: self.job.agent_id.clone(),
            session_id: turn.session_id.clone(),
            conversation_id: turn.conversation_id.clone(),
            answered_at: ended.finished_at,
        })
    }

    /// The client has its end; the record stays open until analytics has the reply as well.
    async fn settle_late(&self, end: &ReplyEnd, count: u64, announced: &CancellationToken) -> bool {
        let told = tokio::time::timeout_at(self.conclusion_limit, announced.cancelled()).await;
        told.is_ok() && self.writer.settle(end, count, true).await
    }

    fn remember(&self, before: &History, ended: &Ended, reply: Option<Message>) {
        let turn = &self.job.turn;
        let question = Message {
            id: turn.message_id.clone(),
            position: ended.user_position,
            content: turn.content.clone(),
            created_at: turn.accepted_at,
            author: MessageAuthor::User,
        };
        self.inference.histories.add(
            &turn.conversation_id,
            before,
            std::iter::once(question).chain(reply),
        );
    }

    /// The text of a stored reply, or how this run ends without it.
    async fn stored_text(&self, record: &ReplyRecord) -> Result<String, JobEnd> {
        let Some(position) = record.position else {
            return Ok(String::new());
        };
        let (store, turn) = (&*self.inference.backends.store, &self.job.turn);
        let read = || store.messages(&turn.org_id, &turn.conversation_id, position, 1);
        let messages = self
            .insist(self.conclusion_limit, "read the stored reply", read)
            .await;
        let messages = messages.ok_or(JobEnd::Open(LEASE))?;
        let reply = messages
            .into_iter()
            .find(|message| message.id == turn.reply_id());
        // No later try will find it: an operator has to look.
        let lost = || {
            let reason = "the reply is recorded, but its text is not in the store".to_owned();
            JobEnd::Dead(Cause {
                class: "reply-text-lost",
                reason,
                attempts: self.writer.token().attempt,
            })
        };
        reply.map(|message| message.content).ok_or_else(lost)
    }

    async fn publish(&self, event: &MessageEvent) -> bool {
        let (bus, config) = (&*self.inference.backends.bus, &self.inference.config);
        self.insist(self.conclusion_limit, "publish an event", || {
            events::publish(bus, config, event)
        })
        .await
        .is_some()
    }

    pub(super) fn measure_end(&self, end: &ReplyEnd) {
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
