//! Reads products from an Excel workbook (.xlsx): the first visible sheet with a heading. A
//! workbook is an archive, so its unpacked size is checked before it is parsed.

use std::{
    io::{Read, Seek, SeekFrom},
    ops::ControlFlow,
};

use calamine::{DataRef, Reader, SheetVisible, Style, Xlsx, XlsxCellReader};
use zip::ZipArchive;

use super::{
    FeedError, ROW_BYTES_MAX, RowValues,
    table::{COLUMNS_MAX, HEADING_ROWS, TableHead, is_blank},
};

/// Maximum size of all unpacked parts, in bytes.
const UNPACKED_BYTES_MAX: u64 = 128 << 20;
const PIECE_BYTES: usize = 64 << 10;
/// Attribute that announces the number of texts; memory for them is reserved at once.
const ANNOUNCED_TEXTS: &[u8] = b"uniqueCount";
/// Bytes of that attribute with its value.
const ANNOUNCED_BYTES: usize = 48;
const TEXTS_MAX: u64 = 5_000_000;
/// Symbols and codes of currencies in the format of a number.
const CURRENCIES: [&str; 13] = [
    "€", "$", "£", "¥", "zł", "Kč", "EUR", "USD", "GBP", "CHF", "SEK", "NOK", "DKK",
];

/// Takes the rows of a sheet.
type TakeRow<'a> = &'a mut dyn FnMut(u64, RowValues) -> Result<(), FeedError>;

/// Reads all products of a workbook.
pub(super) fn read_rows<R: Read + Seek>(file: &mut R, take: TakeRow<'_>) -> Result<(), FeedError> {
    let mut workbook = open(file)?;
    for sheet in visible_sheets(&workbook) {
        // Sheets of charts have no cells.
        let Ok(cells) = workbook.worksheet_cells_reader(&sheet) else {
            continue;
        };
        if read_sheet(cells, take)? {
            return Ok(());
        }
    }
    Err(FeedError::unreadable(
        "no sheet of the workbook has a row that names a column title or name",
    ))
}

/// A cell with a value.
#[derive(Debug)]
pub struct WorkbookCell<'a> {
    /// Name of the sheet.
    pub sheet: &'a str,
    /// Row in the sheet, from 0.
    pub row: u32,
    /// Column in the sheet, from 0.
    pub column: u32,
    /// The value as a person sees it; at most 256 KiB.
    pub text: String,
}

