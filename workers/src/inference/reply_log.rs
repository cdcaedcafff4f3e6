//! The log of an earlier attempt, read back: which text may be gone on with, and under which numbers.

use bytes::Bytes;
use switchboard_schemas::reply_event::{Frame, FrameBody, ReplyHead};

/// What the log of a reply holds of its newest generation.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LoggedReply {
    /// Generation; 0 when there is no log.
    pub(crate) generation: u32,
    /// Highest sequence number.
    pub(crate) seq: u64,
    /// How it began.
    pub(crate) head: Option<ReplyHead>,
    /// Its text.
    pub(crate) text: String,
}

impl LoggedReply {
    /// Reads frames in the order of the log. Repeats are dropped; text after a gap is not ours to keep.
    pub(crate) fn read(frames: Vec<Frame>) -> Self {
        let Some(generation) = frames.last().map(|frame| frame.generation) else {
            return Self::default();
        };
        let mut logged = Self {
            generation,
            ..Self::default()
        };
        for frame in frames
            .into_iter()
            .filter(|frame| frame.generation == generation)
        {
            // The end keeps its number: it is told again under the same one.
            if !matches!(frame.body, FrameBody::End(_)) {
                logged.seq = logged.seq.max(frame.seq);
            }
            match frame.body {
                FrameBody::Head(head) => logged.head = Some(*head),
                FrameBody::Text { offset, text } => logged.add(offset, &text),
                FrameBody::Ui(spec) => {
                    if let Some(head) = &mut logged.head {
                        head.ui_spec = Some(spec);
                    }
                }
                FrameBody::End(_) | FrameBody::Heartbeat | FrameBody::Tool(_) => {}
            }
        }
        logged
    }

    fn add(&mut self, offset: u64, text: &Bytes) {
        let known = usize::try_from(offset)
            .ok()
            .and_then(|offset| self.text.len().checked_sub(offset));
        let new = known
            .and_then(|known| text.get(known..))
            .unwrap_or_default();
        self.text
            .push_str(std::str::from_utf8(new).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(seq: u64, generation: u32, offset: usize, text: &str) -> Frame {
        let body = FrameBody::Text {
            offset: offset as u64,
            text: text.to_owned().into(),
        };
        Frame {
            attempt: 1,
            generation,
            seq,
            body,
        }
    }

    #[test]
    fn an_empty_log_is_nothing_to_go_on_with() {
        assert_eq!(LoggedReply::read(Vec::new()), LoggedReply::default());
    }

    #[test]
    fn only_the_newest_generation_counts() {
        let logged = LoggedReply::read(vec![text(1, 7, 0, "old"), text(1, 8, 0, "new")]);
        assert_eq!(
            (logged.generation, logged.text.as_str(), logged.seq),
            (8, "new", 1)
        );
    }

    #[test]
    fn text_after_a_gap_is_left_out() {
        let logged = LoggedReply::read(vec![text(1, 7, 0, "ab"), text(2, 7, 5, "fg")]);
        assert_eq!((logged.text.as_str(), logged.seq), ("ab", 2));
    }

    proptest! {
        #[test]
        fn repeats_and_snapshots_give_the_same_text(whole in "[a-zä-ü]{1,40}", starts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
            let mut frames = vec![];
            let mut known = 0;
            for (number, start) in starts.iter().enumerate() {
                let boundaries: Vec<_> = (0..=whole.len()).filter(|at| whole.is_char_boundary(*at)).collect();
                let to = boundaries[start.index(boundaries.len())];
                frames.push(text(number as u64 + 1, 7, 0, &whole[..to]));
                known = known.max(to);
            }
            prop_assert_eq!(LoggedReply::read(frames).text, whole[..known].to_owned());
        }
    }
}
