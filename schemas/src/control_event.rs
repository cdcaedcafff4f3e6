//! Which configured thing changed last, on [`crate::topics::Topic::Control`]: compacted, keyed by the thing's id, so
//! that a reader who starts late still learns the last change of everything. It says that something changed, not what:
//! readers look it up, and no prompt, key or name lies on the topic.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{time::Timestamp, versioned::TopicRecord};

/// A change of one configured thing. At least once; of two records of one id the later `updatedAt` counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlEvent {
    /// What kind of thing it is.
    pub kind: ControlKind,
    /// Its id, the record's key.
    pub id: String,
    /// When it was made, changed or removed.
    pub updated_at: Timestamp,
}

/// Kinds of configured things.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ControlKind {
    /// An organization.
    Organization,
    /// A model provider.
    Provider,
    /// An agent.
    Agent,
    /// A team.
    Team,
    /// An API key.
    Key,
}

impl TopicRecord for ControlEvent {
    const VERSION: u32 = 1;
}
