//! Text of Word documents: paragraphs, headings, lists, tables and notes.

use super::{
    BoundedText, ReadFailure, ReadResult,
    archive::OfficeArchive,
    markup::{MarkupEvent, attribute, read_events},
};

/// The part that names the other parts.
const RELATIONS_PART: &str = "_rels/.rels";
/// The main part of most documents.
const MAIN_PART: &str = "word/document.xml";
/// Beginnings of the names of other parts with text.
const OTHER_PARTS: [&str; 4] = [
    "word/header",
    "word/footer",
    "word/footnotes",
    "word/endnotes",
];
/// Elements that repeat another one for old programs, and stops of tabulators.
const SKIPPED_ELEMENTS: [&str; 2] = ["Fallback", "tabs"];

/// Reads the text of a document. Macros, embedded files and links to other files are not looked at.
pub(super) fn read(bytes: &[u8]) -> ReadResult {
    let mut archive = OfficeArchive::open(bytes)?;
    let main = main_part(&mut archive)?;
    let part = archive.read(&main)?.ok_or(ReadFailure::Damaged)?;
    let mut text = BoundedText::default();
    read_part(&part, &mut text)?;
    for prefix in OTHER_PARTS {
        for name in archive.names(prefix) {
            // A damaged note does not make the document unreadable.
            let Ok(Some(part)) = archive.read(&name) else {
                continue;
            };
            text.end_line();
            if read_part(&part, &mut text).is_err() {
                continue;
            }
        }
    }
    text.finish(None, ReadFailure::NoText)
}

/// Returns the name of the main part.
fn main_part(archive: &mut OfficeArchive<'_>) -> Result<String, ReadFailure> {
    let mut main = None;
    if let Some(relations) = archive.read(RELATIONS_PART)? {
        read_events(&relations, |event| {
            if let MarkupEvent::Start { element, .. } = event
                && attribute(&element, "Type").is_some_and(|kind| kind.ends_with("/officeDocument"))
                && attribute(&element, "TargetMode").is_none_or(|mode| mode != "External")
            {
                main = attribute(&element, "Target");
            }
            Ok(())
        })?;
    }
    let main = main.unwrap_or_else(|| MAIN_PART.to_owned());
    Ok(main.trim_start_matches('/').to_owned())
}

fn read_part(part: &str, text: &mut BoundedText) -> Result<(), ReadFailure> {
    let mut writer = DocumentWriter {
        text,
        cells: 0,
        is_in_text: false,
        skipped: 0,
    };
    read_events(part, |event| {
        writer.take(event);
        Ok(())
    })
}

/// Writes the text of a part as lines.
struct DocumentWriter<'a> {
    text: &'a mut BoundedText,
    /// Depth of nested cells of tables.
    cells: usize,
    is_in_text: bool,
    /// Depth within a skipped element.
    skipped: usize,
}

impl DocumentWriter<'_> {
    fn take(&mut self, event: MarkupEvent<'_>) {
        match event {
            MarkupEvent::Start { element, is_empty } => {
                let name = element.local_name();
                let name: &str = name.as_ref();
                if self.skipped > 0 || SKIPPED_ELEMENTS.contains(&name) {
                    self.skipped += usize::from(!is_empty);
                    return;
                }
                match name {
                    "t" => self.is_in_text = !is_empty,
                    "tab" => self.text.push("\t"),
                    "br" | "cr" => self.end_line(),
                    "noBreakHyphen" => self.text.push("-"),
                    "pStyle" => self.start_heading(&attribute(&element, "val").unwrap_or_default()),
                    "numPr" => self.text.push("- "),
                    "tc" if !is_empty => self.cells += 1,
                    "p" if is_empty => self.end_line(),
                    _ => {}
                }
            }
            MarkupEvent::End(_) if self.skipped > 0 => self.skipped -= 1,
            MarkupEvent::End(name) => match name {
                "t" => self.is_in_text = false,
                "p" => self.end_line(),
                "tc" => {
                    self.cells = self.cells.saturating_sub(1);
                    self.text.trim_end();
                    self.text.push("\t");
                }
                "tr" => {
                    self.text.trim_end();
                    self.end_line();
                }
                _ => {}
            },
            MarkupEvent::Text(text) if self.is_in_text && self.skipped == 0 => {
                self.text.push(text);
            }
            MarkupEvent::Text(_) => {}
        }
    }

    /// Ends a line, or separates it from the next in the cell of a table.
    fn end_line(&mut self) {
        self.text.push(if self.cells > 0 { " " } else { "\n" });
    }

    /// Begins a heading as in Markdown.
    fn start_heading(&mut self, style: &str) {
        let level = style
            .to_ascii_lowercase()
            .strip_prefix("heading")
            .and_then(|level| level.parse::<usize>().ok());
        if let Some(level @ 1..=6) = level {
            self.text.push(&"#".repeat(level));
            self.text.push(" ");
        }
    }
}
