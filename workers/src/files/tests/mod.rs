//! Readers of all types, on files that the tests build.

mod hostile;
pub(crate) mod samples;

use bytes::Bytes;
use image::{DynamicImage, GenericImageView, ImageFormat, Rgba, load_from_memory};
use switchboard_schemas::file::FileType;

use self::samples::{
    docx, encoded, exif, gif, jpeg, jpeg_with_exif, noise, paragraph, pdf_line, pdf_pages, png,
    sheet_row, stream, two_colors, xlsx, zlib,
};
use super::{
    FileReading, PAGES_MAX, failure::ReadFailure, picture::IMAGE_BYTES_MAX, read_document,
};

fn text_of(kind: FileType, bytes: &[u8]) -> String {
    match read_document(kind, bytes) {
        FileReading::Text { text, .. } => text,
        other => panic!("{kind}: {other:?}"),
    }
}

fn picture_of(kind: FileType, bytes: &[u8]) -> (DynamicImage, &'static str, Bytes) {
    match read_document(kind, bytes) {
        FileReading::Image {
            mime_type,
            bytes,
            width,
            height,
        } => {
            let picture = load_from_memory(&bytes).unwrap();
            assert_eq!(picture.dimensions(), (width, height));
            (picture, mime_type, bytes)
        }
        other => panic!("{kind}: {other:?}"),
    }
}

fn is_red(picture: &DynamicImage, x: u32, y: u32) -> bool {
    let Rgba([red, _, blue, _]) = picture.get_pixel(x, y);
    red > 200 && blue < 60
}

#[test]
fn picture_of_each_format_becomes_a_jpeg() {
    let picture = two_colors(40, 20, 255);
    for (kind, format) in [
        (FileType::Png, ImageFormat::Png),
        (FileType::Jpeg, ImageFormat::Jpeg),
        (FileType::Webp, ImageFormat::WebP),
        (FileType::Gif, ImageFormat::Gif),
    ] {
        let (read, mime_type, _) = picture_of(kind, &encoded(&picture, format));
        assert_eq!(
            (read.dimensions(), mime_type),
            ((40, 20), "image/jpeg"),
            "{kind}"
        );
        assert!(is_red(&read, 5, 10) && !is_red(&read, 35, 10), "{kind}");
    }
}

#[test]
fn transparent_picture_stays_a_png() {
    let bytes = encoded(&two_colors(30, 20, 100), ImageFormat::Png);
    let (read, mime_type, _) = picture_of(FileType::Png, &bytes);
    assert_eq!(mime_type, "image/png");
    assert_eq!(read.get_pixel(2, 2).0[3], 100);
}

#[test]
fn large_picture_is_scaled_down() {
    for (width, height, expected) in [(4096, 16, (2048, 8)), (10, 5000, (4, 2048))] {
        let (read, _, _) = picture_of(FileType::Png, &png(width, height));
        assert_eq!(read.dimensions(), expected, "{width} x {height}");
    }
}

#[test]
fn picture_is_small_enough_for_a_model() {
    let picture = DynamicImage::ImageRgba8(noise(1200, 1200));
    let bytes = encoded(&picture, ImageFormat::Png);
    assert!(bytes.len() > IMAGE_BYTES_MAX, "{}", bytes.len());
    let (read, mime_type, bytes) = picture_of(FileType::Png, &bytes);
    assert_eq!(mime_type, "image/png");
    assert!(bytes.len() <= IMAGE_BYTES_MAX, "{}", bytes.len());
    assert!(read.width() > 600, "{}", read.width());
}

#[test]
fn photo_is_upright_and_has_no_metadata() {
    let photo = jpeg_with_exif(&jpeg(40, 20), &exif(6));
    assert!(photo.windows(12).any(|window| window == b"SECRETCAMERA"));
    let (read, _, bytes) = picture_of(FileType::Jpeg, &photo);
    // Turned to the right: the left half is at the top.
    assert_eq!(read.dimensions(), (20, 40));
    assert!(is_red(&read, 10, 5) && !is_red(&read, 10, 35));
    for word in [&b"SECRETCAMERA"[..], b"Exif", b"GPS"] {
        assert!(!bytes.windows(word.len()).any(|window| window == word));
    }
}

#[test]
fn animation_is_its_first_frame() {
    let (read, _, _) = picture_of(FileType::Gif, &gif(1, 1, 200));
    let first = read.get_pixel(0, 0);
    assert_eq!(read.dimensions(), (1, 1), "{first:?}");
}

