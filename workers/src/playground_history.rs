//! Loads the input of playground runs and converts their earlier messages into a conversation's
//! messages.

use std::sync::Arc;

use switchboard_backends::Backends;
use switchboard_schemas::{
    conversation::{Message, MessageAuthor, ReplyFacts, ReplyStatus, TokenUsage},
    ids::{ConversationId, MessageId},
    playground::PlaygroundMessage,
    time::Timestamp,
};

/// Returns the input of a playground run; `None` if it has expired or cannot be read. It is not
/// read again, because no visitor's message depends on it.
pub(crate) async fn load_run<T: serde::de::DeserializeOwned>(
    backends: &Backends,
    run_id: &MessageId,
) -> Option<T> {
    match backends.relay.playground_run(run_id).await {
        Ok(text) => serde_json::from_str(&text?).ok(),
        Err(error) => {
            tracing::warn!(%error, "could not read the input of a playground run");
            None
        }
    }
}

/// Returns `past` as messages of a conversation that is not stored.
pub(crate) fn to_messages(
    conversation: &ConversationId,
    past: Vec<PlaygroundMessage>,
) -> Arc<Vec<Message>> {
    let message = |(position, past_message)| {
        let (author, content, attachments) = match past_message {
            PlaygroundMessage::User {
                content,
                attachments,
            } => (MessageAuthor::User, content, attachments),
            PlaygroundMessage::Assistant {
                agent_id,
                content,
                ui_spec,
            } => {
                let facts = ReplyFacts {
                    agent_id,
                    agent_name: String::new(),
                    status: ReplyStatus::Completed,
                    finish_reason: None,
                    usage: TokenUsage::default(),
                    response_time_ms: 0,
                    model: String::new(),
                    routing_reason: None,
                    routing: None,
                    ui_spec,
                    generation: 1,
                    truncation: None,
                    steps: None,
                    summary: None,
                };
                (
                    MessageAuthor::Assistant(Box::new(facts)),
                    content,
                    Vec::new(),
                )
            }
        };
        Message {
            id: MessageId::new_in(conversation),
            position,
            content,
            attachments,
            created_at: Timestamp::now(),
            author,
        }
    };
    Arc::new((0..).zip(past).map(message).collect())
}
