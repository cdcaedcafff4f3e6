//! The relay: who works on a reply, and the reply's text on its way to the connection that waits.
//!
//! # Contract
//! - **Claim**: at most one token of a reply is valid at a time, and at most one reply of a conversation is claimed. A
//!   token is an attempt number and a nonce; it lives for [`LEASE`] and is renewed by each append and each beat. When
//!   the lease has ended, the next claim gets a higher attempt; after [`ATTEMPTS_MAX`] it is told to give up. The
//!   relay's own clock decides, never a worker's.
//! - **Fence**: an append, seal or settle with another token than the valid one changes nothing.
//! - **Log**: frames of a reply are kept in the order of their `seq`; a repeated `seq` is ignored. The log lives for
//!   [`LOG_TTL`] after its last frame.
//! - **Delivery**: each appended frame is also pushed to the ingress that waits, at most once, in order; frames are
//!   lost while that process is disconnected, and the log repairs it. A listener that does not keep up loses frames too.
//! - **Seal**: after it, no other text can be stored for the reply; the end frame stays hidden until [`Relay::settle`].
//! - **Cancellation**: a cancel mark is told by the next append, beat or seal; dropping any future here leaves the
//!   call either done or not done.
//! - **Queue**: a conversation has so many places; a reply takes one before its job is published and gives it back when it
//!   is stored, when its publish is voided, or after [`QUEUE_SLOT_TTL`], so that nothing that dies keeps it.
//! - **Memory**: what is remembered (names, decisions) is set once, in one step however many ask, and kept for
//!   [`FINAL_STATE_TTL`]; it survives a restart of this process.
//! - **Rotation**: a decision in turn is one step per message, with its count: of the members that are offered, the one
//!   with the fewest turns in the team; of equals the one whose turn was longest ago, then the first. A message that has a
//!   decision keeps it and takes no turn. After each turn the counts of those who were offered differ by at most one: who
//!   is new, or was not offered a while, starts with the least count of the others, and comes back at most one ahead of
//!   it. Counts are kept for [`ROUND_ROBIN_TTL`] after the last turn, of members that are away for [`ABSENT_MEMBERS_MAX`] at most.
//! - **Trials**: what a trial runs on is kept under its name for [`PLAYGROUND_RUN_TTL`] and no longer, and may be lost before.
//!   Whoever keeps one has bounded it by [`PLAYGROUND_RUN_BYTES_MAX`].
//! - **Amnesia**: the relay may come back empty. It then says [`ClaimStatus::StateLost`], and [`Relay::restore`] teaches it
//!   anew what the holder knows, unless someone else has claimed the reply meanwhile. For [`STATE_LOSS_GRACE`] after such a
//!   return an inherited claim is answered [`ClaimOutcome::Busy`]: whoever still works on the reply speaks first.

mod attempt_store;
mod claim_state;
#[cfg(test)]
mod claim_state_properties;
#[cfg(test)]
mod conformance;
pub mod embedded;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod fixtures;
mod key_value_store;
mod playground_store;
pub mod redis;
mod reply_log;
mod round_robin;

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use switchboard_schemas::{
    ids::{AgentId, EventId, IngressId, MessageId, TeamId},
    playground::PlaygroundRouting,
    reply_event::{Frame, FrameBody, IngressEnvelope, PatchOutcome},
    routing::RoutingFacts,
};
use tokio::sync::mpsc;

/// How long a claim lives without a sign of its holder.
pub const LEASE: Duration = Duration::from_secs(3);
/// How long a relay that may have lost its memory listens for holders before it grants what they may hold: their next
/// beat may first have to find a dead connection and make another one.
pub const STATE_LOSS_GRACE: Duration = Duration::from_secs(6);
/// How often a holder that appends nothing gives a sign.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// Attempts of one reply, ever.
pub const ATTEMPTS_MAX: u32 = 3;
/// How long the log outlives its last frame.
pub const LOG_TTL: Duration = Duration::from_secs(15 * 60);
/// How long it is remembered that a reply is final, or that a publish was voided.
pub const FINAL_STATE_TTL: Duration = Duration::from_secs(24 * 60 * 60);
/// How long the turns of a team's members are remembered after the last one.
pub const ROUND_ROBIN_TTL: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Members whose turns are remembered although they were not offered the last one; those who were offered one later
/// first.
pub const ABSENT_MEMBERS_MAX: usize = 100;
/// How long a place in a conversation's queue is kept: longer than any turn may wait and take.
pub const QUEUE_SLOT_TTL: Duration = Duration::from_secs(15 * 60);
/// How long is kept what a trial runs on: longer than a turn may wait for its worker.
pub const PLAYGROUND_RUN_TTL: Duration = Duration::from_secs(10 * 60);
/// Longest text of it.
pub const PLAYGROUND_RUN_BYTES_MAX: usize = 2 << 20;
/// Envelopes that may wait in a listener.
pub const LISTENER_ENVELOPES_MAX: usize = 16_384;

