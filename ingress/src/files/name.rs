//! Names of files as senders choose them, made safe to store, to show and to save.

use switchboard_schemas::file::FILE_NAME_BYTES_MAX;

/// Name of a file whose sender gave it none that can be kept.
const UNNAMED: &str = "file";

/// Returns the last part of a path without characters that hide or change what follows, at most
/// [`FILE_NAME_BYTES_MAX`] bytes long. The ending is kept.
pub(super) fn safe_name(given: &str) -> String {
    let last = given.rsplit(['/', '\\']).next().unwrap_or_default();
    let visible: String = last.chars().filter(|letter| !is_hidden(*letter)).collect();
    let name = visible.trim_matches(|letter: char| letter == '.' || letter.is_whitespace());
    let name = shortened(name);
    if name.is_empty() {
        UNNAMED.to_owned()
    } else {
        name
    }
}

/// Returns the ending of a name in lower case without its dot; `None` if it has none. Digits alone
/// are no ending: `report 2.1` is a name.
pub(super) fn ending(name: &str) -> Option<String> {
    let (stem, ending) = name.rsplit_once('.')?;
    let is_number = ending.chars().all(|digit| digit.is_ascii_digit());
    (!stem.is_empty() && !is_number).then(|| ending.to_lowercase())
}

/// Returns true for control characters, and for those that change the direction of text or are not
/// seen: `exe.gnp` would look like `png.exe` with one.
fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffd}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

fn shortened(name: &str) -> String {
    if name.len() <= FILE_NAME_BYTES_MAX {
        return name.to_owned();
    }
    let (stem, ending) = match name.rsplit_once('.') {
        Some((stem, ending)) if ending.len() < FILE_NAME_BYTES_MAX / 2 => (stem, ending),
        _ => (name, ""),
    };
    let kept = stem.floor_char_boundary(FILE_NAME_BYTES_MAX - ending.len() - 1);
    let stem = &stem[..kept];
    if ending.is_empty() {
        stem.to_owned()
    } else {
        format!("{stem}.{ending}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_has_no_path_and_nothing_hidden() {
        for (given, expected) in [
            ("photo.jpg", "photo.jpg"),
            ("../../etc/passwd", "passwd"),
            ("C:\\Users\\me\\Rechnung März.pdf", "Rechnung März.pdf"),
            ("/", "file"),
            ("..", "file"),
            ("", "file"),
            (" .hidden.txt. ", "hidden.txt"),
            ("a\r\nSet-Cookie: x.png", "aSet-Cookie: x.png"),
            ("nul\0byte.png", "nulbyte.png"),
            ("exe.\u{202e}gnp.scr", "exe.gnp.scr"),
            ("zero\u{200b}width.csv", "zerowidth.csv"),
            ("図面.webp", "図面.webp"),
        ] {
            assert_eq!(safe_name(given), expected, "{given:?}");
        }
    }

    #[test]
    fn long_name_keeps_its_ending() {
        let name = safe_name(&format!("{}.docx", "ä".repeat(300)));
        assert!(name.len() <= FILE_NAME_BYTES_MAX && name.ends_with("ä.docx"));
        let endless = safe_name(&format!("a.{}", "x".repeat(400)));
        assert!(endless.len() <= FILE_NAME_BYTES_MAX);
    }

    #[test]
    fn ending_is_what_follows_the_last_dot() {
        for (name, expected) in [
            ("a.tar.GZ", Some("gz")),
            ("photo.png.exe", Some("exe")),
            ("report 2.1", None),
            ("README", None),
            ("a.", Some("")),
        ] {
            assert_eq!(
                ending(name).as_deref(),
                expected.filter(|ending| !ending.is_empty()),
                "{name}"
            );
        }
    }
}
