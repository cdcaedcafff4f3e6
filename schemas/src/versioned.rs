//! How a record says which version of its schema it has: written in the lowest that can say it, read in every one that was
//! ever written.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// A JSON record of a topic.
pub trait TopicRecord: Serialize + DeserializeOwned {
    /// Newest version, up to which records are read.
    const VERSION: u32;

    /// The lowest version that can say what this record says, in which it is written: whoever knows no newer one puts aside
    /// only what it could not understand.
    fn version(&self) -> u32 {
        Self::VERSION
    }
}

/// Why bytes are not a record.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// No JSON, or not of this shape. The text of the error names fields, never values.
    #[error("malformed record: {0}")]
    Malformed(String),
    /// Written by a newer program: to be parked and tried again, not thrown away.
    #[error("record of unknown version {0}")]
    UnknownVersion(u32),
}

#[derive(Serialize)]
struct Outgoing<'a, T> {
    version: u32,
    #[serde(flatten)]
    record: &'a T,
}

#[derive(Deserialize)]
struct VersionOnly {
    version: u32,
}

/// The record as JSON, with its version.
pub fn encode<T: TopicRecord>(record: &T) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&Outgoing {
        version: record.version(),
        record,
    })
}

/// Reads a record of any version up to the newest; unknown fields are ignored.
pub fn decode<T: TopicRecord>(bytes: &[u8]) -> Result<T, DecodeError> {
    let VersionOnly { version } =
        serde_json::from_slice(bytes).map_err(|error| malformed(&error))?;
    // No program ever wrote it, so that waiting for one that reads it would be for ever.
    if version == 0 {
        return Err(DecodeError::Malformed("version 0".to_owned()));
    }
    if version > T::VERSION {
        return Err(DecodeError::UnknownVersion(version));
    }
    serde_json::from_slice(bytes).map_err(|error| malformed(&error))
}

/// The kind and place of the mistake only: serde's own text can quote what a visitor wrote.
fn malformed(error: &serde_json::Error) -> DecodeError {
    DecodeError::Malformed(format!(
        "{:?} error at line {} column {}",
        error.classify(),
        error.line(),
        error.column()
    ))
}
