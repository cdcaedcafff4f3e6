//! The JSON codec of stored values.

use serde::{Serialize, de::DeserializeOwned};

use crate::error::StoreError;

/// Serializes a value for storage.
pub(crate) fn encode(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| malformed(&error))
}

/// Parses a stored value. Unknown fields, written by a newer version, are ignored.
pub(crate) fn decode<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| malformed(&error))
}

/// Reports kind and position only, because serde's own message can quote text of a visitor.
pub(crate) fn malformed(error: &serde_json::Error) -> StoreError {
    StoreError::Malformed(format!(
        "{:?} error at line {} column {}",
        error.classify(),
        error.line(),
        error.column()
    ))
}
