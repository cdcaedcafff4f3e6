//! How a member of a team was chosen, for whoever wants to understand or repeat it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::AgentId;

/// What a decision stood on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoutingFacts {
    /// Which stage decided.
    pub stage: RoutingStage,
    /// Milliseconds that it took.
    pub took_ms: u64,
    /// How likely each member was meant, as the local stage saw it; none where nothing was compared.
    pub scores: Vec<MemberScore>,
}

/// How likely one member was meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberScore {
    /// The member.
    pub agent_id: AgentId,
    /// Of a thousand; the rest is the chance that nobody was meant.
    pub permille: u16,
}

/// Which stage decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RoutingStage {
    /// The conversation stayed where it was.
    Continuity,
    /// Words and concepts.
    Words,
    /// Words, concepts and vectors.
    Meaning,
    /// A model was asked.
    Model,
    /// The team's strategy, or that there was nobody to choose from.
    Strategy,
}

impl RoutingStage {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Continuity,
        Self::Words,
        Self::Meaning,
        Self::Model,
        Self::Strategy,
    ];

    /// Its name, in records and metrics.
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
