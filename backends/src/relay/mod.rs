//! The relay: shared, short-lived state of replies between workers and the ingress processes that
//! wait for them.
//!
//! Six traits cover it, and one type per backend implements them all: [`embedded::EmbeddedRelay`]
//! inside one process, [`redis::RedisRelay`] for many. Code takes the smallest trait that it needs;
//! [`Relay`] stands for all of them where they are opened and handed around.
//!
//! - [`ClaimStore`]: the exclusive right to produce a reply, with its lease, attempts and fencing.
//! - [`ReplyLog`]: the frames of a reply, stored for a while and pushed to the waiting ingress.
//! - [`QueueSlots`]: the bounded queue of each conversation, and voided publishes.
//! - [`RoutingState`]: routing decisions and round-robin counts of teams.
//! - [`KeyValueMemory`]: values that are set once, such as idempotency records.
//! - [`PlaygroundRuns`]: the input of playground runs.
//!
//! Dropping the future of any call leaves the call either done or not done.

mod claims;
#[cfg(test)]
mod conformance;
pub mod embedded;
mod key_value_memory;
mod playground_runs;
mod queue_slots;
pub mod redis;
mod reply_log;
mod routing_state;

use std::time::Duration;

pub use self::{
    claims::{
        ATTEMPTS_MAX, CancelOutcome, ClaimCompletion, ClaimOutcome, ClaimRequest, ClaimStatus,
        ClaimStore, ClaimTask, ClaimToken, HEARTBEAT_INTERVAL, LEASE, MESSAGE_COUNT_TTL,
        STATE_LOSS_GRACE,
    },
    key_value_memory::KeyValueMemory,
    playground_runs::{PLAYGROUND_RUN_BYTES_MAX, PLAYGROUND_RUN_TTL, PlaygroundRuns},
    queue_slots::{QUEUE_SLOT_TTL, QueueSlots},
    reply_log::{DONE_LOG_TTL, LISTENER_ENVELOPES_MAX, LOG_TTL, ReplyLog},
    routing_state::{
        ABSENT_MEMBERS_MAX, ROUND_ROBIN_TTL, ROUTING_DECISION_TTL, RecordedDecisions,
        RoundRobinOffer, RoutingDecision, RoutingState,
    },
};

/// Time for which final states, voided publishes and stored values are kept.
pub const FINAL_STATE_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// All parts of the relay.
pub trait Relay:
    ClaimStore + ReplyLog + QueueSlots + RoutingState + KeyValueMemory + PlaygroundRuns
{
}

impl<T> Relay for T where
    T: ClaimStore + ReplyLog + QueueSlots + RoutingState + KeyValueMemory + PlaygroundRuns
{
}

/// An error of the relay.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// The relay cannot be reached. Replies continue without it.
    #[error("relay unavailable: {0}")]
    Unavailable(String),
}
