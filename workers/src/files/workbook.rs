//! Text of Excel workbooks: each sheet with its name, rows as lines of CSV.

use std::{borrow::Cow, io::Cursor, ops::ControlFlow};

use switchboard_backends::products::feed::{FeedError, WorkbookCell, visit_cells};

use super::{BoundedText, ReadFailure, ReadResult, archive::check_container};

/// Widest gap between two values of a row that is kept, in columns.
const GAP_MAX: u32 = 50;

/// Reads the values of a workbook. Formulas, macros and links are not looked at.
pub(super) fn read(bytes: &[u8]) -> ReadResult {
    check_container(bytes)?;
    let mut sheets = SheetWriter::default();
    let visited = visit_cells(&mut Cursor::new(bytes), |cell| sheets.take(&cell));
    match visited {
        Ok(()) => sheets.text.finish(None, ReadFailure::Empty),
        Err(FeedError::UnpackedTooLarge) => Err(ReadFailure::TooLarge),
        Err(_) => Err(ReadFailure::Damaged),
    }
}

/// Writes the cells of all sheets as lines.
#[derive(Default)]
struct SheetWriter {
    text: BoundedText,
    sheet: String,
    row: Option<u32>,
    /// Column of the last value in the row.
    column: u32,
}

impl SheetWriter {
    fn take(&mut self, cell: &WorkbookCell<'_>) -> ControlFlow<()> {
        if self.sheet != cell.sheet || self.row.is_none() {
            self.text.end_line();
            self.text.push(&format!("Sheet: {}", cell.sheet));
            cell.sheet.clone_into(&mut self.sheet);
            self.row = None;
        }
        if self.row != Some(cell.row) {
            self.text.end_line();
            self.row = Some(cell.row);
            self.column = 0;
        }
        let gap = cell.column.saturating_sub(self.column).min(GAP_MAX);
        self.text.push(&",".repeat(gap as usize));
        self.column = cell.column;
        self.text.push(&quoted(&cell.text));
        if self.text.is_cut {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// Returns a value as a field of CSV.
fn quoted(value: &str) -> Cow<'_, str> {
    if value.contains(['"', ',', '\n', '\r']) {
        Cow::Owned(format!("\"{}\"", value.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(value)
    }
}
