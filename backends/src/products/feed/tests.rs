//! Tests of the feed reader: files as shops export them, rejected rows and unreadable feeds.

mod columns;
mod shops;
mod workbooks;

use std::io::{Cursor, SeekFrom};

use proptest::prelude::*;

use super::*;

type ReadOutcome = Result<(Vec<CatalogProduct>, ReportedRows), FeedError>;

/// A file that returns at most `piece` bytes at once.
struct PiecewiseFile<'a> {
    file: Cursor<&'a [u8]>,
    piece: usize,
}

impl Read for PiecewiseFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let end = buffer.len().min(self.piece);
        self.file.read(&mut buffer[..end])
    }
}

impl Seek for PiecewiseFile<'_> {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.file.seek(position)
    }
}

/// Reads a feed in pieces of `piece` bytes.
fn read_in_pieces(feed: &[u8], piece: usize, products_max: u64) -> ReadOutcome {
    let file = Cursor::new(feed);
    let (products, report) = read_with_report(&mut PiecewiseFile { file, piece }, products_max)?;
    Ok((products, report.rejected))
}

fn read_with_report<R: Read + Seek>(
    file: &mut R,
    products_max: u64,
) -> Result<(Vec<CatalogProduct>, FeedReport), FeedError> {
    let mut products = Vec::new();
    let report = read_feed(file, FeedFormat::Auto, products_max, &mut |product| {
        products.push(product);
        Ok(())
    })?;
    Ok((products, report))
}

fn read(feed: &str) -> ReadOutcome {
    let whole = read_in_pieces(feed.as_bytes(), usize::MAX, 1000);
    // The result must not depend on the ends of pieces.
    assert_eq!(read_in_pieces(feed.as_bytes(), 1, 1000), whole, "{feed}");
    whole
}

fn titles(feed: &str) -> Vec<String> {
    read(feed)
        .unwrap()
        .0
        .into_iter()
        .map(|product| product.product.title)
        .collect()
}

fn only(feed: &str) -> CatalogProduct {
    let (products, rejected) = read(feed).unwrap();
    assert_eq!((products.len(), rejected.count), (1, 0), "{rejected:?}");
    products.into_iter().next().unwrap()
}

#[test]
fn google_merchant_file_is_read() {
    let product = only(concat!(
        "id\ttitle\tdescription\tlink\timage_link\tavailability\tprice\tsale_price\tbrand\tproduct_type\n",
        "7\tRed shoe\t<p>Light &amp; red</p>\thttps://shop.example/7\thttps://cdn.example/7.jpg\tin_stock\t",
        "19.99 EUR\t\tFeet\tShoes > Running\n"
    ));
    assert_eq!(product.product.title, "Red shoe");
    assert_eq!(product.product.price, "19.99 EUR");
    assert_eq!(product.product.image, "https://cdn.example/7.jpg");
    assert_eq!(product.product.url, "https://shop.example/7");
    assert_eq!(
        (product.description.as_str(), product.amount),
        ("Light & red", Some(19.99))
    );
    let attributes: Vec<_> = product
        .attributes
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let expected = [
        ("availability", "in_stock"),
        ("brand", "Feet"),
        ("id", "7"),
        ("product_type", "Shoes > Running"),
    ];
    assert_eq!(attributes, expected);
}

#[test]
fn spreadsheet_csv_with_bom_semicolons_and_quotes_is_read() {
    let feed = "\u{feff}\"Titel\";Preis;Bild;\"Farbe\"\r\n\
        \"Hemd \"\"Oslo\"\"; blau\";\"1.299,00 €\";//cdn.example/a.jpg;\"hell\r\nblau\"\r\n\
        \r\n\
        Hose 15\" weit;5;;\r\n";
    let (products, rejected) = read(feed).unwrap();
    assert_eq!(rejected.count, 0);
    assert_eq!(products[0].product.title, "Hemd \"Oslo\"; blau");
    assert_eq!(
        (products[0].amount, products[0].product.image.as_str()),
        (Some(1299.0), "https://cdn.example/a.jpg")
    );
    assert_eq!(products[0].attributes["farbe"], "hell blau");
    assert_eq!(products[1].product.title, "Hose 15\" weit");
}

#[test]
fn separators_and_line_ends_are_detected() {
    for (separator, end) in [(",", "\n"), (";", "\r\n"), ("\t", "\r"), ("|", "\n")] {
        let feed = ["name,price", "A,1", "B,2"]
            .map(|row| row.replace(',', separator))
            .join(end);
        assert_eq!(titles(&feed), ["A", "B"], "{separator:?} {end:?}");
    }
}

