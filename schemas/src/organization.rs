//! Organizations, the tenants that own agents, teams, keys and conversations.

use serde::{Deserialize, Serialize};

use crate::ids::OrgId;

/// An organization of this installation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Organization {
    /// Id of the organization, derived from the slug.
    pub id: OrgId,
    /// Name of the organization in documents and commands.
    pub slug: String,
    /// Display name of the organization.
    pub name: String,
}
