//! Joins pieces of text that providers cut anywhere, even inside a character or a surrogate pair.
//!
//! The output is whole characters; bytes that can never become one turn into U+FFFD.

/// Longest incomplete beginning: a lead surrogate and two bytes of its other half.
const PENDING_BYTES_MAX: usize = 5;

/// Joins pieces into text, keeping an incomplete end for the next piece.
#[derive(Debug, Default)]
pub(super) struct TextAssembler {
    pending: Vec<u8>,
}

impl TextAssembler {
    /// Adds a piece, in which surrogates may stand as three bytes each (WTF-8). Appends the text
    /// that is complete now to `whole`.
    pub(super) fn push_bytes(&mut self, piece: &[u8], whole: &mut String) {
        if self.pending.is_empty()
            && let Ok(text) = std::str::from_utf8(piece)
        {
            whole.push_str(text);
            return;
        }
        self.pending.extend_from_slice(piece);
        let mut at = 0;
        while at < self.pending.len() {
            match decode_piece(&self.pending[at..]) {
                DecodedPiece::Text(text) => {
                    whole.push_str(text);
                    at += text.len();
                }
                DecodedPiece::Pair(character) => {
                    whole.push(character);
                    at += 6;
                }
                DecodedPiece::Broken(bytes) => {
                    whole.push(char::REPLACEMENT_CHARACTER);
                    at += bytes;
                }
                DecodedPiece::Incomplete => break,
            }
        }
        self.pending.drain(..at);
        debug_assert!(self.pending.len() <= PENDING_BYTES_MAX);
    }

    /// Adds U+FFFD to `whole` if incomplete bytes are left at the end.
    pub(super) fn finish(&mut self, whole: &mut String) {
        if !std::mem::take(&mut self.pending).is_empty() {
            whole.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

enum DecodedPiece<'a> {
    Text(&'a str),
    Pair(char),
    Broken(usize),
    Incomplete,
}

/// Decodes the beginning of `bytes`, which must not be empty.
fn decode_piece(bytes: &[u8]) -> DecodedPiece<'_> {
    let error = match std::str::from_utf8(bytes) {
        Ok(text) => return DecodedPiece::Text(text),
        Err(error) => error,
    };
    if error.valid_up_to() > 0 {
        return DecodedPiece::Text(
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
        );
    }
    match lead_surrogate(bytes) {
        LeadSurrogate::Half(lead) => second_half(lead, &bytes[3..]),
        LeadSurrogate::Perhaps => DecodedPiece::Incomplete,
        LeadSurrogate::No if error.error_len().is_none() => DecodedPiece::Incomplete,
        // A trailing surrogate alone is three bytes of one broken character.
        LeadSurrogate::No if bytes.len() >= 3 && bytes[0] == 0xed && bytes[1] >= 0xb0 => {
            DecodedPiece::Broken(3)
        }
        LeadSurrogate::No => DecodedPiece::Broken(error.error_len().unwrap_or(1)),
    }
}

enum LeadSurrogate {
    Half(u32),
    Perhaps,
    No,
}

/// A lead surrogate in WTF-8 is ED A0..AF xx.
fn lead_surrogate(bytes: &[u8]) -> LeadSurrogate {
    match bytes {
        [0xed] | [0xed, 0xa0..=0xaf] => LeadSurrogate::Perhaps,
        [0xed, second @ 0xa0..=0xaf, third @ 0x80..=0xbf, ..] => {
            LeadSurrogate::Half(surrogate_code(*second, *third))
        }
        _ => LeadSurrogate::No,
    }
}

fn second_half(lead: u32, rest: &[u8]) -> DecodedPiece<'_> {
    match rest {
        [] | [0xed] | [0xed, 0xb0..=0xbf] => DecodedPiece::Incomplete,
        [0xed, second @ 0xb0..=0xbf, third @ 0x80..=0xbf, ..] => {
            let code =
                0x1_0000 + ((lead - 0xd800) << 10) + (surrogate_code(*second, *third) - 0xdc00);
            char::from_u32(code).map_or(DecodedPiece::Broken(6), DecodedPiece::Pair)
        }
        _ => DecodedPiece::Broken(3),
    }
}

fn surrogate_code(second: u8, third: u8) -> u32 {
    0xd000 | (u32::from(second & 0x3f) << 6) | u32::from(third & 0x3f)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn assemble(pieces: &[&[u8]]) -> String {
        let mut assembler = TextAssembler::default();
        let mut text = String::new();
        for piece in pieces {
            assembler.push_bytes(piece, &mut text);
        }
        assembler.finish(&mut text);
        text
    }

    proptest! {
        #[test]
        fn text_cut_anywhere_is_reassembled(text in "\\PC{0,40}", cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)) {
            let mut at: Vec<_> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
            at.extend([0, text.len()]);
            at.sort_unstable();
            let pieces: Vec<_> = at.windows(2).map(|pair| &text.as_bytes()[pair[0]..pair[1]]).collect();
            prop_assert_eq!(assemble(&pieces), text);
        }

        #[test]
        fn arbitrary_bytes_become_text_with_a_bounded_rest(pieces: Vec<Vec<u8>>) {
            let (mut assembler, mut text) = (TextAssembler::default(), String::new());
            for piece in pieces {
                assembler.push_bytes(&piece, &mut text);
                prop_assert!(assembler.pending.len() <= PENDING_BYTES_MAX);
            }
        }
    }

    #[test]
    fn split_surrogate_pair_is_one_character() {
        // U+1F980 is D83E DD80.
        assert_eq!(
            assemble(&[b"a\xed\xa0\xbe", b"\xed\xb6\x80b"]),
            "a\u{1f980}b"
        );
    }

    #[test]
    fn lone_surrogate_is_replaced_and_its_neighbors_stay() {
        assert_eq!(assemble(&[b"a\xed\xa0\xbe", b"b"]), "a\u{fffd}b");
        assert_eq!(assemble(&[b"a\xed\xb6\x80b"]), "a\u{fffd}b");
        assert_eq!(assemble(&[b"a\xc3"]), "a\u{fffd}");
    }
}
