//! Splits CSV into rows, with the quotes, separators and line ends of spreadsheets and shops. The
//! header determines the separator, because exports of many countries use semicolons or tabs.

use super::{
    FeedError, ROW_BYTES_MAX, RowValues,
    table::{TableHead, is_blank},
};

const SEPARATORS: [u8; 4] = *b",;\t|";
/// Beginning of a first line that names the separator, as Excel writes and reads it.
const SEPARATOR_LINE: &[u8] = b"sep=";

/// Rows of a CSV feed, read from a stream of bytes.
pub(super) struct CsvRows {
    separator: Option<u8>,
    /// Bytes of the header until its separator is known.
    head: Vec<u8>,
    heading: TableHead,
    fields: Vec<Vec<u8>>,
    field: Vec<u8>,
    place: FieldState,
    /// `true` after a carriage return that ended a row, so that a following line feed ends none.
    after_return: bool,
    row: u64,
    row_bytes: usize,
}

/// The position of the next byte within a row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FieldState {
    FieldStart,
    Plain,
    Quoted,
    /// After a quote inside quotes: the end of the field or the first half of an escaped quote.
    QuoteInQuotes,
}

impl CsvRows {
    pub(super) fn new() -> Self {
        Self {
            separator: None,
            head: Vec::new(),
            heading: TableHead::default(),
            fields: Vec::new(),
            field: Vec::new(),
            place: FieldState::FieldStart,
            after_return: false,
            row: 0,
            row_bytes: 0,
        }
    }

    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        take: &mut dyn FnMut(u64, RowValues),
    ) -> Result<(), FeedError> {
        if self.separator.is_some() {
            return self.split_rows(bytes, take);
        }
        self.head.extend_from_slice(bytes);
        match separator_of(&self.head) {
            Some(separator) => self.begin_rows(separator, take),
            None if self.head.len() > ROW_BYTES_MAX => Err(FeedError::RowTooLarge {
                row: 1,
                max: ROW_BYTES_MAX,
            }),
            None => Ok(()),
        }
    }

    pub(super) fn finish(&mut self, take: &mut dyn FnMut(u64, RowValues)) -> Result<(), FeedError> {
        if self.separator.is_none() {
            if self.head.trim_ascii().is_empty() {
                return Ok(());
            }
            // A header without an end belongs to a feed without rows; parsing it shows whether it
            // is a header.
            self.head.push(b'\n');
            let separator = separator_of(&self.head).ok_or(FeedError::BrokenOff { row: 1 })?;
            self.begin_rows(separator, take)?;
        }
        if self.place == FieldState::Quoted {
            return Err(FeedError::BrokenOff { row: self.row + 1 });
        }
        if self.row_bytes > 0 {
            self.end_row(take)
        } else {
            Ok(())
        }
    }

    fn begin_rows(
        &mut self,
        separator: u8,
        take: &mut dyn FnMut(u64, RowValues),
    ) -> Result<(), FeedError> {
        self.separator = Some(separator);
        let head = std::mem::take(&mut self.head);
        self.split_rows(&head, take)
    }

    fn split_rows(
        &mut self,
        bytes: &[u8],
        take: &mut dyn FnMut(u64, RowValues),
    ) -> Result<(), FeedError> {
        for byte in bytes {
            let second_half_of_end = self.after_return && *byte == b'\n';
            self.after_return = false;
            if second_half_of_end {
                continue;
            }
            let quoted = self.place == FieldState::Quoted;
            if !quoted && matches!(byte, b'\n' | b'\r') {
                self.after_return = *byte == b'\r';
                self.end_row(take)?;
                continue;
            }
            self.row_bytes += 1;
            if self.row_bytes > ROW_BYTES_MAX {
                return Err(FeedError::RowTooLarge {
                    row: self.row + 1,
                    max: ROW_BYTES_MAX,
                });
            }
            self.push_byte(*byte);
        }
        Ok(())
    }

    fn push_byte(&mut self, byte: u8) {
        match (self.place, byte) {
            (FieldState::FieldStart, b'"') | (FieldState::QuoteInQuotes, b'"') => {
                if self.place == FieldState::QuoteInQuotes {
                    self.field.push(byte);
                }
                self.place = FieldState::Quoted;
            }
            (FieldState::Quoted, b'"') => self.place = FieldState::QuoteInQuotes,
            (FieldState::Quoted, _) => self.field.push(byte),
            (_, _) if Some(byte) == self.separator => {
                self.end_field();
                self.place = FieldState::FieldStart;
            }
            (_, _) => {
                self.field.push(byte);
                self.place = FieldState::Plain;
            }
        }
    }

    fn end_field(&mut self) {
        self.fields.push(std::mem::take(&mut self.field));
    }

    fn end_row(&mut self, take: &mut dyn FnMut(u64, RowValues)) -> Result<(), FeedError> {
        self.end_field();
        self.place = FieldState::FieldStart;
        self.row_bytes = 0;
        let fields = std::mem::take(&mut self.fields);
        self.row += 1;
        if is_blank(&fields) {
            return Ok(());
        }
        if self.heading.is_read() {
            take(self.row, self.heading.name_values(&fields));
        } else if !is_separator_line(&fields, self.separator) {
            self.heading = TableHead::read(&fields)?;
        }
        Ok(())
    }
}

/// Returns `true` for the fields of a first line that names the separator: the rest of the line is
/// blank, or the line was split at the separator itself.
fn is_separator_line(fields: &[Vec<u8>], separator: Option<u8>) -> bool {
    let (Some(first), Some(separator)) = (fields.first(), separator) else {
        return false;
    };
    first
        .get(..SEPARATOR_LINE.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(SEPARATOR_LINE))
        && [&b""[..], b"\\t", &[separator]]
            .contains(&first[SEPARATOR_LINE.len()..].trim_ascii_end())
        && is_blank(&fields[1..])
}

/// Returns the separator that a first line names: `sep=;`, also in quotes, or `sep=\t`.
fn named_separator(line: &[u8]) -> Option<u8> {
    let line = line.strip_prefix(b"\"").unwrap_or(line);
    let (start, rest) = line.split_at_checked(SEPARATOR_LINE.len())?;
    if !start.eq_ignore_ascii_case(SEPARATOR_LINE) {
        return None;
    }
    match rest {
        [b'\\', b't', ..] => Some(b'\t'),
        [b'"' | b'\r' | b'\n', ..] | [] => None,
        [separator, ..] => separator.is_ascii().then_some(*separator),
    }
}

/// Returns the separator that the first line names or, without one, the most frequent separator of
/// the header, once its end was read.
fn separator_of(head: &[u8]) -> Option<u8> {
    let mut counts = [0_usize; SEPARATORS.len()];
    let (mut quoted, mut blank) = (false, true);
    for (index, byte) in head.iter().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            // Skip blank lines before the header.
            b'\n' | b'\r' if !quoted && !blank => {
                if let Some(named) = named_separator(head[..index].trim_ascii_start()) {
                    return Some(named);
                }
                let most = (0..SEPARATORS.len())
                    .rev()
                    .max_by_key(|index| counts[*index])?;
                return Some(SEPARATORS[most]);
            }
            _ => {}
        }
        if !quoted && let Some(index) = SEPARATORS.iter().position(|separator| separator == byte) {
            counts[index] += 1;
        }
        blank = blank && byte.is_ascii_whitespace();
    }
    None
}
