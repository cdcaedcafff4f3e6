//! The team of a replay: its present state with the changes of a document.

use anyhow::{Context, bail};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use switchboard_schemas::{agent::ActivationStatus, ids::TeamId, team::RoutingStrategy};
use switchboard_workers::replay::{TriedMember, TriedTeam};

use super::admin_client::{AdminClient, AgentResponse, TeamResponse};

/// Reads the team and applies the changes of `document`, which may contain only changed fields.
/// Agents must exist.
pub(super) async fn read_team(
    client: &AdminClient,
    wanted: &str,
    document: Option<&Value>,
) -> anyhow::Result<(TeamId, TriedTeam)> {
    let mut team = client.get_team(wanted).await?;
    let mut agents = client.list_agents().await?;
    if let Some(document) = document {
        apply_document(&mut team, &mut agents, document)?;
    }
    if team.routing != RoutingStrategy::Intent {
        bail!(
            "team {:?} does not route by intent: its decisions do not depend on the message text",
            team.slug
        );
    }
    let active_agent = |slug: &str| -> anyhow::Result<Option<&AgentResponse>> {
        let agent = agents.iter().find(|agent| agent.slug == slug);
        let agent = agent.with_context(|| format!("agent {slug:?} does not exist yet"))?;
        Ok((agent.status == ActivationStatus::Active).then_some(agent))
    };
    let default_agent = team
        .default_agent
        .as_deref()
        .map(active_agent)
        .transpose()?
        .flatten();
    let mut members = Vec::new();
    for member in &team.members {
        let Some(agent) = active_agent(&member.agent)?.filter(|agent| agent.public) else {
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

/// Applies the fields of the document to the team and the agents.
fn apply_document(
    team: &mut TeamResponse,
    agents: &mut [AgentResponse],
    document: &Value,
) -> anyhow::Result<()> {
    let organizations = document["organizations"]
        .as_array()
        .context("the document has no organizations")?;
    let mut has_changes = false;
    for agent in agents {
        if let Some(changes) = find_by_slug(organizations, "agents", &agent.slug) {
            *agent = apply_changes(agent, changes)
                .with_context(|| format!("invalid agent {:?} in the document", agent.slug))?;
            has_changes = true;
        }
    }
    if let Some(changes) = find_by_slug(organizations, "teams", &team.slug) {
        *team = apply_changes(team, changes).context("invalid team in the document")?;
        has_changes = true;
    }
    if !has_changes {
        bail!(
            "the document contains neither the team {:?} nor an existing agent",
            team.slug
        );
    }
    Ok(())
}

fn find_by_slug<'a>(organizations: &'a [Value], kind: &str, slug: &str) -> Option<&'a Value> {
    let mut all = organizations
        .iter()
        .filter_map(|organization| organization[kind].as_array())
        .flatten();
    all.find(|resource| resource["slug"] == slug)
}

/// Returns `current` with the fields that `changes` contains.
fn apply_changes<T: Serialize + DeserializeOwned>(
    current: &T,
    changes: &Value,
) -> serde_json::Result<T> {
    let mut value = serde_json::to_value(current)?;
    for (name, field) in value.as_object_mut().into_iter().flatten() {
        if let Some(change) = changes.get(name) {
            *field = change.clone();
        }
    }
    serde_json::from_value(value)
}
