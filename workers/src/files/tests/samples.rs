//! Builders of files for tests.

use std::io::{Cursor, Write};

use flate2::{Compression, write::ZlibEncoder};
use image::{DynamicImage, ImageFormat, Rgba, RgbaImage};
use zip::{ZipWriter, write::SimpleFileOptions};

/// Beginning of a document for the namespaces of Word.
const WORD_SPACE: &str = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";
const SHEET_SPACE: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
const RELATION_SPACE: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

/// A picture of which the left half is red and the right half is blue.
pub(crate) fn two_colors(width: u32, height: u32, alpha: u8) -> DynamicImage {
    let picture = RgbaImage::from_fn(width, height, |x, _| {
        if x < width / 2 {
            Rgba([255, 0, 0, alpha])
        } else {
            Rgba([0, 0, 255, alpha])
        }
    });
    DynamicImage::ImageRgba8(picture)
}

/// A picture that cannot be compressed.
pub(crate) fn noise(width: u32, height: u32) -> RgbaImage {
    let mut seed = 0x2545_f491_u32;
    RgbaImage::from_fn(width, height, |_, _| {
        seed ^= seed << 13;
        seed ^= seed >> 17;
        seed ^= seed << 5;
        let [red, green, blue, alpha] = seed.to_le_bytes();
        Rgba([red, green, blue, alpha.max(1)])
    })
}

pub(crate) fn encoded(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    let picture = match format {
        ImageFormat::Jpeg => DynamicImage::ImageRgb8(picture.to_rgb8()),
        _ => DynamicImage::ImageRgba8(picture.to_rgba8()),
    };
    picture.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

pub(crate) fn png(width: u32, height: u32) -> Vec<u8> {
    encoded(&two_colors(width, height, 255), ImageFormat::Png)
}

pub(crate) fn jpeg(width: u32, height: u32) -> Vec<u8> {
    encoded(&two_colors(width, height, 255), ImageFormat::Jpeg)
}

/// Inserts a chunk after the header of a PNG.
pub(crate) fn with_chunk(png: &[u8], kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let (header, rest) = png.split_at(33);
    [header, &chunk(kind, data), rest].concat()
}

/// A chunk of a PNG.
pub(crate) fn chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let mut check = flate2::Crc::new();
    check.update(kind);
    check.update(data);
    let length = u32::try_from(data.len()).unwrap().to_be_bytes();
    [&length, &kind[..], data, &check.sum().to_be_bytes()].concat()
}

/// A PNG with the size and color type of its header, and any content.
pub(crate) fn raw_png(width: u32, height: u32, depth: u8, color: u8, rows: &[u8]) -> Vec<u8> {
    let mut header = [width.to_be_bytes(), height.to_be_bytes()].concat();
    header.extend([depth, color, 0, 0, 0]);
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    png.extend(chunk(b"IHDR", &header));
    png.extend(chunk(b"IDAT", &zlib(rows)));
    png.extend(chunk(b"IEND", &[]));
    png
}

/// Metadata of EXIF: an orientation, a place and a text.
pub(crate) fn exif(orientation: u16) -> Vec<u8> {
    let mut exif = b"MM\0*\0\0\0\x08\0\x03".to_vec();
    let mut entry = |tag: u16, kind: u16, count: u32, value: [u8; 4]| {
        exif.extend(tag.to_be_bytes());
        exif.extend(kind.to_be_bytes());
        exif.extend(count.to_be_bytes());
        exif.extend(value);
    };
    let [high, low] = orientation.to_be_bytes();
    entry(0x0112, 3, 1, [high, low, 0, 0]);
    entry(0x010f, 2, 15, [0, 0, 0, 50]);
    // The place, as a directory of its own.
    entry(0x8825, 4, 1, [0, 0, 0, 66]);
    exif.extend([0; 4]);
    exif.extend(b"SECRETCAMERA-1\0\0");
    exif.extend(b"\0\x01\0\x01\0\x02\0\0\0\x02N\0\0\0");
    exif.extend([0; 4]);
    exif
}

/// A JPEG with metadata.
pub(crate) fn jpeg_with_exif(jpeg: &[u8], exif: &[u8]) -> Vec<u8> {
    let data = [b"Exif\0\0", exif].concat();
    let length = u16::try_from(data.len() + 2).unwrap().to_be_bytes();
    [&jpeg[..2], b"\xff\xe1", &length, &data, &jpeg[2..]].concat()
}

/// An animation of one color per frame.
pub(crate) fn gif(width: u16, height: u16, frames: usize) -> Vec<u8> {
    let mut bytes = b"GIF89a".to_vec();
    bytes.extend(width.to_le_bytes());
    bytes.extend(height.to_le_bytes());
    bytes.extend(b"\xf0\0\0\xff\0\0\0\0\xff");
    for frame in 0..frames {
        bytes.extend(b"!\xf9\x04\0\x0a\0\0\0");
        bytes.extend(b",\0\0\0\0\x01\0\x01\0\0");
        // One pixel: clear, color, end.
        bytes.extend([2, 2, if frame % 2 == 0 { 0x44 } else { 0x4c }, 1, 0]);
    }
    bytes.push(b';');
    bytes
}