#[test]
fn json_is_read_as_array_object_or_lines() {
    for feed in [
        r#"[{"title":"A"},{"title":"B"}]"#,
        r#" {"next":null,"meta":{"products":[1]},"products":[{"title":"A"},{"title":"B"}],"more":[{"title":"C"}]}"#,
        "{\"title\":\"A\"}\n{\"title\":\"B\"}\n",
        r#"{"items":[{"title":"A","tags":["]","}"]},{"title":"B","quote":"\"}]"}]}"#,
    ] {
        assert_eq!(titles(feed), ["A", "B"], "{feed}");
    }
}

#[test]
fn values_of_any_json_type_become_text() {
    let product = only(
        r#"[{"name":"Bag","price":{"amount":12.5,"currency":"EUR"},"images":[{"src":"https://cdn.example/b.png"}],
            "permalink":"https://shop.example/b","sizes":["S",38,true],"inStock":true,"weight":1.5,"extra":{"a":{}},
            "none":null,"Color Name":"red"}]"#,
    );
    assert_eq!(
        (product.product.price.as_str(), product.amount),
        ("12.5 EUR", Some(12.5))
    );
    assert_eq!(product.product.image, "https://cdn.example/b.png");
    let attributes: Vec<_> = product
        .attributes
        .iter()
        .map(|(name, text)| format!("{name}={text}"))
        .collect();
    assert_eq!(
        attributes,
        [
            "color_name=red",
            "in_stock=true",
            "sizes=S, 38, true",
            "weight=1.5"
        ]
    );
    let numbers = only(r#"[{"title":"A","price":19.9,"currency":"USD"}]"#);
    assert_eq!(
        (numbers.product.price.as_str(), numbers.amount),
        ("19.9 USD", Some(19.9))
    );
}

