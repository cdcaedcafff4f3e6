//! Settings of the workers: every bound with its unit and default.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};
use switchboard_backends::products::config::ProductsConfig;
use switchboard_schemas::{ids::OrgId, network::IpNetwork};

use crate::memory;

/// Section `[workers]` of the configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkersConfig {
    /// Turns that run at once in this process; 0 for as many as fit into half of the memory, a
    /// mebibyte each.
    pub in_flight_max: usize,
    /// Weights of organizations that share the slots of turns, 1 by default. At weight 3 one runs
    /// three times as many turns as another while both have more than fit.
    pub weights: BTreeMap<OrgId, u32>,
    /// Metadata patches that run at once; counted apart, so that long replies do not delay them.
    pub patches_in_flight_max: usize,
    /// Records that wait in this process before it stops fetching more.
    pub queued_jobs_max: usize,
    /// Longest duration of a turn from its start.
    pub job_deadline_ms: u64,
    /// Longest time from acceptance to the start of a turn.
    pub turn_begin_max_ms: u64,
    /// Longest silence of a provider before the first token, unless it has its own. Thoughts and
    /// comments of its stream are no silence.
    pub first_token_timeout_ms: u64,
    /// Timeout until the first token over all retries and the fallback.
    pub first_token_total_ms: u64,
    /// Longest silence after the first token.
    pub token_idle_timeout_ms: u64,
    /// Timeout of the whole model call.
    pub reply_timeout_ms: u64,
    /// Timeout of connecting to a provider.
    pub connect_timeout_ms: u64,
    /// Retries of one provider before the first token.
    pub provider_retries_max: u32,
    /// Shortest pause between two calls of one provider.
    pub provider_retry_delay_min_ms: u64,
    /// Longest pause between two calls of one provider, unless it asks for more.
    pub provider_retry_delay_max_ms: u64,
    /// Private networks in which organizations may have providers. The operator's own providers
    /// may be anywhere.
    pub provider_private_networks: Vec<IpNetwork>,
    /// Largest body of one provider response, in bytes on the wire.
    pub provider_body_bytes_max: usize,
    /// Largest text of one reply, in bytes.
    pub reply_bytes_max: usize,
    /// Rounds of tool calls of one reply; then the model must answer.
    pub tool_rounds_max: u32,
    /// Tool calls of one round that are run.
    pub tool_calls_per_round_max: u32,
    /// Tool calls of one reply that are run.
    pub tool_calls_max: u32,
    /// Timeout of one tool call.
    pub tool_timeout_ms: u64,
    /// Timeout of all tool calls of one reply together.
    pub tools_timeout_ms: u64,
    /// Timeout of all tool calls while nothing of the reply is displayed.
    pub tools_before_text_timeout_ms: u64,
    /// Largest result of one tool call for the model, in bytes.
    pub tool_result_bytes_max: usize,
    /// Largest sum of all tool results of one reply for the model, in bytes.
    pub tool_results_bytes_max: usize,
    /// Text that is buffered because a tool call may follow it, in bytes; only for agents with
    /// tools.
    pub tool_text_hold_bytes: usize,
    /// Longest time for which that text is buffered.
    pub tool_text_hold_ms: u64,
    /// Messages of the history that are read for a prompt.
    pub history_messages_max: u32,
    /// Size of the history cache, in bytes of text.
    pub history_cache_bytes_max: u64,
    /// Tokens of a prompt without tool results; the oldest turns are dropped first.
    pub prompt_tokens_max: usize,
    /// Longest summary of dropped messages, in tokens.
    pub summary_tokens_max: u32,
    /// Timeout of writing a summary.
    pub summary_timeout_ms: u64,
    /// Summaries that are written at once in this process.
    pub summaries_at_once_max: usize,
    /// Time after the deadline of a turn in which storing and announcing its end is still retried.
    pub store_grace_ms: u64,
    /// Time from the deletion of an organization to the erasure of its data; longer than
    /// `job_deadline_ms` and `store_grace_ms` together and a minute, and than the timeouts of
    /// `products`, so that no reply and no feed is running.
    pub removal_delay_ms: u64,
    /// Shortest pause between two attempts to reach the store or the bus.
    pub store_retry_delay_min_ms: u64,
    /// Longest pause between two attempts to reach the store or the bus.
    pub store_retry_delay_max_ms: u64,
    /// Budget of a routing decision by intent; what remains of it goes to a model when the decision
    /// is unsure. 0 waits for neither a model nor embeddings.
    pub routing_budget_ms: u64,
    /// Timeout of embeddings for a routing decision.
    pub embedding_timeout_ms: u64,
    /// Directory of a sentence-transformers model that computes embeddings in this process; empty
    /// disables it.
    pub embedding_model_dir: String,
    /// Size of the embedding cache, in bytes.
    pub embedding_cache_bytes_max: u64,
    /// Timeout of the acknowledgement of a publish.
    pub publish_timeout_ms: u64,
    /// Pause before a parked record is tried again: one of an unknown version, or one that could
    /// not be sent to the dead letter topic.
    pub parked_delay_ms: u64,
    /// Longest time for which a record of an unknown version waits before it goes to the dead
    /// letter topic.
    pub parked_max_ms: u64,
    /// Time for which running jobs may go on during shutdown.
    pub drain_ms: u64,
    /// Message events are published; by `bus.publish_events` and the profile.
    #[serde(skip)]
    pub publish_events: bool,
    /// Section `[products]`, which stands beside `[workers]` in the file.
    #[serde(skip)]
    pub products: ProductsConfig,
}

