//! Jobs for inference workers: replies, metadata changes and deletions, keyed by conversation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    ids::{AgentId, ConversationId, EventId, IngressId, OrgId, RequestId, TeamId},
    routing::RoutingFacts,
    time::Timestamp,
    turn::Turn,
    versioned::TopicRecord,
};

/// A record of [`crate::topics::Topic::Jobs`] or [`crate::topics::Topic::JobsRetry`].
/// Delivered in order per conversation and at least once; safe to repeat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ConversationJob {
    /// Reply to a message.
    #[serde(rename = "answer")]
    Reply(Box<ReplyJob>),
    /// Reply to an editor's playground message with a draft agent and store nothing.
    #[serde(rename = "trial")]
    Playground(Box<ReplyJob>),
    /// Change the conversation's metadata.
    Patch(Box<PatchJob>),
    /// Delete the conversation. Since version 2.
    Delete(Box<DeleteJob>),
}

impl TopicRecord for ConversationJob {
    const VERSION: u32 = 2;

    fn version(&self) -> u32 {
        match self {
            Self::Reply(_) | Self::Playground(_) | Self::Patch(_) => 1,
            Self::Delete(_) => 2,
        }
    }
}

impl ConversationJob {
    /// Returns the conversation id, which is the record's key.
    pub fn conversation_id(&self) -> &ConversationId {
        match self {
            Self::Reply(job) | Self::Playground(job) => &job.turn.conversation_id,
            Self::Patch(job) => &job.conversation_id,
            Self::Delete(job) => &job.conversation_id,
        }
    }

    /// Returns the organization of the conversation.
    pub fn org_id(&self) -> &OrgId {
        match self {
            Self::Reply(job) | Self::Playground(job) => &job.turn.org_id,
            Self::Patch(job) => &job.org_id,
            Self::Delete(job) => &job.org_id,
        }
    }
}

/// A message that an agent replies to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AnswerJob")]
pub struct ReplyJob {
    /// The agent that replies.
    pub agent_id: AgentId,
    /// Routing decision, for a message to a team.
    pub routed: Option<TeamRouting>,
    /// The user message and its context.
    pub turn: Turn,
    /// Lowest attempt number that the claim store may assign. It is higher than every attempt that
    /// the sender has seen, so that a claim store that lost its state cannot assign an old number
    /// again.
    #[serde(default = "first_attempt")]
    pub attempt_min: u32,
}

fn first_attempt() -> u32 {
    1
}

/// The decision that routed a team's message to one agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Routed")]
pub struct TeamRouting {
    /// The team to which the conversation is addressed.
    pub team_id: TeamId,
    /// Reason for the choice, in words for customers.
    pub reason: String,
    /// Details of the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<RoutingFacts>,
    /// Time at which the routing worker forwarded the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routed_at: Option<Timestamp>,
}

/// A change of a conversation's metadata, applied by the worker that owns the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PatchJob {
    /// Id of the resulting event. A repeated job produces the same event.
    pub event_id: EventId,
    /// Organization that owns the conversation.
    pub org_id: OrgId,
    /// The conversation to change.
    pub conversation_id: ConversationId,
    /// The agent through which the conversation was addressed.
    pub agent_id: AgentId,
    /// HTTP request that asked for the change.
    pub request_id: RequestId,
    /// Actor of the resulting event: `visitor` or `api`.
    pub actor: String,
    /// Keys to set; `null` clears a key. Reserved keys (visitor fields, rating, feedback) stand
    /// beside the client's own.
    pub changes: Map<String, Value>,
    /// Time at which the ingress accepted the change.
    pub accepted_at: Timestamp,
    /// Ingress process that waits for the outcome.
    pub reply_to: IngressId,
}

/// The deletion of a conversation, executed by the worker that owns it. Earlier messages are
/// deleted; a later message starts the conversation anew.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeleteJob {
    /// Id of the resulting event. A repeated job produces the same event.
    pub event_id: EventId,
    /// Organization that owns the conversation.
    pub org_id: OrgId,
    /// The conversation to delete.
    pub conversation_id: ConversationId,
    /// The agent named in the event; absent if no agent ever replied and analytics has no event of
    /// the conversation.
    pub agent_id: Option<AgentId>,
    /// The addressed team, for a conversation with a team.
    pub team_id: Option<TeamId>,
    /// HTTP request that asked for the deletion.
    pub request_id: RequestId,
    /// Time at which the ingress accepted the deletion.
    pub accepted_at: Timestamp,
    /// Ingress process that waits for the outcome.
    pub reply_to: IngressId,
}
