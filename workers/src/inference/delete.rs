//! Deletions of conversations, by the worker that owns the conversation, between two of its turns.
//!
//! The order is the promise. First what only helps and would be found through the rest (this worker's memory, texts in the
//! relay), then the store, then analytics; the ingress that waits is told when all of it is done.

use switchboard_backends::{
    relay::LOG_TTL,
    store::{StoreError, deletion::ConversationDeletion},
};
use switchboard_schemas::{
    conversation::{Message, MessageAuthor},
    conversation_job::DeleteJob,
    ids::MessageId,
    reply_event::PatchOutcome,
    time::Timestamp,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Inference, events, patch};
use crate::{
    job_loop::JobEnd,
    retry::{self, Backoff},
};

/// Messages that are looked at together for texts that the relay still has.
const MESSAGES_AT_ONCE: u32 = 100;

/// Deletes one conversation.
pub(super) async fn run(
    inference: &Inference,
    job: &DeleteJob,
    handover: &CancellationToken,
) -> JobEnd {
    tokio::select! {
        biased;
        () = handover.cancelled() => JobEnd::Open(std::time::Duration::ZERO),
        end = delete(inference, job) => end,
    }
}

async fn delete(inference: &Inference, job: &DeleteJob) -> JobEnd {
    let (config, backends) = (&inference.config, &inference.backends);
    let (limit, backoff) = (
        Instant::now() + config.job_deadline(),
        Backoff::of_store(config),
    );
    inference.histories.remove(&job.conversation_id);
    inference.summaries.remove(&job.conversation_id);
    forget_texts(inference, job).await;
    let deletion = ConversationDeletion {
        org_id: job.org_id.clone(),
        conversation_id: job.conversation_id.clone(),
        event_id: job.event_id.clone(),
        at: Timestamp::now(),
    };
    let deleted = retry::until(limit, backoff, "delete a conversation", || {
        backends.store.delete_conversation(&deletion)
    });
    let outcome = match deleted.await {
        Some(true) => PatchOutcome::Applied,
        Some(false) => PatchOutcome::NotFound,
        None => return JobEnd::Open(config.parked_delay()),
    };
    if let (PatchOutcome::Applied, Some(event)) = (outcome, events::conversation_deleted(job)) {
        let publish = || events::publish(&*backends.bus, config, &event);
        if retry::until(limit, backoff, "publish an event", publish)
            .await
            .is_none()
        {
            return JobEnd::Open(config.parked_delay());
        }
    }
    patch::answer(inference, &job.reply_to, &job.event_id, outcome).await;
    JobEnd::Finished
}

/// Has the relay forget the texts that it may still have. One that is away forgets them by itself, a quarter of an hour
/// after they were written.
async fn forget_texts(inference: &Inference, job: &DeleteJob) {
    let recent = recent_questions(inference, job)
        .await
        .unwrap_or_else(|error| {
            tracing::warn!(%error, "texts in the relay are left to their end");
            Vec::new()
        });
    for question in recent {
        if let Err(error) = inference.backends.relay.forget(&question).await {
            tracing::warn!(%error, "texts in the relay are left to their end");
            return;
        }
    }
}

/// The messages whose replies the relay may still know, latest first.
async fn recent_questions(
    inference: &Inference,
    job: &DeleteJob,
) -> Result<Vec<MessageId>, StoreError> {
    let (store, config) = (&inference.backends.store, &inference.config);
    let (org, id) = (&job.org_id, &job.conversation_id);
    let kept = LOG_TTL + config.job_deadline() + config.store_grace();
    let is_recent = |message: &Message| message.created_at.after(kept) > Timestamp::now();
    let (mut questions, mut end) = (
        Vec::new(),
        store.history_state(org, id).await?.message_count,
    );
    while end > 0 {
        let from = end.saturating_sub(u64::from(MESSAGES_AT_ONCE));
        let page = store
            .messages(
                org,
                id,
                from,
                u32::try_from(end - from).unwrap_or(MESSAGES_AT_ONCE),
            )
            .await?;
        let asked = page
            .iter()
            .rev()
            .filter(|message| message.author == MessageAuthor::User);
        questions.extend(asked.map(|message| message.id.clone()));
        end = if page.first().is_some_and(is_recent) {
            from
        } else {
            0
        };
    }
    Ok(questions)
}
