//! A message to a team: from ingress to a routing worker, on [`crate::topics::Topic::Route`], keyed by conversation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ids::TeamId, turn::Turn, versioned::Record};

/// A message that a team is to answer. In order per conversation, at least once, safe to repeat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatJob {
    /// The team.
    pub team_id: TeamId,
    /// The message.
    pub turn: Turn,
}

impl Record for ChatJob {
    const VERSION: u32 = 1;
}
