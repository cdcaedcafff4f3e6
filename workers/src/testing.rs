//! Tools for the tests of this crate: a scripted model, settings with short time-outs, and waiting.

use std::time::Duration;

pub(crate) use switchboard_scripted_model::{Raw, Script, ScriptedModel};

use crate::config::WorkersConfig;

/// Starts a model that follows one script for each call.
pub(crate) fn start_model(scripts: Vec<Script>) -> &'static ScriptedModel {
    // Concurrent tests may install it; either provider is the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    ScriptedModel::start(scripts)
}

/// Returns a script that sends a text in one piece.
pub(crate) fn says(text: &str) -> Script {
    Script::says(text).chunk_chars(usize::MAX)
}

/// Returns settings with short time-outs.
pub(crate) fn quick() -> WorkersConfig {
    WorkersConfig {
        first_token_timeout_ms: 700,
        first_token_total_ms: 3_000,
        token_idle_timeout_ms: 700,
        provider_retry_delay_min_ms: 1,
        provider_retry_delay_max_ms: 10,
        store_retry_delay_min_ms: 5,
        store_retry_delay_max_ms: 50,
        parked_delay_ms: 50,
        drain_ms: 500,
        ..WorkersConfig::default()
    }
}

/// Waits until `done` returns true. Panics after a minute.
pub(crate) async fn eventually(what: &str, mut done: impl AsyncFnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    while !done().await {
        assert!(
            tokio::time::Instant::now() < deadline,
            "did not happen in time: {what}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
