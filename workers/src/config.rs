//! Every bound of the workers: a key with its unit, and the default that the design gives it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use switchboard_backends::products::config::ProductsConfig;

/// The `[workers]` section of the configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkersConfig {
    /// Turns that run at once in this process.
    pub in_flight_max: usize,
    /// Changes of metadata that run at once; apart, so that long replies do not keep them waiting.
    pub patches_in_flight_max: usize,
    /// Records that wait in this process before it stops to fetch more.
    pub queued_jobs_max: usize,
    /// How long a turn may take from its start.
    pub job_deadline_ms: u64,
    /// How long after its acceptance a turn may begin.
    pub turn_begin_max_ms: u64,
    /// First token, one try.
    pub first_token_timeout_ms: u64,
    /// First token, all tries and the fallback together.
    pub first_token_total_ms: u64,
    /// Silence between two tokens.
    pub token_idle_timeout_ms: u64,
    /// The whole model call.
    pub reply_timeout_ms: u64,
    /// Connection to a provider.
    pub connect_timeout_ms: u64,
    /// Tries of one provider after the first, before the first token.
    pub provider_retries_max: u32,
    /// Shortest pause between two tries.
    pub provider_retry_delay_min_ms: u64,
    /// Longest pause between two tries, unless the provider asks for more.
    pub provider_retry_delay_max_ms: u64,
    /// Bytes of the body of one provider response, as they come over the wire.
    pub provider_body_bytes_max: usize,
    /// Text of one reply.
    pub reply_bytes_max: usize,
    /// Rounds of tool calls of one reply; then the model must answer.
    pub tool_rounds_max: u32,
    /// Tool calls of one round that are run.
    pub tool_calls_per_round_max: u32,
    /// Tool calls of one reply that are run.
    pub tool_calls_max: u32,
    /// One tool call.
    pub tool_timeout_ms: u64,
    /// All tool calls of one reply together.
    pub tools_timeout_ms: u64,
    /// The same, as long as nothing of the reply is shown.
    pub tools_before_text_timeout_ms: u64,
    /// Result of one tool call, for the model.
    pub tool_result_bytes_max: usize,
    /// Results of all tool calls of one reply, for the model.
    pub tool_results_bytes_max: usize,
    /// Text that is held back because a tool call may follow it, for agents with tools.
    pub tool_text_hold_bytes: usize,
    /// How long it is held back.
    pub tool_text_hold_ms: u64,
    /// Messages of the history that are read for a prompt.
    pub history_messages_max: u32,
    /// Histories that are kept in memory, in bytes of text.
    pub history_cache_bytes_max: u64,
    /// Tokens of a prompt, without the results of tools; the oldest turns are left out first.
    pub prompt_tokens_max: usize,
    /// Tokens of the summary that stands for what is left out.
    pub summary_tokens_max: u32,
    /// How long a summary may take.
    pub summary_timeout_ms: u64,
    /// Summaries that are made at once in this process.
    pub summaries_at_once_max: usize,
    /// How long after its deadline a finished turn is tried to be stored and announced.
    pub store_grace_ms: u64,
    /// Shortest pause between two tries of the store or the bus.
    pub store_retry_delay_min_ms: u64,
    /// Longest pause between two tries of the store or the bus.
    pub store_retry_delay_max_ms: u64,
    /// How long a choice by intent may take in all; what is left of it goes to a model when the choice is unsure.
    /// 0: neither a model nor embeddings are waited for.
    pub routing_budget_ms: u64,
    /// How long a choice by intent waits for embeddings.
    pub embedding_timeout_ms: u64,
    /// Directory of a sentence-transformers model that gives embeddings in this process; empty: none.
    pub embedding_model_dir: String,
    /// Embeddings that are kept in memory, in bytes.
    pub embedding_cache_bytes_max: u64,
    /// How long a publish may wait for its acknowledgement.
    pub publish_timeout_ms: u64,
    /// How long the end of a reply waits for its event before it is told without.
    pub event_ack_wait_ms: u64,
    /// Pause before a record is looked at again that this version cannot read, or that could not be buried.
    pub parked_delay_ms: u64,
    /// How long a record that this version cannot read waits for one that can, before it is buried.
    pub parked_max_ms: u64,
    /// How long running jobs may go on once the worker is to stop.
    pub drain_ms: u64,
    /// The section `[products]`, which has its own place in the file.
    #[serde(skip)]
    pub products: ProductsConfig,
}

impl Default for WorkersConfig {
    fn default() -> Self {
        Self {
            in_flight_max: 256,
            patches_in_flight_max: 64,
            queued_jobs_max: 2048,
            job_deadline_ms: 120_000,
            turn_begin_max_ms: 600_000,
            first_token_timeout_ms: 8_000,
            first_token_total_ms: 20_000,
            token_idle_timeout_ms: 15_000,
            reply_timeout_ms: 110_000,
            connect_timeout_ms: 3_000,
            provider_retries_max: 2,
            provider_retry_delay_min_ms: 200,
            provider_retry_delay_max_ms: 2_000,
            provider_body_bytes_max: 32 << 20,
            reply_bytes_max: 65_536,
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
            store_retry_delay_min_ms: 100,
            store_retry_delay_max_ms: 5_000,
            routing_budget_ms: 1_500,
            embedding_timeout_ms: 800,
            embedding_model_dir: String::new(),
            embedding_cache_bytes_max: 64 << 20,
            publish_timeout_ms: 3_000,
            event_ack_wait_ms: 100,
            parked_delay_ms: 5_000,
            parked_max_ms: 300_000,
            drain_ms: 25_000,
            products: ProductsConfig::default(),
        }
    }
}

impl WorkersConfig {
    /// What is wrong with these figures: key and reason, all of them.
    pub fn problems(&self) -> Vec<(&'static str, &'static str)> {
        let mut problems = Vec::new();
        let mut need = |fine: bool, key, reason| {
            if !fine {
                problems.push((key, reason));
            }
        };
        need(
            self.in_flight_max > 0,
            "in_flight_max",
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

    pub(crate) const fn job_deadline(&self) -> Duration {
        Duration::from_millis(self.job_deadline_ms)
    }

    pub(crate) const fn store_grace(&self) -> Duration {
        Duration::from_millis(self.store_grace_ms)
    }

    pub(crate) const fn publish_timeout(&self) -> Duration {
        Duration::from_millis(self.publish_timeout_ms)
    }

    pub(crate) const fn parked_delay(&self) -> Duration {
        Duration::from_millis(self.parked_delay_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_sound() {
        assert!(WorkersConfig::default().problems().is_empty());
    }

    #[test]
    fn all_mistakes_are_told_together() {
        let config = WorkersConfig {
            in_flight_max: 0,
            reply_bytes_max: 3,
            ..WorkersConfig::default()
        };
        let keys: Vec<_> = config.problems().into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["in_flight_max", "reply_bytes_max"]);
    }

    #[test]
    fn an_unknown_key_is_refused() {
        let read = serde_json::from_str::<WorkersConfig>(r#"{"in_flight": 3}"#);
        assert!(read.unwrap_err().to_string().contains("in_flight"));
    }
}
