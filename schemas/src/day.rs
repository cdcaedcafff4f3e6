//! Calendar days in UTC, the unit of analytics.

use std::{fmt, str::FromStr};

use chrono::{DateTime, Days, NaiveDate};
use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// Number of hours of a day in UTC.
pub const HOURS_PER_DAY: i64 = 24;
const HOUR_MICROS: i64 = 3_600_000_000;
/// Length of a valid text; chrono would also accept `2026-1-1`.
const TEXT_CHARS: usize = "2026-01-31".len();

/// A day in UTC, counted from the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UtcDay(i64);

/// The error for a text that is not a calendar day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a day such as 2026-01-31")]
pub struct InvalidDay;

impl UtcDay {
    /// Returns the day of a point in time.
    pub const fn from_timestamp(moment: Timestamp) -> Self {
        Self(hour_of(moment).div_euclid(HOURS_PER_DAY))
    }

    /// Returns the day of an hour number from [`hour_of`].
    pub const fn of_hour(hour: i64) -> Self {
        Self(hour.div_euclid(HOURS_PER_DAY))
    }

    /// Creates the day with the given number since 1970-01-01.
    pub const fn from_number(number: i64) -> Self {
        Self(number)
    }

    /// Returns the number of days since the Unix epoch.
    pub const fn number(self) -> i64 {
        self.0
    }

    /// Returns the day that is `days` later, or earlier if negative.
    pub const fn plus_days(self, days: i64) -> Self {
        Self(self.0.saturating_add(days))
    }

    /// Returns the number of its first hour since the Unix epoch; the other hours follow.
    pub const fn first_hour(self) -> i64 {
        self.0.saturating_mul(HOURS_PER_DAY)
    }

    fn date(self) -> Option<NaiveDate> {
        let epoch = DateTime::UNIX_EPOCH.date_naive();
        let days = Days::new(self.0.unsigned_abs());
        if self.0 < 0 {
            epoch.checked_sub_days(days)
        } else {
            epoch.checked_add_days(days)
        }
    }
}

/// Returns the hour of a point in time, counted from the Unix epoch.
pub const fn hour_of(moment: Timestamp) -> i64 {
    moment.micros().div_euclid(HOUR_MICROS)
}

impl fmt::Display for UtcDay {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.date().unwrap_or_default())
    }
}

impl FromStr for UtcDay {
    type Err = InvalidDay;

    fn from_str(text: &str) -> Result<Self, InvalidDay> {
        if text.len() != TEXT_CHARS {
            return Err(InvalidDay);
        }
        let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").map_err(|_| InvalidDay)?;
        Ok(Self(
            date.signed_duration_since(DateTime::UNIX_EPOCH.date_naive())
                .num_days(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn day_round_trips_through_text(number in -700_000_i64..2_900_000) {
            let day = UtcDay(number);
            prop_assert_eq!(day.to_string().parse(), Ok(day));
        }

        #[test]
        fn arbitrary_text_parses_or_is_rejected(text: String) {
            let _ = text.parse::<UtcDay>();
        }
    }

    #[test]
    fn day_begins_at_midnight_utc_even_before_the_epoch() {
        let day: UtcDay = "2026-01-31".parse().unwrap();
        let at = |hour: i64, micros: i64| {
            Timestamp::from_micros((day.first_hour() + hour) * HOUR_MICROS + micros)
        };
        assert_eq!(
            [
                UtcDay::from_timestamp(at(0, 0)),
                UtcDay::from_timestamp(at(24, -1)),
                UtcDay::from_timestamp(at(24, 0))
            ],
            [day, day, day.plus_days(1)]
        );
        assert_eq!(
            UtcDay::from_timestamp(Timestamp::from_micros(-1)).to_string(),
            "1969-12-31"
        );
        assert_eq!(UtcDay::of_hour(hour_of(at(23, 0))), day);
    }

    #[test]
    fn invalid_dates_are_rejected() {
        for text in [
            "",
            "2026-02-30",
            "2026-1-31",
            "31-01-2026",
            "2026-01-31T00:00:00Z",
            "20260-01-1",
        ] {
            assert_eq!(text.parse::<UtcDay>(), Err(InvalidDay), "{text}");
        }
    }
}
