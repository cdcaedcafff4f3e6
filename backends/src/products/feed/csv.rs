//! Cuts CSV into rows. Quotes, separators and line ends are those that spreadsheets and shops write; the head tells
//! which separator, because exports of many countries use semicolons or tabs.

use super::{
    FeedError, ROW_BYTES_MAX, Row,
    columns::{self, Column},
};

const SEPARATORS: [u8; 4] = *b",;\t|";
/// Columns of a feed.
const COLUMNS_MAX: usize = 256;

/// Rows of a feed as its bytes arrive.
pub(super) struct CsvRows {
    separator: Option<u8>,
    /// Bytes of the head, until its separator is known.
    head: Vec<u8>,
    columns: Vec<Column>,
    fields: Vec<Vec<u8>>,
    field: Vec<u8>,
    place: Place,
    /// A carriage return ended the last row, so that a line feed behind it ends none.
    after_return: bool,
    row: u64,
    row_bytes: usize,
}

/// Where the next byte stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    FieldStart,
    Plain,
    Quoted,
    /// Behind a quote inside quotes: the end of the field, or the first half of a quote in it.
    QuoteInQuotes,
}

impl CsvRows {
    pub(super) const fn new() -> Self {
        Self {
            separator: None,
            head: Vec::new(),
            columns: Vec::new(),
            fields: Vec::new(),
            field: Vec::new(),
            place: Place::FieldStart,
            after_return: false,
            row: 0,
            row_bytes: 0,
        }
    }

    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        take: &mut impl FnMut(u64, Row),
    ) -> Result<(), FeedError> {
        if self.separator.is_some() {
            return self.cut(bytes, take);
        }
        self.head.extend_from_slice(bytes);
        match separator_of(&self.head) {
            Some(separator) => self.begin(separator, take),
            None if self.head.len() > ROW_BYTES_MAX => Err(FeedError::RowTooLarge {
                row: 1,
                max: ROW_BYTES_MAX,
            }),
            None => Ok(()),
        }
    }

    pub(super) fn finish(&mut self, take: &mut impl FnMut(u64, Row)) -> Result<(), FeedError> {
        if self.separator.is_none() {
            // A head without an end is a feed without rows; reading it tells whether it is a head.
            self.head.push(b'\n');
            let separator = separator_of(&self.head).ok_or(FeedError::BrokenOff { row: 1 })?;
            self.begin(separator, take)?;
        }
        if self.place == Place::Quoted {
            return Err(FeedError::BrokenOff { row: self.row + 1 });
        }
        if self.row_bytes > 0 {
            self.end_row(take)
        } else {
            Ok(())
        }
    }

    fn begin(&mut self, separator: u8, take: &mut impl FnMut(u64, Row)) -> Result<(), FeedError> {
        self.separator = Some(separator);
        let head = std::mem::take(&mut self.head);
        self.cut(&head, take)
    }

    fn cut(&mut self, bytes: &[u8], take: &mut impl FnMut(u64, Row)) -> Result<(), FeedError> {
        for byte in bytes {
            let second_half_of_end = self.after_return && *byte == b'\n';
            self.after_return = false;
            if second_half_of_end {
                continue;
            }
            let quoted = self.place == Place::Quoted;
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
            self.byte(*byte);
        }
        Ok(())
    }

    fn byte(&mut self, byte: u8) {
        match (self.place, byte) {
            (Place::FieldStart, b'"') | (Place::QuoteInQuotes, b'"') => {
                if self.place == Place::QuoteInQuotes {
                    self.field.push(byte);
                }
                self.place = Place::Quoted;
            }
            (Place::Quoted, b'"') => self.place = Place::QuoteInQuotes,
            (Place::Quoted, _) => self.field.push(byte),
            (_, _) if Some(byte) == self.separator => {
                self.end_field();
                self.place = Place::FieldStart;
            }
            (_, _) => {
                self.field.push(byte);
                self.place = Place::Plain;
            }
        }
    }

    fn end_field(&mut self) {
        self.fields.push(std::mem::take(&mut self.field));
    }

    fn end_row(&mut self, take: &mut impl FnMut(u64, Row)) -> Result<(), FeedError> {
        self.end_field();
        self.place = Place::FieldStart;
        self.row_bytes = 0;
        let fields = std::mem::take(&mut self.fields);
        self.row += 1;
        if fields.iter().all(|field| field.trim_ascii().is_empty()) {
            return Ok(());
        }
        if self.columns.is_empty() {
            self.columns = read_head(&fields)?;
            return Ok(());
        }
        take(self.row, self.product(&fields));
        Ok(())
    }

    fn product(&self, fields: &[Vec<u8>]) -> Row {
        let surplus = fields
            .iter()
            .skip(self.columns.len())
            .any(|field| !field.is_empty());
        if surplus {
            return Err(format!(
                "it has {} fields, and the head {}",
                fields.len(),
                self.columns.len()
            ));
        }
        let mut named = Vec::with_capacity(fields.len());
        for (column, field) in self.columns.iter().zip(fields) {
            let text = std::str::from_utf8(field).map_err(|_| "it is not in UTF-8".to_owned())?;
            named.push((column, text));
        }
        columns::product(named.into_iter())
    }
}

fn read_head(fields: &[Vec<u8>]) -> Result<Vec<Column>, FeedError> {
    if fields.len() > COLUMNS_MAX {
        return Err(FeedError::Unreadable("the head has more than 256 columns"));
    }
    let names: Vec<Column> = fields
        .iter()
        .map(|field| Column::named(&String::from_utf8_lossy(field)))
        .collect();
    if names.contains(&Column::Title) {
        Ok(names)
    } else {
        Err(FeedError::Unreadable(
            "the first row names no column title or name",
        ))
    }
}

/// The separator that the head uses most, once its end is there.
fn separator_of(head: &[u8]) -> Option<u8> {
    let mut counts = [0_usize; SEPARATORS.len()];
    let (mut quoted, mut blank) = (false, true);
    for byte in head {
        match byte {
            b'"' => quoted = !quoted,
            // Blank lines before the head are none.
            b'\n' | b'\r' if !quoted && !blank => {
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
