//! Reply logs: the frames of each reply, stored for a while and pushed to the ingress that waits
//! for them.

use std::time::Duration;

use async_trait::async_trait;
use switchboard_schemas::{
    ids::{IngressId, MessageId},
    reply_event::{Frame, IngressEnvelope},
};
use tokio::sync::mpsc;

use super::{ClaimStatus, ClaimToken, RelayError};

/// Lifetime of a log after its last frame.
pub const LOG_TTL: Duration = Duration::from_secs(15 * 60);
/// Lifetime of the log of a reply that is done: readers that missed a frame find it there for a
/// while, later ones read the store.
pub const DONE_LOG_TTL: Duration = Duration::from_secs(60);
/// Capacity of a subscription, in envelopes.
pub const LISTENER_ENVELOPES_MAX: usize = 16_384;

/// Frames of replies, logged and pushed.
///
/// # Contract
/// - **Order**: frames of a reply are stored in the order of their `seq`; a repeated `seq` is
///   ignored. A frame of another generation starts the log anew.
/// - **Expiry**: a log is deleted [`LOG_TTL`] after its last frame, and [`DONE_LOG_TTL`] after its
///   reply is done.
/// - **Delivery**: each appended frame is also pushed to the waiting ingress, at most once and in
///   order. Frames are lost while that process is disconnected or does not keep up; it reads them
///   from the log.
#[async_trait]
pub trait ReplyLog: Send + Sync {
    /// Logs frames, pushes them to `push_to` and renews the lease of the claim. Returns
    /// [`ClaimStatus::StateLost`] if frames before the first one are missing.
    async fn append_frames(
        &self,
        token: &ClaimToken,
        push_to: Option<&IngressId>,
        frames: &[Frame],
    ) -> Result<ClaimStatus, RelayError>;

    /// Returns the logged frames after `after_seq`, oldest first, including the end of a completed
    /// reply.
    async fn read_frames(
        &self,
        reply: &MessageId,
        after_seq: u64,
    ) -> Result<Vec<Frame>, RelayError>;

    /// Returns the time for which the claim of a reply stays valid without another renewal, by the
    /// clock of the relay; `None` without a valid claim, and for a reply that is done.
    async fn remaining_lease(&self, reply: &MessageId) -> Result<Option<Duration>, RelayError>;

    /// Deletes the logged frames of a reply. Its final state stays known.
    async fn delete_frames(&self, reply: &MessageId) -> Result<(), RelayError>;

    /// Subscribes to the envelopes pushed to an ingress process; to be called before its first job
    /// is published. The subscription is restored after outages and ends only when the receiver is
    /// dropped.
    async fn subscribe(
        &self,
        ingress: &IngressId,
    ) -> Result<mpsc::Receiver<IngressEnvelope>, RelayError>;

    /// Pushes an envelope to an ingress process without logging it.
    async fn push(&self, to: &IngressId, envelope: &IngressEnvelope) -> Result<(), RelayError>;
}
