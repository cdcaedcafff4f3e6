//! Queue slots of one conversation, and its voided publishes.

use switchboard_schemas::{ids::MessageId, time::whole_millis};

use super::{ConversationClaims, ReplyPhase};
use crate::relay::{FINAL_STATE_TTL, QUEUE_SLOT_TTL, embedded::frame_log::RelayMillis};

impl ConversationClaims {
    /// Reserves a queue slot for the reply. Returns `false` if the queue is full.
    pub(in crate::relay::embedded) fn reserve_slot(
        &mut self,
        now: RelayMillis,
        reply_id: &MessageId,
        slots_max: u32,
    ) -> bool {
        let status = self.replies.get(reply_id).and_then(|reply| reply.status);
        if matches!(status, Some(ReplyPhase::Stored | ReplyPhase::Done)) {
            return true;
        }
        self.slots.retain(|_, until| *until > now);
        let is_full = self.slots.len() >= usize::try_from(slots_max).unwrap_or(usize::MAX);
        if is_full && !self.slots.contains_key(reply_id) {
            return false;
        }
        self.slots
            .insert(reply_id.clone(), now + whole_millis(QUEUE_SLOT_TTL));
        self.keep_until = now + whole_millis(FINAL_STATE_TTL);
        true
    }

    /// Returns the replies with a queue slot.
    pub(in crate::relay::embedded) fn queued_replies(&self) -> Vec<MessageId> {
        self.slots.keys().cloned().collect()
    }

    /// Marks a publish whose jobs must not be claimed.
    pub(in crate::relay::embedded) fn void_publish(
        &mut self,
        now: RelayMillis,
        reply_id: &MessageId,
        publish_nonce: &str,
    ) {
        self.slots.remove(reply_id);
        self.keep_until = now + whole_millis(FINAL_STATE_TTL);
        self.voided
            .insert(publish_nonce.to_owned(), self.keep_until);
    }
}