#[test]
fn variant_price_is_used_and_a_sale_price_comes_first() {
    let product =
        only(r#"{"products":[{"title":"A","variants":[{"price":"9.00"},{"price":"12.00"}]}]}"#);
    assert_eq!(product.amount, Some(9.0));
    let sale = only("title,price,sale_price\nA,20 EUR,15 EUR\n");
    assert_eq!(
        (sale.amount, sale.attributes["regular_price"].as_str()),
        (Some(15.0), "20 EUR")
    );
    assert_eq!(
        only("title,price,sale_price\nA,20 EUR,0\n").amount,
        Some(20.0)
    );
}

#[test]
fn scripts_and_unsafe_urls_are_removed() {
    for address in [
        "javascript:alert(1)",
        "data:text/html,x",
        "JaVaScRiPt:x",
        "file:///etc/passwd",
        "https://a\"b",
    ] {
        let feed =
            serde_json::json!([{ "title": "A", "link": address, "image": address }]).to_string();
        let product = only(&feed).product;
        assert_eq!(
            (product.url.as_str(), product.image.as_str()),
            ("", ""),
            "{address}"
        );
    }
    let product =
        only(r#"[{"title":"A <script>alert(1)</script>&lt;img onerror=x&gt; 5 < 6"}]"#).product;
    assert_eq!(product.title, "A alert(1) 5 < 6");
}

#[test]
fn rejected_rows_are_reported_and_the_others_kept() {
    let (products, rejected) = read("title,price\nA,1\n,2\nB,1,unquoted\nC,3\n").unwrap();
    assert_eq!(products.len(), 2);
    let reported: Vec<_> = rejected
        .first
        .iter()
        .map(|row| (row.row, row.reason.as_str()))
        .collect();
    assert_eq!(
        reported,
        [
            (3, "it has no title"),
            (4, "it has 3 fields, and the head 2")
        ]
    );
    let (products, rejected) =
        read(r#"[{"title":"A"},5,"x",[{"title":"no"}],{"price":1},null,{"title":"B"}]"#).unwrap();
    assert_eq!((products.len(), rejected.count), (2, 5));
    assert_eq!(rejected.first[0].row, 2);
    let damaged = b"title,colour\nA,bl\xc3\nB,r\xc3\xb6t\nC,gr\xc3\xbcn\n";
    let (products, rejected) = read_in_pieces(damaged, 100, 10).unwrap();
    assert_eq!(products[1].attributes["colour"], "grün");
    assert_eq!(rejected.first[0].reason, "it is not in UTF-8");
}

#[test]
fn reported_rejected_rows_are_bounded() {
    let feed = format!("title,price\nA,1\n{}", ",5\n".repeat(500));
    let (_, rejected) = read(&feed).unwrap();
    assert_eq!((rejected.count, rejected.first.len()), (500, 20));
}

#[test]
fn truncated_feed_is_rejected_as_a_whole() {
    for feed in [
        "title,price\nA,1\n\"B",
        r#"[{"title":"A"},{"title":"B""#,
        r#"[{"title":"A"}"#,
        r#"{"products":[{"title":"A"}]"#,
    ] {
        assert!(
            matches!(read(feed), Err(FeedError::BrokenOff { .. })),
            "{feed}"
        );
    }
}

#[test]
fn unreadable_feed_is_rejected_with_a_reason() {
    assert_eq!(read("").unwrap_err(), FeedError::Empty);
    assert_eq!(read(" \n\t ").unwrap_err(), FeedError::Empty);
    assert_eq!(read("[]").unwrap_err(), FeedError::Empty);
    assert_eq!(read("title,price\n").unwrap_err(), FeedError::Empty);
    for feed in ["<?xml version=\"1.0\"?><rss/>", "a,b\n1,2\n", "[}]"] {
        assert!(
            matches!(read(feed), Err(FeedError::Unreadable(_))),
            "{feed}"
        );
    }
    assert!(matches!(
        read("[{\"price\":1}]"),
        Err(FeedError::NoProducts { rows: 1, .. })
    ));
    let deep = format!("[{}", "{\"a\":[".repeat(100));
    assert!(matches!(read(&deep), Err(FeedError::Unreadable(_))));
}

#[test]
fn feed_is_bounded_in_rows_and_row_size() {
    let feed = format!("title\n{}", "A\n".repeat(11));
    assert_eq!(
        read_in_pieces(feed.as_bytes(), 100, 10),
        Err(FeedError::TooMany { max: 10 })
    );
    assert_eq!(
        read_in_pieces(feed.as_bytes(), 100, 11).unwrap().0.len(),
        11
    );
    let unclosed = format!("title\n\"{}", "A\n".repeat(ROW_BYTES_MAX));
    assert!(matches!(
        read_in_pieces(unclosed.as_bytes(), 4096, 10),
        Err(FeedError::RowTooLarge { row: 2, .. })
    ));
    let long = format!("[{{\"title\":\"{}", "A".repeat(ROW_BYTES_MAX));
    assert!(matches!(
        read_in_pieces(long.as_bytes(), 4096, 10),
        Err(FeedError::RowTooLarge { row: 1, .. })
    ));
}

#[test]
fn other_files_are_named_with_the_accepted_ones() {
    for (file, seen) in [
        (&b"\x1f\x8b\x08"[..], "compressed file"),
        (b"\x89PNG\r\n\x1a\n\0\0", "PNG picture"),
        (b"%PDF-1.7", "PDF"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", ".xls"),
        (b"<!DOCTYPE html><p>", "web page"),
        (b"a\x01\0\0\0b", "binary"),
    ] {
        let error = read_in_pieces(file, usize::MAX, 10)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(seen) && error.contains("CSV, TSV, JSON, XML"),
            "{error}"
        );
    }
    let (products, _) = read_in_pieces(b"PK,title\n1,Tea\n", 1, 10).unwrap();
    assert_eq!(products.len(), 1);
}

proptest! {
    #[test]
    fn arbitrary_bytes_have_one_result_in_any_pieces(bytes: Vec<u8>, piece in 1_usize..9) {
        prop_assert_eq!(read_in_pieces(&bytes, piece, 100), read_in_pieces(&bytes, usize::MAX, 100));
    }

    #[test]
    fn arbitrary_csv_and_json_has_one_result_in_any_pieces(text in "[\\[\\]{}\",:; \\\\\n\r a-c1é]{0,60}", piece in 1_usize..9) {
        let feed = format!("title,b\n{text}");
        prop_assert_eq!(read_in_pieces(feed.as_bytes(), piece, 100), read_in_pieces(feed.as_bytes(), usize::MAX, 100));
        let feed = feed.replace(',', "\t");
        prop_assert_eq!(read_in_pieces(feed.as_bytes(), piece, 100), read_in_pieces(feed.as_bytes(), usize::MAX, 100));
        prop_assert_eq!(read_in_pieces(text.as_bytes(), piece, 100), read_in_pieces(text.as_bytes(), usize::MAX, 100));
    }
}