pub(crate) fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A ZIP archive.
pub(crate) fn archive(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_level(Some(1));
    for (name, content) in parts {
        writer.start_file(*name, options).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// The main part of a Word document.
pub(crate) fn word_part(body: &str) -> String {
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?><w:document xmlns:w="{WORD_SPACE}"><w:body>{body}</w:body></w:document>"#
    )
}

/// Relations of an archive to its main part.
pub(crate) fn relations(target: &str, mode: &str) -> String {
    format!(
        r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="{RELATION_SPACE}/officeDocument" Target="{target}" TargetMode="{mode}"/></Relationships>"#
    )
}

/// A Word document with a body and other parts.
pub(crate) fn docx(body: &str, others: &[(&str, &[u8])]) -> Vec<u8> {
    let (part, relations) = (word_part(body), relations("word/document.xml", "Internal"));
    let own: [(&str, &[u8]); 2] = [
        ("_rels/.rels", relations.as_bytes()),
        ("word/document.xml", part.as_bytes()),
    ];
    archive(&[&own, others].concat())
}

/// Paragraphs of Word.
pub(crate) fn paragraph(text: &str) -> String {
    format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>")
}

/// A workbook with the content of its only sheet.
pub(crate) fn xlsx(sheet: &str, others: &[(&str, &[u8])]) -> Vec<u8> {
    let sheet = format!(r#"<worksheet xmlns="{SHEET_SPACE}">{sheet}</worksheet>"#);
    let workbook = format!(
        r#"<workbook xmlns="{SHEET_SPACE}" xmlns:r="{RELATION_SPACE}"><sheets><sheet name="Prices" sheetId="1" r:id="rId1"/></sheets></workbook>"#
    );
    let targets = format!(
        r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="{RELATION_SPACE}/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="rId2" Type="{RELATION_SPACE}/sharedStrings" Target="sharedStrings.xml"/></Relationships>"#
    );
    let relations = relations("xl/workbook.xml", "Internal");
    let own: [(&str, &[u8]); 4] = [
        ("_rels/.rels", relations.as_bytes()),
        ("xl/workbook.xml", workbook.as_bytes()),
        ("xl/_rels/workbook.xml.rels", targets.as_bytes()),
        ("xl/worksheets/sheet1.xml", sheet.as_bytes()),
    ];
    archive(&[&own, others].concat())
}

/// A row of cells with texts of their own.
pub(crate) fn sheet_row(row: u32, cells: &[(&str, &str)]) -> String {
    let cells: String = cells
        .iter()
        .map(|(column, text)| {
            format!(r#"<c r="{column}{row}" t="inlineStr"><is><t>{text}</t></is></c>"#)
        })
        .collect();
    format!(r#"<row r="{row}">{cells}</row>"#)
}

/// A PDF document: objects from number 1, of which the first is the catalog.
pub(crate) fn pdf(objects: &[Vec<u8>], trailer: &str) -> Vec<u8> {
    let mut bytes = b"%PDF-1.7\n".to_vec();
    let mut places = Vec::new();
    for (object, number) in objects.iter().zip(1..) {
        places.push(bytes.len());
        bytes.extend(format!("{number} 0 obj\n").as_bytes());
        bytes.extend(object);
        bytes.extend(b"\nendobj\n");
    }
    let table = bytes.len();
    bytes.extend(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).as_bytes());
    for place in places {
        bytes.extend(format!("{place:010} 00000 n \n").as_bytes());
    }
    let size = objects.len() + 1;
    bytes.extend(
        format!("trailer\n<< /Size {size} /Root 1 0 R {trailer} >>\nstartxref\n{table}\n%%EOF\n")
            .as_bytes(),
    );
    bytes
}

/// A stream of a PDF document.
pub(crate) fn stream(entries: &str, content: &[u8]) -> Vec<u8> {
    let head = format!("<< {entries} /Length {} >>\nstream\n", content.len());
    [head.as_bytes(), content, b"\nendstream"].concat()
}

/// A PDF document with a page for each content, more entries of its catalog, and more objects from
/// number `4 + 2 * pages`.
pub(crate) fn pdf_pages(contents: &[&[u8]], catalog: &str, others: &[Vec<u8>]) -> Vec<u8> {
    let pages = contents.len();
    let kids: String = (0..pages)
        .map(|page| format!("{} 0 R ", 4 + 2 * page))
        .collect();
    let mut objects = vec![
        format!("<< /Type /Catalog /Pages 2 0 R {catalog} >>").into_bytes(),
        format!("<< /Type /Pages /Count {pages} /Kids [{kids}] >>").into_bytes(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_vec(),
    ];
    let form = 4 + 2 * pages;
    for (page, content) in contents.iter().enumerate() {
        let number = 5 + 2 * page;
        objects.push(
            format!(
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {number} 0 R \
                 /Resources << /Font << /F1 3 0 R >> /XObject << /X1 {form} 0 R >> >> >>"
            )
            .into_bytes(),
        );
        objects.push(stream("", content));
    }
    objects.extend_from_slice(others);
    pdf(&objects, "")
}

/// Operations that show a line of text.
pub(crate) fn pdf_line(text: &str) -> Vec<u8> {
    format!("BT /F1 12 Tf 72 720 Td ({text}) Tj ET").into_bytes()
}
