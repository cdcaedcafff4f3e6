//! Parser of server-sent events, fed with the pieces of a response body as they arrive.
//!
//! Line ends may be LF, CRLF or CR. Comments and events without data are skipped. Events are
//! handed out in place: nothing is allocated for an event that is no longer than an earlier one.

/// Byte order mark, which may precede the first line.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One event with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamEvent<'a> {
    /// True for events named `error`, and for data in a field of that name (llama.cpp).
    pub(super) is_error: bool,
    /// True for events with a name, whose data need not be JSON (`ping`).
    pub(super) is_named: bool,
    pub(super) data: &'a [u8],
}

impl<'a> StreamEvent<'a> {
    /// Creates an event without a name.
    pub(super) const fn of_data(data: &'a [u8]) -> Self {
        Self {
            is_error: false,
            is_named: false,
            data,
        }
    }
}

/// Parser with the incomplete end of the pieces so far.
#[derive(Debug, Default)]
pub(super) struct EventParser {
    /// Beginning of a line whose end has not arrived.
    line: Vec<u8>,
    /// Data lines of the current event, joined.
    data: Vec<u8>,
    is_error: bool,
    is_named: bool,
    /// True if the last line ended with CR, to which an LF may belong.
    after_return: bool,
    /// True after the first line.
    begun: bool,
}

impl EventParser {
    /// Adds a piece and calls `take` with each event that is complete now.
    pub(super) fn push(&mut self, mut piece: &[u8], mut take: impl FnMut(StreamEvent<'_>)) {
        while let Some(end) = piece.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, ending, rest) = (&piece[..end], piece[end], &piece[end + 1..]);
            piece = rest;
            let is_second_half = self.after_return && ending == b'\n' && end == 0;
            self.after_return = ending == b'\r';
            if is_second_half {
                continue;
            }
            if self.line.is_empty() {
                self.take_line(line, &mut take);
            } else {
                let mut whole = std::mem::take(&mut self.line);
                whole.extend_from_slice(line);
                self.take_line(&whole, &mut take);
                whole.clear();
                self.line = whole;
            }
        }
        self.after_return &= piece.is_empty();
        self.line.extend_from_slice(piece);
    }

    /// Ends the stream: an event whose last line ends are missing is handed out as well.
    pub(super) fn finish(&mut self, mut take: impl FnMut(StreamEvent<'_>)) {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line, &mut take);
        }
        self.take_line(b"", &mut take);
    }

    fn take_line(&mut self, mut line: &[u8], take: &mut impl FnMut(StreamEvent<'_>)) {
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            let data = self.data.as_slice();
            if !data.trim_ascii().is_empty() {
                take(StreamEvent {
                    is_error: self.is_error,
                    is_named: self.is_named,
                    data,
                });
            }
            self.data.clear();
            self.is_error = false;
            self.is_named = false;
            return;
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" | b"error" => {
                self.is_error |= name == b"error";
                if !self.data.is_empty() {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => {
                self.is_error |= value == b"error";
                self.is_named |= !value.is_empty();
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the events of a body that arrives in these pieces.
    fn parse(pieces: &[&[u8]]) -> Vec<(bool, String)> {
        let mut events = Vec::new();
        let mut parser = EventParser::default();
        let mut take = |event: StreamEvent<'_>| {
            let data = String::from_utf8_lossy(event.data).into_owned();
            events.push((event.is_error, data));
        };
        for piece in pieces {
            parser.push(piece, &mut take);
        }
        parser.finish(&mut take);
        events
    }

    fn data(text: &str) -> (bool, String) {
        (false, text.to_owned())
    }

    #[test]
    fn comments_empty_events_and_unknown_fields_are_skipped() {
        let body = b"\xef\xbb\xbf: hello\n\ndata:\n\ndata: \n\nid: 4\nretry: 5\ndata:a\n\n\nevent: ping\n\ndata: b\n\n";
        assert_eq!(parse(&[body]), [data("a"), data("b")]);
    }

    #[test]
    fn errors_are_marked_in_both_forms() {
        let body = b"event: error\ndata: {\"code\":1}\n\nerror: {\"code\":2}\n\ndata: x\n\n";
        let error = |text: &str| (true, text.to_owned());
        assert_eq!(
            parse(&[body]),
            [error("{\"code\":1}"), error("{\"code\":2}"), data("x")]
        );
    }

    #[test]
    fn last_event_needs_no_line_end() {
        assert_eq!(
            parse(&[b"data: a\n\ndata: [DONE]"]),
            [data("a"), data("[DONE]")]
        );
    }

    proptest! {
        #[test]
        fn any_split_and_any_line_end_result_in_the_same_events(
            texts in prop::collection::vec("[a-z:{} é🦀]{1,12}", 1..6),
            ending in prop::sample::select(vec!["\n", "\r\n", "\r"]),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let body: String = texts.iter().map(|text| format!(": note{ending}data: {text}{ending}data: z{ending}{ending}")).collect();
            let body = body.as_bytes();
            let mut at: Vec<_> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
            at.extend([0, body.len()]);
            at.sort_unstable();
            let pieces: Vec<_> = at.windows(2).map(|pair| &body[pair[0]..pair[1]]).collect();
            let want: Vec<_> = texts.iter().map(|text| data(&format!("{text}\nz"))).collect();
            prop_assert_eq!(parse(&pieces), want);
        }
    }
}
