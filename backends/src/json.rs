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

/// Parses stored values on a thread for blocking work, because long lists take long.
///
/// # Errors
/// Those of [`decode`]; [`StoreError::Unavailable`] at shutdown.
pub(crate) async fn decode_all<T: DeserializeOwned + Send + 'static>(
    texts: Vec<String>,
) -> Result<Vec<T>, StoreError> {
    let parse = move || texts.iter().map(|text| decode(text)).collect();
    let parsed = tokio::task::spawn_blocking(parse).await;
    parsed.map_err(|error| StoreError::Unavailable(error.to_string()))?
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
