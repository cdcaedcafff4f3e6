//! Reads feeds as shops export them: piece by piece as they arrive, with one row in memory.
//!
//! Reading order: [`FeedReader`] finds out how a feed is written; `csv` and `json` cut it into rows; `columns` makes a
//! product of a row's named values. A row that is no product is told and left out. A feed that is cut off, or that is
//! nothing we know, is refused as a whole, because half a catalogue would replace a whole one.

mod columns;
mod csv;
mod json;
mod markup;
#[cfg(test)]
mod tests;

use switchboard_schemas::{agent::FeedFormat, catalog_product::CatalogProduct};

use self::{csv::CsvRows, json::JsonRows};
use super::{FeedRejections, RejectedRow};

/// Rejected rows of which the reason is told.
const REJECTED_ROWS_TOLD: usize = 20;
/// Largest row, in bytes.
const ROW_BYTES_MAX: usize = 256 << 10;
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";
const UTF16_MARKS: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

/// Why a feed is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FeedError {
    /// More products than an agent may have.
    #[error("the feed has more than {max} products")]
    TooMany {
        /// So many are taken.
        max: u64,
    },
    /// It ends in the middle.
    #[error("the feed ends in the middle of row {row}")]
    BrokenOff {
        /// Where.
        row: u64,
    },
    /// A quote or a bracket that is never closed makes such rows.
    #[error("row {row} is larger than {max} bytes; is a quote or a bracket before it not closed?")]
    RowTooLarge {
        /// Where.
        row: u64,
        /// So many bytes are taken.
        max: usize,
    },
    /// Neither CSV nor JSON of ours.
    #[error("{0}")]
    Unreadable(&'static str),
    /// There is no row.
    #[error("the feed has no rows")]
    Empty,
    /// There are rows, and none is a product.
    #[error("none of the feed's {rows} rows is a product; the first: {reason}")]
    NoProducts {
        /// Rows.
        rows: u64,
        /// Why the first is none.
        reason: String,
    },
}

/// Reads one feed.
pub struct FeedReader {
    state: State,
    products_max: u64,
    products: u64,
    rejected: FeedRejections,
}

enum State {
    /// The first bytes, until they tell how the feed is written.
    Beginning(Vec<u8>, FeedFormat),
    Csv(CsvRows),
    Json(JsonRows),
}

/// What a row is: a product, or why it is none.
type Row = Result<CatalogProduct, String>;

impl FeedReader {
    /// A reader of a feed with at most so many products.
    pub const fn new(format: FeedFormat, products_max: u64) -> Self {
        let state = State::Beginning(Vec::new(), format);
        Self {
            state,
            products_max,
            products: 0,
            rejected: FeedRejections {
                count: 0,
                first: Vec::new(),
            },
        }
    }

    /// Reads on; gives the products that are complete.
    ///
    /// # Errors
    /// The feed is refused.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<CatalogProduct>, FeedError> {
        let mut products = Vec::new();
        if let State::Beginning(beginning, format) = &mut self.state {
            beginning.extend_from_slice(bytes);
            let beginning = std::mem::take(beginning);
            let Some((state, rest)) = recognize(&beginning, *format)? else {
                self.state = State::Beginning(beginning, *format);
                return Ok(products);
            };
            self.state = state;
            self.read(&beginning[rest..], &mut products)?;
        } else {
            self.read(bytes, &mut products)?;
        }
        Ok(products)
    }

    /// The end of the feed: its last products, and the rows that were none.
    ///
    /// # Errors
    /// The feed is refused; nothing of it may replace anything.
    pub fn finish(mut self) -> Result<(Vec<CatalogProduct>, FeedRejections), FeedError> {
        let mut products = Vec::new();
        let mut rows = Vec::new();
        match &mut self.state {
            State::Beginning(..) => return Err(FeedError::Empty),
            State::Csv(csv) => csv.finish(&mut |number, row| rows.push((number, row)))?,
            State::Json(json) => json.finish()?,
        }
        self.take(rows, &mut products)?;
        if self.products == 0 {
            let reason = self.rejected.first.first().map(|row| row.reason.clone());
            return Err(
                reason.map_or(FeedError::Empty, |reason| FeedError::NoProducts {
                    rows: self.rejected.count,
                    reason,
                }),
            );
        }
        Ok((products, self.rejected))
    }

    fn read(&mut self, bytes: &[u8], products: &mut Vec<CatalogProduct>) -> Result<(), FeedError> {
        let mut rows = Vec::new();
        match &mut self.state {
            State::Beginning(..) => {}
            State::Csv(csv) => csv.push(bytes, &mut |number, row| rows.push((number, row)))?,
            State::Json(json) => json.push(bytes, &mut |number, row| rows.push((number, row)))?,
        }
        self.take(rows, products)
    }

    fn take(
        &mut self,
        rows: Vec<(u64, Row)>,
        products: &mut Vec<CatalogProduct>,
    ) -> Result<(), FeedError> {
        for (number, row) in rows {
            match row {
                Ok(product) => {
                    self.products += 1;
                    products.push(product);
                }
                Err(reason) => {
                    self.rejected.count += 1;
                    if self.rejected.first.len() < REJECTED_ROWS_TOLD {
                        self.rejected.first.push(RejectedRow {
                            row: number,
                            reason,
                        });
                    }
                }
            }
            // Rejected rows count too, or a feed of nothing else would be read for ever.
            if self.products + self.rejected.count > self.products_max {
                return Err(FeedError::TooMany {
                    max: self.products_max,
                });
            }
        }
        Ok(())
    }
}

/// How the feed is written and where it begins, once its first bytes tell.
fn recognize(beginning: &[u8], format: FeedFormat) -> Result<Option<(State, usize)>, FeedError> {
    if UTF16_MARKS.iter().any(|mark| beginning.starts_with(mark)) {
        return Err(FeedError::Unreadable(
            "the feed is in UTF-16; save it as UTF-8",
        ));
    }
    if beginning.len() < UTF8_MARK.len() && UTF8_MARK.starts_with(beginning) {
        return Ok(None);
    }
    let marked = if beginning.starts_with(UTF8_MARK) {
        UTF8_MARK.len()
    } else {
        0
    };
    let Some(blank) = beginning[marked..]
        .iter()
        .position(|byte| !byte.is_ascii_whitespace())
    else {
        // Blank for longer than a row may be is nothing that we know.
        return if beginning.len() > ROW_BYTES_MAX {
            Err(FeedError::Empty)
        } else {
            Ok(None)
        };
    };
    let first = beginning[marked + blank];
    let state = match format {
        FeedFormat::Csv => State::Csv(CsvRows::new()),
        FeedFormat::Json => State::Json(JsonRows::new()),
        FeedFormat::Auto if matches!(first, b'[' | b'{') => State::Json(JsonRows::new()),
        FeedFormat::Auto if first == b'<' => {
            return Err(FeedError::Unreadable(
                "the feed is XML or HTML; only CSV and JSON are taken",
            ));
        }
        FeedFormat::Auto if beginning.starts_with(b"\x1f\x8b") || beginning.starts_with(b"PK") => {
            return Err(FeedError::Unreadable(
                "the feed is compressed; only plain CSV and JSON are taken",
            ));
        }
        FeedFormat::Auto => State::Csv(CsvRows::new()),
    };
    Ok(Some((state, marked + blank)))
}
