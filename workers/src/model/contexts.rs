//! How long a prompt may be for a model that refused a longer one: remembered in this process for a while, so that the next
//! message does not find it out again. The provider may be given a longer context meanwhile, so that it ends.

use std::time::Duration;

use moka::sync::Cache;

use super::Endpoint;

/// Models that are remembered.
const MODELS_MAX: u64 = 1_000;
/// How long.
const MODEL_TTL: Duration = Duration::from_secs(60 * 60);

/// Bounds of prompts, in tokens as the window counts them.
pub(crate) struct Contexts(Cache<[String; 2], usize>);

impl Contexts {
    pub(crate) fn new() -> Self {
        Self(
            Cache::builder()
                .max_capacity(MODELS_MAX)
                .time_to_live(MODEL_TTL)
                .build(),
        )
    }

    /// The longest prompt for this model, at most `tokens_max`.
    pub(crate) fn bound(&self, endpoint: Option<&Endpoint>, tokens_max: usize) -> usize {
        endpoint
            .and_then(|endpoint| self.0.get(&key(endpoint)))
            .map_or(tokens_max, |known| known.min(tokens_max))
    }

    /// This many were taken, where more were refused.
    pub(crate) fn learn(&self, endpoint: &Endpoint, tokens: usize) {
        self.0.insert(key(endpoint), tokens);
    }
}

fn key(endpoint: &Endpoint) -> [String; 2] {
    [endpoint.base_url.clone(), endpoint.model.clone()]
}
