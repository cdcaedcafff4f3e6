//! Restores the state of a reply from the log of an earlier attempt.

use bytes::Bytes;
use switchboard_schemas::reply_event::{Frame, FrameBody, ReplyHead};

/// The newest generation of a reply, as its log contains it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LoggedReply {
    /// Generation of the text; `None` without a log.
    pub(crate) generation: Option<u32>,
    /// Highest sequence number of its frames.
    pub(crate) seq: u64,
    /// Head frame, if there is one.
    pub(crate) head: Option<ReplyHead>,
    /// Text from the start, without gaps.
    pub(crate) text: String,
}

impl LoggedReply {
    /// Restores a reply from frames in the order of the log. Repeated text is ignored; text after a
    /// gap is dropped.
    pub(crate) fn from_frames(frames: Vec<Frame>) -> Self {
        let Some(generation) = frames.last().map(|frame| frame.generation) else {
            return Self::default();
        };
        let mut logged = Self {
            generation: Some(generation),
            ..Self::default()
        };
        for frame in frames
            .into_iter()
            .filter(|frame| frame.generation == generation)
        {
            // An end frame is written again under the same number.
            if !matches!(frame.body, FrameBody::End(_)) {
                logged.seq = logged.seq.max(frame.seq);
            }
            match frame.body {
                FrameBody::Head(head) => logged.head = Some(*head),
                FrameBody::Text { offset, text } => logged.append_text(offset, &text),
                FrameBody::Ui(spec) => {
                    if let Some(head) = &mut logged.head {
                        head.ui_spec = Some(spec);
                    }
                }
                FrameBody::End(_) | FrameBody::Tool(_) => {}
            }
        }
        logged
    }

    fn append_text(&mut self, offset: u64, text: &Bytes) {
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

    fn text_frame(seq: u64, generation: u32, offset: usize, text: &str) -> Frame {
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
    fn empty_log_gives_an_empty_reply() {
        assert_eq!(LoggedReply::from_frames(Vec::new()), LoggedReply::default());
    }

    #[test]
    fn newest_generation_wins() {
        let logged =
            LoggedReply::from_frames(vec![text_frame(1, 7, 0, "old"), text_frame(1, 8, 0, "new")]);
        assert_eq!(
            (logged.generation, logged.text.as_str(), logged.seq),
            (Some(8), "new", 1)
        );
    }

    #[test]
    fn text_after_a_gap_is_dropped() {
        let logged =
            LoggedReply::from_frames(vec![text_frame(1, 7, 0, "ab"), text_frame(2, 7, 5, "fg")]);
        assert_eq!((logged.text.as_str(), logged.seq), ("ab", 2));
    }

    proptest! {
        #[test]
        fn repeated_text_is_ignored(whole in "[a-zä-ü]{1,40}", starts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
            let mut frames = vec![];
            let mut known = 0;
            for (number, start) in starts.iter().enumerate() {
                let boundaries: Vec<_> = (0..=whole.len()).filter(|at| whole.is_char_boundary(*at)).collect();
                let to = boundaries[start.index(boundaries.len())];
                frames.push(text_frame(number as u64 + 1, 7, 0, &whole[..to]));
                known = known.max(to);
            }
            prop_assert_eq!(LoggedReply::from_frames(frames).text, whole[..known].to_owned());
        }
    }
}
