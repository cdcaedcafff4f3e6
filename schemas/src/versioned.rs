//! Schema versions of records. A record is written in the lowest version that can express it, and
//! every version ever written can be read.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// A JSON record of a topic.
pub trait TopicRecord: Serialize + DeserializeOwned {
    /// Newest version, up to which records are read.
    const VERSION: u32;

    /// Returns the lowest version that can express this record, in which it is written. A reader of
    /// an older version then parks only records that it cannot understand.
    fn version(&self) -> u32 {
        Self::VERSION
    }
}

/// The reason why bytes are not a valid record.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The bytes are not JSON of the expected shape. The message names fields, never values.
    #[error("malformed record: {0}")]
    Malformed(String),
    /// The record was written by a newer version. It is parked and retried, not dropped.
    #[error("record of unknown version {0}")]
    UnknownVersion(u32),
}

#[derive(Serialize)]
struct VersionedRecord<'a, T> {
    version: u32,
    #[serde(flatten)]
    record: &'a T,
}

#[derive(Deserialize)]
struct VersionOnly {
    version: u32,
}

/// Serializes the record with its version.
pub fn encode<T: TopicRecord>(record: &T) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&VersionedRecord {
        version: record.version(),
        record,
    })
}

/// Parses a record of any version up to the newest. Unknown fields are ignored.
pub fn decode<T: TopicRecord>(bytes: &[u8]) -> Result<T, DecodeError> {
    let VersionOnly { version } =
        serde_json::from_slice(bytes).map_err(|error| malformed(&error))?;
    // Version 0 was never written, so parking such a record would be pointless.
    if version == 0 {
        return Err(DecodeError::Malformed("version 0".to_owned()));
    }
    if version > T::VERSION {
        return Err(DecodeError::UnknownVersion(version));
    }
    serde_json::from_slice(bytes).map_err(|error| malformed(&error))
}

/// Reports kind and position only, because serde's own message can quote text of a visitor.
fn malformed(error: &serde_json::Error) -> DecodeError {
    DecodeError::Malformed(format!(
        "{:?} error at line {} column {}",
        error.classify(),
        error.line(),
        error.column()
    ))
}
