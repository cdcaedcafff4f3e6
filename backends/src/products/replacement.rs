//! Replacements that are probably mistakes and need a confirmation: a shop that exports a part of
//! its products or an unknown form of them would lose a good catalog.

use serde::{Deserialize, Serialize};

use super::{PublishedProducts, counted, feed::ReadFeed};

/// Share of the rows, one in so many, of which more must be rejected to need a confirmation.
const REJECTED_SHARE: u64 = 10;
/// Share of the rows, one in so many, of which more must be left out to need a confirmation.
const HIDDEN_SHARE: u64 = 10;
/// Share of the products, one in so many, of which more must lack a value to need a confirmation.
const LACKING_SHARE: u64 = 5;
/// Share of the current products, one in so many, that must be left to need none.
const LEFT_SHARE: u64 = 10;

/// The reason why a replacement needs a confirmation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplacementRisk {
    /// At most a tenth of the current products would be left.
    #[error("it has {} and would replace {current}", counted(*count, "product"))]
    Shrinks {
        /// Number of products that would be left.
        count: u64,
        /// Number of current products.
        current: u64,
    },
    /// A value was left out of more than half of the rows.
    #[error("a value was left out of {warnings} of its {}", counted(*rows, "row"))]
    Loses {
        /// Number of rows with a warning.
        warnings: u64,
        /// Number of rows.
        rows: u64,
    },
    /// More than a tenth of the rows are not products.
    #[error("{rejected} of its {} {}", counted(*rows, "row"), choose(*rejected, "is not a product", "are not products"))]
    Rejects {
        /// Number of rejected rows.
        rejected: u64,
        /// Number of rows.
        rows: u64,
    },
    /// More than a tenth of the rows are products that the shop does not show.
    #[error("{hidden} of its {} {} not shown in the shop", counted(*rows, "row"), choose(*hidden, "is", "are"))]
    Hides {
        /// Number of rows of products that are left out.
        hidden: u64,
        /// Number of rows.
        rows: u64,
    },
    /// More than a fifth of the products lack a value that current products have.
    #[error(
        "{without} of its {} {} no {value}, and {filled} of the current {current} {}",
        counted(*count, "product"), choose(*without, "has", "have"), choose(*filled, "has one", "have one")
    )]
    LacksValues {
        /// Name of the value.
        value: &'static str,
        /// Number of products without the value.
        without: u64,
        /// Number of products.
        count: u64,
        /// Number of current products with the value.
        filled: u64,
        /// Number of current products.
        current: u64,
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
        let (hidden, warnings) = (read.report.left_out.count, read.report.warnings.count);
        let rows = count + rejected + hidden;
        if count * LEFT_SHARE <= current.count {
            let current = current.count;
            Some(Self::Shrinks { count, current })
        } else if rejected * REJECTED_SHARE > rows && rejected > 2 * usual_rejected {
            Some(Self::Rejects { rejected, rows })
        } else if warnings * 2 > rows && warnings > 2 * usual_warnings {
            Some(Self::Loses { warnings, rows })
        } else if hidden * HIDDEN_SHARE > rows && hidden > 2 * current.left_out.count {
            // Shops have drafts all the time, also in an upload that is right.
            Some(Self::Hides { hidden, rows })
        } else {
            Self::of_values(current, read)
        }
    }

    fn of_values(current: &PublishedProducts, read: &ReadFeed) -> Option<Self> {
        let (count, before, now) = (read.count, &current.filled, &read.report.filled);
        let values = [
            ("price", before.prices, now.prices),
            ("picture", before.images, now.images),
            ("link", before.links, now.links),
        ];
        let lacking = values.into_iter().find(|(_, filled, now)| {
            // Products that are new, or were removed, lose no value.
            let kept = (*filled).min(filled * count / current.count);
            let lost = kept.saturating_sub(*now);
            // One product is rather added by hand than exported by mistake.
            lost > 1 && lost * LACKING_SHARE > count
        });
        lacking.map(|(value, filled, now)| Self::LacksValues {
            value,
            without: count - now,
            count,
            filled,
            current: current.count,
        })
    }
}

const fn choose(number: u64, one: &'static str, many: &'static str) -> &'static str {
    if number == 1 { one } else { many }
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
        super::{FilledValues, ProductSource, ProductsVersion, ReportedRows},
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
            left_out: ReportedRows::default(),
            warnings: ReportedRows::default(),
            attribute_columns: Vec::new(),
            filled: FilledValues {
                prices: count,
                images: count / 2,
                links: 0,
            },
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

    /// Returns a feed of products with all values.
    fn read(count: u64) -> ReadFeed {
        let mut read = ReadFeed {
            count,
            ..ReadFeed::default()
        };
        read.report.filled = FilledValues {
            prices: count,
            images: count,
            links: count,
        };
        read
    }

    #[test]
    fn products_without_values_or_out_of_the_shop_are_a_risk() {
        let current = published(30, 0);
        let risk = |prices, images, hidden| {
            let mut read = read(30);
            (read.report.filled.prices, read.report.filled.images) = (prices, images);
            read.report.left_out = rows(hidden);
            ReplacementRisk::of_upload(Some(&current), &read).map(|risk| risk.to_string())
        };
        for (prices, images, hidden, reason) in [
            (24, 9, 3, None),
            (
                0,
                9,
                0,
                Some("30 of its 30 products have no price, and 30 of the current 30 have one"),
            ),
            (
                30,
                8,
                0,
                Some("22 of its 30 products have no picture, and 15 of the current 30 have one"),
            ),
            (
                30,
                15,
                4,
                Some("4 of its 34 rows are not shown in the shop"),
            ),
        ] {
            assert_eq!(risk(prices, images, hidden).as_deref(), reason);
        }
        let mut drafts = published(30, 0);
        drafts.left_out = rows(2);
        let mut read = read(30);
        read.report.left_out = rows(4);
        assert_eq!(ReplacementRisk::of_upload(Some(&drafts), &read), None);
        let one = ReplacementRisk::Shrinks {
            count: 1,
            current: 10,
        };
        assert_eq!(one.to_string(), "it has 1 product and would replace 10");
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
            let mut read = read(count);
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
        let mut read = read(60);
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
