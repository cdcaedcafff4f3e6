//! The team that is tried: as it is, with what a document says otherwise.

use anyhow::{Context, bail};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use switchboard_schemas::{agent::ActivationStatus, ids::TeamId, team::RoutingStrategy};
use switchboard_workers::replay::{TriedMember, TriedTeam};

use super::service::{AgentView, Service, TeamView};

/// Reads it. A document may hold only what is to change; agents that do not exist yet cannot be tried.
pub(super) async fn read(
    service: &Service,
    wanted: &str,
    document: Option<&Value>,
) -> anyhow::Result<(TeamId, TriedTeam)> {
    let mut team = service.team(wanted).await?;
    let mut agents = service.agents().await?;
    if let Some(document) = document {
        change(&mut team, &mut agents, document)?;
    }
    if team.routing != RoutingStrategy::Intent {
        bail!(
            "the team {:?} does not choose by intent: who answers does not follow from what is said",
            team.slug
        );
    }
    let answers = |slug: &str| -> anyhow::Result<Option<&AgentView>> {
        let agent = agents.iter().find(|agent| agent.slug == slug);
        let agent = agent.with_context(|| format!("the agent {slug:?} does not exist yet"))?;
        Ok((agent.status == ActivationStatus::Active).then_some(agent))
    };
    let default_agent = team
        .default_agent
        .as_deref()
        .map(answers)
        .transpose()?
        .flatten();
    let mut members = Vec::new();
    for member in &team.members {
        let Some(agent) = answers(&member.agent)?.filter(|agent| agent.public) else {
            continue;
        };
        members.push(TriedMember {
            agent_id: agent.id.clone(),
            slug: agent.slug.clone(),
            name: agent.name.clone(),
            description: agent.description.clone(),
            specialization: member.specialization.clone(),
        });
    }
    let default_agent = default_agent.map(|agent| agent.id.clone());
    Ok((
        team.id,
        TriedTeam {
            members,
            default_agent,
        },
    ))
}

/// Takes over what the document says of the team and of the agents.
fn change(team: &mut TeamView, agents: &mut [AgentView], document: &Value) -> anyhow::Result<()> {
    let organizations = document["organizations"]
        .as_array()
        .context("the document has no organizations")?;
    let mut knows_any = false;
    for agent in agents {
        if let Some(said) = named(organizations, "agents", &agent.slug) {
            *agent = patched(agent, said)
                .with_context(|| format!("agent {:?} of the document", agent.slug))?;
            knows_any = true;
        }
    }
    if let Some(said) = named(organizations, "teams", &team.slug) {
        *team = patched(team, said).context("the team of the document")?;
        knows_any = true;
    }
    if !knows_any {
        bail!(
            "the document names neither the team {:?} nor an agent that exists",
            team.slug
        );
    }
    Ok(())
}

fn named<'a>(organizations: &'a [Value], kind: &str, slug: &str) -> Option<&'a Value> {
    let mut all = organizations
        .iter()
        .filter_map(|organization| organization[kind].as_array())
        .flatten();
    all.find(|thing| thing["slug"] == slug)
}

/// The same with each field as `said` has it, if it has it.
fn patched<T: Serialize + DeserializeOwned>(known: &T, said: &Value) -> serde_json::Result<T> {
    let mut known = serde_json::to_value(known)?;
    for (name, value) in known.as_object_mut().into_iter().flatten() {
        if let Some(said) = said.get(name) {
            *value = said.clone();
        }
    }
    serde_json::from_value(known)
}
