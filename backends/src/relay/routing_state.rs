//! Routing state: recorded routing decisions and the round-robin counts of teams.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use switchboard_schemas::{
    ids::{AgentId, MessageId, TeamId},
    routing::RoutingFacts,
};

use super::RelayError;

/// Lifetime of a decision: longer than a message waits for its reply. The store knows the last
/// agent of older conversations.
pub const ROUTING_DECISION_TTL: Duration = Duration::from_secs(60 * 60);
/// Lifetime of a team's round-robin counts after its last round-robin decision.
pub const ROUND_ROBIN_TTL: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Maximum number of members whose counts are kept although they were not offered last time.
/// Members that were offered more recently are kept first.
pub const ABSENT_MEMBERS_MAX: usize = 100;

/// Routing decisions of teams.
///
/// # Contract
/// - **Decisions** are recorded once, atomically among concurrent callers, and kept for at least
///   [`ROUTING_DECISION_TTL`]. They survive a restart of this process.
/// - **Round robin**: of the offered members, the one with the fewest turns in the team is chosen;
///   of equals the one whose turn was longest ago, then the first. After each turn the counts of
///   the offered members differ by at most one. A new or returning member starts with the lowest
///   count of the others and returns at most one ahead of it. Counts are kept for
///   [`ROUND_ROBIN_TTL`] after the last turn, for at most [`ABSENT_MEMBERS_MAX`] absent members.
#[async_trait]
pub trait RoutingState: Send + Sync {
    /// Records the decision for a team's message unless one is recorded, and returns the recorded
    /// one. A new decision becomes the last one of the conversation.
    async fn record_decision(
        &self,
        message: &MessageId,
        decision: &RoutingDecision,
    ) -> Result<RoutingDecision, RelayError>;

    /// Chooses a member by round robin and records the decision unless one is recorded; returns the
    /// recorded one. A message that has a decision is not counted again. Returns `None` if no
    /// member is offered.
    async fn record_round_robin(
        &self,
        message: &MessageId,
        offer: &RoundRobinOffer,
    ) -> Result<Option<RoutingDecision>, RelayError>;

    /// Returns the recorded decisions for a message and its conversation.
    async fn recorded_decisions(
        &self,
        message: &MessageId,
    ) -> Result<RecordedDecisions, RelayError>;

    /// Deletes the decisions for a message and its conversation.
    async fn delete_decisions(&self, message: &MessageId) -> Result<(), RelayError>;

    /// Erases what deleted decisions left in a file, if there is one.
    async fn erase_residue(&self) -> Result<(), RelayError>;
}

/// The choice of the agent that answers a team's message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoutingDecision {
    /// Id of the chosen agent.
    pub agent_id: AgentId,
    /// Reason for the choice, in words for customers.
    pub reason: String,
    /// Details of the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<RoutingFacts>,
}

/// The members of a team among which round robin chooses.
#[derive(Clone, Debug)]
pub struct RoundRobinOffer {
    /// The team whose turns are counted.
    pub team: TeamId,
    /// Members that can answer now, in the team's order, each once.
    pub members: Vec<AgentId>,
    /// Reason of the decision, independent of the chosen member.
    pub reason: String,
    /// Details of the decision.
    pub facts: Option<RoutingFacts>,
}

/// The decisions that were recorded before a team's message is routed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedDecisions {
    /// The decision for this message.
    pub own: Option<RoutingDecision>,
    /// The last decision in its conversation.
    pub last: Option<RoutingDecision>,
}

impl RoundRobinOffer {
    /// Returns the decision for the chosen member.
    pub(super) fn decision(&self, agent_id: AgentId) -> RoutingDecision {
        RoutingDecision {
            agent_id,
            reason: self.reason.clone(),
            facts: self.facts.clone(),
        }
    }
}

impl RoutingDecision {
    /// Returns the stored form.
    pub(super) fn encode(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }

    /// Parses the stored form. A decision written by a newer version counts as unknown.
    pub(super) fn decode(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}
