//! Playground runs: their input, kept until a worker reads it.

use std::time::Duration;

use async_trait::async_trait;
use switchboard_schemas::ids::MessageId;

use super::RelayError;

/// Lifetime of the input of a playground run, longer than a turn may wait for its worker.
pub const PLAYGROUND_RUN_TTL: Duration = Duration::from_secs(10 * 60);
/// Maximum size of the input of a playground run, in bytes. The caller checks it.
pub const PLAYGROUND_RUN_BYTES_MAX: usize = 2 << 20;

/// The input of playground runs, kept for at most [`PLAYGROUND_RUN_TTL`]. It may be lost earlier.
#[async_trait]
pub trait PlaygroundRuns: Send + Sync {
    /// Stores the input of a playground run, replacing an earlier one.
    async fn put_playground_run(&self, run_id: &MessageId, text: &str) -> Result<(), RelayError>;

    /// Returns the input of a playground run, or `None` if it is unknown or has expired.
    async fn playground_run(&self, run_id: &MessageId) -> Result<Option<String>, RelayError>;
}
