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
    /// A value was left out of more than half of the rows.
    #[error("a value was left out of {warnings} of its {rows} rows")]
    Loses {
        /// Number of rows with a warning.
        warnings: u64,
        /// Number of rows.
        rows: u64,
    },
    /// More than a tenth of the rows are not products.
    #[error("{rejected} of its {rows} rows are not products")]
    Rejects {
        /// Number of rejected rows.
        rejected: u64,
        /// Number of rows.
        rows: u64,
    },
}

impl ReplacementRisk {
    /// Returns the risk of replacing `current` by an upload, or `None`.
    pub fn of_upload(current: Option<&PublishedProducts>, read: &ReadFeed) -> Option<Self> {
        Self::of(current, read, (0, 0))
    }

    /// Returns the risk of replacing `current` by a feed, or `None`. A feed that has always had
    /// faulty rows is no risk as long as there are not twice as many.
    pub fn of_feed(current: Option<&PublishedProducts>, read: &ReadFeed) -> Option<Self> {
        let usual = current.map_or((0, 0), |it| (it.rejected.count, it.warnings.count));
        Self::of(current, read, usual)
    }

    fn of(
        current: Option<&PublishedProducts>,
        read: &ReadFeed,
        (usual_rejected, usual_warnings): (u64, u64),
    ) -> Option<Self> {
        let current = current.filter(|current| current.count > 0)?;
        let (count, rejected) = (read.count, read.report.rejected.count);
        let (rows, warnings) = (count + rejected, read.report.warnings.count);
        if count * LEFT_SHARE <= current.count {
            let current = current.count;
            Some(Self::Shrinks { count, current })
        } else if rejected * REJECTED_SHARE > rows && rejected > 2 * usual_rejected {
            Some(Self::Rejects { rejected, rows })
        } else if warnings * 2 > rows && warnings > 2 * usual_warnings {
            Some(Self::Loses { warnings, rows })
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
            let risk = ReplacementRisk::of_feed(Some(&published(current, current_rejected)), &read);
            assert_eq!(
                risk.is_some(),
                is_risk,
                "{current} {current_rejected} {count} {rejected}"
            );
            assert_eq!(ReplacementRisk::of_upload(None, &read), None);
        }
    }

    #[test]
    fn upload_is_judged_without_the_faults_of_the_last_one() {
        let current = published(30, 20);
        let mut read = ReadFeed {
            count: 60,
            ..ReadFeed::default()
        };
        read.report.rejected = rows(40);
        assert_eq!(ReplacementRisk::of_feed(Some(&current), &read), None);
        let risk = ReplacementRisk::of_upload(Some(&current), &read);
        assert_eq!(
            risk,
            Some(ReplacementRisk::Rejects {
                rejected: 40,
                rows: 100
            })
        );
        read.report.rejected = rows(0);
        read.report.warnings = rows(31);
        let risk = ReplacementRisk::of_upload(Some(&current), &read);
        assert_eq!(
            risk,
            Some(ReplacementRisk::Loses {
                warnings: 31,
                rows: 60
            })
        );
    }
}
