//! Prompt lengths that models accept: a model that refused a longer prompt is remembered for an
//! hour, so that the next message does not repeat the refusal. The entry expires, because a
//! provider may raise its context.

use std::time::Duration;

use moka::sync::Cache;

use super::ModelEndpoint;

/// Models that are remembered.
const MODELS_MAX: u64 = 1_000;
/// Time for which a limit is remembered.
const MODEL_TTL: Duration = Duration::from_secs(60 * 60);

/// Longest prompts by endpoint and model, in tokens as the context window counts them.
pub(crate) struct ContextLimits(Cache<[String; 2], usize>);

impl ContextLimits {
    pub(crate) fn new() -> Self {
        Self(
            Cache::builder()
                .max_capacity(MODELS_MAX)
                .time_to_live(MODEL_TTL)
                .build(),
        )
    }

    /// Returns the longest prompt for this model, at most `tokens_max`.
    pub(crate) fn prompt_limit(
        &self,
        endpoint: Option<&ModelEndpoint>,
        tokens_max: usize,
    ) -> usize {
        endpoint
            .and_then(|endpoint| self.0.get(&endpoint.cache_key()))
            .map_or(tokens_max, |known| known.min(tokens_max))
    }

    /// Records that the model accepted this many tokens after refusing more.
    pub(crate) fn record_limit(&self, endpoint: &ModelEndpoint, tokens: usize) {
        self.0.insert(endpoint.cache_key(), tokens);
    }
}
