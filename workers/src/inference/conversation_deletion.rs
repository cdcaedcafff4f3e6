//! Deletes conversations, in the worker that owns them and between two of their turns.
//!
//! The order matters: first the caches of this worker and the texts in the relay, which are found
//! through the stored messages, then the records of the bus, the files, then the store, then the
//! event for analytics. The waiting ingress gets its response after all of them.

use switchboard_backends::{StoreError, relay::LOG_TTL, store::deletion::ConversationDeletion};
use switchboard_schemas::{
    conversation::{Message, MessageAuthor},
    conversation_job::DeleteJob,
    ids::MessageId,
    time::Timestamp,
};

use super::{InferenceHandler, events, metadata_patch::ConversationChange};
use crate::job_loop::JobEnd;

/// Messages per page in the search for texts that the relay still has.
const MESSAGE_PAGE_SIZE: u32 = 100;

/// Deletes one conversation.
pub(super) async fn delete_conversation(inference: &InferenceHandler, job: &DeleteJob) -> JobEnd {
    inference.histories.remove(&job.conversation_id);
    inference.summaries.remove(&job.conversation_id);
    remove_texts(inference, job).await;
    let deletion = ConversationDeletion {
        org_id: job.org_id.clone(),
        conversation_id: job.conversation_id.clone(),
        event_id: job.event_id.clone(),
        at: Timestamp::now(),
    };
    let change = ConversationChange {
        task: "delete a conversation",
        events: events::conversation_deleted(job).into_iter().collect(),
        event_id: &job.event_id,
        reply_to: &job.reply_to,
    };
    let (bus, store) = (&inference.backends.bus, &inference.backends.store);
    let delete = || async {
        let files = &inference.backends.files;
        files
            .remove_conversation(&job.org_id, &job.conversation_id)
            .await?;
        // Then the store, because its tombstone shows that the deletion is finished.
        bus.erase_records(job.conversation_id.as_str())
            .await
            .map_err(|error| StoreError::Unavailable(error.to_string()))?;
        let deleted = store.delete_conversation(&deletion).await?;
        // Files that were attached since; from here on their turns see the tombstone.
        files
            .remove_conversation(&job.org_id, &job.conversation_id)
            .await?;
        Ok(deleted)
    };
    change.run(inference, delete).await
}

/// Removes the reply texts that the relay may still have. In an unavailable relay they expire 15
/// minutes after they were written.
async fn remove_texts(inference: &InferenceHandler, job: &DeleteJob) {
    let recent = recent_user_messages(inference, job)
        .await
        .unwrap_or_else(|error| {
            tracing::warn!(%error, "could not remove texts from the relay; they will expire");
            Vec::new()
        });
    for message in recent {
        let relay = &inference.backends.relay;
        let removed = match relay.delete_frames(&message.reply()).await {
            Ok(()) => relay.delete_decisions(&message).await,
            Err(error) => Err(error),
        };
        if let Err(error) = removed {
            tracing::warn!(%error, "could not remove texts from the relay; they will expire");
            return;
        }
    }
}

/// Returns the user messages whose replies the relay may still have, newest first.
async fn recent_user_messages(
    inference: &InferenceHandler,
    job: &DeleteJob,
) -> Result<Vec<MessageId>, StoreError> {
    let (store, config) = (&inference.backends.store, &inference.config);
    let (org, id) = (&job.org_id, &job.conversation_id);
    let log_age_max = LOG_TTL + config.job_deadline() + config.store_grace();
    let is_recent = |message: &Message| message.created_at.after(log_age_max) > Timestamp::now();
    let (mut user_messages, mut end) = (
        Vec::new(),
        store.history_state(org, id).await?.message_count,
    );
    while end > 0 {
        let from = end.saturating_sub(u64::from(MESSAGE_PAGE_SIZE));
        let page = store
            .messages(
                org,
                id,
                from,
                u32::try_from(end - from).unwrap_or(MESSAGE_PAGE_SIZE),
            )
            .await?;
        let from_user = page
            .iter()
            .rev()
            .filter(|message| message.author == MessageAuthor::User);
        user_messages.extend(from_user.map(|message| message.id.clone()));
        end = if page.first().is_some_and(is_recent) {
            from
        } else {
            0
        };
    }
    Ok(user_messages)
}
