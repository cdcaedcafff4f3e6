//! Changes of configured resources, published on [`crate::topics::Topic::Control`].
//!
//! The topic is compacted and keyed by resource id, so that a late reader still learns the last
//! change of every resource. A record names the changed resource and contains neither prompts nor
//! keys nor names; readers look the resource up.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{time::Timestamp, versioned::TopicRecord};

/// A change of a configured resource, delivered at least once. Of two records of one id the later
/// `updatedAt` counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlEvent {
    /// Kind of the changed resource.
    pub kind: ControlKind,
    /// Id of the resource, the record's key.
    pub id: String,
    /// Time at which it was created, changed or removed.
    pub updated_at: Timestamp,
}

/// The kind of a configured resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ControlKind {
    /// An organization was changed.
    Organization,
    /// A model provider was changed.
    Provider,
    /// An agent was changed.
    Agent,
    /// A team was changed.
    Team,
    /// An API key was changed.
    Key,
}

impl TopicRecord for ControlEvent {
    const VERSION: u32 = 1;
}
