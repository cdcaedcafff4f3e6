//! Claims of a file about itself: its name and its media type.

use switchboard_schemas::file::FileType;

use super::name;
use crate::http::{ApiError, ErrorCode};

/// Media types that say nothing about a file, as browsers and programs send them for any.
const UNKNOWN_TYPES: [&str; 4] = [
    "",
    "application/octet-stream",
    "binary/octet-stream",
    "application/x-download",
];

/// Other media types for the same types: those of Windows with Excel, of older browsers and of
/// editors.
const OTHER_NAMES: [(&str, FileType); 12] = [
    ("image/jpg", FileType::Jpeg),
    ("image/pjpeg", FileType::Jpeg),
    ("image/x-png", FileType::Png),
    ("application/vnd.ms-excel", FileType::Csv),
    ("application/csv", FileType::Csv),
    ("text/x-csv", FileType::Csv),
    ("text/comma-separated-values", FileType::Csv),
    ("text/tab-separated-values", FileType::Csv),
    ("text/x-markdown", FileType::Markdown),
    ("text/json", FileType::Json),
    ("application/x-pdf", FileType::Pdf),
    ("text/x-log", FileType::Text),
];

/// Returns the type that a file is sent as. Name and media type must not contradict each other,
/// except that every text may be sent as plain text.
///
/// # Errors
/// 415: neither says a type that is known, or they say two.
pub(super) fn claimed_type(name: &str, media_type: &str) -> Result<FileType, ApiError> {
    let sent = known_type(media_type);
    let is_unknown = UNKNOWN_TYPES.contains(&media_type);
    let Some(ending) = name::ending(name) else {
        return sent
            .ok_or_else(|| refused("the file has no ending and no media type that is known"));
    };
    let mut kinds = FileType::ALL.into_iter();
    let by_name = kinds
        .find(|kind| kind.extensions().contains(&ending.as_str()))
        .ok_or_else(|| refused("files with this ending are not accepted"))?;
    match sent {
        None if is_unknown => Ok(by_name),
        Some(sent) if sent == by_name || (sent.is_text() && by_name.is_text()) => Ok(by_name),
        // Browsers without an entry for the ending guess from the system's list.
        None if by_name.is_text() && media_type.starts_with("text/") => Ok(by_name),
        Some(_) | None => Err(refused(
            "the ending of the file does not fit its media type",
        )),
    }
}

fn known_type(media_type: &str) -> Option<FileType> {
    let other = OTHER_NAMES.iter().find(|(name, _)| *name == media_type);
    media_type.parse().ok().or(other.map(|(_, kind)| *kind))
}

/// Returns a 415.
pub(super) fn refused(detail: &'static str) -> ApiError {
    ApiError::new(ErrorCode::UnsupportedMediaType, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_is_that_of_name_and_media_type() {
        use FileType::{Csv, Docx, Jpeg, Json, Markdown, Pdf, Png, Text, Xlsx};
        let docx = Docx.as_str();
        let xlsx = Xlsx.as_str();
        for (name, media_type, expected) in [
            ("a.png", "image/png", Some(Png)),
            ("a.PNG", "application/octet-stream", Some(Png)),
            ("a.jpeg", "image/jpg", Some(Jpeg)),
            ("a.csv", "text/csv", Some(Csv)),
            ("a.csv", "application/vnd.ms-excel", Some(Csv)),
            ("a.csv", "text/plain", Some(Csv)),
            ("a.md", "", Some(Markdown)),
            ("a.md", "text/x-web-markdown", Some(Markdown)),
            ("a.md", "application/octet-stream", Some(Markdown)),
            ("a.json", "text/plain", Some(Json)),
            ("a.pdf", "application/pdf", Some(Pdf)),
            ("a.docx", docx, Some(Docx)),
            ("a.xlsx", xlsx, Some(Xlsx)),
            ("clipboard", "image/png", Some(Png)),
            ("notes 2.1", "text/plain", Some(Text)),
            ("a.png", "image/jpeg", None),
            ("a.png", "text/html", None),
            ("a.pdf", "application/x-msdownload", None),
            ("a.svg", "image/svg+xml", None),
            ("a.svg", "image/png", None),
            ("a.html", "text/html", None),
            ("a.png.exe", "image/png", None),
            ("a.docm", docx, None),
            ("a.xlsm", xlsx, None),
            ("a.docx", xlsx, None),
            ("README", "", None),
            ("README", "application/octet-stream", None),
        ] {
            let found = claimed_type(name, media_type).ok();
            assert_eq!(found, expected, "{name} as {media_type}");
        }
    }
}
