//! Ceilings that the operator sets for the members of organizations.

use serde::{Deserialize, Serialize};

/// Section `[ceilings]` of the configuration file. The admin token and applied documents, which
/// belong to the operator, may exceed them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemberCeilings {
    /// Maximum number of agents of an organization.
    pub agents_max: usize,
    /// Maximum number of teams of an organization.
    pub teams_max: usize,
    /// Maximum number of model providers of an organization.
    pub providers_max: usize,
    /// Maximum number of API keys of an organization, expired ones included.
    pub keys_max: usize,
    /// Maximum rate limit of a key, and of the visitors of an agent, per minute.
    pub requests_per_minute_max: u32,
    /// Maximum length of a reply, in tokens.
    pub output_tokens_max: u32,
    /// Models that may be chosen at the installation's own provider; empty: any.
    pub installation_models: Vec<String>,
}

impl Default for MemberCeilings {
    fn default() -> Self {
        Self {
            agents_max: 1000,
            teams_max: 200,
            providers_max: 100,
            keys_max: 1000,
            requests_per_minute_max: 6000,
            output_tokens_max: 32_768,
            installation_models: Vec::new(),
        }
    }
}

impl MemberCeilings {
    /// Returns one message per invalid setting.
    pub fn validation_errors(&self) -> Vec<String> {
        let must_not_be_zero = [
            ("agents_max", self.agents_max as u64),
            ("teams_max", self.teams_max as u64),
            ("providers_max", self.providers_max as u64),
            ("keys_max", self.keys_max as u64),
            (
                "requests_per_minute_max",
                self.requests_per_minute_max.into(),
            ),
            ("output_tokens_max", self.output_tokens_max.into()),
        ];
        let zeros = must_not_be_zero.iter().filter(|(_, value)| *value == 0);
        zeros
            .map(|(key, _)| format!("ceilings.{key} must not be 0"))
            .collect()
    }
}
