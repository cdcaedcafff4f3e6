//! A team: agents behind one address, and how a message finds its member (specification: Team).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    agent::ActivationStatus,
    ids::{AgentId, OrgId, TeamId},
};

/// A team as it is configured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Team {
    /// Identifier, derived from the slug.
    pub id: TeamId,
    /// Owner.
    pub org_id: OrgId,
    /// Name in documents and commands.
    pub slug: String,
    /// Display name.
    pub name: String,
    /// What the team handles.
    pub description: String,
    /// How a member is chosen.
    pub routing: RoutingStrategy,
    /// Answers when no member matches.
    pub default_agent: Option<AgentId>,
    /// The members.
    pub members: Vec<TeamMember>,
    /// Whether the public API reaches it.
    pub public: bool,
    /// Whether it answers.
    pub status: ActivationStatus,
}

/// A member of a team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TeamMember {
    /// The agent.
    pub agent: AgentId,
    /// What it is good at.
    pub specialization: String,
}

/// How a team chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RoutingStrategy {
    /// By what the message asks for.
    Intent,
    /// Each in turn.
    RoundRobin,
    /// Any.
    Random,
}
