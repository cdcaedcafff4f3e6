//! Checks that the content of a file is what it is sent as: texts by being UTF-8 without NUL while
//! they arrive, the others by their first bytes, and Office documents by what is packed in them.

use std::io::Cursor;

use switchboard_schemas::file::FileType;
use zip::ZipArchive;

use super::claims::refused;
use crate::http::ApiResult;

/// Bytes at the beginning by which a type is recognized.
const HEAD_BYTES: usize = 8192;
const TEXT_RULE: &str = "the content is not text in UTF-8";
const OTHER_CONTENT: &str = "the content is not what the ending of the file says";
/// Beginning of a PDF. The library finds it behind other content too.
const PDF_MARK: &[u8] = b"%PDF-";
/// Mark of a directory with more entries than 16 bits count, which no Office program writes.
const ZIP64_MARK: &[u8] = b"PK\x06\x06";
/// Beginning of the older container, in which Office encrypts documents.
const OLE_MARK: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";

/// The check of one file, as its bytes arrive.
pub(super) struct ContentCheck {
    kind: FileType,
    head: Vec<u8>,
    is_head_checked: bool,
    /// Bytes of a character whose end has not arrived.
    cut: Vec<u8>,
}

impl ContentCheck {
    pub(super) const fn new(kind: FileType) -> Self {
        Self {
            kind,
            head: Vec::new(),
            is_head_checked: false,
            cut: Vec::new(),
        }
    }

    /// Checks the next bytes.
    ///
    /// # Errors
    /// 415 as soon as the content cannot be of its type.
    pub(super) fn push(&mut self, part: &[u8]) -> ApiResult<()> {
        if !self.is_head_checked {
            let missing = HEAD_BYTES - self.head.len();
            self.head
                .extend_from_slice(&part[..part.len().min(missing)]);
            if self.head.len() == HEAD_BYTES {
                self.check_head()?;
            }
        }
        if self.kind.is_text() {
            self.check_text(part)?;
        }
        Ok(())
    }

    /// Checks the end of the content.
    ///
    /// # Errors
    /// 415, as for [`Self::push`].
    pub(super) fn finish(&mut self) -> ApiResult<()> {
        if !self.is_head_checked {
            self.check_head()?;
        }
        if self.cut.is_empty() {
            Ok(())
        } else {
            Err(refused(TEXT_RULE))
        }
    }

    fn check_head(&mut self) -> ApiResult<()> {
        self.is_head_checked = true;
        let is_claimed = match self.kind {
            FileType::Docx | FileType::Xlsx => {
                self.head.starts_with(b"PK\x03\x04") || self.head.starts_with(OLE_MARK)
            }
            FileType::Pdf => self.head.starts_with(PDF_MARK),
            // The marks of most binary types are short words that texts begin with too.
            kind if kind.is_text() => !self.head.starts_with(PDF_MARK),
            kind => infer::get(&self.head).is_some_and(|found| found.mime_type() == kind.as_str()),
        };
        if is_claimed {
            Ok(())
        } else {
            Err(refused(OTHER_CONTENT))
        }
    }

    fn check_text(&mut self, part: &[u8]) -> ApiResult<()> {
        self.cut.extend_from_slice(part);
        let kept = match str::from_utf8(&self.cut) {
            Ok(_) => self.cut.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => return Err(refused(TEXT_RULE)),
        };
        if self.cut[..kept].contains(&0) {
            return Err(refused(TEXT_RULE));
        }
        self.cut.drain(..kept);
        Ok(())
    }
}

