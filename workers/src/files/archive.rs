//! The ZIP archive of an Office document: its parts, within bounds.

use std::io::{Cursor, Read};

use encoding_rs::UTF_8;
use zip::{ZipArchive, result::ZipError};

use super::ReadFailure;

/// Most parts of a document.
const PARTS_MAX: usize = 10_000;
/// Largest size of all parts that are read, unpacked, in bytes.
const UNPACKED_BYTES_MAX: u64 = 32 << 20;
/// Beginning of the containers that Office uses for encrypted documents, and of old formats.
const CONTAINER_START: [u8; 8] = [0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1];

/// The parts of an Office document. Names of parts are only compared, never used as paths.
pub(super) struct OfficeArchive<'a> {
    archive: ZipArchive<Cursor<&'a [u8]>>,
    /// Bytes that may still be unpacked.
    room: u64,
}

impl<'a> OfficeArchive<'a> {
    /// Opens an archive.
    pub(super) fn open(bytes: &'a [u8]) -> Result<Self, ReadFailure> {
        check_container(bytes)?;
        let archive = ZipArchive::new(Cursor::new(bytes)).map_err(|_| ReadFailure::Damaged)?;
        if archive.len() > PARTS_MAX {
            return Err(ReadFailure::TooLarge);
        }
        Ok(Self {
            archive,
            room: UNPACKED_BYTES_MAX,
        })
    }

    /// Returns the names of the parts with a prefix that end in `.xml`, in order.
    pub(super) fn names(&self, prefix: &str) -> Vec<String> {
        let names = self.archive.file_names().flatten();
        let mut names: Vec<String> = names
            .filter(|name| name.starts_with(prefix) && name.ends_with(".xml"))
            .map(|name| name.into_owned())
            .collect();
        names.sort();
        names
    }

    /// Returns the text of a part, or `None` if there is no such part.
    pub(super) fn read(&mut self, name: &str) -> Result<Option<String>, ReadFailure> {
        let part = match self.archive.by_name(name) {
            Ok(part) => part,
            Err(ZipError::FileNotFound) => return Ok(None),
            Err(ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED)) => {
                return Err(ReadFailure::Protected);
            }
            Err(_) => return Err(ReadFailure::Damaged),
        };
        let mut bytes = Vec::new();
        let read = part.take(self.room + 1).read_to_end(&mut bytes);
        if bytes.len() as u64 > self.room {
            return Err(ReadFailure::TooLarge);
        }
        read.map_err(|_| ReadFailure::Damaged)?;
        self.room -= bytes.len() as u64;
        let (text, _, has_errors) = UTF_8.decode(&bytes);
        if has_errors {
            return Err(ReadFailure::Damaged);
        }
        Ok(Some(text.into_owned()))
    }
}

/// Fails if a file is a container of Office instead of an archive: an encrypted document, or one
/// of an old format.
pub(super) fn check_container(bytes: &[u8]) -> Result<(), ReadFailure> {
    if !bytes.starts_with(&CONTAINER_START) {
        return Ok(());
    }
    let stream: Vec<u8> = "EncryptedPackage"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let is_encrypted = bytes.windows(stream.len()).any(|window| window == stream);
    Err(if is_encrypted {
        ReadFailure::Protected
    } else {
        ReadFailure::Damaged
    })
}
