//! Points in time: microseconds since the Unix epoch in memory, RFC 3339 in UTC as text.

use std::{borrow::Cow, fmt, time::Duration};

use chrono::{DateTime, SecondsFormat, Utc};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{KnownFormat, ObjectBuilder, RefOr, SchemaFormat, schema},
};

/// A point in time, in microseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Returns the wall-clock time of this process.
    pub fn now() -> Self {
        Self(Utc::now().timestamp_micros())
    }

    /// Creates a point in time from microseconds since the Unix epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Returns microseconds since the Unix epoch.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Returns the point in time after `wait`, capped at the latest one.
    pub fn after(self, wait: Duration) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(wait.as_micros()).unwrap_or(i64::MAX)),
        )
    }

    /// Returns the milliseconds from `earlier` to this, or zero if `earlier` is later.
    pub fn millis_since(self, earlier: Self) -> u64 {
        u64::try_from((self.0 - earlier.0) / 1000).unwrap_or(0)
    }
}

/// Returns a duration in whole milliseconds, capped at `u64::MAX`.
pub fn whole_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let date = DateTime::<Utc>::from_timestamp_micros(self.0).unwrap_or_default();
        formatter.write_str(&date.to_rfc3339_opts(SecondsFormat::Micros, true))
    }
}

/// Serializes with microseconds, so that a record that is read and written again stays the same.
impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        let date = DateTime::parse_from_rfc3339(&text).map_err(D::Error::custom)?;
        Ok(Self(date.timestamp_micros()))
    }
}

impl ToSchema for Timestamp {}

impl PartialSchema for Timestamp {
    fn schema() -> RefOr<schema::Schema> {
        ObjectBuilder::new()
            .schema_type(schema::Type::String)
            .description(Some("A point in time, RFC 3339 in UTC with microseconds."))
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .examples(["2026-03-14T09:26:53.589793Z"])
            .into()
    }
}

impl JsonSchema for Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamp_round_trips_through_text() {
        let now = Timestamp::now();
        let text = serde_json::to_string(&now).unwrap();
        assert_eq!(serde_json::from_str::<Timestamp>(&text).unwrap(), now);
        assert!(text.ends_with("Z\""));
    }

    #[test]
    fn clock_that_went_back_gives_no_negative_duration() {
        assert_eq!(
            Timestamp::from_micros(0).millis_since(Timestamp::from_micros(5000)),
            0
        );
    }
}
