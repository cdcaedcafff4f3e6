//! Recognition of a file from its content: its kind and the encoding of its text. Names and media
//! types are not used, because shops and browsers send them wrong.

use std::io::{self, Read, Seek, SeekFrom};

use encoding_rs::{Encoding, UTF_16BE, UTF_16LE, WINDOWS_1252};
use encoding_rs_io::DecodeReaderBytesBuilder;
use switchboard_schemas::agent::FeedFormat;

use super::FeedError;

/// Number of first bytes that show the kind of a file.
const HEAD_BYTES: u64 = 4096;
const PIECE_BYTES: usize = 64 << 10;
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";
const ZIP_MARK: &[u8] = b"PK\x03\x04";
/// First bytes of files that are often chosen by mistake.
const OTHER_KINDS: [(&[u8], &str); 11] = [
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"RIFF", "a picture or a recording"),
    (b"%PDF", "a PDF document"),
    (b"\x1f\x8b", "a compressed file (gzip)"),
    (b"7z\xbc\xaf", "a compressed file (7z)"),
    (b"Rar!", "a compressed file (rar)"),
    (b"BZh9", "a compressed file (bzip2)"),
    (b"PK\x05\x06", "an empty ZIP archive"),
    // Also the container of workbooks with a password.
    (b"\xd0\xcf\x11\xe0", "an old (.xls) or protected workbook"),
];

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    Csv(TextEncoding),
    Json(TextEncoding),
    Xml(TextEncoding),
    Zip,
}

/// The encoding of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextEncoding {
    /// UTF-8; single rows can be invalid.
    Utf8,
    Other(&'static Encoding),
}

impl TextEncoding {
    /// Returns the text in UTF-8 without a byte order mark.
    pub(super) fn decode<'a, R: Read + Seek>(
        self,
        file: &'a mut R,
    ) -> io::Result<Box<dyn Read + 'a>> {
        file.seek(SeekFrom::Start(0))?;
        let mut builder = DecodeReaderBytesBuilder::new();
        match self {
            Self::Utf8 => builder.utf8_passthru(true).strip_bom(true),
            Self::Other(encoding) => builder.encoding(Some(encoding)).bom_override(true),
        };
        Ok(Box::new(builder.build(file)))
    }
}

/// Recognizes a file.
///
/// # Errors
/// [`FeedError::Unsupported`] names what was found.
pub(super) fn recognize<R: Read + Seek>(
    file: &mut R,
    format: FeedFormat,
) -> Result<FileKind, FeedError> {
    file.seek(SeekFrom::Start(0))?;
    let mut head = Vec::new();
    file.by_ref().take(HEAD_BYTES).read_to_end(&mut head)?;
    if head.starts_with(ZIP_MARK) {
        return Ok(FileKind::Zip);
    }
    if let Some((_, seen)) = OTHER_KINDS.iter().find(|(mark, _)| head.starts_with(mark)) {
        return Err(FeedError::Unsupported { seen });
    }
    let encoding = encoding_of(file, &head)?;
    let mut beginning = Vec::new();
    let mut text = encoding.decode(file)?.take(HEAD_BYTES);
    text.read_to_end(&mut beginning)?;
    if beginning.contains(&0) {
        return Err(FeedError::Unsupported {
            seen: "a binary file",
        });
    }
    let lower = beginning.trim_ascii_start().to_ascii_lowercase();
    let first = lower.first().copied().unwrap_or_default();
    Ok(match format {
        FeedFormat::Csv => FileKind::Csv(encoding),
        FeedFormat::Json => FileKind::Json(encoding),
        FeedFormat::Auto if matches!(first, b'[' | b'{') => FileKind::Json(encoding),
        FeedFormat::Auto if first == b'<' => {
            if ["<!doctype html", "<html"]
                .iter()
                .any(|tag| contains(&lower, tag))
            {
                return Err(FeedError::Unsupported { seen: "a web page" });
            }
            FileKind::Xml(encoding)
        }
        FeedFormat::Auto => FileKind::Csv(encoding),
    })
}

