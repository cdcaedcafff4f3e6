//! Files that visitors and programs send with their messages.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::FileId;

/// Most files that one message may have.
pub const ATTACHMENTS_MAX: usize = 5;
/// Largest file that any agent can accept, in bytes.
pub const FILE_BYTES_MAX: u32 = 25_000_000;
/// Longest name of a file, in bytes.
pub const FILE_NAME_BYTES_MAX: usize = 255;

/// A file of a message, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Attachment {
    /// Id of the file.
    pub file_id: FileId,
    /// Name that the sender gave the file, without a path. Personal data.
    pub name: String,
    /// Type of the file, which its content was checked against.
    pub mime_type: FileType,
    /// Size of the file.
    pub bytes: u64,
}

/// A type of files that agents can accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
pub enum FileType {
    /// Portable Network Graphics.
    #[serde(rename = "image/png")]
    Png,
    /// JPEG picture.
    #[serde(rename = "image/jpeg")]
    Jpeg,
    /// WebP picture.
    #[serde(rename = "image/webp")]
    Webp,
    /// GIF picture.
    #[serde(rename = "image/gif")]
    Gif,
    /// Text in UTF-8.
    #[serde(rename = "text/plain")]
    Text,
    /// Markdown in UTF-8.
    #[serde(rename = "text/markdown")]
    Markdown,
    /// Table as text in UTF-8.
    #[serde(rename = "text/csv")]
    Csv,
    /// JSON document.
    #[serde(rename = "application/json")]
    Json,
    /// PDF document.
    #[serde(rename = "application/pdf")]
    Pdf,
    /// Word document without macros.
    #[serde(rename = "application/vnd.openxmlformats-officedocument.wordprocessingml.document")]
    Docx,
    /// Excel workbook without macros.
    #[serde(rename = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet")]
    Xlsx,
}

/// The reason why a text is not a type of files.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not a type of files that agents accept")]
pub struct UnknownFileType;

impl FileType {
    /// All types, in the order in which people read them.
    pub const ALL: [Self; 11] = [
        Self::Png,
        Self::Jpeg,
        Self::Webp,
        Self::Gif,
        Self::Text,
        Self::Markdown,
        Self::Csv,
        Self::Json,
        Self::Pdf,
        Self::Docx,
        Self::Xlsx,
    ];

    /// Returns the media type.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Webp => "image/webp",
            Self::Gif => "image/gif",
            Self::Text => "text/plain",
            Self::Markdown => "text/markdown",
            Self::Csv => "text/csv",
            Self::Json => "application/json",
            Self::Pdf => "application/pdf",
            Self::Docx => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            Self::Xlsx => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        }
    }

    /// Returns the endings of file names, without the dot and in lower case.
    #[must_use]
    pub const fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::Png => &["png"],
            Self::Jpeg => &["jpg", "jpeg", "jpe", "jfif"],
            Self::Webp => &["webp"],
            Self::Gif => &["gif"],
            Self::Text => &["txt", "text", "log"],
            Self::Markdown => &["md", "markdown"],
            Self::Csv => &["csv", "tsv"],
            Self::Json => &["json"],
            Self::Pdf => &["pdf"],
            Self::Docx => &["docx"],
            Self::Xlsx => &["xlsx"],
        }
    }

    /// Returns `true` for pictures.
    #[must_use]
    pub const fn is_image(self) -> bool {
        matches!(self, Self::Png | Self::Jpeg | Self::Webp | Self::Gif)
    }

    /// Returns `true` for types whose content is text in UTF-8.
    #[must_use]
    pub const fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::Markdown | Self::Csv | Self::Json)
    }
}

impl FromStr for FileType {
    type Err = UnknownFileType;

    fn from_str(text: &str) -> Result<Self, UnknownFileType> {
        let named = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        named.ok_or(UnknownFileType)
    }
}

impl fmt::Display for FileType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The files that visitors may send to an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FileSettings {
    /// Size of the largest file, in bytes.
    #[schema(minimum = 1, maximum = 25_000_000)]
    pub max_bytes: u32,
    /// Types of files, without repeats.
    #[schema(min_items = 1, max_items = 11)]
    pub types: Vec<FileType>,
}

impl Default for FileSettings {
    fn default() -> Self {
        Self {
            max_bytes: 10_000_000,
            types: FileType::ALL.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_is_read_as_it_is_written() {
        for kind in FileType::ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
            let json = serde_json::to_value(kind).unwrap();
            assert_eq!(json, kind.as_str());
        }
        assert_eq!("image/svg+xml".parse::<FileType>(), Err(UnknownFileType));
    }
}
