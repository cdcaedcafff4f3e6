//! Names of columns that became attributes, and the column that a name was probably meant to be.

use std::collections::BTreeSet;

use super::{
    super::AttributeColumn,
    columns::{FeedColumn, MEANT_NAMES},
    fields::RowFields,
};

/// Maximum number of names that are reported.
const NAMES_REPORTED: usize = 20;
/// Maximum number of names that are collected.
const NAMES_MAX: usize = 256;
/// Letters of a name, one in so many, that may be wrong.
const WRONG_SHARE: usize = 5;

/// The names of a feed's columns.
#[derive(Default)]
pub(super) struct ColumnNames {
    attributes: BTreeSet<String>,
    known: BTreeSet<FeedColumn>,
}

impl ColumnNames {
    /// Collects the names of a row's values.
    pub(super) fn collect(&mut self, row: &RowFields) {
        for (name, _) in &row.attributes {
            if self.attributes.len() < NAMES_MAX && !self.attributes.contains(name) {
                self.attributes.insert(name.clone());
            }
        }
        for (column, _) in row.known() {
            if !self.known.contains(column) {
                self.known.insert(column.clone());
            }
        }
    }

    /// Returns the first names, those that are probably misspelled before the others.
    pub(super) fn attribute_columns(self) -> Vec<AttributeColumn> {
        let columns = self.attributes.iter().map(|name| AttributeColumn {
            name: name.clone(),
            meant: self.meant(name).map(str::to_owned),
        });
        let mut columns: Vec<_> = columns.collect();
        columns.sort_by_key(|column| column.meant.is_none());
        columns.truncate(NAMES_REPORTED);
        columns
    }

    /// Returns the name of a column that the feed lacks and that `name` resembles.
    fn meant(&self, name: &str) -> Option<&'static str> {
        let resembles = |known: &&str| {
            let wrong_max = known.chars().count() / WRONG_SHARE;
            name.split('_').any(|word| word == *known)
                || strsim::damerau_levenshtein(name, known) <= wrong_max
        };
        MEANT_NAMES
            .iter()
            .filter(|(columns, _)| !columns.iter().any(|column| self.known.contains(column)))
            .find(|(_, names)| names.iter().any(resembles))
            .and_then(|(_, names)| names.first().copied())
    }
}