/// Calls `take` with each cell that has a value, sheet by sheet and row by row, until it breaks.
///
/// # Errors
/// The file is not a workbook, is damaged or is too large when it is unpacked.
pub fn visit_cells<R: Read + Seek>(
    file: &mut R,
    mut take: impl FnMut(WorkbookCell<'_>) -> ControlFlow<()>,
) -> Result<(), FeedError> {
    let mut workbook = open(file)?;
    for sheet in visible_sheets(&workbook) {
        // Sheets of charts have no cells.
        let Ok(mut cells) = workbook.worksheet_cells_reader(&sheet) else {
            continue;
        };
        while let Some((cell, style)) = cells.next_cell_with_style_id().map_err(|_| damaged())? {
            let text = cell_text(cell.get_value(), cells.styles().get(style));
            let (row, column) = cell.get_position();
            let sheet = &sheet;
            let is_over = !text.is_empty()
                && take(WorkbookCell {
                    sheet,
                    row,
                    column,
                    text,
                })
                .is_break();
            if is_over {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Opens a workbook after its size was checked.
fn open<R: Read + Seek>(file: &mut R) -> Result<Xlsx<&mut R>, FeedError> {
    check_archive(file)?;
    file.seek(SeekFrom::Start(0))?;
    Xlsx::new(file).map_err(|_| damaged())
}

fn visible_sheets<R: Read + Seek>(workbook: &Xlsx<R>) -> Vec<String> {
    let sheets = workbook.sheets_metadata().iter();
    sheets
        .filter(|sheet| sheet.visible == SheetVisible::Visible)
        .map(|sheet| sheet.name.clone())
        .collect()
}

/// Fails if an archive is not a workbook or would take too much memory.
fn check_archive<R: Read + Seek>(file: &mut R) -> Result<(), FeedError> {
    file.seek(SeekFrom::Start(0))?;
    let mut archive = ZipArchive::new(file).map_err(|_| damaged())?;
    let has = |beginning: &str| {
        archive
            .file_names_raw()
            .any(|name| name.starts_with(beginning.as_bytes()))
    };
    let seen = if has("xl/workbook.bin") {
        Some("a binary workbook (.xlsb)")
    } else if has("xl/") {
        None
    } else if has("word/") {
        Some("a Word document")
    } else if has("content.xml") {
        Some("an OpenDocument file (.ods)")
    } else {
        Some("a ZIP archive and no workbook")
    };
    if let Some(seen) = seen {
        return Err(FeedError::Unsupported { seen });
    }
    let mut unpacked = 0;
    for index in 0..archive.len() {
        let mut part = archive.by_index(index).map_err(|_| damaged())?;
        let (mut piece, mut is_over) = (Vec::new(), false);
        while !is_over {
            let carried = piece.len();
            let read = part
                .by_ref()
                .take(PIECE_BYTES as u64)
                .read_to_end(&mut piece)
                .map_err(|_| damaged())?;
            is_over = read == 0;
            unpacked += read as u64;
            if unpacked > UNPACKED_BYTES_MAX || announces_too_many_texts(&piece) {
                return Err(FeedError::UnpackedTooLarge);
            }
            piece.drain(..(carried + read).saturating_sub(ANNOUNCED_BYTES));
        }
    }
    Ok(())
}

fn announces_too_many_texts(piece: &[u8]) -> bool {
    let mut places = piece
        .windows(ANNOUNCED_TEXTS.len())
        .enumerate()
        .filter(|(_, window)| *window == ANNOUNCED_TEXTS)
        .map(|(index, window)| &piece[index + window.len()..]);
    places.any(|rest| {
        let digits = rest.iter().take(ANNOUNCED_BYTES);
        let number = digits
            .filter(|byte| byte.is_ascii_digit())
            .fold(0_u64, |number, digit| {
                number
                    .saturating_mul(10)
                    .saturating_add(u64::from(digit - b'0'))
            });
        number > TEXTS_MAX
    })
}

/// Reads a sheet and returns `false` if it has no heading.
fn read_sheet<R: Read + Seek>(
    mut cells: XlsxCellReader<'_, R>,
    take: TakeRow<'_>,
) -> Result<bool, FeedError> {
    let mut sheet = SheetRows {
        heading: TableHead::default(),
        row: 0,
        fields: Vec::new(),
        bytes: 0,
        skipped: 0,
    };
    loop {
        let next = cells.next_cell_with_style_id().map_err(|_| damaged())?;
        let Some((cell, style)) = next else {
            sheet.end_row(take)?;
            return Ok(sheet.heading.is_read());
        };
        let (row, column) = cell.get_position();
        if u64::from(row) + 1 != sheet.row {
            sheet.end_row(take)?;
            if !sheet.heading.is_read() && sheet.skipped >= HEADING_ROWS {
                return Ok(false);
            }
            sheet.row = u64::from(row) + 1;
        }
        sheet.add(column as usize, cell.get_value(), cells.styles().get(style))?;
    }
}

struct SheetRows {
    heading: TableHead,
    /// Number of the row in the sheet, from 1.
    row: u64,
    fields: Vec<Vec<u8>>,
    bytes: usize,
    /// Rows with values before the heading.
    skipped: usize,
}

impl SheetRows {
    fn add(
        &mut self,
        column: usize,
        value: &DataRef<'_>,
        style: Option<&Style>,
    ) -> Result<(), FeedError> {
        let text = cell_text(value, style);
        if text.is_empty() {
            return Ok(());
        }
        self.bytes += text.len();
        if self.bytes > ROW_BYTES_MAX {
            return Err(FeedError::RowTooLarge {
                row: self.row,
                max: ROW_BYTES_MAX,
            });
        }
        // One more than the maximum, so that the heading is rejected.
        if self.fields.len() <= column {
            self.fields.resize(column.min(COLUMNS_MAX) + 1, Vec::new());
        }
        self.fields[column.min(COLUMNS_MAX)] = text.into_bytes();
        Ok(())
    }

    fn end_row(&mut self, take: TakeRow<'_>) -> Result<(), FeedError> {
        let fields = std::mem::take(&mut self.fields);
        self.bytes = 0;
        if is_blank(&fields) {
            return Ok(());
        }
        if self.heading.is_read() {
            return take(self.row, self.heading.name_values(&fields));
        }
        // A logo or a caption often stands above the heading.
        match TableHead::read(&fields) {
            Ok(heading) => self.heading = heading,
            Err(_) => self.skipped += 1,
        }
        Ok(())
    }
}

fn cell_text(value: &DataRef<'_>, style: Option<&Style>) -> String {
    let format = style
        .and_then(|style| style.number_format.as_ref())
        .map_or("", |format| format.format_code.as_str());
    match value {
        DataRef::Empty | DataRef::Error(_) => String::new(),
        // Longer texts fail as a row, without a copy.
        DataRef::String(text) => text.chars().take(ROW_BYTES_MAX + 1).collect(),
        DataRef::SharedString(text) => text.chars().take(ROW_BYTES_MAX + 1).collect(),
        DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => text.clone(),
        DataRef::Bool(flag) => flag.to_string(),
        DataRef::Int(number) => formatted(&number.to_string(), format),
        DataRef::Float(number) => formatted(&number_text(*number), format),
        DataRef::DateTime(time) => {
            let (year, month, day, hour, minute, second, _) = time.to_ymd_hms_milli();
            let date = format!("{year:04}-{month:02}-{day:02}");
            if (hour, minute, second) == (0, 0, 0) {
                date
            } else {
                format!("{date}T{hour:02}:{minute:02}:{second:02}")
            }
        }
    }
}

/// Returns a number with the 15 digits that Excel keeps, without an exponent.
fn number_text(number: f64) -> String {
    let rounded = format!("{number:.14e}").parse().unwrap_or(number);
    let text = format!("{rounded}");
    match text.split_once('.') {
        // Three decimals look like thousands.
        Some((_, decimals)) if decimals.len() == 3 => format!("{text}0"),
        _ => text,
    }
}

/// Applies the parts of a number format that carry meaning: leading zeros and the currency.
fn formatted(number: &str, format: &str) -> String {
    if format.len() > 1 && format.bytes().all(|byte| byte == b'0') {
        return format!("{number:0>width$}", width = format.len());
    }
    // `[$€-407]` is a currency with a language; a bare `[$-407]` is a language.
    let shown = format.split(';').next().unwrap_or_default();
    let shown = shown.replace("[$-", "[").replace("[$", "[");
    let is_symbol = format.contains('$') && (shown.contains('$') || format.contains("[$$"));
    let currency = CURRENCIES.iter().find(|currency| match **currency {
        "$" => is_symbol,
        other => shown.contains(other),
    });
    match currency {
        Some(currency) => format!("{number} {currency}"),
        None => number.to_owned(),
    }
}

fn damaged() -> FeedError {
    FeedError::unreadable("the workbook is damaged or incomplete")
}
