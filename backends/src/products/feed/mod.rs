//! Reads the product files and feeds of shops with one row in memory.
//!
//! Reading order: [`FeedFile`] keeps the bytes until all have arrived; `content` recognizes what
//! they are; `csv`, `json`, `xml` and `workbook` split them into rows; `columns` and `table` name
//! the values of a row; `variants` joins the rows of one product; `fields` converts it. Rows that
//! are not products are reported and skipped. A truncated or unknown feed is rejected as a whole,
//! because half a catalog would replace a whole one.

mod column_names;
mod columns;
mod content;
mod csv;
mod fields;
mod file;
mod json;
mod links;
mod markup;
mod sale_dates;
mod table;
#[cfg(test)]
mod tests;
mod variants;
mod workbook;
mod xml;

use std::io::{self, Read, Seek};

use switchboard_schemas::{agent::FeedFormat, catalog_product::CatalogProduct};

use self::{
    column_names::ColumnNames,
    content::FileKind,
    csv::CsvRows,
    fields::RowFields,
    json::JsonRows,
    variants::{RowPart, VariantGroups},
};
pub use self::{
    file::{FeedFile, ReadFeed, read_products},
    workbook::{WorkbookCell, visit_cells},
};
use super::{AttributeColumn, FilledValues, ReportedRows, counted};

/// Maximum size of a row, in bytes.
const ROW_BYTES_MAX: usize = 256 << 10;
const PIECE_BYTES: usize = 64 << 10;

/// The reason why a feed is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FeedError {
    /// The feed has more products than an agent may have.
    #[error("the feed has more than {}", counted(*max, "product"))]
    TooMany {
        /// Maximum number of products.
        max: u64,
    },
    /// The feed has more bytes than it may have.
    #[error("the feed has more than {max} bytes; it has at least {bytes}")]
    TooLarge {
        /// Number of bytes that arrived or were announced.
        bytes: u64,
        /// Maximum number of bytes.
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
    /// The feed is a file of another kind.
    #[error(
        "the feed is {seen}; accepted are CSV, TSV, JSON, XML (RSS or Atom) and Excel workbooks (.xlsx)"
    )]
    Unsupported {
        /// Description of the file.
        seen: &'static str,
    },
    /// The parts of a workbook take too much memory.
    #[error("the workbook is larger than 128 MB unpacked")]
    UnpackedTooLarge,
    /// The feed has no known form.
    #[error("{0}")]
    Unreadable(String),
    /// The feed has no rows.
    #[error("the feed has no rows")]
    Empty,
    /// The feed has rows, and none is a product.
    #[error("none of the feed's {} is a product; the first: {reason}", counted(*rows, "row"))]
    NoProducts {
        /// Number of rows.
        rows: u64,
        /// Reason why the first row is not a product.
        reason: String,
    },
    /// The bytes could not be kept until all had arrived.
    #[error("the feed could not be kept: {0}")]
    Storage(String),
    /// Nobody takes the products any more.
    #[error("reading the feed was canceled")]
    Canceled,
}

impl FeedError {
    fn unreadable(reason: &str) -> Self {
        Self::Unreadable(reason.to_owned())
    }
}

impl From<io::Error> for FeedError {
    fn from(error: io::Error) -> Self {
        Self::Storage(error.to_string())
    }
}

/// The rows of a feed that were not taken as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedReport {
    /// Rows that are not products.
    pub rejected: ReportedRows,
    /// Rows of products that the shop does not show.
    pub left_out: ReportedRows,
    /// Rows of which a value was left out.
    pub warnings: ReportedRows,
    /// Columns that became attributes.
    pub attribute_columns: Vec<AttributeColumn>,
    /// Number of products that have a value.
    pub filled: FilledValues,
}

/// The named values of a row, or the reason why it has none.
type RowValues = Result<RowFields, String>;

