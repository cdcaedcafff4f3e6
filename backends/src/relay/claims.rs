//! Claims: the exclusive right of one worker to produce a reply.

use std::time::Duration;

use async_trait::async_trait;
use switchboard_schemas::{
    conversation::ReplyStatus,
    ids::{IngressId, MessageId},
    reply_event::{Frame, FrameBody},
};

use super::RelayError;

/// Lifetime of a claim that is not renewed.
pub const LEASE: Duration = Duration::from_secs(3);
/// Time for which a relay that may have lost its state waits for claim holders before it grants
/// their replies to others. A holder's next heartbeat may first have to detect a dead connection
/// and open another one.
pub const STATE_LOSS_GRACE: Duration = Duration::from_secs(6);
/// Interval of the heartbeats of a holder that appends nothing.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// Time for which the number of messages is known at least, after the last open reply of a
/// conversation is done. Without it, the next turn reads the conversation from the store.
pub const MESSAGE_COUNT_TTL: Duration = Duration::from_secs(15 * 60);
/// Number of failed attempts after which a reply is given up.
pub const ATTEMPTS_MAX: u32 = 3;

/// Claims on replies.
///
/// # Contract
/// - **Exclusion**: at most one token of a reply is valid at a time, and at most one reply of a
///   conversation is claimed.
/// - **Lease**: a token is an attempt number and a nonce. It expires after [`LEASE`] and is renewed
///   by every call that carries it, including [`super::ReplyLog::append_frames`]. The next claim
///   after an expiry gets a higher attempt; after [`ATTEMPTS_MAX`] failed attempts its task is
///   [`ClaimTask::GiveUp`]. The clock of the relay decides, never that of a worker.
/// - **Fencing**: a call with another token than the valid one changes nothing and returns
///   [`ClaimStatus::Fenced`].
/// - **Finalization**: after [`finalize_reply`](Self::finalize_reply) no holder adds text to the
///   reply or finalizes another end. Readers see the end of a claimed reply after
///   [`complete_claim`](Self::complete_claim). If the stored end is another one, because a response
///   of the relay was lost, the stored one is logged.
/// - **Cancellation**: a cancel mark is returned by the next append, heartbeat or finalization. A
///   reply that waits in its queue slot and was never claimed is finalized by the cancellation
///   itself, which logs the end at once.
/// - **State loss**: the relay may come back empty. It then returns [`ClaimStatus::StateLost`], and
///   the holder sends what it knows with [`restore_claim`](Self::restore_claim), which is refused
///   if another worker has claimed the reply meanwhile. For [`STATE_LOSS_GRACE`] after such a
///   restart a claim with [`ClaimRequest::maybe_held`] is answered with [`ClaimOutcome::Busy`], so
///   that a worker that still holds the reply comes first.
#[async_trait]
pub trait ClaimStore: Send + Sync {
    /// Claims a reply, or returns the reason why it cannot be claimed.
    async fn claim_reply(&self, request: &ClaimRequest) -> Result<ClaimOutcome, RelayError>;

    /// Renews the lease and pushes a heartbeat, which is not logged, to `push_to`.
    async fn renew_claim(
        &self,
        token: &ClaimToken,
        push_to: Option<&IngressId>,
    ) -> Result<ClaimStatus, RelayError>;

    /// Takes the claim again after [`ClaimStatus::StateLost`] and logs `frames`, the whole reply so
    /// far.
    async fn restore_claim(
        &self,
        token: &ClaimToken,
        push_to: Option<&IngressId>,
        frames: &[Frame],
    ) -> Result<ClaimStatus, RelayError>;

    /// Makes the text and the end of the reply unchangeable; this holder or the next one stores
    /// them. Returns [`ClaimStatus::Cancelled`] and changes nothing if the reply was cancelled,
    /// unless `end` is itself a cancelled end.
    async fn finalize_reply(
        &self,
        token: &ClaimToken,
        end: &Frame,
    ) -> Result<ClaimStatus, RelayError>;

    /// Logs and pushes the stored end, frees the conversation and records its number of messages.
    /// Unless the completion is `announced`, the next claim gets [`ClaimTask::Announce`]. Repeating
    /// the call has no effect.
    async fn complete_claim(
        &self,
        token: &ClaimToken,
        completion: &ClaimCompletion,
    ) -> Result<ClaimStatus, RelayError>;

