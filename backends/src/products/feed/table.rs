//! Tables with a heading: CSV files and sheets of a workbook.

use super::{
    FeedError, RowValues,
    columns::{ExportDialect, FeedColumn, columns_of},
    fields::RowFields,
};

/// Maximum number of columns of a feed.
pub(super) const COLUMNS_MAX: usize = 256;

/// Number of rows with values among which the heading is searched.
pub(super) const HEADING_ROWS: usize = 10;

/// The heading of a table, which names the columns of all later rows.
#[derive(Default)]
pub(super) struct TableHead {
    columns: Vec<FeedColumn>,
    dialect: ExportDialect,
}

impl TableHead {
    /// Reads a row of names.
    ///
    /// # Errors
    /// No name is that of a title, or there are too many names.
    pub(super) fn read(fields: &[Vec<u8>]) -> Result<Self, FeedError> {
        if fields.len() > COLUMNS_MAX {
            return Err(FeedError::unreadable("the head has more than 256 columns"));
        }
        let names: Vec<_> = fields
            .iter()
            .map(|field| String::from_utf8_lossy(field))
            .collect();
        let (columns, dialect) = columns_of(&names);
        if columns.contains(&FeedColumn::Title) {
            Ok(Self { columns, dialect })
        } else {
            Err(FeedError::unreadable(
                "the first row names no column title or name",
            ))
        }
    }

    pub(super) const fn is_read(&self) -> bool {
        !self.columns.is_empty()
    }

    /// Returns `true` if a line with so many separators has a field for each of several columns.
    pub(super) const fn is_whole(&self, separators: usize) -> bool {
        separators > 0 && separators + 1 == self.columns.len()
    }

    /// Names the values of a row.
    pub(super) fn name_values(&self, fields: &[Vec<u8>]) -> RowValues {
        let surplus = fields
            .iter()
            .skip(self.columns.len())
            .any(|field| !field.trim_ascii().is_empty());
        if surplus {
            return Err(format!(
                "it has {} fields, and the head {}",
                fields.len(),
                self.columns.len()
            ));
        }
        let mut row = RowFields::new(self.dialect);
        for (column, field) in self.columns.iter().zip(fields) {
            let text = std::str::from_utf8(field).map_err(|_| "it is not in UTF-8".to_owned())?;
            row.add(column, text);
        }
        Ok(row)
    }
}

/// Returns `true` if no field of a row has a value.
pub(super) fn is_blank(fields: &[Vec<u8>]) -> bool {
    fields.iter().all(|field| field.trim_ascii().is_empty())
}
