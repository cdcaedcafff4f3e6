//! Text of a reply in memory, which the model fills and the reply writer reads.

use switchboard_schemas::reply_event::{FrameBody, ReplyHead};

/// Everything that the model and its tools produced so far.
#[derive(Default)]
pub(super) struct ReplyText {
    pub(super) text: String,
    /// Head of the reply, once it started.
    pub(super) head: Option<ReplyHead>,
    /// Tool progress and UI that no frame contains yet.
    pub(super) side_frames: Vec<FrameBody>,
    /// Nothing is displayed before the user message is stored.
    pub(super) user_message_stored: bool,
}

impl ReplyText {
    /// Starts the reply if it has not started. Until its first text, the head names the model that
    /// was called last.
    pub(super) fn start(&mut self, new_head: &ReplyHead, model: &str) {
        let is_empty = self.text.is_empty();
        let head = self.head.get_or_insert_with(|| new_head.clone());
        if is_empty && head.model != model {
            model.clone_into(&mut head.model);
        }
    }
}