impl Default for WorkersConfig {
    fn default() -> Self {
        Self {
            in_flight_max: 0,
            weights: BTreeMap::new(),
            patches_in_flight_max: 64,
            queued_jobs_max: 2048,
            job_deadline_ms: 120_000,
            turn_begin_max_ms: 600_000,
            first_token_timeout_ms: 45_000,
            first_token_total_ms: 90_000,
            token_idle_timeout_ms: 15_000,
            reply_timeout_ms: 110_000,
            connect_timeout_ms: 3_000,
            provider_retries_max: 2,
            provider_retry_delay_min_ms: 200,
            provider_retry_delay_max_ms: 2_000,
            provider_private_networks: Vec::new(),
            provider_body_bytes_max: 32 << 20,
            reply_bytes_max: 262_144,
            tool_rounds_max: 5,
            tool_calls_per_round_max: 4,
            tool_calls_max: 10,
            tool_timeout_ms: 5_000,
            tools_timeout_ms: 15_000,
            tools_before_text_timeout_ms: 10_000,
            tool_result_bytes_max: 16_384,
            tool_results_bytes_max: 49_152,
            tool_text_hold_bytes: 240,
            tool_text_hold_ms: 400,
            history_messages_max: 200,
            history_cache_bytes_max: 64 << 20,
            prompt_tokens_max: 12_000,
            summary_tokens_max: 400,
            summary_timeout_ms: 30_000,
            summaries_at_once_max: 8,
            store_grace_ms: 300_000,
            removal_delay_ms: 600_000,
            store_retry_delay_min_ms: 100,
            store_retry_delay_max_ms: 5_000,
            routing_budget_ms: 1_500,
            embedding_timeout_ms: 800,
            embedding_model_dir: String::new(),
            embedding_cache_bytes_max: 64 << 20,
            publish_timeout_ms: 3_000,
            parked_delay_ms: 5_000,
            parked_max_ms: 300_000,
            drain_ms: 25_000,
            publish_events: true,
            products: ProductsConfig::default(),
        }
    }
}

/// Time between the deletion of an organization and the last turn of it that may begin.
const REMOVAL_SLACK_MS: u64 = 60_000;

impl WorkersConfig {
    /// Returns every invalid setting as key and reason.
    pub fn invalid_settings(&self) -> Vec<(&'static str, &'static str)> {
        let mut problems = Vec::new();
        let mut need = |fine: bool, key, reason| {
            if !fine {
                problems.push((key, reason));
            }
        };
        need(
            self.weights.values().all(|weight| *weight > 0),
            "weights",
            "must be at least 1",
        );
        need(
            self.patches_in_flight_max > 0,
            "patches_in_flight_max",
            "must be at least 1",
        );
        need(
            self.queued_jobs_max > 0,
            "queued_jobs_max",
            "must be at least 1",
        );
        need(
            self.reply_bytes_max >= 4,
            "reply_bytes_max",
            "must hold at least one character, 4 bytes",
        );
        need(
            self.history_messages_max > 0,
            "history_messages_max",
            "must be at least 1",
        );
        need(
            self.provider_retry_delay_min_ms <= self.provider_retry_delay_max_ms,
            "provider_retry_delay_min_ms",
            "must not exceed provider_retry_delay_max_ms",
        );
        need(
            self.store_retry_delay_min_ms <= self.store_retry_delay_max_ms,
            "store_retry_delay_min_ms",
            "must not exceed store_retry_delay_max_ms",
        );
        problems
    }

    /// Returns the time after which nothing of a deleted organization is running any more, for
    /// `removal_delay_ms`.
    #[must_use]
    pub fn removal_delay_needed_ms(&self) -> u64 {
        let products = &self.products;
        let turn = self.job_deadline_ms + self.store_grace_ms + REMOVAL_SLACK_MS;
        let fetch = products.feed_timeout_ms.max(products.upload_timeout_ms);
        turn.max(fetch)
    }

    /// Returns the number of turns that run at once.
    pub(crate) fn turns_max(&self) -> usize {
        match self.in_flight_max {
            0 => memory::turns_max(),
            turns => turns,
        }
    }

    pub(crate) const fn job_deadline(&self) -> Duration {
        Duration::from_millis(self.job_deadline_ms)
    }

    pub(crate) const fn store_grace(&self) -> Duration {
        Duration::from_millis(self.store_grace_ms)
    }

    pub(crate) const fn publish_timeout(&self) -> Duration {
        Duration::from_millis(self.publish_timeout_ms)
    }

    pub(crate) const fn parked_max(&self) -> Duration {
        Duration::from_millis(self.parked_max_ms)
    }

    pub(crate) const fn parked_delay(&self) -> Duration {
        Duration::from_millis(self.parked_delay_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid() {
        let config = WorkersConfig::default();
        assert!(config.invalid_settings().is_empty());
        assert!(config.removal_delay_ms >= config.removal_delay_needed_ms());
    }

    #[test]
    fn invalid_settings_are_reported_together() {
        let config = WorkersConfig {
            patches_in_flight_max: 0,
            reply_bytes_max: 3,
            ..WorkersConfig::default()
        };
        let keys: Vec<_> = config
            .invalid_settings()
            .into_iter()
            .map(|(key, _)| key)
            .collect();
        assert_eq!(keys, ["patches_in_flight_max", "reply_bytes_max"]);
    }

    #[test]
    fn unknown_setting_is_rejected() {
        let read = serde_json::from_str::<WorkersConfig>(r#"{"in_flight": 3}"#);
        assert!(read.unwrap_err().to_string().contains("in_flight"));
    }
}
