//! Names of versions, unique and sorted by the time of their creation.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};
use switchboard_schemas::time::Timestamp;

/// Number of hexadecimal digits of the time.
const MOMENT_DIGITS: usize = 16;

/// A version of an agent's products.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProductsVersion(String);

impl ProductsVersion {
    /// Creates a version of this moment.
    pub fn begin() -> Self {
        Self::begun_at(Timestamp::now())
    }

    /// Returns the stored text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn begun_at(moment: Timestamp) -> Self {
        Self(format!(
            "{:016x}{:016x}",
            moment.micros(),
            rand::random::<u64>()
        ))
    }

    pub(super) fn from_kept(text: String) -> Self {
        Self(text)
    }

    /// Returns `true` if the version is so old that no upload can still be writing it.
    pub(super) fn is_older_than(&self, age: Duration, now: Timestamp) -> bool {
        let moment = self
            .0
            .get(..MOMENT_DIGITS)
            .and_then(|digits| i64::from_str_radix(digits, 16).ok());
        Timestamp::from_micros(moment.unwrap_or_default()).after(age) < now
    }
}

impl fmt::Display for ProductsVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
