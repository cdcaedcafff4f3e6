//! Text of others, such as a catalogue's, as it may stand in a card or be told to a model: on one line, without tags and
//! control characters, and bounded. Pure.

/// Stands for what was left out.
const CUT: char = '…';

/// Text on one line, without tags.
pub(crate) fn one_line(text: &str) -> String {
    let text = without_tags(text);
    let visible = text.split(|character: char| character.is_whitespace() || character.is_control());
    visible
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The first characters of a text, and a mark where it goes on. What was cut so is not cut again.
pub(crate) fn beginning(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}{CUT}", &text[..end]),
        None => text.to_owned(),
    }
}

/// `<b>Lamp</b>` is `Lamp`; `under < 5 W` stays.
fn without_tags(text: &str) -> String {
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
    fn text_comes_to_stand_on_one_line_without_tags() {
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
    fn a_beginning_says_whether_it_is_one() {
        assert_eq!(beginning("höher", 5), "höher");
        assert_eq!(beginning("höher", 2), "hö…");
        assert_eq!(beginning(&beginning("höher", 2), 2), "hö…");
        assert_eq!(beginning("", 0), "");
    }

    proptest! {
        #[test]
        fn any_text_is_one_bounded_line(text: String, chars_max in 0_usize..50) {
            let line = one_line(&text);
            prop_assert!(!line.contains(char::is_control));
            prop_assert_eq!(line.trim(), line.as_str());
            prop_assert!(beginning(&line, chars_max).chars().count() <= chars_max + 1);
        }
    }
}
