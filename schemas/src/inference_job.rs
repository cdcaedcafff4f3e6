//! Work of one conversation: from ingress or routing to an inference worker, keyed by conversation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    ids::{AgentId, ConversationId, EventId, IngressId, OrgId, RequestId, TeamId},
    routing::RoutingFacts,
    time::Timestamp,
    turn::Turn,
    versioned::Record,
};

/// A record of [`crate::topics::Topic::Jobs`] or [`crate::topics::Topic::JobsRetry`].
/// In order per conversation, at least once, safe to repeat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ConversationJob {
    /// Answer a message.
    Answer(Box<AnswerJob>),
    /// Answer an editor's message with a draft, and store nothing: what it runs on lies in the relay ([`crate::trial`]).
    Trial(Box<AnswerJob>),
    /// Change what is known about the conversation.
    Patch(Box<PatchJob>),
    /// Delete it. Since version 2.
    Delete(Box<DeleteJob>),
}

impl Record for ConversationJob {
    const VERSION: u32 = 2;

    fn version(&self) -> u32 {
        match self {
            Self::Answer(_) | Self::Trial(_) | Self::Patch(_) => 1,
            Self::Delete(_) => 2,
        }
    }
}

impl ConversationJob {
    /// The conversation, which is the record's key.
    pub fn conversation_id(&self) -> &ConversationId {
        match self {
            Self::Answer(job) | Self::Trial(job) => &job.turn.conversation_id,
            Self::Patch(job) => &job.conversation_id,
            Self::Delete(job) => &job.conversation_id,
        }
    }
}

/// A message that an agent is to answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnswerJob {
    /// The agent.
    pub agent_id: AgentId,
    /// How the agent was chosen, for a team's message.
    pub routed: Option<Routed>,
    /// The message.
    pub turn: Turn,
    /// Lowest attempt number that may be handed out: more than any that the sender has heard of, so that a
    /// claim store that lost its memory cannot hand out an old number again.
    #[serde(default = "first_attempt")]
    pub attempt_min: u32,
}

fn first_attempt() -> u32 {
    1
}

/// A routing decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Routed {
    /// The team that was addressed.
    pub team_id: TeamId,
    /// Why this agent, in words a customer can read.
    pub reason: String,
    /// What the decision stood on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<RoutingFacts>,
    /// When the router handed the message on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routed_at: Option<Timestamp>,
}

/// A change of a conversation's metadata, applied by the worker that owns the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PatchJob {
    /// Names the change, so that a repeat makes the same event.
    pub event_id: EventId,
    /// Tenant.
    pub org_id: OrgId,
    /// Conversation.
    pub conversation_id: ConversationId,
    /// The agent through which it was addressed.
    pub agent_id: AgentId,
    /// The request that asks.
    pub request_id: RequestId,
    /// Who asks, for the event: `visitor` or `api`.
    pub actor: String,
    /// Keys to set; `null` clears. Reserved keys (visitor fields, rating, feedback) stand beside the client's own.
    pub changes: Map<String, Value>,
    /// When the ingress accepted it.
    pub accepted_at: Timestamp,
    /// The ingress that waits for the outcome.
    pub reply_to: IngressId,
}

/// The deletion of a conversation, done by the worker that owns it: what was sent before goes with it, what comes behind
/// begins it anew.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeleteJob {
    /// Names the deletion, so that a repeat makes the same event.
    pub event_id: EventId,
    /// Tenant.
    pub org_id: OrgId,
    /// Conversation.
    pub conversation_id: ConversationId,
    /// The agent that the event names; none where nobody ever answered, and analytics was told nothing.
    pub agent_id: Option<AgentId>,
    /// The team that it was with, if it was one.
    pub team_id: Option<TeamId>,
    /// The request that asks.
    pub request_id: RequestId,
    /// When the ingress accepted it.
    pub accepted_at: Timestamp,
    /// The ingress that waits for the outcome.
    pub reply_to: IngressId,
}
