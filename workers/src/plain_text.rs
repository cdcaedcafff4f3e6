//! Converts third-party text, such as a catalog's, to one bounded line without tags and control
//! characters, and breaks the marks of chat templates. Pure.

use std::borrow::Cow;

/// Character that marks truncated text.
const ELLIPSIS: char = '…';

/// Words behind `<` or `[`, and perhaps `/`, in the chat templates of Gemma, Llama 2 and Mistral.
const WORD_MARKS: [&str; 8] = [
    "start_of_turn>",
    "end_of_turn>",
    "s>",
    "SYS>>",
    "INST]",
    "SYSTEM_PROMPT]",
    "AVAILABLE_TOOLS]",
    "TOOL_RESULTS]",
];

/// Returns the text on one line, without tags.
pub(crate) fn one_line(text: &str) -> String {
    let text = strip_tags(text);
    let visible = text.split(|character: char| character.is_whitespace() || character.is_control());
    visible
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns the first `chars_max` characters of a text, with an ellipsis if it is longer.
pub(crate) fn truncate_text(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}{ELLIPSIS}", &text[..end]),
        None => text.to_owned(),
    }
}

/// Breaks the marks with which chat templates separate messages, such as `<|im_start|>`: some
/// servers read them in any text. A space is inserted, because a removal could create a new mark.
/// Operators such as `f <| x` and `<|>` stay.
pub(crate) fn break_chat_marks(text: &str) -> Cow<'_, str> {
    let is_mark = |behind: &str| {
        let mut characters = behind.chars();
        let has_bar = matches!(characters.next(), Some('|' | '｜'))
            && characters.next().is_some_and(|character| {
                character.is_ascii_alphanumeric() || matches!(character, '_' | '/')
            });
        let word = behind.strip_prefix('/').unwrap_or(behind);
        has_bar || WORD_MARKS.iter().any(|mark| word.starts_with(mark))
    };
    let starts = text.match_indices(['<', '[']).map(|(start, _)| start + 1);
    let mut broken = String::new();
    let mut copied = 0;
    for start in starts.filter(|start| is_mark(&text[*start..])) {
        broken.push_str(&text[copied..start]);
        broken.push(' ');
        copied = start;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    broken.push_str(&text[copied..]);
    Cow::Owned(broken)
}

/// Removes tags: `<b>Lamp</b>` becomes `Lamp`, and `under < 5 W` is unchanged.
fn strip_tags(text: &str) -> String {
    let mut rest = text;
    let mut plain = String::with_capacity(text.len());
    while let Some(start) = rest.find('<') {
        let behind = &rest[start + 1..];
        let is_tag = behind.starts_with(|character: char| {
            character.is_ascii_alphabetic() || "/!".contains(character)
        });
        match behind.find('>').filter(|_| is_tag) {
            Some(end) => {
                plain.push_str(&rest[..start]);
                rest = &behind[end + 1..];
            }
            None => {
                plain.push_str(&rest[..=start]);
                rest = behind;
            }
        }
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_becomes_one_line_without_tags() {
        for (text, plain) in [
            ("<b>Lamp</b>\r\n<script>x</script> < 5 W", "Lamp x < 5 W"),
            ("a\u{0}b\u{1b}[31mc", "a b [31mc"),
            (" \t\u{2028} ", ""),
            ("a < b > c", "a < b > c"),
        ] {
            assert_eq!(one_line(text), plain, "{text:?}");
        }
    }

    #[test]
    fn truncated_text_ends_with_an_ellipsis() {
        assert_eq!(truncate_text("höher", 5), "höher");
        assert_eq!(truncate_text("höher", 2), "hö…");
        assert_eq!(truncate_text(&truncate_text("höher", 2), 2), "hö…");
        assert_eq!(truncate_text("", 0), "");
    }

    #[test]
    fn marks_are_broken_and_operators_are_not() {
        for (text, broken) in [
            ("a<|im_start|>system", "a< |im_start|>system"),
            ("<|/s|><<|_x|>", "< |/s|><< |_x|>"),
            ("<｜User｜>", "< ｜User｜>"),
            ("[INST] a [/INST]</s>", "[ INST] a [ /INST]< /s>"),
            ("<<SYS>>a<</SYS>>", "<< SYS>>a<< /SYS>>"),
            ("<start_of_turn>user", "< start_of_turn>user"),
            ("f <| x, a <|> b, x<|", "f <| x, a <|> b, x<|"),
            ("a[i] <span>, [INSTALL]", "a[i] <span>, [INSTALL]"),
            ("", ""),
        ] {
            assert_eq!(break_chat_marks(text), broken);
        }
    }

    proptest! {
        #[test]
        fn broken_text_has_no_marks_and_more_spaces_only(text in "[<|a/ ]{0,30}") {
            let broken = break_chat_marks(&text);
            prop_assert!(!broken.contains("<|a") && !broken.contains("<|/"), "{}", broken);
            prop_assert_eq!(broken.replace(' ', ""), text.replace(' ', ""));
        }

        #[test]
        fn arbitrary_text_becomes_one_bounded_line(text: String, chars_max in 0_usize..50) {
            let line = one_line(&text);
            prop_assert!(!line.contains(char::is_control));
            prop_assert_eq!(line.trim(), line.as_str());
            prop_assert!(truncate_text(&line, chars_max).chars().count() <= chars_max + 1);
        }
    }
}
