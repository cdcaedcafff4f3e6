//! Texts: decoded, without characters that people do not see, and cut.

use std::iter::Peekable;

use encoding_rs::UTF_8;

use super::{BoundedText, ReadFailure, ReadResult};

/// Longest command of a terminal without an end that is skipped, in characters.
const COMMAND_CHARACTERS_MAX: usize = 256;

/// Reads a text in UTF-8, or in UTF-16 with a byte order mark.
pub(super) fn read(bytes: &[u8]) -> ReadResult {
    let (decoded, _, has_errors) = UTF_8.decode(bytes);
    if has_errors {
        return Err(ReadFailure::NotText);
    }
    let mut text = BoundedText::default();
    text.push(&without_hidden_characters(&decoded));
    text.finish(None, ReadFailure::Empty)
}

/// Removes control characters other than line feeds and tabs, the commands of terminals, and
/// characters that reorder or hide text. Ends every line with a line feed.
pub(super) fn without_hidden_characters(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\r' => {
                rest.next_if_eq(&'\n');
                shown.push('\n');
            }
            '\u{1b}' => skip_command(&mut rest),
            '\n' | '\t' => shown.push(character),
            _ if character.is_control() || is_hidden(character) => {}
            _ => shown.push(character),
        }
    }
    shown
}

/// Skips the rest of a terminal command, such as a change of the color or of the window's title.
fn skip_command(rest: &mut Peekable<impl Iterator<Item = char> + Clone>) {
    match rest.peek() {
        Some('[') => {
            rest.next();
            while rest.next_if(|next| matches!(next, ' '..='?')).is_some() {}
            rest.next_if(|next| matches!(next, '@'..='~'));
        }
        Some(']') => {
            let is_end = |next: &char| matches!(next, '\u{7}' | '\u{1b}' | '\n');
            let mut ahead = rest.clone().take(COMMAND_CHARACTERS_MAX);
            let Some(length) = ahead.position(|next| is_end(&next)) else {
                return;
            };
            for _ in 0..length {
                rest.next();
            }
        }
        _ => {
            rest.next_if(|next| matches!(next, '@'..='_'));
        }
    }
}

/// Returns `true` for characters that people do not see and that change what a reader makes of a
/// text: marks of order, zero-width spaces, tags and fillers.
const fn is_hidden(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'
            | '\u{200e}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{FileReading, TEXT_BYTES_MAX};

    fn shown(text: &str) -> String {
        without_hidden_characters(text)
    }

    #[test]
    fn visible_text_stays_as_it_is() {
        let text = "Zażółć\tgęślą\njaźń 👩‍👩‍👧 می‌خواهم <|im_start|> =SUM(A1)";
        assert_eq!(shown(text), text);
    }

    #[test]
    fn control_characters_are_removed() {
        assert_eq!(shown("a\0b\u{7}c\u{85}d\r\ne\rf\u{7f}"), "abcd\ne\nf");
    }

    #[test]
    fn commands_of_terminals_are_removed() {
        assert_eq!(shown("\u{1b}[31mred\u{1b}[0m \u{1b}[2Jx"), "red x");
        assert_eq!(shown("\u{1b}]0;title\u{7}a\u{1b}]8;;b\u{1b}\\c"), "ac");
        assert_eq!(shown("\u{1b}] without an end"), "] without an end");
        assert_eq!(shown("\u{1b}"), "");
    }

    #[test]
    fn characters_that_hide_text_are_removed() {
        assert_eq!(
            shown("a\u{202e}b\u{200b}c\u{2066}d\u{e0041}e\u{feff}"),
            "abcde"
        );
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        let read = read("ż".repeat(TEXT_BYTES_MAX).as_bytes());
        let Ok(FileReading::Text { text, is_cut, .. }) = read else {
            panic!("{read:?}")
        };
        assert_eq!((text.len(), is_cut), (TEXT_BYTES_MAX, true));
        let odd = [b"a", "ż".repeat(TEXT_BYTES_MAX / 2).as_bytes()].concat();
        assert!(
            matches!(super::read(&odd), Ok(FileReading::Text { text, is_cut: true, .. })
            if text.len() == TEXT_BYTES_MAX - 1)
        );
    }

    #[test]
    fn encoding_follows_the_byte_order_mark() {
        let utf_16 = |text: &str| -> Vec<u8> {
            let units = std::iter::once(0xfeff).chain(text.encode_utf16());
            units.flat_map(u16::to_le_bytes).collect()
        };
        let expected = |text: &str| {
            Ok(FileReading::Text {
                text: text.to_owned(),
                is_cut: false,
                pages: None,
            })
        };
        assert_eq!(read("\u{feff}ą".as_bytes()), expected("ą"));
        assert_eq!(read(&utf_16("ą")), expected("ą"));
        assert_eq!(read(b"\xff\xfe"), Err(ReadFailure::Empty));
        assert_eq!(read(b"caf\xe9"), Err(ReadFailure::NotText));
    }
}
