//! Removal of the texts that the relay still has of a conversation.

use std::time::Duration;

use switchboard_backends::{Backends, StoreError};
use switchboard_schemas::{
    conversation::{Message, MessageAuthor},
    ids::{ConversationId, MessageId, OrgId},
    time::Timestamp,
};

/// Messages per page in the search for texts that the relay still has.
const MESSAGE_PAGE_SIZE: u32 = 100;

/// Removes the texts that the relay may have of messages of this age at most. In an unavailable
/// relay they expire.
pub(crate) async fn remove_texts(
    backends: &Backends,
    org: &OrgId,
    conversation: &ConversationId,
    age_max: Duration,
) {
    let recent = recent_user_messages(backends, org, conversation, age_max)
        .await
        .unwrap_or_else(|error| {
            tracing::warn!(%error, "could not remove texts from the relay; they will expire");
            Vec::new()
        });
    for message in recent {
        let relay = &backends.relay;
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
    backends: &Backends,
    org: &OrgId,
    id: &ConversationId,
    age_max: Duration,
) -> Result<Vec<MessageId>, StoreError> {
    let store = &backends.store;
    let is_recent = |message: &Message| message.created_at.after(age_max) > Timestamp::now();
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
