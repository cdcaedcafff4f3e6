//! Start and end of a sale, as feeds write them.

use chrono::{DateTime, Days, NaiveDate, NaiveDateTime};
use switchboard_schemas::time::Timestamp;

/// Formats of a time with an offset, of a time in UTC and of a day.
const WITH_OFFSET: [&str; 4] = [
    "%Y-%m-%dT%H:%M:%S%.f%#z",
    "%Y-%m-%dT%H:%M%#z",
    "%Y%m%dT%H%M%S%#z",
    "%Y%m%dT%H%M%#z",
];
const WITHOUT_OFFSET: [&str; 6] = [
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%dT%H:%M",
    "%Y%m%dT%H%M%S",
    "%Y%m%dT%H%M",
    "%d.%m.%YT%H:%M:%S",
    "%d.%m.%YT%H:%M",
];
const DAYS: [&str; 4] = ["%Y-%m-%d", "%Y%m%d", "%d.%m.%Y", "%Y/%m/%d"];

/// The time of a sale; an absent bound is open.
pub(super) type SaleTime = (Option<Timestamp>, Option<Timestamp>);

/// Parses an ISO 8601 interval, such as `2026-02-24T11:07-0800/2026-02-29`.
pub(super) fn parse_interval(text: &str) -> Option<SaleTime> {
    let text = text.trim();
    if text.is_empty() {
        return Some((None, None));
    }
    let (start, end) = text.split_once('/').or_else(|| text.split_once(" - "))?;
    parse_bounds(start, end)
}

/// Parses two bounds. A day without a time belongs to the sale; times without an offset are in UTC.
pub(super) fn parse_bounds(start: &str, end: &str) -> Option<SaleTime> {
    Some((parse_bound(start, false)?, parse_bound(end, true)?))
}

fn parse_bound(text: &str, is_end: bool) -> Option<Option<Timestamp>> {
    let text = text.trim();
    if text.is_empty() || text == ".." {
        return Some(None);
    }
    if let Some(day) = DAYS
        .iter()
        .find_map(|format| NaiveDate::parse_from_str(text, format).ok())
    {
        let day = if is_end {
            day.checked_add_days(Days::new(1))?
        } else {
            day
        };
        let midnight = day.and_hms_opt(0, 0, 0)?.and_utc();
        return Some(Some(Timestamp::from_micros(midnight.timestamp_micros())));
    }
    let text = with_separator(text);
    let with_offset = WITH_OFFSET.iter().find_map(|format| {
        DateTime::parse_from_str(&text, format)
            .ok()
            .map(|time| time.timestamp_micros())
    });
    let micros = with_offset.or_else(|| {
        WITHOUT_OFFSET.iter().find_map(|format| {
            NaiveDateTime::parse_from_str(&text, format)
                .ok()
                .map(|time| time.and_utc().timestamp_micros())
        })
    })?;
    Some(Some(Timestamp::from_micros(micros)))
}

/// Writes `T` between date and time and `+0000` for `Z`, without spaces.
fn with_separator(text: &str) -> String {
    let text = text.to_ascii_uppercase();
    let text = match text.strip_suffix('Z') {
        Some(text) => format!("{}+0000", text.trim_end()),
        None => text,
    };
    let mut words = text.split_whitespace();
    let first = words.next().unwrap_or_default().to_owned();
    words.enumerate().fold(first, |text, (index, word)| {
        let separator = if index == 0 && !text.contains('T') {
            "T"
        } else {
            ""
        };
        text + separator + word
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(rfc3339: &str) -> Option<Timestamp> {
        let time = DateTime::parse_from_rfc3339(rfc3339).unwrap();
        Some(Timestamp::from_micros(time.timestamp_micros()))
    }

    #[test]
    fn sale_intervals_of_feeds_are_parsed() {
        for (text, start, end) in [
            (
                "2026-02-24T11:07-0800/2026-02-25T23:59-0800",
                "2026-02-24T19:07:00Z",
                "2026-02-26T07:59:00Z",
            ),
            (
                "2026-02-24T11:07:09Z/2026-02-25T10:00:00Z",
                "2026-02-24T11:07:09Z",
                "2026-02-25T10:00:00Z",
            ),
            (
                "2026-02-24T11:07:09.5+01:00 / 2026-02-25T10:00",
                "2026-02-24T10:07:09.5Z",
                "2026-02-25T10:00:00Z",
            ),
            (
                "2026-02-24/2026-02-24",
                "2026-02-24T00:00:00Z",
                "2026-02-25T00:00:00Z",
            ),
            (
                "20260224T1107Z/20260225",
                "2026-02-24T11:07:00Z",
                "2026-02-26T00:00:00Z",
            ),
            (
                "2026-02-24 11:07 +0100/2026-02-25 10:00:00",
                "2026-02-24T10:07:00Z",
                "2026-02-25T10:00:00Z",
            ),
        ] {
            assert_eq!(
                parse_interval(text),
                Some((micros(start), micros(end))),
                "{text}"
            );
        }
        assert_eq!(
            parse_interval("2026-02-24/"),
            Some((micros("2026-02-24T00:00:00Z"), None))
        );
        assert_eq!(
            parse_interval("../2026-02-24"),
            Some((None, micros("2026-02-25T00:00:00Z")))
        );
        assert_eq!(
            parse_bounds("24.02.2026", ""),
            Some((micros("2026-02-24T00:00:00Z"), None))
        );
        for text in [
            "soon",
            "2026-02-30/2026-03-01",
            "2026-02-24",
            "2026-02-24/x",
        ] {
            assert_eq!(parse_interval(text), None, "{text}");
        }
    }
}
