//! Replacements that are probably mistakes and need a confirmation: a shop that exports a part of
//! its products or an unknown form of them would lose a good catalog.

use serde::{Deserialize, Serialize};

use super::{PublishedProducts, feed::ReadFeed};

/// Share of the rows, one in so many, of which more must be rejected to need a confirmation.
const REJECTED_SHARE: u64 = 10;
/// Share of the current products, one in so many, that must be left to need none.
const LEFT_SHARE: u64 = 10;

/// The reason why a replacement needs a confirmation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplacementRisk {
    /// At most a tenth of the current products would be left.
    #[error("it has {count} products and would replace {current}")]
    Shrinks {
        /// Number of products that would be left.
        count: u64,
        /// Number of current products.
        current: u64,
    },
    /// More than a tenth of the rows, and twice as many as last time, are not products.
    #[error("{rejected} of its {rows} rows are not products")]
    Rejects {
        /// Number of rejected rows.
        rejected: u64,
        /// Number of rows.
        rows: u64,
    },
}

impl ReplacementRisk {
    /// Returns the risk of replacing `current` by what was read, or `None`.
    pub fn of(current: Option<&PublishedProducts>, read: &ReadFeed) -> Option<Self> {
        let current = current.filter(|current| current.count > 0)?;
        let (count, rejected) = (read.count, read.report.rejected.count);
        let rows = count + rejected;
        if count * LEFT_SHARE <= current.count {
            let current = current.count;
            Some(Self::Shrinks { count, current })
        } else if rejected * REJECTED_SHARE > rows && rejected > 2 * current.rejected.count {
            Some(Self::Rejects { rejected, rows })
        } else {
            None
        }
    }
}

/// The consent to a replacement by a feed that has a [`ReplacementRisk`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReplacementConsent {
    /// Nobody has to be asked.
    #[default]
    Unneeded,
    /// The last fetch kept the products until somebody confirms.
    Needed,
    /// The next fetch may replace the products.
    Given,
}

#[cfg(test)]
mod tests {
    use switchboard_schemas::time::Timestamp;

    use super::{
        super::{ProductSource, ProductsVersion, ReportedRows},
        *,
    };

    fn published(count: u64, rejected: u64) -> PublishedProducts {
        PublishedProducts {
            version: ProductsVersion::begin(),
            source: ProductSource::Upload,
            count,
            chunks: 1,
            bytes: 1,
            rejected: rows(rejected),
            warnings: ReportedRows::default(),
            stored_at: Timestamp::from_micros(1),
            previous: None,
        }
    }

    fn rows(count: u64) -> ReportedRows {
        ReportedRows {
            count,
            first: Vec::new(),
        }
    }

    #[test]
    fn replacement_that_loses_most_products_is_a_risk() {
        for (current, current_rejected, count, rejected, is_risk) in [
            (100, 0, 10, 0, true),
            (100, 0, 11, 0, false),
            (10, 0, 1, 0, true),
            (9, 0, 1, 0, false),
            (30, 0, 30, 3, false),
            (30, 0, 30, 4, true),
            (30, 2, 30, 4, false),
            (30, 0, 4, 26, true),
        ] {
            let mut read = ReadFeed {
                count,
                ..ReadFeed::default()
            };
            read.report.rejected = rows(rejected);
            let risk = ReplacementRisk::of(Some(&published(current, current_rejected)), &read);
            assert_eq!(
                risk.is_some(),
                is_risk,
                "{current} {current_rejected} {count} {rejected}"
            );
            assert_eq!(ReplacementRisk::of(None, &read), None);
        }
    }
}
