//! What routing knows of a running conversation: who has it, what was said last, and how often it changed hands.

use std::time::Duration;

use switchboard_backends::store::{ConversationStore, StoreError};
use switchboard_schemas::{
    conversation::{Message, MessageAuthor},
    ids::AgentId,
    time::Timestamp,
    turn::Turn,
};

use crate::model::{PromptMessage, PromptRole};

/// Messages that are looked back at; turns that failed have no answer.
const LOOK_BACK_MESSAGES: u32 = 20;
/// Messages that a model is shown.
const RECENT_MESSAGES: usize = 6;
/// Time in which changes of the agent are counted.
pub(crate) const SWITCH_WINDOW: Duration = Duration::from_secs(600);
/// Changes of the agent in that time after which a conversation stays where it is: two members whose matters
/// overlap must not hand a visitor to and fro.
pub(crate) const SWITCHES_MAX: usize = 5;

/// What was said, as far as routing looks at it.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// The agent; none for the visitor.
    pub(crate) by: Option<AgentId>,
    /// The text.
    pub(crate) text: String,
    /// When.
    pub(crate) at: Timestamp,
}

/// The end of a conversation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Past {
    /// Who answered last.
    pub(crate) last: Option<AgentId>,
    /// What was said last, oldest first.
    pub(crate) recent: Vec<PromptMessage>,
    /// How often it changed hands lately.
    pub(crate) switches: usize,
}

impl Past {
    /// Reads it.
    pub(super) async fn read(
        store: &dyn ConversationStore,
        turn: &Turn,
    ) -> Result<Self, StoreError> {
        let conversation = store
            .conversation(&turn.org_id, &turn.conversation_id)
            .await?;
        let count = conversation.map_or(0, |conversation| conversation.message_count);
        if count == 0 {
            return Ok(Self::default());
        }
        let from = count.saturating_sub(u64::from(LOOK_BACK_MESSAGES));
        let mut messages = store
            .messages(
                &turn.org_id,
                &turn.conversation_id,
                from,
                LOOK_BACK_MESSAGES,
            )
            .await?;
        // A repeat may find its own message.
        messages.retain(|message| message.id != turn.message_id);
        let lines: Vec<Line> = messages.iter().map(Line::of).collect();
        Ok(Self::of(&lines, Timestamp::now()))
    }

    /// The past of a message that comes `now`.
    pub(crate) fn of(lines: &[Line], now: Timestamp) -> Self {
        let lines = &lines[lines.len().saturating_sub(LOOK_BACK_MESSAGES as usize)..];
        let answered: Vec<(&AgentId, Timestamp)> = lines
            .iter()
            .filter_map(|line| Some((line.by.as_ref()?, line.at)))
            .collect();
        let window_ms = u64::try_from(SWITCH_WINDOW.as_millis()).unwrap_or(u64::MAX);
        let is_switch = |pair: &&[(&AgentId, Timestamp)]| {
            pair[0].0 != pair[1].0 && now.millis_since(pair[1].1) < window_ms
        };
        let recent = &lines[lines.len().saturating_sub(RECENT_MESSAGES)..];
        Self {
            last: answered.last().map(|(agent, _)| (*agent).clone()),
            recent: recent.iter().map(said).collect(),
            switches: answered.windows(2).filter(is_switch).count(),
        }
    }

    /// What the agent said last, if nothing was said since.
    pub(crate) fn agent_said(&self) -> Option<&str> {
        let last = self
            .recent
            .last()
            .filter(|message| message.role == PromptRole::Assistant)?;
        Some(&last.content)
    }
}

impl Line {
    pub(super) fn of(message: &Message) -> Self {
        let by = match &message.author {
            MessageAuthor::Assistant(facts) => Some(facts.agent_id.clone()),
            MessageAuthor::User => None,
        };
        Self {
            by,
            text: message.content.clone(),
            at: message.created_at,
        }
    }
}

fn said(line: &Line) -> PromptMessage {
    let role = if line.by.is_some() {
        PromptRole::Assistant
    } else {
        PromptRole::User
    };
    PromptMessage::text(role, line.text.clone())
}
