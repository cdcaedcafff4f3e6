//! Deletes conversations, in the worker that owns them and between two of their turns.
//!
//! The order matters: first the caches of this worker and the texts in the relay, which are found
//! through the stored messages, then the records of the bus, the files, then the store, then the
//! event for analytics. The waiting ingress gets its response after all of them.

use switchboard_backends::{StoreError, relay::LOG_TTL, store::deletion::ConversationDeletion};
use switchboard_schemas::{conversation_job::DeleteJob, time::Timestamp};

use super::{
    InferenceHandler, events, metadata_patch::ConversationChange, relay_texts::remove_texts,
};
use crate::job_loop::JobEnd;

/// Deletes one conversation.
pub(super) async fn delete_conversation(inference: &InferenceHandler, job: &DeleteJob) -> JobEnd {
    inference.histories.remove(&job.conversation_id);
    inference.summaries.remove(&job.conversation_id);
    let (backends, config) = (&inference.backends, &inference.config);
    let log_age_max = LOG_TTL + config.job_deadline() + config.store_grace();
    remove_texts(backends, &job.org_id, &job.conversation_id, log_age_max).await;
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
