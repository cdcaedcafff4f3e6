//! Reads from a refusal for how long its provider asks to wait.
//!
//! Forms, the first that is readable counts: `retry-after-ms` and `x-ms-retry-after-ms` (OpenAI,
//! Azure), `Retry-After` in seconds or as a date (RFC 9110), `RetryInfo.retryDelay` in the body
//! (Gemini), "try again in 1.5s" in the message (OpenAI, Groq), and for exhausted limits the reset
//! time of `x-ratelimit-reset…` as a duration (`6m0s`) or as a point in time (OpenRouter).

use std::time::{Duration, UNIX_EPOCH};

use http::{HeaderMap, header};
use serde_json::Value;
use switchboard_schemas::time::Timestamp;

/// Longest pause that is believed.
const PAUSE_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Numbers above this are points in time: seconds, or milliseconds if they are larger still.
const EPOCH_SECONDS_MIN: f64 = 1e9;
const EPOCH_MILLIS_MIN: f64 = 1e12;
/// Headers with the time until a limit is reset, and with what is left of it. The longest time of
/// those that are used up counts.
const RESET_HEADERS: [(&str, &str); 4] = [
    (
        "x-ratelimit-reset-requests",
        "x-ratelimit-remaining-requests",
    ),
    ("x-ratelimit-reset-tokens", "x-ratelimit-remaining-tokens"),
    ("x-ratelimit-reset", "x-ratelimit-remaining"),
    ("ratelimit-reset", "ratelimit-remaining"),
];
/// Words before a duration in messages.
const MESSAGE_PHRASES: [&str; 7] = [
    "try again in about ",
    "retry in about ",
    "try again in ",
    "try again after ",
    "retry in ",
    "retry after ",
    "wait ",
];

/// Returns the pause that the headers ask for, at the time `now`.
pub(super) fn pause_of_headers(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| {
        let value = headers.get(name)?.to_str().ok()?;
        Some(value.trim().trim_matches('"'))
    };
    let millis = ["retry-after-ms", "x-ms-retry-after-ms"]
        .into_iter()
        .find_map(|name| text(name)?.parse::<f64>().ok())
        .and_then(|millis| bounded_seconds(millis / 1_000.0));
    let asked = millis.or_else(|| {
        let value = text(header::RETRY_AFTER.as_str())?;
        // The provider's own clock, if it is sent, is the one that the date belongs to.
        let sent = text(header::DATE.as_str()).and_then(parse_date);
        let until = parse_date(value).map(|date| pause_until(date, sent.unwrap_or(now)));
        until.or_else(|| parse_duration(value, now))
    });
    asked.or_else(|| {
        let used_up = |(reset, left)| text(left).is_none_or(|left| left == "0").then_some(reset);
        let resets = RESET_HEADERS.into_iter().filter_map(used_up);
        resets
            .filter_map(|name| parse_moment(text(name)?, now))
            .max()
            .or_else(|| used_up_limit(text("ratelimit")?))
    })
}

/// Returns the pause of `"default";r=0;t=3`, if nothing is left.
fn used_up_limit(value: &str) -> Option<Duration> {
    let field = |name: &str| {
        let mut fields = value.split([';', ',']);
        fields.find_map(|field| field.trim().strip_prefix(name)?.parse::<f64>().ok())
    };
    (field("r=")? == 0.0)
        .then(|| bounded_seconds(field("t=")?))
        .flatten()
}

/// Parses a date or a duration.
fn parse_moment(text: &str, now: Timestamp) -> Option<Duration> {
    let until = parse_date(text).map(|date| pause_until(date, now));
    until.or_else(|| parse_duration(text, now))
}

/// Returns the pause that the body of a refusal asks for.
pub(super) fn pause_of_body(error: &Value, message: &str, now: Timestamp) -> Option<Duration> {
    let details = error["details"].as_array().into_iter().flatten();
    let asked = details
        .filter_map(|detail| detail["retryDelay"].as_str())
        .find_map(|delay| parse_duration(delay, now))
        .or_else(|| bounded_seconds(error["retry_after"].as_f64()?));
    let named = || {
        let headers = &error["metadata"]["headers"];
        ["Retry-After", "retry-after", "X-RateLimit-Reset"]
            .into_iter()
            .find_map(|name| parse_moment(headers[name].as_str()?, now))
    };
    asked.or_else(named).or_else(|| {
        let message = message.to_lowercase();
        MESSAGE_PHRASES.iter().find_map(|phrase| {
            let (_, rest) = message.split_once(phrase)?;
            parse_duration(rest, now)
        })
    })
}

/// Parses a date as HTTP or ISO 8601 write it.
fn parse_date(text: &str) -> Option<Timestamp> {
    if let Ok(date) = serde_json::from_value(Value::from(text)) {
        return Some(date);
    }
    let zone = ["UTC", "+0000"]
        .into_iter()
        .find_map(|zone| text.strip_suffix(zone));
    let text = zone.map_or_else(|| text.to_owned(), |date| format!("{date}GMT"));
    let date = httpdate::parse_http_date(&text).ok()?;
    let since_epoch = date.duration_since(UNIX_EPOCH).ok()?;
    Some(Timestamp::from_micros(0).after(since_epoch))
}

