//! Text of PDF documents. Scripts, actions and embedded files are not looked at.

mod content;
mod fonts;
mod layout;
mod unicode_map;

use lopdf::{Document, Error, LoadOptions};

use self::content::ContentReader;
use super::{BoundedText, PAGES_MAX, ReadFailure, ReadResult};

/// Largest unpacked size of one stream, in bytes.
const STREAM_BYTES_MAX: usize = 16 << 20;
/// Most pages that are counted.
const COUNTED_PAGES_MAX: usize = 100_000;
/// Bytes at the beginning that contain the mark of the format.
const MARK_BYTES_MAX: usize = 1024;
const MARK: &[u8] = b"%PDF-";

/// Reads the text of the first [`PAGES_MAX`] pages of a document.
pub(super) fn read(bytes: &[u8]) -> ReadResult {
    let beginning = &bytes[..bytes.len().min(MARK_BYTES_MAX)];
    if !beginning.windows(MARK.len()).any(|window| window == MARK) {
        return Err(ReadFailure::Damaged);
    }
    let options = LoadOptions::with_max_decompressed_size(STREAM_BYTES_MAX);
    let document = match Document::load_mem_with_options(bytes, options) {
        Ok(document) => document,
        Err(Error::InvalidPassword | Error::Decryption(_)) => return Err(ReadFailure::Protected),
        Err(_) => return Err(ReadFailure::Damaged),
    };
    // Documents without a password for reading are decrypted by now.
    if document.is_encrypted() {
        return Err(ReadFailure::Protected);
    }
    let pages = document.page_iter().take(COUNTED_PAGES_MAX).count();
    if pages == 0 {
        return Err(ReadFailure::Damaged);
    }
    let mut text = BoundedText::default();
    let mut reader = ContentReader::new(&document);
    for (page, number) in document.page_iter().take(PAGES_MAX).zip(1..) {
        let page = reader.read_page(page);
        if page.trim().is_empty() {
            continue;
        }
        if pages > 1 {
            text.end_line();
            text.push(&format!("[Page {number}]\n"));
        }
        text.push(page.trim());
        if text.is_cut {
            break;
        }
    }
    text.is_cut |= pages > PAGES_MAX || reader.is_exhausted();
    text.finish(u32::try_from(pages).ok(), ReadFailure::NoText)
}
