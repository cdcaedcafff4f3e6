//! Files of visitors as a model takes them: pictures without metadata, and texts.
//!
//! Reading order: [`FileReader`] starts a child process for each file; [`child`] is the part that
//! runs in it; [`read_document`] chooses the reader of a type; [`frame`] carries the result back.
//! The content of a file is hostile until the opposite is known, so that every reader has bounds
//! and no reader follows a reference out of the file.

mod archive;
pub mod child;
mod docx;
mod failure;
mod frame;
mod markup;
mod pdf;
mod picture;
mod plain_text;
mod reader;
#[cfg(test)]
mod tests;
mod workbook;

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use switchboard_schemas::file::FileType;

use self::picture::PictureFormat;
pub use self::{
    failure::ReadFailure,
    reader::{FileReader, ReadPermit, ReaderPlace},
};

/// Longest text that is taken out of a file, in bytes.
pub const TEXT_BYTES_MAX: usize = 256 << 10;
/// Most pages of a document that are read.
pub(crate) const PAGES_MAX: usize = 100;

/// The content of a file for a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileReading {
    /// A picture: upright, at most 2048 px on its longer side, without metadata.
    Image {
        /// `image/jpeg` or `image/png`.
        mime_type: &'static str,
        /// The encoded picture.
        bytes: Bytes,
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
    },
    /// A text of at most [`TEXT_BYTES_MAX`] bytes.
    Text {
        /// The text, with no control characters but line feeds and tabs.
        text: String,
        /// The file has more than the text.
        is_cut: bool,
        /// Pages of the document, if it has pages.
        pages: Option<u32>,
    },
    /// A file that could not be read.
    Unreadable {
        /// The reason.
        failure: ReadFailure,
    },
}

impl FileReading {
    /// Returns the form in which a reading is kept.
    pub(crate) fn to_frame(&self) -> Vec<u8> {
        match self {
            Self::Unreadable { failure } => frame::encode(&Err(*failure)),
            reading => frame::encode(&Ok(reading.clone())),
        }
    }

    /// Returns a kept reading; `None` if it was kept by another version.
    pub(crate) fn from_frame(frame: &[u8]) -> Option<Self> {
        frame::decode(frame)
    }
}

/// A picture or a text, or the reason why there is none.
type ReadResult = Result<FileReading, ReadFailure>;

/// Returns the content of a file. Bounds memory and time only roughly: call it in a process of its
/// own.
pub(crate) fn read_document(kind: FileType, bytes: &[u8]) -> FileReading {
    read_checked(kind, bytes).unwrap_or_else(ReadFailure::into_reading)
}

/// Returns the content of a file. A reader that panics fails.
fn read_checked(kind: FileType, bytes: &[u8]) -> ReadResult {
    if bytes.is_empty() {
        return Err(ReadFailure::Empty);
    }
    let read = AssertUnwindSafe(|| match kind {
        FileType::Png => picture::read(PictureFormat::Png, bytes),
        FileType::Jpeg => picture::read(PictureFormat::Jpeg, bytes),
        FileType::Webp => picture::read(PictureFormat::WebP, bytes),
        FileType::Gif => picture::read(PictureFormat::Gif, bytes),
        FileType::Text | FileType::Markdown | FileType::Csv | FileType::Json => {
            plain_text::read(bytes)
        }
        FileType::Pdf => pdf::read(bytes),
        FileType::Docx => docx::read(bytes),
        FileType::Xlsx => workbook::read(bytes),
    });
    catch_unwind(read).unwrap_or(Err(ReadFailure::TooComplex))
}

/// A text that grows up to [`TEXT_BYTES_MAX`] bytes.
#[derive(Default)]
struct BoundedText {
    text: String,
    is_cut: bool,
}

impl BoundedText {
    /// Appends a piece, or its beginning if the rest has no room.
    fn push(&mut self, piece: &str) {
        if self.is_cut {
            return;
        }
        let room = TEXT_BYTES_MAX - self.text.len();
        if piece.len() > room {
            self.is_cut = true;
        }
        self.text
            .push_str(&piece[..piece.floor_char_boundary(room)]);
    }

    /// Removes spaces and tabs at the end.
    fn trim_end(&mut self) {
        let length = self.text.trim_end_matches([' ', '\t']).len();
        self.text.truncate(length);
    }

    /// Ends the line, if there is one.
    fn end_line(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.push("\n");
        }
    }

    /// Returns the reading, or `failure` if there is no text.
    fn finish(self, pages: Option<u32>, failure: ReadFailure) -> ReadResult {
        let text = plain_text::without_hidden_characters(&self.text);
        if text.trim().is_empty() {
            return Err(failure);
        }
        Ok(FileReading::Text {
            text,
            is_cut: self.is_cut,
            pages,
        })
    }
}
