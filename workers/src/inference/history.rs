//! What was said before: kept in the worker that owns the conversation, trusted only while the relay's count agrees.

use std::sync::Arc;

use moka::sync::Cache;
use serde_json::Value;
use switchboard_backends::store::{
    ConversationStore, ReplyRecord, StoreError,
    deletion::{HistoryState, Tombstone},
};
use switchboard_schemas::{
    conversation::{Message, MessageAuthor},
    ids::{ConversationId, OrgId},
    turn::Turn,
};

use crate::config::WorkersConfig;

/// Bytes that a cached message costs beside its text.
const MESSAGE_OVERHEAD_BYTES: usize = 512;

/// The last messages of a conversation.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// Messages in the whole conversation.
    pub(crate) count: u64,
    /// The last of them, oldest first.
    pub(crate) messages: Arc<Vec<Message>>,
    /// The deletion behind which the conversation began, if there was one.
    pub(crate) tombstone: Option<Tombstone>,
}

/// What was found out before a turn.
pub(crate) enum Known {
    /// This is what was said before; the user message stands, or will stand, at `position`.
    Past {
        /// Without this turn.
        history: History,
        /// Place of the user message.
        position: u64,
    },
    /// The turn is over.
    Final(Box<ReplyRecord>),
}

/// Histories by conversation, bounded by their bytes.
pub(crate) struct Histories {
    cache: Cache<ConversationId, History>,
    messages_max: u32,
}

impl Histories {
    pub(crate) fn new(config: &WorkersConfig) -> Self {
        let cache = Cache::builder()
            .max_capacity(config.history_cache_bytes_max)
            .weigher(|_, history: &History| history.weight())
            .build();
        Self {
            cache,
            messages_max: config.history_messages_max,
        }
    }

    /// The past of a turn: from memory when `settled_count`, which the relay told, agrees, else from the store.
    pub(crate) async fn before(
        &self,
        store: &dyn ConversationStore,
        turn: &Turn,
        settled_count: Option<u64>,
    ) -> Result<Known, StoreError> {
        let reply_id = turn.reply_id();
        let cached = self
            .cache
            .get(&turn.conversation_id)
            .filter(|known| Some(known.count) == settled_count);
        if let Some(history) = cached {
            // A relay that lost its memory grants old turns anew: what is not provably new is asked for by its id.
            if history.precedes(turn) {
                return Ok(Known::Past {
                    position: history.count,
                    history,
                });
            }
            match store.reply(&turn.org_id, &reply_id).await? {
                Some(record) => return Ok(Known::Final(Box::new(record))),
                None if !history.holds(turn) => {
                    return Ok(Known::Past {
                        position: history.count,
                        history,
                    });
                }
                None => {}
            }
        }
        let (record, standing) = tokio::try_join!(
            store.reply(&turn.org_id, &reply_id),
            store.history_state(&turn.org_id, &turn.conversation_id)
        )?;
        if let Some(record) = record {
            return Ok(Known::Final(Box::new(record)));
        }
        let messages = self
            .read(
                store,
                &turn.org_id,
                &turn.conversation_id,
                standing.message_count,
            )
            .await?;
        Ok(past(turn, standing, messages))
    }

    /// Remembers a turn that is over.
    pub(crate) fn add(
        &self,
        id: &ConversationId,
        before: &History,
        turn: impl IntoIterator<Item = Message>,
    ) {
        let mut messages = before.messages.as_ref().clone();
        messages.extend(turn);
        let count = messages
            .last()
            .map_or(before.count, |last| last.position + 1);
        let surplus = messages.len().saturating_sub(self.messages_max as usize);
        messages.drain(..surplus);
        let tombstone = before.tombstone.clone();
        self.cache.insert(
            id.clone(),
            History {
                count,
                messages: Arc::new(messages),
                tombstone,
            },
        );
    }

    /// Forgets a conversation, because it is deleted.
    pub(crate) fn remove(&self, id: &ConversationId) {
        self.cache.invalidate(id);
    }

    /// Forgets everything: another worker may have gone on with any of it.
    pub(crate) fn clear(&self) {
        self.cache.invalidate_all();
    }

    async fn read(
        &self,
        store: &dyn ConversationStore,
        org: &OrgId,
        id: &ConversationId,
        count: u64,
    ) -> Result<Vec<Message>, StoreError> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let from = count.saturating_sub(u64::from(self.messages_max));
        store.messages(org, id, from, self.messages_max).await
    }
}

impl History {
    /// Whether `turn` is certainly not one of those that made this history: its id was drawn, not derived from a client's
    /// key, and it was accepted after the last of them had ended.
    fn precedes(&self, turn: &Turn) -> bool {
        let later = self
            .messages
            .last()
            .is_none_or(|last| turn.accepted_at > last.created_at);
        turn.message_id.is_time_ordered() && later && !self.holds(turn)
    }

    fn holds(&self, turn: &Turn) -> bool {
        self.messages
            .iter()
            .any(|message| message.id == turn.message_id)
    }

    fn weight(&self) -> u32 {
        let bytes: usize = self.messages.iter().map(message_bytes).sum();
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }
}

fn message_bytes(message: &Message) -> usize {
    let facts = match &message.author {
        MessageAuthor::Assistant(facts) => {
            let summary = facts
                .summary
                .as_ref()
                .map_or(0, |summary| summary.text.len());
            summary + facts.ui_spec.as_ref().map_or(0, value_bytes)
        }
        MessageAuthor::User => 0,
    };
    message.content.len() + facts + MESSAGE_OVERHEAD_BYTES
}

fn value_bytes(value: &Value) -> usize {
    let inside = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(value_bytes).sum(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| name.len() + value_bytes(value))
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    inside + size_of::<Value>()
}

/// An earlier attempt may have stored the user message: its place is kept.
fn past(
    turn: &Turn,
    HistoryState {
        message_count: count,
        tombstone,
    }: HistoryState,
    mut messages: Vec<Message>,
) -> Known {
    let stored = messages
        .iter()
        .position(|message| message.id == turn.message_id);
    let position = stored.map_or(count, |index| messages[index].position);
    messages.truncate(stored.unwrap_or(messages.len()));
    Known::Past {
        history: History {
            count: position,
            messages: Arc::new(messages),
            tombstone,
        },
        position,
    }
}
