//! Excel workbooks, written as small archives.

use std::{fmt::Write as _, io::Write as _};

use zip::{ZipWriter, write::SimpleFileOptions};

use super::*;

/// Writes an archive of parts.
fn archive(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, body) in parts {
        archive
            .start_file(*name, SimpleFileOptions::default())
            .unwrap();
        archive.write_all(body).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// Writes a workbook of sheets; a cell is the content of its element with its attributes.
fn workbook(sheets: &[&[&[&str]]], texts: &str) -> Vec<u8> {
    let (mut names, mut relations) = (String::new(), String::new());
    let mut bodies = Vec::new();
    for (number, rows) in sheets.iter().enumerate() {
        write!(
            names,
            "<sheet name=\"S{number}\" sheetId=\"{0}\" r:id=\"r{number}\"/>",
            number + 1
        )
        .unwrap();
        write!(
            relations,
            "<Relationship Id=\"r{number}\" Target=\"worksheets/s{number}.xml\" \
            Type=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet\"/>"
        )
        .unwrap();
        let rows: String = rows
            .iter()
            .map(|cells| {
                let cells: String = cells.iter().map(|cell| format!("<c {cell}</c>")).collect();
                format!("<row>{cells}</row>")
            })
            .collect();
        bodies.push((
            format!("xl/worksheets/s{number}.xml"),
            format!("<worksheet xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"><sheetData>{rows}</sheetData></worksheet>"),
        ));
    }
    let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let package = "http://schemas.openxmlformats.org/package/2006/relationships";
    let workbook = format!(
        "<workbook xmlns=\"{main}\" xmlns:r=\"{office}\"><sheets>{names}</sheets></workbook>"
    );
    let relations = format!("<Relationships xmlns=\"{package}\">{relations}</Relationships>");
    let root = format!(
        "<Relationships xmlns=\"{package}\"><Relationship Id=\"r\" Type=\"{office}/officeDocument\" Target=\"xl/workbook.xml\"/></Relationships>"
    );
    let styles = format!(
        "<styleSheet xmlns=\"{main}\"><numFmts count=\"2\"><numFmt numFmtId=\"170\" formatCode=\"#,##0.00\\ [$€-407]\"/>\
        <numFmt numFmtId=\"171\" formatCode=\"00000\"/></numFmts><cellXfs count=\"4\"><xf numFmtId=\"0\"/>\
        <xf numFmtId=\"170\"/><xf numFmtId=\"171\"/><xf numFmtId=\"14\"/></cellXfs></styleSheet>"
    );
    let mut parts = vec![
        ("[Content_Types].xml", b"<Types/>".as_slice()),
        ("_rels/.rels", root.as_bytes()),
        ("xl/workbook.xml", workbook.as_bytes()),
        ("xl/_rels/workbook.xml.rels", relations.as_bytes()),
        ("xl/styles.xml", styles.as_bytes()),
        ("xl/sharedStrings.xml", texts.as_bytes()),
    ];
    parts.extend(
        bodies
            .iter()
            .map(|(name, body)| (name.as_str(), body.as_bytes())),
    );
    archive(&parts)
}

const TITLE: &str = "t=\"inlineStr\"><is><t>Titel</t></is>";
const PRICE: &str = "t=\"inlineStr\"><is><t>Preis</t></is>";

#[test]
fn first_sheet_with_a_heading_is_read() {
    let texts = "<sst xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\" count=\"1\" uniqueCount=\"1\"><si><t>Käse &amp; Brot</t></si></sst>";
    let text = |text: &str| format!("t=\"inlineStr\"><is><t>{text}</t></is>");
    let (caption, note, ean, plz, since) = (
        text("Preisliste"),
        text("Notiz"),
        text("EAN"),
        text("PLZ"),
        text("Seit"),
    );
    let file = workbook(
        &[
            &[&[note.as_str()]],
            &[
                &[caption.as_str()],
                &[],
                &[TITLE, PRICE, &ean, &plz, &since],
                &[
                    "t=\"s\"><v>0</v>",
                    "s=\"1\"><v>1299.5</v>",
                    "><v>4006381333931</v>",
                    "s=\"2\"><v>1067</v>",
                    "s=\"3\"><v>45943</v>",
                ],
                &["r=\"B5\"><v>9.99</v>"],
                &[
                    "r=\"A6\" t=\"inlineStr\"><is><t>Tee</t></is>",
                    "r=\"B6\"><v>19.989999999999998</v>",
                    "r=\"C6\" t=\"e\"><v>#N/A</v>",
                ],
            ],
        ],
        texts,
    );
    let (products, rejected) = read_in_pieces(&file, usize::MAX, 10).unwrap();
    assert_eq!(products.len(), 2, "{rejected:?}");
    let cheese = &products[0];
    assert_eq!(cheese.product.title, "Käse & Brot");
    assert_eq!(
        (cheese.product.price.as_str(), cheese.amount),
        ("1299.5 €", Some(1299.5))
    );
    for (name, value) in [
        ("ean", "4006381333931"),
        ("plz", "01067"),
        ("seit", "2025-10-13"),
    ] {
        assert_eq!(cheese.attributes[name], value, "{name}");
    }
    assert_eq!(products[1].amount, Some(19.99));
    assert_eq!((rejected.count, rejected.first[0].row), (1, 5));
}

#[test]
fn archives_that_are_no_usable_workbook_are_rejected() {
    let cases: [(Vec<u8>, &str); 5] = [
        (
            archive(&[("photo.png", b"x")]),
            "a ZIP archive and no workbook",
        ),
        (archive(&[("content.xml", b"x")]), "OpenDocument"),
        (archive(&[("xl/workbook.xml", b"x")]), "damaged"),
        (b"PK\x03\x04".to_vec(), "damaged"),
        (workbook(&[&[&["><v>5</v>"]]], "<sst/>"), "no sheet"),
    ];
    for (file, reason) in cases {
        let error = read_in_pieces(&file, usize::MAX, 10)
            .unwrap_err()
            .to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn workbook_that_would_take_too_much_memory_is_rejected() {
    let zeros = vec![b' '; 129 << 20];
    let bomb = archive(&[("xl/workbook.xml", &zeros)]);
    assert!(bomb.len() < 1 << 20, "{}", bomb.len());
    let announced = "<sst xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\" uniqueCount=\"99999999999\"></sst>";
    for file in [bomb, workbook(&[&[&[TITLE]]], announced)] {
        let error = read_in_pieces(&file, usize::MAX, 10)
            .unwrap_err()
            .to_string();
        assert!(error.contains("larger than"), "{error}");
    }
    let rows: Vec<&[&str]> = std::iter::once([TITLE].as_slice())
        .chain(std::iter::repeat_n(
            ["t=\"inlineStr\"><is><t>A</t></is>"].as_slice(),
            20,
        ))
        .collect();
    let error = read_in_pieces(&workbook(&[&rows], "<sst/>"), usize::MAX, 10).unwrap_err();
    assert_eq!(error, FeedError::TooMany { max: 10 });
}