/// Claims and reply text, worker's side and ingress's side.
#[async_trait]
pub trait Relay: Send + Sync {
    /// Asks for the right to work on a reply.
    async fn claim(&self, request: &ClaimRequest) -> Result<ClaimOutcome, RelayError>;

    /// Logs frames and pushes them to `push_to`; renews the lease. No frames: a beat, which is pushed and not logged.
    async fn append(
        &self,
        token: &ClaimToken,
        push_to: Option<&IngressId>,
        frames: &[Frame],
    ) -> Result<ClaimStatus, RelayError>;

    /// After [`ClaimStatus::StateLost`]: takes the claim again and logs `frames`, the reply so far.
    async fn restore(
        &self,
        token: &ClaimToken,
        push_to: Option<&IngressId>,
        frames: &[Frame],
    ) -> Result<ClaimStatus, RelayError>;

    /// Fixes the reply's text and its end: from here on this end is stored, by this holder or the next one. A
    /// cancelled reply refuses every end but a cancelled one.
    async fn seal(&self, token: &ClaimToken, end: &Frame) -> Result<ClaimStatus, RelayError>;

    /// The end is stored: logs and pushes it, frees the conversation and remembers its number of messages.
    /// Without `announced`, the next claim is told to announce the reply to analytics.
    async fn settle(
        &self,
        token: &ClaimToken,
        settlement: &ClaimCompletion,
    ) -> Result<ClaimStatus, RelayError>;

    /// Ends the lease now, so that the next claim succeeds at once and with the same attempts left.
    async fn release(&self, token: &ClaimToken) -> Result<(), RelayError>;

    /// Pushes the outcome of a change of metadata.
    async fn answer_patch(
        &self,
        push_to: &IngressId,
        patch: &EventId,
        outcome: PatchOutcome,
    ) -> Result<(), RelayError>;

    /// Keeps what the trial with this name runs on.
    async fn keep_trial(&self, trial: &MessageId, text: &str) -> Result<(), RelayError>;

    /// What the trial runs on, as long as it is kept.
    async fn trial(&self, trial: &MessageId) -> Result<Option<String>, RelayError>;

    /// Pushes who of a team would answer.
    async fn answer_trial(
        &self,
        push_to: &IngressId,
        trial: &MessageId,
        verdict: PlaygroundRouting,
    ) -> Result<(), RelayError>;

    /// Pushes a sign that the reply's message waits for its turn; needs no claim, and is no sign of an attempt.
    async fn say_waiting(&self, push_to: &IngressId, reply: &MessageId) -> Result<(), RelayError>;

    /// Listens on an ingress's channel, before its first job is published. Comes back by itself after any outage;
    /// closed only when the receiver is dropped.
    async fn listen(
        &self,
        ingress: &IngressId,
    ) -> Result<mpsc::Receiver<IngressEnvelope>, RelayError>;

    /// The logged frames after `after_seq`, oldest first, with an end if there is one.
    async fn read_log(&self, reply: &MessageId, after_seq: u64) -> Result<Vec<Frame>, RelayError>;

    /// Marks a publish that was answered with 503: a record that carries this nonce is not worked on. Gives back the
    /// reply's place in the queue.
    async fn void(&self, reply: &MessageId, publish_nonce: &str) -> Result<(), RelayError>;

    /// Takes a place in the queue of the reply's conversation; `false` when `places_max` others have one. A reply that has
    /// one keeps it, and one that is stored needs none.
    async fn enqueue(&self, reply: &MessageId, places_max: u32) -> Result<bool, RelayError>;

    /// Keeps `value` under `name` unless something is kept there; gives what is kept.
    async fn remember(&self, name: &str, value: &str) -> Result<String, RelayError>;

    /// Records who answers a team's message, unless that was decided before; gives the decision that stands. A new
    /// decision is the conversation's last one.
    async fn decide(
        &self,
        message: &MessageId,
        decision: &RoutingDecision,
    ) -> Result<RoutingDecision, RelayError>;

    /// Decides for the member whose turn it is, unless something was decided before, as [`Relay::decide`] does; gives the
    /// decision that stands. None when nobody is offered.
    async fn decide_in_turn(
        &self,
        message: &MessageId,
        offer: &RoundRobinOffer,
    ) -> Result<Option<RoutingDecision>, RelayError>;

    /// What was decided for the message, and last in its conversation.
    async fn decisions(&self, message: &MessageId) -> Result<RecordedDecisions, RelayError>;

