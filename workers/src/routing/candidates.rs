//! Who of a team can answer now.

use std::sync::Arc;

use switchboard_backends::{catalog::cache::CatalogCache, store::StoreError};
use switchboard_schemas::{
    agent::{ActivationStatus, Agent},
    ids::AgentId,
    team::Team,
};

/// A member that can answer.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    /// Agent.
    pub(crate) agent_id: AgentId,
    /// Its name in documents.
    pub(crate) slug: String,
    /// Its name.
    pub(crate) name: String,
    /// What it is.
    pub(crate) description: String,
    /// What the team says of it.
    pub(crate) specialization: String,
}

/// Who could answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Candidates {
    /// Members, in the order of the team.
    pub(crate) members: Vec<Candidate>,
    /// Answers when no member matches.
    pub(crate) default_agent: Option<AgentId>,
    /// Whose providers are asked for an opinion and for vectors: the default agent first.
    pub(crate) agents: Vec<Arc<Agent>>,
}

impl Candidates {
    /// Members and default agent as far as they can answer. The default agent need not be public: the team is.
    pub(super) async fn of(catalog: &CatalogCache, team: &Team) -> Result<Self, StoreError> {
        let mut candidates = Self::default();
        if let Some(id) = &team.default_agent
            && let Some(agent) = active(catalog, team, id).await?
        {
            candidates.default_agent = Some(agent.id.clone());
            candidates.agents.push(agent);
        }
        for member in &team.members {
            let agent = active(catalog, team, &member.agent)
                .await?
                .filter(|agent| agent.settings.public);
            let Some(agent) = agent else { continue };
            candidates.members.push(Candidate {
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

async fn active(
    catalog: &CatalogCache,
    team: &Team,
    id: &AgentId,
) -> Result<Option<Arc<Agent>>, StoreError> {
    let agent = catalog.agent(id).await?;
    Ok(agent.filter(|agent| {
        agent.org_id == team.org_id && agent.settings.status == ActivationStatus::Active
    }))
}
