//! Key-value memory: values that are set once, such as idempotency records and advisory locks.

use async_trait::async_trait;

use super::RelayError;

/// Values that are set once.
///
/// # Contract
/// The first value set under a name is kept, atomically among concurrent callers, for
/// [`super::FINAL_STATE_TTL`]. It survives a restart of this process, but the relay may come back
/// empty.
#[async_trait]
pub trait KeyValueMemory: Send + Sync {
    /// Returns the value kept under `name`, after storing `value` there if there was none.
    async fn get_or_insert(&self, name: &str, value: &str) -> Result<String, RelayError>;

    /// Fails if the relay does not respond.
    async fn check(&self) -> Result<(), RelayError>;
}
