//! Reads the product feeds of shops from a stream of bytes, with one row in memory.
//!
//! Reading order: [`FeedReader`] recognizes the format; `csv` and `json` split the bytes into rows;
//! `columns` converts the named values of a row to a product. Rows that are not products are
//! reported and skipped. A truncated or unknown feed is rejected as a whole, because half a catalog
//! would replace a whole one.

mod columns;
mod csv;
mod json;
mod markup;
#[cfg(test)]
mod tests;

use switchboard_schemas::{agent::FeedFormat, catalog_product::CatalogProduct};

use self::{csv::CsvRows, json::JsonRows};
use super::{RejectedRow, RejectedRows};

/// Maximum number of rejected rows that are reported with their reason.
const REJECTED_ROWS_REPORTED: usize = 20;
/// Maximum size of a row, in bytes.
const ROW_BYTES_MAX: usize = 256 << 10;
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";
const UTF16_MARKS: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];
/// First bytes of gzip and ZIP files.
const COMPRESSION_MARKS: [&[u8]; 2] = [b"\x1f\x8b", b"PK\x03\x04"];

/// The reason why a feed is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FeedError {
    /// The feed has more products than an agent may have.
    #[error("the feed has more than {max} products")]
    TooMany {
        /// Maximum number of products.
        max: u64,
    },
    /// The feed ends in the middle of a row.
    #[error("the feed ends in the middle of row {row}")]
    BrokenOff {
        /// Number of the row.
        row: u64,
    },
    /// A row is too large, for instance because a quote or a bracket is never closed.
    #[error("row {row} is larger than {max} bytes; is a quote or a bracket before it not closed?")]
    RowTooLarge {
        /// Number of the row.
        row: u64,
        /// Maximum size of a row, in bytes.
        max: usize,
    },
    /// The feed is neither CSV nor JSON of a known form.
    #[error("{0}")]
    Unreadable(&'static str),
    /// The feed has no rows.
    #[error("the feed has no rows")]
    Empty,
    /// The feed has rows, and none is a product.
    #[error("none of the feed's {rows} rows is a product; the first: {reason}")]
    NoProducts {
        /// Number of rows.
        rows: u64,
        /// Reason why the first row is not a product.
        reason: String,
    },
}

/// A reader of one feed.
pub struct FeedReader {
    state: ReaderState,
    products_max: u64,
    products: u64,
    rejected: RejectedRows,
}

enum ReaderState {
    /// The first bytes of a feed whose format is not yet recognized.
    Beginning(Vec<u8>, FeedFormat),
    Csv(CsvRows),
    Json(JsonRows),
}

/// A product, or the reason why a row is not one.
type FeedRow = Result<CatalogProduct, String>;

impl FeedReader {
    /// Creates a reader for a feed with at most `products_max` products.
    pub const fn new(format: FeedFormat, products_max: u64) -> Self {
        let state = ReaderState::Beginning(Vec::new(), format);
        Self {
            state,
            products_max,
            products: 0,
            rejected: RejectedRows {
                count: 0,
                first: Vec::new(),
            },
        }
    }

    /// Reads bytes and returns the completed products.
    ///
    /// # Errors
    /// The feed is rejected.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<CatalogProduct>, FeedError> {
        let mut products = Vec::new();
        if let ReaderState::Beginning(beginning, format) = &mut self.state {
            beginning.extend_from_slice(bytes);
            let beginning = std::mem::take(beginning);
            let Some((state, rest)) = recognize(&beginning, *format)? else {
                self.state = ReaderState::Beginning(beginning, *format);
                return Ok(products);
            };
            self.state = state;
            self.read(&beginning[rest..], &mut products)?;
        } else {
            self.read(bytes, &mut products)?;
        }
        Ok(products)
    }

    /// Ends the feed and returns its last products and the rejected rows.
    ///
    /// # Errors
    /// The feed is rejected; nothing of it may replace the current products.
    pub fn finish(mut self) -> Result<(Vec<CatalogProduct>, RejectedRows), FeedError> {
        let mut products = Vec::new();
        let mut rows = Vec::new();
        match &mut self.state {
            ReaderState::Beginning(..) => return Err(FeedError::Empty),
            ReaderState::Csv(csv) => csv.finish(&mut |number, row| rows.push((number, row)))?,
            ReaderState::Json(json) => json.finish()?,
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
            ReaderState::Beginning(..) => {}
            ReaderState::Csv(csv) => {
                csv.push(bytes, &mut |number, row| rows.push((number, row)))?
            }
            ReaderState::Json(json) => {
                json.push(bytes, &mut |number, row| rows.push((number, row)))?
            }
        }
        self.take(rows, products)
    }

    fn take(
        &mut self,
        rows: Vec<(u64, FeedRow)>,
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
                    if self.rejected.first.len() < REJECTED_ROWS_REPORTED {
                        self.rejected.first.push(RejectedRow {
                            row: number,
                            reason,
                        });
                    }
                }
            }
            // Rejected rows count too; otherwise a feed of nothing else would be read forever.
            if self.products + self.rejected.count > self.products_max {
                return Err(FeedError::TooMany {
                    max: self.products_max,
                });
            }
        }
        Ok(())
    }
}

/// Recognizes the format from the first bytes and returns it with the position of the content.
fn recognize(
    beginning: &[u8],
    format: FeedFormat,
) -> Result<Option<(ReaderState, usize)>, FeedError> {
    if UTF16_MARKS.iter().any(|mark| beginning.starts_with(mark)) {
        return Err(FeedError::Unreadable(
            "the feed is in UTF-16; save it as UTF-8",
        ));
    }
    // A mark can arrive in several pieces.
    let mut marks = UTF16_MARKS
        .iter()
        .chain(COMPRESSION_MARKS.iter())
        .chain([&UTF8_MARK]);
    if marks.any(|mark| beginning.len() < mark.len() && mark.starts_with(beginning)) {
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
        // White space for longer than a row may be is not a known format.
        return if beginning.len() > ROW_BYTES_MAX {
            Err(FeedError::Empty)
        } else {
            Ok(None)
        };
    };
    let first = beginning[marked + blank];
    let state = match format {
        FeedFormat::Csv => ReaderState::Csv(CsvRows::new()),
        FeedFormat::Json => ReaderState::Json(JsonRows::new()),
        FeedFormat::Auto if matches!(first, b'[' | b'{') => ReaderState::Json(JsonRows::new()),
        FeedFormat::Auto if first == b'<' => {
            return Err(FeedError::Unreadable(
                "the feed is XML or HTML; only CSV and JSON are taken",
            ));
        }
        FeedFormat::Auto
            if COMPRESSION_MARKS
                .iter()
                .any(|mark| beginning.starts_with(mark)) =>
        {
            return Err(FeedError::Unreadable(
                "the feed is compressed; only plain CSV and JSON are taken",
            ));
        }
        FeedFormat::Auto => ReaderState::Csv(CsvRows::new()),
    };
    Ok(Some((state, marked + blank)))
}
