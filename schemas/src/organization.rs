//! An organization: the tenant that owns agents, teams, keys and conversations.

use serde::{Deserialize, Serialize};

use crate::ids::OrgId;

/// An organization of this installation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Organization {
    /// Identifier, derived from the slug.
    pub id: OrgId,
    /// Name in documents and commands.
    pub slug: String,
    /// Display name.
    pub name: String,
}