fn pause_until(date: Timestamp, now: Timestamp) -> Duration {
    Duration::from_millis(date.millis_since(now)).min(PAUSE_MAX)
}

/// Parses the beginning of a text as `1.5`, `20s`, `6m0s`, `120ms`, `2 seconds` or a point in time.
fn parse_duration(text: &str, now: Timestamp) -> Option<Duration> {
    let (mut seconds, mut found, mut rest) = (0.0, false, text.trim_start());
    loop {
        let digits = rest
            .find(|character: char| !character.is_ascii_digit() && character != '.')
            .unwrap_or(rest.len());
        let Ok(number) = rest[..digits].trim_end_matches('.').parse::<f64>() else {
            break;
        };
        rest = rest[digits..].trim_start();
        let letters = rest
            .find(|character: char| !character.is_ascii_alphabetic())
            .unwrap_or(rest.len());
        let unit = match &rest[..letters] {
            "ms" | "milliseconds" => 0.001,
            "m" | "min" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3_600.0,
            "d" | "day" | "days" => 86_400.0,
            _ => 1.0,
        };
        rest = &rest[letters..];
        if !found && number >= EPOCH_SECONDS_MIN {
            let epoch = if number >= EPOCH_MILLIS_MIN {
                number / 1_000.0
            } else {
                number
            };
            let since_epoch = Duration::try_from_secs_f64(epoch).ok()?;
            let date = Timestamp::from_micros(0).after(since_epoch);
            return Some(pause_until(date, now));
        }
        seconds += number * unit;
        found = true;
    }
    found.then(|| bounded_seconds(seconds)).flatten()
}

fn bounded_seconds(seconds: f64) -> Option<Duration> {
    let pause = Duration::try_from_secs_f64(seconds).ok()?;
    Some(pause.min(PAUSE_MAX))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        parse_date("Wed, 25 Nov 2026 10:00:00 GMT").unwrap()
    }

    fn of_header(name: &'static str, value: &str) -> Option<f64> {
        let headers = HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())]);
        pause_of_headers(&headers, now()).map(|pause| pause.as_secs_f64())
    }

    #[test]
    fn all_usual_headers_are_read() {
        for (name, value, want) in [
            ("retry-after", "3", Some(3.0)),
            ("retry-after", "1.5", Some(1.5)),
            ("retry-after", "Wed, 25 Nov 2026 10:00:07 GMT", Some(7.0)),
            ("retry-after", "Wed, 25 Nov 2026 09:00:00 GMT", Some(0.0)),
            ("retry-after", "20s", Some(20.0)),
            ("retry-after", "2026-11-25T10:00:03Z", Some(3.0)),
            ("retry-after", "Wed, 25 Nov 2026 10:00:04 +0000", Some(4.0)),
            ("retry-after", "\"5\"", Some(5.0)),
            ("ratelimit", "\"default\";r=0;t=6", Some(6.0)),
            ("ratelimit", "\"default\";r=3;t=6", None),
            ("retry-after", "soon", None),
            ("retry-after", "-1", None),
            ("retry-after-ms", "250", Some(0.25)),
            ("x-ms-retry-after-ms", "1500", Some(1.5)),
            ("x-ratelimit-reset-tokens", "6m0s", Some(360.0)),
            ("x-ratelimit-reset-requests", "120ms", Some(0.12)),
            ("x-ratelimit-reset", "1795600810", Some(10.0)),
            ("x-ratelimit-reset", "1795600810000", Some(10.0)),
            ("retry-after", "99999999", Some(86_400.0)),
        ] {
            assert_eq!(of_header(name, value), want, "{name}: {value}");
        }
    }

    #[test]
    fn limits_with_something_left_are_not_waited_for() {
        let headers = [
            ("x-ratelimit-reset-requests", "2s"),
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-reset-tokens", "5m0s"),
            ("x-ratelimit-remaining-tokens", "1200"),
        ];
        let headers = headers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let pause = pause_of_headers(&HeaderMap::from_iter(headers), now());
        assert_eq!(pause, Some(Duration::from_secs(2)));
    }

    #[test]
    fn date_is_compared_with_the_clock_of_the_provider() {
        let headers = HeaderMap::from_iter([
            (
                header::DATE,
                "Wed, 25 Nov 2026 08:00:00 GMT".parse().unwrap(),
            ),
            (
                header::RETRY_AFTER,
                "Wed, 25 Nov 2026 08:00:05 GMT".parse().unwrap(),
            ),
        ]);
        let pause = pause_of_headers(&headers, now());
        assert_eq!(pause, Some(Duration::from_secs(5)));
    }

    #[test]
    fn body_may_ask_for_a_pause() {
        let gemini = json!({"details": [{"@type": "x"}, {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}]});
        assert_eq!(
            pause_of_body(&gemini, "", now()),
            Some(Duration::from_secs(34))
        );
        let said = |message| pause_of_body(&Value::Null, message, now());
        assert_eq!(
            said("Rate limit reached. Please try again in 1m2.5s. Visit us"),
            Some(Duration::from_millis(62_500))
        );
        assert_eq!(
            said("Retry in about 3 seconds."),
            Some(Duration::from_secs(3))
        );
        assert_eq!(said("Please try again later"), None);
    }
}
