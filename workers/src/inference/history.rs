//! Caches the latest messages of conversations in the worker that owns them.
//!
//! An entry is used only while the relay's message count agrees with it.

use std::sync::Arc;

use moka::sync::Cache;
use serde_json::Value;
use switchboard_backends::{
    StoreError,
    store::{
        ConversationReader, ReplyRecord, ReplyState, ReplyStateStore,
        deletion::{HistoryState, Tombstone},
    },
};
use switchboard_schemas::{
    conversation::{Message, MessageAuthor},
    ids::ConversationId,
    turn::Turn,
};

use crate::config::WorkersConfig;

/// Bytes that a cached message takes beyond its text.
const MESSAGE_OVERHEAD_BYTES: usize = 512;

/// The latest messages of a conversation.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConversationHistory {
    /// Number of messages in the whole conversation.
    pub(crate) count: u64,
    /// Latest messages, oldest first.
    pub(crate) messages: Arc<Vec<Message>>,
    /// Deletion after which the conversation started anew, if there was one.
    pub(crate) tombstone: Option<Tombstone>,
}

pub(crate) enum TurnState {
    /// The turn has no final state yet.
    Pending(PendingTurn),
    /// The reply of the turn is stored.
    Final(Box<ReplyRecord>),
    /// The turn was deleted with its conversation.
    Deleted,
}

/// A turn without a final state.
pub(crate) struct PendingTurn {
    /// Messages before this turn.
    pub(crate) history: ConversationHistory,
    /// Position at which the user message is, or will be, stored.
    pub(crate) position: u64,
}

/// Cached histories by conversation, bounded by their bytes.
pub(crate) struct HistoryCache {
    cache: Cache<ConversationId, ConversationHistory>,
    messages_max: u32,
}

impl HistoryCache {
    pub(crate) fn new(config: &WorkersConfig) -> Self {
        let cache = Cache::builder()
            .max_capacity(config.history_cache_bytes_max)
            .weigher(|_, history: &ConversationHistory| history.weight())
            .build();
        Self {
            cache,
            messages_max: config.history_messages_max,
        }
    }

    /// Returns the state of a turn: from the cache if the relay's `message_count` agrees with it,
    /// otherwise from the store.
    pub(crate) async fn turn_state(
        &self,
        store: &(impl ConversationReader + ReplyStateStore + ?Sized),
        turn: &Turn,
        message_count: Option<u64>,
    ) -> Result<TurnState, StoreError> {
        let reply_id = turn.reply_id();
        let cached = self
            .cache
            .get(&turn.conversation_id)
            .filter(|history| Some(history.count) == message_count);
        if let Some(history) = cached {
            // A relay that lost its state grants claims on old turns again: a turn that is not
            // certainly new is looked up.
            if history.precedes(turn) {
                return Ok(TurnState::next_turn(history));
            }
            let known = store.known_reply(&turn.org_id, &reply_id).await?;
            match known.and_then(TurnState::of_ended) {
                Some(ended) => return Ok(ended),
                None if !history.contains(turn) => return Ok(TurnState::next_turn(history)),
                None => {}
            }
        }
        let opening = store
            .turn_opening(&turn.org_id, &reply_id, self.messages_max)
            .await?;
        Ok(match opening.reply.and_then(TurnState::of_ended) {
            Some(ended) => ended,
            None => pending_turn(turn, opening.history, opening.messages),
        })
    }

    /// Adds the messages of a finished turn.
    pub(crate) fn add_turn(
        &self,
        id: &ConversationId,
        before: &ConversationHistory,
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
            ConversationHistory {
                count,
                messages: Arc::new(messages),
                tombstone,
            },
        );
    }

    pub(crate) fn remove(&self, id: &ConversationId) {
        self.cache.invalidate(id);
    }

    /// Removes everything: another worker may have continued any of the conversations.
    pub(crate) fn clear(&self) {
        self.cache.invalidate_all();
    }
}

impl TurnState {
    /// Returns the state of a turn that has nothing left to generate.
    fn of_ended(known: ReplyState) -> Option<Self> {
        match known {
            ReplyState::Accepted(_) => None,
            ReplyState::Final(record) => Some(Self::Final(record)),
            ReplyState::Deleted => Some(Self::Deleted),
        }
    }

    fn next_turn(history: ConversationHistory) -> Self {
        Self::Pending(PendingTurn {
            position: history.count,
            history,
        })
    }
}

impl ConversationHistory {
    /// Returns true if `turn` is certainly not part of this history: its id is random, not derived
    /// from a client's key, and it was accepted after the last message.
    fn precedes(&self, turn: &Turn) -> bool {
        let later = self
            .messages
            .last()
            .is_none_or(|last| turn.accepted_at > last.created_at);
        turn.message_id.is_time_ordered() && later && !self.contains(turn)
    }

    fn contains(&self, turn: &Turn) -> bool {
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

/// Returns the pending state of a turn. An earlier attempt may have stored the user message: it
/// keeps its position.
fn pending_turn(
    turn: &Turn,
    HistoryState {
        message_count: count,
        tombstone,
    }: HistoryState,
    mut messages: Vec<Message>,
) -> TurnState {
    let stored = messages
        .iter()
        .position(|message| message.id == turn.message_id);
    let position = stored.map_or(count, |index| messages[index].position);
    messages.truncate(stored.unwrap_or(messages.len()));
    TurnState::Pending(PendingTurn {
        history: ConversationHistory {
            count: position,
            messages: Arc::new(messages),
            tombstone,
        },
        position,
    })
}