/// Reads a whole feed with at most `products_max` products and gives each to `take`. Blocks.
///
/// # Errors
/// The feed is rejected; nothing of it may replace the current products.
pub fn read_feed<R: Read + Seek>(
    file: &mut R,
    format: FeedFormat,
    products_max: u64,
    take: &mut dyn FnMut(CatalogProduct) -> Result<(), FeedError>,
) -> Result<FeedReport, FeedError> {
    let kind = content::recognize(file, format)?;
    let (mut groups, mut names) = (VariantGroups::default(), ColumnNames::default());
    read_rows(file, kind, &mut |number, row| match row {
        Ok(row) => {
            names.collect(&row);
            groups.collect(number, &row, products_max)
        }
        Err(_) => Ok(()),
    })?;
    let mut products = 0;
    let mut report = FeedReport {
        attribute_columns: names.attribute_columns(),
        ..FeedReport::default()
    };
    read_rows(file, kind, &mut |number, row| {
        match row.map(|row| groups.part_of(number, row)) {
            Ok(RowPart::Variant) => {}
            Ok(RowPart::Hidden(reason)) => report.left_out.add(number, reason.to_owned()),
            Ok(RowPart::Rejected(reason)) => report.rejected.add(number, reason.to_owned()),
            Ok(RowPart::Product(row)) => match row.into_product() {
                Ok(read) => {
                    if !read.warnings.is_empty() {
                        report.warnings.add(number, read.warnings.join("; "));
                    }
                    products += 1;
                    report.filled.add(&read.product.product);
                    check_count(products + report.rejected.count, products_max)?;
                    return take(read.product);
                }
                Err(reason) => report.rejected.add(number, reason),
            },
            Err(reason) => report.rejected.add(number, reason),
        }
        // Rejected rows count too; otherwise a feed of nothing else would be read forever.
        check_count(products + report.rejected.count, products_max)
    })?;
    if products > 0 {
        return Ok(report);
    }
    let rows = report.rejected.count + report.left_out.count;
    let first = report
        .rejected
        .first
        .into_iter()
        .chain(report.left_out.first);
    Err(first
        .map(|row| row.reason)
        .next()
        .map_or(FeedError::Empty, |reason| FeedError::NoProducts {
            rows,
            reason,
        }))
}

const fn check_count(count: u64, max: u64) -> Result<(), FeedError> {
    if count > max {
        Err(FeedError::TooMany { max })
    } else {
        Ok(())
    }
}

fn read_rows<R: Read + Seek>(
    file: &mut R,
    kind: FileKind,
    take: &mut dyn FnMut(u64, RowValues) -> Result<(), FeedError>,
) -> Result<(), FeedError> {
    match kind {
        FileKind::Csv(encoding) => {
            let mut csv = CsvRows::new();
            split_text(encoding.decode(file)?, take, |bytes, take| {
                csv.push(bytes, take)
            })?;
            take_rows(take, |take| csv.finish(take))
        }
        FileKind::Json(encoding) => {
            let mut json = JsonRows::new();
            split_text(encoding.decode(file)?, take, |bytes, take| {
                json.push(bytes, take)
            })?;
            json.finish()
        }
        FileKind::Xml(encoding) => xml::read_rows(encoding.decode(file)?, take),
        FileKind::Zip => workbook::read_rows(file, take),
    }
}

/// Rows that a splitter has completed.
type SplitRows = Vec<(u64, RowValues)>;

fn split_text(
    mut text: impl Read,
    take: &mut dyn FnMut(u64, RowValues) -> Result<(), FeedError>,
    mut split: impl FnMut(&[u8], &mut dyn FnMut(u64, RowValues)) -> Result<(), FeedError>,
) -> Result<(), FeedError> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = text.read(&mut piece)?;
        if read == 0 {
            return Ok(());
        }
        take_rows(take, |rows| split(&piece[..read], rows))?;
    }
}

/// Takes the rows that a call of `split` completes.
fn take_rows(
    take: &mut dyn FnMut(u64, RowValues) -> Result<(), FeedError>,
    split: impl FnOnce(&mut dyn FnMut(u64, RowValues)) -> Result<(), FeedError>,
) -> Result<(), FeedError> {
    let mut rows = SplitRows::new();
    split(&mut |number, row| rows.push((number, row)))?;
    for (number, row) in rows {
        take(number, row)?;
    }
    Ok(())
}
