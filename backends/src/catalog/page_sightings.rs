//! The pages on which the widget of an agent was seen.

use async_trait::async_trait;
use switchboard_schemas::{
    ids::{AgentId, OrgId},
    time::Timestamp,
};

use crate::error::StoreError;

/// The most origins that are kept of an agent, the latest ones.
pub(super) const PAGES_MAX: u32 = 20;

/// Pages with the widget.
///
/// # Contract
/// The last sighting of an origin is kept, and about [`PAGES_MAX`] origins of an agent: anyone may
/// name an origin. They stay when the agent is deleted, and are found by its id alone.
#[async_trait]
pub trait PageSightingStore: Send + Sync {
    /// Records that the widget was seen on a page.
    async fn record_page(&self, page: &PageSighting) -> Result<(), StoreError>;

    /// Returns the pages of an agent, the latest first.
    async fn pages(&self, org: &OrgId, agent: &AgentId) -> Result<Vec<PageSighting>, StoreError>;
}

/// The last sighting of an agent's widget on an origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageSighting {
    /// Organization of the agent.
    pub org_id: OrgId,
    /// Id of the agent.
    pub agent_id: AgentId,
    /// Origin of the page.
    pub origin: String,
    /// Time at which the widget started there.
    pub at: Timestamp,
}

/// Sorts the pages of an agent, the latest first.
pub(super) fn latest_first(
    (org, agent): (&OrgId, &AgentId),
    rows: impl IntoIterator<Item = (String, i64)>,
) -> Vec<PageSighting> {
    let mut pages: Vec<PageSighting> = rows
        .into_iter()
        .map(|(origin, at)| PageSighting {
            org_id: org.clone(),
            agent_id: agent.clone(),
            origin,
            at: Timestamp::from_micros(at),
        })
        .collect();
    pages.sort_by(|left, right| (right.at, &left.origin).cmp(&(left.at, &right.origin)));
    pages
}
