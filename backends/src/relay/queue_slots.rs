//! Queue slots: the bounded number of replies that may wait in each conversation.

use std::time::Duration;

use async_trait::async_trait;
use switchboard_schemas::ids::{ConversationId, MessageId};

use super::RelayError;

/// Lifetime of a queue slot, longer than any turn may wait and run. A slot whose holder died
/// becomes free after it.
pub const QUEUE_SLOT_TTL: Duration = Duration::from_secs(15 * 60);

/// Slots in the queues of conversations.
///
/// # Contract
/// A reply reserves a slot before its job is published. The slot is freed when the reply is
/// completed, when its publish is voided, or after [`QUEUE_SLOT_TTL`].
#[async_trait]
pub trait QueueSlots: Send + Sync {
    /// Reserves a slot in the queue of the reply's conversation. Returns `false` if `slots_max`
    /// other replies have one. A reply that has a slot keeps it, and a completed reply needs none.
    async fn reserve_slot(&self, reply: &MessageId, slots_max: u32) -> Result<bool, RelayError>;

    /// Returns the replies of a conversation that have a slot, in no order.
    async fn queued_replies(
        &self,
        conversation: &ConversationId,
    ) -> Result<Vec<MessageId>, RelayError>;

    /// Marks a publish that was answered with 503, so that jobs with this nonce are not claimed,
    /// and frees the reply's slot. The mark is kept for [`super::FINAL_STATE_TTL`].
    async fn void_publish(&self, reply: &MessageId, publish_nonce: &str) -> Result<(), RelayError>;
}
