//! CSV rows (RFC 4180). No spreadsheet evaluates a cell as a formula, because visitors chose its
//! text.

/// The characters at which spreadsheets recognize a formula, in both widths.
const FORMULA_STARTS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];
/// The bytes that need no quotes, besides letters and digits.
const PLAIN_BYTES: &[u8] = b"_.:-";
/// The byte order mark, by which spreadsheets recognize UTF-8.
pub(in crate::admin) const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Appends a row with its line end.
pub(in crate::admin) fn push_row<'a>(out: &mut String, cells: impl IntoIterator<Item = &'a str>) {
    for (number, cell) in cells.into_iter().enumerate() {
        if number > 0 {
            out.push(',');
        }
        push_cell(out, cell);
    }
    out.push_str("\r\n");
}

/// Appends a cell, in quotes unless it is plain. An apostrophe makes a possible formula a text in
/// every spreadsheet.
fn push_cell(out: &mut String, cell: &str) {
    let is_formula = cell.trim_start_matches(' ').starts_with(FORMULA_STARTS);
    if !is_formula
        && cell
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || PLAIN_BYTES.contains(&byte))
    {
        out.push_str(cell);
        return;
    }
    out.push('"');
    if is_formula {
        out.push('\'');
    }
    for character in cell.chars().filter(|character| *character != '\0') {
        if character == '"' {
            out.push('"');
        }
        out.push(character);
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn row(cells: &[&str]) -> String {
        let mut out = String::new();
        push_row(&mut out, cells.iter().copied());
        out
    }

    #[test]
    fn special_characters_stay_inside_their_cell() {
        assert_eq!(
            row(&["a", "b \"c\", d", "e\nf", "", "7.5"]),
            "a,\"b \"\"c\"\", d\",\"e\nf\",,7.5\r\n"
        );
    }

    #[test]
    fn possible_formula_is_quoted_as_text() {
        for formula in [
            "=1+1",
            "+1",
            "-1",
            "@SUM(A1)",
            "\t=1",
            "\r=1",
            "＝1",
            "  =HYPERLINK(\"http://evil\")",
        ] {
            assert!(row(&[formula]).starts_with("\"'"), "{formula}");
        }
        assert_eq!(row(&["1-1"]), "1-1\r\n");
    }

    /// Parses a row as a spreadsheet does.
    fn read(text: &str) -> Vec<String> {
        let (mut cells, mut cell, mut quoted) = (Vec::new(), String::new(), false);
        let mut characters = text.strip_suffix("\r\n").unwrap().chars().peekable();
        while let Some(character) = characters.next() {
            match character {
                '"' if quoted && characters.peek() == Some(&'"') => {
                    cell.push(characters.next().unwrap())
                }
                '"' => quoted = !quoted,
                ',' if !quoted => cells.push(std::mem::take(&mut cell)),
                other => cell.push(other),
            }
        }
        cells.push(cell);
        cells
    }

    proptest! {
        #[test]
        fn cell_is_restored_and_never_begins_like_a_formula(cells in prop::collection::vec("[^\0]{0,12}", 1..5)) {
            let borrowed: Vec<&str> = cells.iter().map(String::as_str).collect();
            let back = read(&row(&borrowed));
            prop_assert_eq!(back.len(), cells.len());
            for (back, cell) in back.iter().zip(&cells) {
                prop_assert!(back == cell || back.strip_prefix('\'') == Some(cell));
                prop_assert!(!back.starts_with(FORMULA_STARTS));
            }
        }
    }
}
