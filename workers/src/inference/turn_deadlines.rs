//! Deadlines of one turn.

use tokio::time::Instant;

use crate::config::WorkersConfig;

/// Deadlines of one turn, counted from its claim.
#[derive(Clone, Copy)]
pub(super) struct TurnDeadlines {
    /// Latest end of the generation.
    pub(super) reply: Instant,
    /// Latest end of storing and announcing the turn.
    pub(super) storage: Instant,
}

impl TurnDeadlines {
    pub(super) fn from_now(config: &WorkersConfig) -> Self {
        let reply = Instant::now() + config.job_deadline();
        let storage = reply + config.store_grace();
        Self { reply, storage }
    }
}