fn contains(text: &[u8], part: &str) -> bool {
    text.windows(part.len())
        .any(|window| window == part.as_bytes())
}

/// Returns the encoding of a text: that of its byte order mark, of its XML declaration or of its
/// NUL bytes, otherwise UTF-8 or Windows-1252, whichever its bytes are.
fn encoding_of<R: Read + Seek>(file: &mut R, head: &[u8]) -> io::Result<TextEncoding> {
    if head.starts_with(UTF8_MARK) {
        return Ok(TextEncoding::Utf8);
    }
    if let Some((encoding, _)) = Encoding::for_bom(head) {
        return Ok(TextEncoding::Other(encoding));
    }
    // ASCII letters in UTF-16 have a NUL byte each, always on the same side.
    match head {
        [0, second, 0, fourth, ..] if *second != 0 && *fourth != 0 => {
            return Ok(TextEncoding::Other(UTF_16BE));
        }
        [first, 0, third, 0, ..] if *first != 0 && *third != 0 => {
            return Ok(TextEncoding::Other(UTF_16LE));
        }
        _ => {}
    }
    match declared_encoding(head) {
        Some(encoding) if !encoding.is_single_byte() => {}
        Some(encoding) => return Ok(TextEncoding::Other(encoding)),
        None => {}
    }
    let found = count_utf8(file)?;
    // Windows-1252 has hardly any valid sequence by accident. A UTF-8 file with a damaged row has
    // many, and only that row is rejected.
    Ok(if found.invalid > found.sequences {
        TextEncoding::Other(WINDOWS_1252)
    } else {
        TextEncoding::Utf8
    })
}

/// Returns the encoding that an XML declaration names.
fn declared_encoding(head: &[u8]) -> Option<&'static Encoding> {
    let declaration = head.trim_ascii_start().strip_prefix(b"<?xml")?;
    let end = declaration.iter().position(|byte| *byte == b'>')?;
    let declaration = std::str::from_utf8(&declaration[..end]).ok()?;
    let (_, rest) = declaration.split_once("encoding")?;
    let name = rest
        .trim_start()
        .strip_prefix('=')?
        .trim_start()
        .strip_prefix(['"', '\''])?;
    Encoding::for_label(name.split(['"', '\'']).next()?.as_bytes())
}

/// Counts of bytes that are not ASCII.
#[derive(Default)]
struct Utf8Counts {
    /// Valid sequences of several bytes.
    sequences: u64,
    /// Invalid sequences.
    invalid: u64,
}

fn count_utf8<R: Read + Seek>(file: &mut R) -> io::Result<Utf8Counts> {
    file.seek(SeekFrom::Start(0))?;
    let (mut counts, mut piece) = (Utf8Counts::default(), Vec::new());
    loop {
        let carried = piece.len();
        let read = file
            .by_ref()
            .take((PIECE_BYTES - carried) as u64)
            .read_to_end(&mut piece)?;
        let mut rest = piece.as_slice();
        let mut cut = 0;
        while !rest.is_empty() {
            let (valid, error) = match std::str::from_utf8(rest) {
                Ok(text) => (text, None),
                Err(error) => (
                    std::str::from_utf8(&rest[..error.valid_up_to()]).unwrap_or_default(),
                    Some(error.error_len()),
                ),
            };
            counts.sequences += valid
                .chars()
                .filter(|character| !character.is_ascii())
                .count() as u64;
            rest = &rest[valid.len()..];
            match error {
                None => {}
                Some(Some(length)) => {
                    counts.invalid += 1;
                    rest = &rest[length..];
                }
                // The sequence continues in the next piece, if there is one.
                Some(None) if read > 0 => {
                    cut = rest.len();
                    break;
                }
                Some(None) => {
                    counts.invalid += 1;
                    break;
                }
            }
        }
        if read == 0 {
            return Ok(counts);
        }
        piece.drain(..piece.len() - cut);
    }
}