#[test]
fn word_document_keeps_paragraphs_lists_and_tables() {
    let cell = |text: &str| format!("<w:tc>{}</w:tc>", paragraph(text));
    let body = [
        r#"<w:p><w:pPr><w:pStyle w:val="Heading2"/><w:tabs><w:tab w:val="left"/></w:tabs></w:pPr><w:r><w:t>Order &amp; &#380;</w:t></w:r></w:p>"#,
        "<w:p><w:r><w:t>one</w:t><w:tab/><w:t>two</w:t><w:br/><w:t>three</w:t><w:delText>gone</w:delText></w:r></w:p>",
        "<w:p><w:pPr><w:numPr/></w:pPr><w:r><w:t>item</w:t></w:r></w:p>",
        &format!("<w:tbl><w:tr>{}{}</w:tr></w:tbl>", cell("a"), cell("b")),
    ]
    .concat();
    let notes = samples::word_part(&paragraph("a note"));
    let bytes = docx(&body, &[("word/footnotes.xml", notes.as_bytes())]);
    assert_eq!(
        text_of(FileType::Docx, &bytes),
        "## Order & ż\none\ttwo\nthree\n- item\na\tb\na note\n"
    );
}

#[test]
fn workbook_is_read_as_lines_per_sheet() {
    let rows = [
        sheet_row(1, &[("A", "Name"), ("C", "Price")]),
        sheet_row(3, &[("A", "Tea, green"), ("C", "\"4\"")]),
    ];
    let bytes = xlsx(&format!("<sheetData>{}</sheetData>", rows.concat()), &[]);
    assert_eq!(
        text_of(FileType::Xlsx, &bytes),
        "Sheet: Prices\nName,,Price\n\"Tea, green\",,\"\"\"4\"\"\""
    );
}

#[test]
fn pages_of_a_document_are_read_in_order() {
    let second =
        b"BT /F1 12 Tf 72 720 Td [(Wo) -20 (rld) -400 (again)] TJ 0 -14 Td (caf\\351) Tj ET";
    let bytes = pdf_pages(&[&pdf_line("Hello"), second], "", &[]);
    let reading = read_document(FileType::Pdf, &bytes);
    let expected = FileReading::Text {
        text: "[Page 1]\nHello\n[Page 2]\nWorld again\ncafé".to_owned(),
        is_cut: false,
        pages: Some(2),
    };
    assert_eq!(reading, expected);
}

#[test]
fn text_of_forms_and_compressed_streams_is_read() {
    let form = stream(
        "/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Filter /FlateDecode",
        &zlib(&pdf_line("from a form")),
    );
    let bytes = pdf_pages(&[b"/X1 Do"], "", &[form]);
    assert_eq!(text_of(FileType::Pdf, &bytes), "from a form");
}

#[test]
fn columns_and_paragraphs_are_kept_apart() {
    let content = b"BT /F1 10 Tf 1 0 0 1 50 700 Tm (Tea) Tj 1 0 0 1 300 700 Tm (4.50) Tj \
        1 0 0 1 50 640 Tm (Total) Tj 1 0 0 1 85 640 Tm (due) Tj ET";
    let bytes = pdf_pages(&[content], "", &[]);
    assert_eq!(text_of(FileType::Pdf, &bytes), "Tea\t4.50\n\nTotal due");
}

#[test]
fn long_document_is_cut_after_its_first_pages() {
    let pages = PAGES_MAX + 20;
    let line = pdf_line("x");
    let bytes = pdf_pages(&vec![line.as_slice(); pages], "", &[]);
    let FileReading::Text {
        text,
        is_cut,
        pages: counted,
    } = read_document(FileType::Pdf, &bytes)
    else {
        panic!("not read")
    };
    assert_eq!((is_cut, counted), (true, Some(120)));
    assert!(text.contains("[Page 100]") && !text.contains("[Page 101]"));
}

#[test]
fn panic_of_a_reader_is_a_reading() {
    // The number of the column overflows, which panics in programs with checks.
    let bytes = xlsx(
        &format!(
            "<sheetData>{}</sheetData>",
            sheet_row(1, &[("ZZZZZZZ", "far")])
        ),
        &[],
    );
    read_document(FileType::Xlsx, &bytes);
}

#[test]
fn scanned_document_has_no_text() {
    let bytes = pdf_pages(&[b"0 0 100 100 re f"], "", &[]);
    let expected = ReadFailure::NoText.into_reading();
    assert_eq!(read_document(FileType::Pdf, &bytes), expected);
}