/// Checks the directory of an Office document, whose beginning says only that it is packed. A
/// document that is encrypted, or too damaged to tell, passes: it is stored, and its reader says
/// why it cannot be read.
///
/// # Errors
/// 415 for another kind of archive or document, and for macros.
pub(super) fn check_office(kind: FileType, content: &[u8]) -> ApiResult<()> {
    if content.starts_with(OLE_MARK) {
        let name: Vec<u8> = "EncryptedPackage"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        let is_encrypted = content.windows(name.len()).any(|part| part == name);
        return if is_encrypted {
            Ok(())
        } else {
            Err(refused(OTHER_CONTENT))
        };
    }
    let (main, other) = match kind {
        FileType::Docx => ("word/document.xml", "word/"),
        _ => ("xl/workbook.xml", "xl/"),
    };
    if content
        .windows(ZIP64_MARK.len())
        .any(|part| part == ZIP64_MARK)
    {
        return Err(refused(OTHER_CONTENT));
    }
    let Ok(archive) = ZipArchive::new(Cursor::new(content)) else {
        // Without a directory the names in front of the packed parts are left.
        let is_claimed = content
            .windows(other.len())
            .any(|part| part == other.as_bytes());
        return if is_claimed {
            Ok(())
        } else {
            Err(refused(OTHER_CONTENT))
        };
    };
    let names: Vec<_> = archive.file_names().filter_map(Result::ok).collect();
    if !names.iter().any(|name| name == main) {
        return Err(refused(OTHER_CONTENT));
    }
    let is_macro = |name: &str| name.to_ascii_lowercase().ends_with("vbaproject.bin");
    if names.iter().any(|name| is_macro(name)) {
        return Err(refused("documents with macros are not accepted"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::{ZipWriter, write::SimpleFileOptions};

    use super::*;

    fn is_accepted(kind: FileType, content: &[u8], step: usize) -> bool {
        let mut check = ContentCheck::new(kind);
        let mut parts = content.chunks(step);
        parts.all(|part| check.push(part).is_ok()) && check.finish().is_ok()
    }

    fn packed(names: &[&str]) -> Vec<u8> {
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        for name in names {
            archive
                .start_file(*name, SimpleFileOptions::default())
                .unwrap();
            archive.write_all(b"<x/>").unwrap();
        }
        archive.finish().unwrap().into_inner()
    }

    #[test]
    fn content_must_be_what_it_is_sent_as() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
        for (kind, content, expected) in [
            (FileType::Png, &png[..], true),
            (FileType::Jpeg, png, false),
            (FileType::Png, b"<svg onload=alert(1)>", false),
            (FileType::Gif, b"GIF89a/*=alert(1)//", true),
            (FileType::Webp, b"RIFF\x04\0\0\0WEBPVP8 ", true),
            (FileType::Webp, b"RIFF\x04\0\0\0WAVEfmt ", false),
            (FileType::Pdf, b"%PDF-1.7", true),
            (FileType::Pdf, b"<html>%PDF-1.7", false),
            (FileType::Text, "Grüße 👋\u{1b}[31m".as_bytes(), true),
            (FileType::Text, b"\xef\xbb\xbfBOM", true),
            (FileType::Text, b"<!DOCTYPE html><script>", true),
            (FileType::Text, b"%PDF-1.7", false),
            (FileType::Text, b"#!/bin/sh", true),
            (FileType::Csv, b"BMI;22,4", true),
            (FileType::Text, b"BMW or MINI", true),
            (FileType::Text, b"MZ is the mark of a program", true),
            (FileType::Markdown, b"SQLite is a library", true),
            (FileType::Text, b"GIFs are allowed", true),
            (FileType::Text, b"GIF89a is a format", true),
            (FileType::Csv, b"ID3,name", true),
            (FileType::Text, b"%!", true),
            (FileType::Text, b"MZ\x90\0\x03", false),
            (FileType::Text, b"BM\x36\0\0\0", false),
            (FileType::Csv, b"a;b\n1,00 \xe4", false),
            (FileType::Csv, b"a\0b", false),
            (FileType::Csv, b"\xff\xfea\0;\0", false),
            (FileType::Json, b"\xed\xa0\x80", false),
            (FileType::Markdown, b"ends in a character \xf0\x9f", false),
            (FileType::Docx, b"PK\x03\x04", true),
            (FileType::Docx, b"PK\x05\x06", false),
        ] {
            for step in [1, 3, 8192] {
                assert_eq!(
                    is_accepted(kind, content, step),
                    expected,
                    "{kind} {content:?}"
                );
            }
        }
    }

    #[test]
    fn office_document_is_known_by_its_parts() {
        let document = packed(&["[Content_Types].xml", "word/document.xml"]);
        let workbook = packed(&["[Content_Types].xml", "xl/workbook.xml"]);
        let with_macros = packed(&["word/document.xml", "word/vbaProject.bin"]);
        let encrypted: Vec<u8> = OLE_MARK
            .iter()
            .copied()
            .chain("EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes))
            .collect();
        for (kind, content, expected) in [
            (FileType::Docx, document.as_slice(), true),
            (FileType::Xlsx, &workbook, true),
            (FileType::Xlsx, &document, false),
            (FileType::Docx, &packed(&["a.exe"]), false),
            (FileType::Docx, &with_macros, false),
            (FileType::Docx, &document[..document.len() - 30], true),
            (FileType::Docx, &encrypted, true),
            (FileType::Docx, OLE_MARK, false),
        ] {
            assert_eq!(check_office(kind, content).is_ok(), expected, "{kind}");
        }
    }
}