    /// Ends the lease at once. The next claim succeeds immediately; the attempt number rises, but
    /// no failure is counted.
    async fn release_claim(&self, token: &ClaimToken) -> Result<(), RelayError>;

    /// Requests that the reply stops. One that waits, with a queue slot and without a claim, ends
    /// at once: `end` is logged and finalized, and its next claim stores it.
    async fn cancel_reply(
        &self,
        reply: &MessageId,
        end: &Frame,
    ) -> Result<CancelOutcome, RelayError>;
}

/// A request to claim a reply.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// The reply to claim.
    pub reply_id: MessageId,
    /// Nonce of the publish that delivered the job. A publish that was answered with 503 must not
    /// be processed if its record arrives later.
    pub publish_nonce: String,
    /// Random number of this attempt, which becomes part of the token. A repeated claim with it has
    /// the same outcome, so that a grant whose answer was late does not lock out its own owner.
    pub nonce: u64,
    /// Lowest attempt number that may be assigned.
    pub attempt_min: u32,
    /// `true` if another worker may hold the reply, so that a relay without state must not grant it
    /// at once.
    pub maybe_held: bool,
}

/// The fencing token of a claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClaimToken {
    /// Id of the claimed reply.
    pub reply_id: MessageId,
    /// Attempt number; the store accepts only the highest one.
    pub attempt: u32,
    /// Random number that separates two holders of the same attempt number, which can exist after a
    /// state loss.
    pub nonce: u64,
}

/// The result of a claim request.
#[derive(Clone, Debug, PartialEq)]
pub enum ClaimOutcome {
    /// The caller holds the claim.
    Granted {
        /// Token of the claim, required by every later call.
        token: ClaimToken,
        /// Remaining work for this reply.
        task: ClaimTask,
        /// Messages in the conversation when its last turn was completed; `None` if the relay does
        /// not know.
        message_count: Option<u64>,
        /// Time since the reply got its queue slot, by the clock of the relay; `None` if the relay
        /// does not know.
        queue_wait: Option<Duration>,
    },
    /// Another holder is alive, on this reply or on another one of its conversation.
    Busy {
        /// Delay before the next request.
        retry_after: Duration,
        /// Attempt that holds this reply; `None` if another reply of its conversation is held.
        attempt: Option<u32>,
    },
    /// The reply is final and announced.
    Done,
    /// The publish of the job was answered with 503.
    Voided,
}

/// The remaining work of a claim holder.
#[derive(Clone, Debug, PartialEq)]
pub enum ClaimTask {
    /// Generate the reply, or continue it where its log ends.
    Generate,
    /// Store the logged text with this end, without calling a model.
    StoreFinalized {
        /// The end frame that was finalized.
        end: Frame,
    },
    /// Announce the stored reply to analytics.
    Announce,
    /// Store that the reply failed, because every attempt failed.
    GiveUp,
}

/// The state of a claim, as returned to its holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimStatus {
    /// The claim is valid.
    Held,
    /// The claim is valid, and the reply is to stop.
    Cancelled,
    /// Another worker holds the claim: write nothing more.
    Fenced,
    /// The relay lost its state: call [`ClaimStore::restore_claim`].
    StateLost,
}

/// The result of a request to cancel a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelOutcome {
    /// The reply was waiting and has ended.
    Ended,
    /// The holder of the claim learns about it.
    Requested,
    /// The reply is final or finalized.
    TooLate,
}

/// The end of a turn, as reported to the relay.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimCompletion {
    /// End frame of the reply.
    pub end: Frame,
    /// Messages in the conversation after this turn.
    pub message_count: u64,
    /// `true` if the reply has been published to analytics.
    pub announced: bool,
    /// Ingress process that waits for the reply.
    pub push_to: Option<IngressId>,
}

/// Returns `true` for the end frame of a cancelled reply.
pub(super) fn is_cancelled_end(end: &Frame) -> bool {
    matches!(&end.body, FrameBody::End(end) if end.status == ReplyStatus::Cancelled)
}