    /// Asks that the reply stops; `false` when it was already final or sealed.
    async fn cancel(&self, reply: &MessageId) -> Result<bool, RelayError>;

    /// Forgets the text of the reply to this message, whose conversation is deleted, and why its agent was chosen. That the
    /// reply is final stays known.
    async fn forget(&self, message: &MessageId) -> Result<(), RelayError>;

    /// Whether the relay answers.
    async fn check(&self) -> Result<(), RelayError>;
}

/// Who asks for which reply.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// The reply.
    pub reply_id: MessageId,
    /// The nonce of the publish that brought the job.
    pub publish_nonce: String,
    /// Lowest attempt that may be handed out.
    pub attempt_min: u32,
    /// Whether someone else may have begun the reply, so that a relay without memory must not believe that nobody has.
    pub inherited: bool,
}

/// The right to work on a reply.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClaimToken {
    /// The reply.
    pub reply_id: MessageId,
    /// Which attempt; higher ones win in the store.
    pub attempt: u32,
    /// Tells apart two holders of one number, which an emptied relay can make.
    pub nonce: u64,
}

/// The answer to a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum ClaimOutcome {
    /// It is yours.
    Granted {
        /// Shown at every step.
        token: ClaimToken,
        /// What is left to do.
        task: ClaimTask,
        /// Messages in the conversation's history when its last turn was settled; none when the relay does not know.
        message_count: Option<u64>,
    },
    /// Another holder is alive, on this reply or on another one of its conversation.
    Busy {
        /// When to ask again.
        retry_after: Duration,
    },
    /// It is final, and announced.
    Done,
    /// Its publish was answered with 503.
    Voided,
}

/// What the holder of a claim is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum ClaimTask {
    /// Make the reply, or go on with it where its log ends.
    Generate,
    /// The text is complete in the log: store it with this end, call no model.
    StoreFinalized {
        /// The end that was sealed.
        end: Frame,
    },
    /// It is stored: announce it to analytics.
    Announce,
    /// Every attempt died: store that it failed.
    GiveUp,
}

/// How a holder stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimStatus {
    /// The claim holds.
    Held,
    /// It holds, and the reply is to stop.
    Cancelled,
    /// Someone else holds it now: write nothing more.
    Fenced,
    /// The relay lost its memory: [`Relay::restore`].
    StateLost,
}

/// The end of a turn, as the relay remembers it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimCompletion {
    /// The end frame.
    pub end: Frame,
    /// Messages in the conversation's history now.
    pub message_count: u64,
    /// Whether analytics has the reply.
    pub announced: bool,
    /// The ingress that waits.
    pub push_to: Option<IngressId>,
}

/// Who answers a team's message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoutingDecision {
    /// The agent.
    pub agent_id: AgentId,
    /// Why it, in words a customer can read.
    pub reason: String,
    /// What the decision stood on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<RoutingFacts>,
}

/// Members of a team who take turns.
#[derive(Clone, Debug)]
pub struct RoundRobinOffer {
    /// The team whose turns are counted.
    pub team: TeamId,
    /// Who can answer now, in the team's order, each once.
    pub members: Vec<AgentId>,
    /// The decision's reason, whoever it is.
    pub reason: String,
    /// What the decision stands on.
    pub facts: Option<RoutingFacts>,
}

/// What is remembered before a team's message is routed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedDecisions {
    /// For this message.
    pub own: Option<RoutingDecision>,
    /// The last one in its conversation.
    pub last: Option<RoutingDecision>,
}

impl RoundRobinOffer {
    /// The decision for the member that was chosen.
    fn decision(&self, agent_id: AgentId) -> RoutingDecision {
        RoutingDecision {
            agent_id,
            reason: self.reason.clone(),
            facts: self.facts.clone(),
        }
    }
}

/// Why the relay did not do it.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// It cannot be reached; replies go on without it.
    #[error("relay unavailable: {0}")]
    Unavailable(String),
}

/// The sign of life that is pushed and never logged.
fn beat(token: &ClaimToken) -> Frame {
    Frame {
        attempt: token.attempt,
        generation: 0,
        seq: 0,
        body: FrameBody::Heartbeat,
    }
}

/// The sign of a message whose turn has not come.
const fn waiting() -> Frame {
    Frame {
        attempt: 0,
        generation: 0,
        seq: 0,
        body: FrameBody::Heartbeat,
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A decision as it is kept; our own types, with string keys, always serialize.
fn encode_decision(decision: &RoutingDecision) -> String {
    serde_json::to_string(decision).unwrap_or_default()
}

/// What a newer program kept is as good as unknown.
fn decode_decision(text: &str) -> Option<RoutingDecision> {
    serde_json::from_str(text).ok()
}
