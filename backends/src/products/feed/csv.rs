//! Splits CSV into rows, with the quotes, separators and line ends of spreadsheets and shops. The
//! header determines the separator, because exports of many countries use semicolons or tabs.

use super::{
    FeedError, ROW_BYTES_MAX, RowValues,
    table::{HEADING_ROWS, TableHead, is_blank},
};

const SEPARATORS: [u8; 4] = *b",;\t|";
/// Beginning of a first line that names the separator, as Excel writes and reads it.
const SEPARATOR_LINE: &[u8] = b"sep=";

/// Rows of a CSV feed, read from a stream of bytes.
pub(super) struct CsvRows {
    separator: Option<u8>,
    /// `true` after a line that names the separator.
    is_separator_named: bool,
    /// Bytes of the header until its separator is known.
    head: Vec<u8>,
    heading: TableHead,
    /// Rows with values before the heading, and the reason why the first one is none.
    skipped: usize,
    heading_error: Option<FeedError>,
    fields: Vec<Vec<u8>>,
    field: Vec<u8>,
    place: FieldState,
    open_quote: Option<OpenQuote>,
    /// `true` after a carriage return that ended a row, so that a following line feed ends none.
    after_return: bool,
    row: u64,
    row_bytes: usize,
}

/// A field of a TSV row that begins with a quote. Google's files do not quote, and spreadsheets do:
/// `"Best" lamp` is a text with quotes, and `"two\nlines"` is a quoted one. A quote that would join
/// two whole rows, or is never closed, is text too.
#[derive(Default)]
struct OpenQuote {
    /// Number of fields before this one.
    index: usize,
    /// Bytes from the quote on.
    raw: Vec<u8>,
    /// Tabs of the current line.
    tabs: usize,
    /// `true` if the first line has all fields of a row; `None` before its end.
    is_first_whole: Option<bool>,
    /// `true` after a tab in a later line.
    has_later_tab: bool,
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
            is_separator_named: false,
            head: Vec::new(),
            heading: TableHead::default(),
            skipped: 0,
            heading_error: None,
            fields: Vec::new(),
            field: Vec::new(),
            place: FieldState::FieldStart,
            open_quote: None,
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
                return self.check_heading();
            }
            // A header without an end belongs to a feed without rows; parsing it shows whether it
            // is a header.
            self.head.push(b'\n');
            let separator = separator_of(&self.head).ok_or(FeedError::BrokenOff { row: 1 })?;
            self.begin_rows(separator, take)?;
        }
        while self.joins_rows() || (self.place == FieldState::Quoted && self.may_be_text()) {
            self.read_unquoted(take)?;
        }
        if self.place == FieldState::Quoted {
            return Err(FeedError::BrokenOff { row: self.row + 1 });
        }
        if self.row_bytes > 0 {
            self.end_row(take)?;
        }
        self.check_heading()
    }

    /// Fails if rows with values were read, and none was a heading.
    fn check_heading(&mut self) -> Result<(), FeedError> {
        let error = self.heading_error.take();
        error
            .filter(|_| !self.heading.is_read())
            .map_or(Ok(()), Err)
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
        for (index, byte) in bytes.iter().enumerate() {
            while self.is_quote_text(*byte) {
                self.read_unquoted(take)?;
            }
            let second_half_of_end = self.after_return && *byte == b'\n';
            self.after_return = false;
            if second_half_of_end {
                continue;
            }
            let quoted = self.place == FieldState::Quoted;
            if !quoted && matches!(byte, b'\n' | b'\r') {
                self.after_return = *byte == b'\r';
                self.end_row(take)?;
                if self.separator.is_none() {
                    return self.push(&bytes[index + 1..], take);
                }
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

    /// Returns `true` if `byte` shows that the quote at the beginning of a TSV field is text.
    fn is_quote_text(&self, byte: u8) -> bool {
        match self.place {
            _ if self.open_quote.is_none() => false,
            _ if matches!(byte, b'\n' | b'\r') => self.joins_rows(),
            FieldState::QuoteInQuotes => !matches!(byte, b'"' | b'\t'),
            FieldState::Quoted => self.row_bytes >= ROW_BYTES_MAX && self.may_be_text(),
            _ => false,
        }
    }

    /// Returns `true` at the end of a line if it and the first line of the field are whole rows.
    fn joins_rows(&self) -> bool {
        self.open_quote.as_ref().is_some_and(|quote| {
            quote.is_first_whole == Some(true) && self.heading.is_whole(quote.tabs)
        })
    }

    /// Returns `true` if a quote that is never closed is text. A text of several lines without a
    /// tab is a quoted one that broke off.
    fn may_be_text(&self) -> bool {
        self.open_quote.as_ref().is_some_and(|quote| {
            let is_line = quote.is_first_whole.is_none() && self.heading.is_whole(quote.tabs);
            is_line || quote.has_later_tab
        })
    }

    /// Reads the bytes since the open quote again, with the quote as text.
    fn read_unquoted(&mut self, take: &mut dyn FnMut(u64, RowValues)) -> Result<(), FeedError> {
        let Some(quote) = self.open_quote.take() else {
            return Ok(());
        };
        self.fields.truncate(quote.index);
        self.field = b"\"".into();
        self.place = FieldState::Plain;
        let after_quote = &quote.raw[1..];
        self.row_bytes -= after_quote.len();
        self.split_rows(after_quote, take)
    }

    /// Keeps a byte of a TSV row from its first quote on.
    fn record_raw(&mut self, byte: u8) {
        let begins = self.place == FieldState::FieldStart && byte == b'"';
        if begins && self.separator == Some(b'\t') && !self.may_join_rows() {
            self.open_quote = Some(OpenQuote {
                index: self.fields.len(),
                tabs: self.fields.len(),
                ..OpenQuote::default()
            });
        }
        let Some(quote) = &mut self.open_quote else {
            return;
        };
        quote.raw.push(byte);
        match byte {
            b'\t' => {
                quote.tabs += 1;
                quote.has_later_tab |= quote.is_first_whole.is_some();
            }
            b'\n' | b'\r' => {
                let is_whole = self.heading.is_whole(quote.tabs);
                quote.is_first_whole.get_or_insert(is_whole);
                quote.tabs = 0;
            }
            _ => {}
        }
    }

    /// Returns `true` if a closed quote may still turn out to join two rows.
    fn may_join_rows(&self) -> bool {
        let quote = self.open_quote.as_ref();
        quote.is_some_and(|quote| quote.is_first_whole == Some(true))
    }

    fn push_byte(&mut self, byte: u8) {
        self.record_raw(byte);
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
        self.open_quote = None;
        self.row_bytes = 0;
        let fields = std::mem::take(&mut self.fields);
        self.row += 1;
        if is_blank(&fields) {
            return Ok(());
        }
        if self.heading.is_read() {
            take(self.row, self.heading.name_values(&fields));
        } else if is_separator_line(&fields, self.separator) {
            self.is_separator_named = true;
        } else {
            match TableHead::read(&fields) {
                Ok(heading) => self.heading = heading,
                Err(error) => {
                    // A caption often stands above the heading, without its separators.
                    self.heading_error.get_or_insert(error);
                    self.skipped += 1;
                    if self.skipped >= HEADING_ROWS {
                        return self.check_heading();
                    }
                    self.separator.take_if(|_| !self.is_separator_named);
                }
            }
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
