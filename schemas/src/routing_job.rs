//! Jobs for routing workers, which choose the member of a team that answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ids::TeamId, playground::TeamPlaygroundJob, turn::Turn, versioned::TopicRecord};

/// A record of [`crate::topics::Topic::Route`], keyed by conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RoutingJob {
    /// A message for a team.
    Message(Box<TeamMessageJob>),
    /// A playground run that asks which member would answer.
    Playground(TeamPlaygroundJob),
}

impl TopicRecord for RoutingJob {
    const VERSION: u32 = 1;
}

/// A message for a team. Delivered in order per conversation and at least once; safe to repeat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ChatJob")]
pub struct TeamMessageJob {
    /// The team to which the message is addressed.
    pub team_id: TeamId,
    /// The user message and its context.
    pub turn: Turn,
}

impl TopicRecord for TeamMessageJob {
    const VERSION: u32 = RoutingJob::VERSION;
}

impl TopicRecord for TeamPlaygroundJob {
    const VERSION: u32 = RoutingJob::VERSION;
}
