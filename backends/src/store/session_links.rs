//! Session links, through which a session finds the conversations that cannot be derived from it.

use async_trait::async_trait;
use switchboard_schemas::{
    client_text::SessionId,
    ids::{AgentId, ConversationId, OrgId},
    time::Timestamp,
};

use crate::error::StoreError;

/// Maximum number of conversations returned for a session; an agent is a member of fewer teams.
pub const SESSION_LINKS_MAX: u32 = 100;

/// Links from sessions to conversations.
///
/// # Contract
/// A link belongs to an organization, an agent and a session; a read with another one of them does
/// not find it. It is removed with its conversation.
#[async_trait]
pub trait SessionLinkStore: Send + Sync {
    /// Records that an agent answered in a conversation that cannot be derived from its session:
    /// one of a team or of a page visitor. Of two records the later time is kept.
    async fn link_session(&self, link: &SessionLink) -> Result<(), StoreError>;

    /// Returns the linked conversations of this session in which the agent answered, latest first,
    /// at most [`SESSION_LINKS_MAX`].
    async fn linked_conversations(
        &self,
        org: &OrgId,
        agent: &AgentId,
        session: &SessionId,
    ) -> Result<Vec<ConversationId>, StoreError>;
}

/// A link from a session to a conversation that cannot be derived from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionLink {
    /// Organization that owns the conversation.
    pub org_id: OrgId,
    /// Agent that answered.
    pub agent_id: AgentId,
    /// Session id chosen by the client.
    pub session_id: SessionId,
    /// Id of the conversation.
    pub conversation_id: ConversationId,
    /// Time of the answer.
    pub answered_at: Timestamp,
}
