//! The end of a running conversation, as far as routing needs it: last agent, last messages and
//! number of agent changes.

use std::time::Duration;

use switchboard_backends::{StoreError, store::ConversationReader};
use switchboard_schemas::{
    conversation::{Message, MessageAuthor},
    ids::AgentId,
    time::{Timestamp, whole_millis},
    turn::Turn,
};

use crate::model::{PromptMessage, PromptRole};

/// Messages that are read; failed turns among them have no answer.
const LOOK_BACK_MESSAGES: u32 = 20;
/// Messages in the prompt of a model.
const RECENT_MESSAGES: usize = 6;
/// Period in which changes of the agent are counted.
pub(crate) const AGENT_CHANGE_WINDOW: Duration = Duration::from_secs(600);
/// Changes of the agent in that period after which a conversation stays with its agent, so that two
/// members with overlapping topics do not pass a visitor back and forth.
pub(crate) const AGENT_CHANGES_MAX: usize = 5;

/// A message of the conversation, reduced to the fields that routing needs.
#[derive(Clone, Debug)]
pub(crate) struct PastMessage {
    /// The agent that wrote it; none for the visitor.
    pub(crate) by: Option<AgentId>,
    /// Text of the message.
    pub(crate) text: String,
    /// Time at which it was written.
    pub(crate) at: Timestamp,
}

/// The end of a conversation.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConversationPast {
    /// The agent that answered last.
    pub(crate) last: Option<AgentId>,
    /// The last messages, oldest first.
    pub(crate) recent: Vec<PromptMessage>,
    /// Changes of the agent in the last [`AGENT_CHANGE_WINDOW`].
    pub(crate) agent_changes: usize,
}

impl ConversationPast {
    /// Reads the end of the conversation from the store.
    pub(super) async fn read(
        store: &dyn ConversationReader,
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
        // A redelivered job may find its own message stored.
        messages.retain(|message| message.id != turn.message_id);
        let lines: Vec<PastMessage> = messages.iter().map(PastMessage::from_message).collect();
        Ok(Self::from_messages(&lines, Timestamp::now()))
    }

    /// Returns the past of a message that arrives at `now`.
    pub(crate) fn from_messages(lines: &[PastMessage], now: Timestamp) -> Self {
        let lines = &lines[lines.len().saturating_sub(LOOK_BACK_MESSAGES as usize)..];
        let answered: Vec<(&AgentId, Timestamp)> = lines
            .iter()
            .filter_map(|line| Some((line.by.as_ref()?, line.at)))
            .collect();
        let window_ms = whole_millis(AGENT_CHANGE_WINDOW);
        let is_switch = |pair: &&[(&AgentId, Timestamp)]| {
            pair[0].0 != pair[1].0 && now.millis_since(pair[1].1) < window_ms
        };
        let recent = &lines[lines.len().saturating_sub(RECENT_MESSAGES)..];
        Self {
            last: answered.last().map(|(agent, _)| (*agent).clone()),
            recent: recent.iter().map(said).collect(),
            agent_changes: answered.windows(2).filter(is_switch).count(),
        }
    }

    /// Returns the last message of the agent, if the visitor has written nothing since.
    pub(crate) fn last_agent_text(&self) -> Option<&str> {
        let last = self
            .recent
            .last()
            .filter(|message| message.role == PromptRole::Assistant)?;
        Some(&last.content)
    }
}

impl PastMessage {
    /// Reduces a stored message.
    pub(super) fn from_message(message: &Message) -> Self {
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

fn said(line: &PastMessage) -> PromptMessage {
    let role = if line.by.is_some() {
        PromptRole::Assistant
    } else {
        PromptRole::User
    };
    PromptMessage::text(role, line.text.clone())
}

#[cfg(test)]
mod tests {
    use switchboard_schemas::{ids::OrgId, secret::InstallationSecret};

    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

    fn agent(name: &str) -> AgentId {
        let secret = InstallationSecret::from_bytes([1; 32]);
        AgentId::derive(&secret, &OrgId::derive(&secret, "acme"), name)
    }

    /// Creates a reply of this agent, or a question where none is named.
    fn line(by: Option<&str>, seconds_ago: u64) -> PastMessage {
        PastMessage {
            by: by.map(agent),
            text: "text".into(),
            at: Timestamp::from_micros(
                NOW.micros() - 1_000_000 * i64::try_from(seconds_ago).unwrap(),
            ),
        }
    }

    #[test]
    fn changes_of_the_agent_count_for_ten_minutes() {
        let lines = [
            line(Some("a"), 700),
            line(Some("b"), 601),
            line(None, 600),
            line(Some("b"), 599),
            line(Some("a"), 300),
            line(Some("a"), 200),
            line(None, 150),
            line(Some("b"), 100),
        ];
        let past = ConversationPast::from_messages(&lines, NOW);
        assert_eq!(
            (past.agent_changes, past.last.as_ref()),
            (2, Some(&agent("b")))
        );
        assert_eq!(past.last_agent_text(), Some("text"));
    }

    #[test]
    fn visitor_who_wrote_last_has_no_answer_to_follow() {
        let past = ConversationPast::from_messages(&[line(Some("a"), 2), line(None, 1)], NOW);
        assert_eq!(
            (past.last.as_ref(), past.last_agent_text()),
            (Some(&agent("a")), None)
        );
    }
}
