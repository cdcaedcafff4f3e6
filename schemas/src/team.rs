//! Teams: several agents at one address, with a strategy that routes each message (specification:
//! Team).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    agent::ActivationStatus,
    ids::{AgentId, OrgId, TeamId},
};

/// A configured team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Team {
    /// Id of the team, derived from the slug.
    pub id: TeamId,
    /// Organization that owns the team.
    pub org_id: OrgId,
    /// Name of the team in documents and commands.
    pub slug: String,
    /// Display name of the team.
    pub name: String,
    /// Description of the team's responsibilities.
    pub description: String,
    /// Strategy that chooses the member.
    pub routing: RoutingStrategy,
    /// Agent that answers if no member matches.
    pub default_agent: Option<AgentId>,
    /// Members in the order of the configuration.
    pub members: Vec<TeamMember>,
    /// `true` if the public API can reach the team.
    pub public: bool,
    /// Activation status; only an active team answers.
    pub status: ActivationStatus,
}

/// A member of a team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TeamMember {
    /// Id of the member's agent.
    pub agent: AgentId,
    /// Description of the member's responsibilities.
    pub specialization: String,
}

/// The strategy by which a team chooses the member that answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RoutingStrategy {
    /// The member that matches the intent of the message.
    Intent,
    /// Each member in turn.
    RoundRobin,
    /// Any member at random.
    Random,
}
