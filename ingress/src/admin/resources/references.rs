//! References between resources, and data of a resource that is stored outside of its entry.

use std::collections::HashMap;

use serde_json::json;
use switchboard_backends::catalog::{CatalogEntry, EntryKind};
use switchboard_schemas::{
    agent::AgentSettings,
    ids::{AgentId, OrgId},
    time::Timestamp,
};

use crate::{
    http::{ApiError, ApiResult, ErrorCode},
    state::apply_context::ApplyContext,
};

/// The largest number of referring resources in an error.
const SHOWN_REFERENCES_MAX: usize = 20;

/// Slugs of the resources that others refer to, and last uses of keys, by id.
#[derive(Default)]
pub(in crate::admin) struct ResourceReferences {
    slugs: HashMap<String, String>,
    agents: HashMap<AgentId, AgentSettings>,
    last_uses: HashMap<String, Timestamp>,
}

impl ResourceReferences {
    /// Loads the data that the views of `kind` need in an organization.
    pub(in crate::admin) async fn load(
        context: &ApplyContext,
        org: &OrgId,
        kind: EntryKind,
    ) -> ApiResult<Self> {
        let mut references = Self::default();
        let referenced = match kind {
            EntryKind::Agent => Some(EntryKind::Provider),
            EntryKind::Team => Some(EntryKind::Agent),
            _ => None,
        };
        if let Some(referenced) = referenced {
            let entries = context.catalog.list(referenced, Some(org)).await?;
            references.add_slugs(&entries);
            let agents = entries.into_iter().filter_map(|entry| match entry {
                CatalogEntry::Agent(agent) => Some((agent.id, agent.settings)),
                _ => None,
            });
            references.agents = agents.collect();
        }
        if kind == EntryKind::Key {
            let uses = context.catalog.key_uses(org).await?.into_iter();
            let uses = uses.map(|used| (used.key_id.as_str().to_owned(), used.at));
            references.last_uses = uses.collect();
        }
        Ok(references)
    }

    /// Adds the slugs of resources that others may refer to.
    pub(in crate::admin) fn add_slugs(&mut self, entries: &[CatalogEntry]) {
        let slug = |entry: &CatalogEntry| (entry.id().to_owned(), entry.label().to_owned());
        self.slugs.extend(entries.iter().map(slug));
    }

    /// Returns the slug of the resource with this id.
    pub(in crate::admin) fn slug(&self, id: &str) -> Option<String> {
        self.slugs.get(id).cloned()
    }

    /// Returns the settings of the agent with this id; only for the views of teams.
    pub(in crate::admin) fn agent(&self, id: &AgentId) -> Option<&AgentSettings> {
        self.agents.get(id)
    }

    /// Returns the recorded time of the last use of the key with this id.
    pub(in crate::admin) fn last_use(&self, id: &str) -> Option<Timestamp> {
        self.last_uses.get(id).copied()
    }
}

/// Returns whether `entry` refers to the resource with this id or belongs to the organization with
/// it.
pub(in crate::admin) fn refers_to(entry: &CatalogEntry, id: &str) -> bool {
    let is_named = match entry {
        CatalogEntry::Agent(agent) => {
            let mut providers = agent.provider.iter().chain(&agent.fallback_provider);
            providers.any(|provider| provider.as_str() == id)
        }
        CatalogEntry::Team(team) => {
            let members = team.members.iter().map(|member| &member.agent);
            let mut agents = members.chain(&team.default_agent);
            agents.any(|agent| agent.as_str() == id)
        }
        CatalogEntry::Organization(_)
        | CatalogEntry::Provider { .. }
        | CatalogEntry::Key { .. }
        | CatalogEntry::User(_)
        | CatalogEntry::Removal(_) => false,
    };
    is_named || entry.org_id().as_str() == id
}

/// Fails with 409 if anything refers to a resource that is to be deleted.
pub(in crate::admin) fn refuse_if_referenced(references: &[CatalogEntry]) -> ApiResult<()> {
    if references.is_empty() {
        return Ok(());
    }
    let shown = references.iter().take(SHOWN_REFERENCES_MAX);
    let shown = shown.map(
        |entry| json!({ "kind": entry.kind().name(), "id": entry.id(), "slug": entry.label() }),
    );
    let details = json!({ "usedBy": shown.collect::<Vec<_>>(), "total": references.len() });
    Err(ApiError::new(
        ErrorCode::Conflict,
        "other resources refer to this one or belong to it; delete or change them first",
    )
    .details(details))
}
