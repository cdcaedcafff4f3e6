//! The facts about a routing decision, for those who explain or repeat it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::AgentId;

/// The facts about a routing decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoutingFacts {
    /// Stage that decided.
    pub stage: RoutingStage,
    /// Duration of the decision, in milliseconds.
    pub took_ms: u64,
    /// Score of each member in the local stage; empty if nothing was compared.
    pub scores: Vec<MemberScore>,
}

/// The probability that one member was meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberScore {
    /// Id of the member.
    pub agent_id: AgentId,
    /// Probability in thousandths; the rest is the probability that no member was meant.
    pub permille: u16,
}

/// The stage of a routing decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RoutingStage {
    /// The conversation stayed with its agent.
    Continuity,
    /// Comparison of words.
    Words,
    /// Comparison of words and of embeddings.
    Meaning,
    /// A model decided.
    Model,
    /// The team's strategy, or the only possible member.
    Strategy,
}

impl RoutingStage {
    /// All stages in the order of their use.
    pub const ALL: [Self; 5] = [
        Self::Continuity,
        Self::Words,
        Self::Meaning,
        Self::Model,
        Self::Strategy,
    ];

    /// Returns the name used in records and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Continuity => "continuity",
            Self::Words => "words",
            Self::Meaning => "meaning",
            Self::Model => "model",
            Self::Strategy => "strategy",
        }
    }
}
