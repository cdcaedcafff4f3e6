//! Reasons why a file could not be read, each with the sentence that the model receives.

use serde::{Deserialize, Serialize};

use super::FileReading;

/// The reason why a file could not be read. A child process reports the reason by name, so that
/// no text of a hostile file can pose as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ReadFailure {
    /// The file has no bytes, or no characters that people see.
    Empty,
    /// Opening the file needs a password.
    Protected,
    /// The document has pages but no text.
    NoText,
    /// The content is not what the type of the file promises, or is incomplete.
    Damaged,
    /// The text is not in UTF-8.
    NotText,
    /// The picture has too many pixels.
    PictureTooLarge,
    /// The unpacked content is above a bound.
    TooLarge,
    /// Reading failed, needed too much memory or took too long.
    TooComplex,
}

impl ReadFailure {
    /// Returns the sentence that a model can pass on to a visitor.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Empty => "The file is empty.",
            Self::Protected => {
                "The file is protected with a password, so its text could not be read."
            }
            Self::NoText => {
                "The document has no text (it may be scanned), so nothing could be read from it."
            }
            Self::Damaged => {
                "The file is damaged or incomplete, or it is not of the type that it claims to be."
            }
            Self::NotText => "The file is not text in UTF-8, so it could not be read.",
            Self::PictureTooLarge => "The picture has too many pixels, so it could not be shown.",
            Self::TooLarge => "The content of the file is too large when it is unpacked.",
            Self::TooComplex => "The file could not be read: it is too complex or damaged.",
        }
    }

    /// Returns the reading of a file that failed.
    pub(super) const fn into_reading(self) -> FileReading {
        FileReading::Unreadable { failure: self }
    }
}
