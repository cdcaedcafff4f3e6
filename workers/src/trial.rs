//! What was said before in a trial, as the messages that a stored conversation would have.

use std::sync::Arc;

use switchboard_backends::Backends;
use switchboard_schemas::{
    conversation::{Message, MessageAuthor, ReplyFacts, ReplyStatus, TokenUsage},
    ids::{ConversationId, MessageId},
    playground::PlaygroundMessage,
    time::Timestamp,
};

/// What the trial with this name runs on; none where it is not kept any more, or cannot be read. Nobody's message is
/// lost with a trial, so that it is not insisted upon.
pub(crate) async fn kept<T: serde::de::DeserializeOwned>(
    backends: &Backends,
    trial: &MessageId,
) -> Option<T> {
    match backends.relay.trial(trial).await {
        Ok(text) => serde_json::from_str(&text?).ok(),
        Err(error) => {
            tracing::warn!(%error, "what a trial runs on cannot be read");
            None
        }
    }
}

/// The messages of `past`, in a conversation that no store knows.
pub(crate) fn messages(
    conversation: &ConversationId,
    past: Vec<PlaygroundMessage>,
) -> Arc<Vec<Message>> {
    let message = |(position, said)| {
        let (author, content) = match said {
            PlaygroundMessage::User { content } => (MessageAuthor::User, content),
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
                    generation: 0,
                    truncation: None,
                    steps: None,
                    summary: None,
                };
                (MessageAuthor::Assistant(Box::new(facts)), content)
            }
        };
        Message {
            id: MessageId::new_in(conversation),
            position,
            content,
            created_at: Timestamp::now(),
            author,
        }
    };
    Arc::new((0..).zip(past).map(message).collect())
}
