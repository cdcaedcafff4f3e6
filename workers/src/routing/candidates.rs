//! The agents of a team that can answer a message now.

use std::sync::Arc;

use switchboard_backends::{StoreError, catalog::cache::CatalogCache};
use switchboard_schemas::{
    agent::{ActivationStatus, Agent},
    ids::AgentId,
    team::Team,
};

/// A team member that can answer.
#[derive(Clone, Debug)]
pub(crate) struct RoutingCandidate {
    /// Id of the member's agent.
    pub(crate) agent_id: AgentId,
    /// Slug of the agent.
    pub(crate) slug: String,
    /// Display name of the agent.
    pub(crate) name: String,
    /// Public description of the agent.
    pub(crate) description: String,
    /// Topics that the team assigns to the member.
    pub(crate) specialization: String,
}

/// All agents of a team that can answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoutingCandidates {
    /// Members that can answer, in the team's order.
    pub(crate) members: Vec<RoutingCandidate>,
    /// Agent that answers if no member matches.
    pub(crate) default_agent: Option<AgentId>,
    /// Agents whose providers serve routing calls: the default agent first, then the members.
    pub(crate) agents: Vec<Arc<Agent>>,
}

impl RoutingCandidates {
    /// Returns the members and the default agent that are active. The default agent need not be
    /// public, because the team is.
    pub(super) async fn load(catalog: &CatalogCache, team: &Team) -> Result<Self, StoreError> {
        let mut candidates = Self::default();
        if let Some(id) = &team.default_agent
            && let Some(agent) = active_agent(catalog, team, id).await?
        {
            candidates.default_agent = Some(agent.id.clone());
            candidates.agents.push(agent);
        }
        for member in &team.members {
            let agent = active_agent(catalog, team, &member.agent)
                .await?
                .filter(|agent| agent.settings.public);
            let Some(agent) = agent else { continue };
            candidates.members.push(RoutingCandidate {
                agent_id: agent.id.clone(),
                slug: agent.slug.clone(),
                name: agent.name.clone(),
                description: agent.settings.description.clone(),
                specialization: member.specialization.clone(),
            });
            candidates.agents.push(agent);
        }
        Ok(candidates)
    }
}

async fn active_agent(
    catalog: &CatalogCache,
    team: &Team,
    id: &AgentId,
) -> Result<Option<Arc<Agent>>, StoreError> {
    let agent = catalog.agent(id).await?;
    Ok(agent.filter(|agent| {
        agent.org_id == team.org_id && agent.settings.status == ActivationStatus::Active
    }))
}
