//! Files as Shopify, WooCommerce, Google Merchant Center and Excel write them.

use switchboard_schemas::time::Timestamp;

use super::*;

fn report(feed: &[u8]) -> (Vec<CatalogProduct>, FeedReport) {
    read_with_report(&mut Cursor::new(feed), 1000).unwrap()
}

fn reasons(rows: &ReportedRows) -> Vec<(u64, &str)> {
    let rows = rows.first.iter();
    rows.map(|row| (row.row, row.reason.as_str())).collect()
}

fn at(rfc3339: &str) -> Timestamp {
    serde_json::from_value(serde_json::json!(rfc3339)).unwrap()
}

#[test]
fn shopify_export_has_one_product_per_handle() {
    let feed = "\u{feff}Handle,Title,Body (HTML),Vendor,Published,Option1 Name,Option1 Value,Variant SKU,\
        Variant Grams,Variant Inventory Qty,Variant Price,Variant Compare At Price,Variant Barcode,\
        Image Src,Image Position,Cost per item,Status\r\n\
        shirt,Shirt,\"<p>Soft,\r\nred</p>\",Acme,TRUE,Size,S,S-1,200,0,19.90,29.90,'4006381333931,\
        https://cdn.example/2.jpg,2,4.10,active\r\n\
        shirt,,,,,,M,S-2,200,3,21.90,,4.00638E+12,https://cdn.example/1.jpg,1,4.10,\r\n\
        shirt,,,,,,,,,,,,,https://cdn.example/3.jpg,3,,\r\n\
        cup,Cup,,Acme,true,Title,Default Title,C-1,90,0,5.00,5.00,4.00638E+12,,,1.00,active\r\n\
        old,Old,,Acme,FALSE,Title,Default Title,O-1,90,1,5.00,,,,,1.00,active\r\n\
        new,New,,Acme,TRUE,Size,S,O-1,90,1,5.00,,,,,1.00,draft\r\n\
        new,,,,,,M,O-2,90,1,5.00,,,,,1.00,\r\n\
        gone,Gone,,Acme,TRUE,Title,Default Title,G-1,90,1,5.00,,,,,1.00,archived\r\n";
    let (products, report) = report(feed.as_bytes());
    let titles: Vec<_> = products
        .iter()
        .map(|product| product.product.title.as_str())
        .collect();
    assert_eq!(titles, ["Shirt", "Cup"]);
    let shirt = &products[0];
    assert_eq!(
        (shirt.product.price.as_str(), shirt.amount),
        ("19.90", Some(19.9))
    );
    assert_eq!(shirt.product.image, "https://cdn.example/1.jpg");
    assert_eq!(shirt.description, "Soft, red");
    for (name, value) in [
        ("availability", "in stock"),
        ("size", "S, M"),
        ("regular_price", "29.90"),
        ("barcode", "4006381333931"),
        ("sku", "S-1"),
    ] {
        assert_eq!(shirt.attributes[name], value, "{name}");
    }
    let cup = &products[1];
    assert_eq!(cup.attributes["availability"], "out of stock");
    for name in ["barcode", "regular_price", "title", "cost_per_item"] {
        assert_eq!(cup.attributes.get(name), None, "{name}");
    }
    assert_eq!(report.rejected.count, 0, "{report:?}");
    assert_eq!(reasons(&report.warnings).len(), 1, "{report:?}");
    let left_out = [
        (6, "it is not published in the shop"),
        (7, "it is a draft in the shop"),
        (9, "it is archived in the shop"),
    ];
    assert_eq!(reasons(&report.left_out), left_out);
    assert_eq!(report.left_out.count, 3);
    let (_, json) =
        self::report(br#"[{"title":"A","status":"ACTIVE"},{"title":"B","status":"draft"}]"#);
    assert_eq!(reasons(&json.left_out), [(2, "it is a draft in the shop")]);
}

#[test]
fn newer_shopify_export_is_read() {
    let feed = "Title,URL handle,Description,Published on online store,Status,SKU,Price,Compare-at price,\
        Price / International,Inventory tracker,Inventory quantity,Continue selling when out of stock,\
        Product image URL,Image position\n\
        Lamp,lamp,<b>Warm</b>,TRUE,Active,L-1,39.00,49.00,55.00,,0,FALSE,https://cdn.example/l.jpg,1\n\
        Oil,oil,,TRUE,Active,O-1,9.00,,12.00,shopify,0,TRUE,,\n\
        Wax,wax,,TRUE,Active,W-1,9.00,,12.00,shopify,0,FALSE,,\n";
    let (products, _) = report(feed.as_bytes());
    let availability: Vec<_> = products
        .iter()
        .map(|product| product.attributes["availability"].as_str())
        .collect();
    assert_eq!(availability, ["in stock", "in stock", "out of stock"]);
    assert_eq!(products[0].product.price, "39.00");
    assert_eq!(products[0].attributes["regular_price"], "49.00");
    assert_eq!(products[0].product.image, "https://cdn.example/l.jpg");
    assert_eq!(products[0].attributes.get("price_international"), None);
}

#[test]
fn woocommerce_variations_fold_into_their_parent() {
    let feed = "ID,Type,SKU,Name,Published,\"Is featured?\",\"Visibility in catalog\",\"Short description\",\
        Description,\"Date sale price starts\",\"Date sale price ends\",\"In stock?\",Stock,\"Sale price\",\
        \"Regular price\",Categories,Images,Parent,\"Attribute 1 name\",\"Attribute 1 value(s)\",\
        \"Download 1 URL\",\"External URL\"\n\
        7,variable,HOODIE,Hoodie,1,0,visible,Warm\\nand soft,,,,1,,,,Clothes,\
        \"https://shop.example/a.jpg, https://shop.example/b.jpg\",,Size,\"S, M\",,\n\
        8,simple,CAP,Cap,1,0,visible,,,2019-01-01,2019-02-01,0,,10,15,Clothes,,,,,https://shop.example/f.zip,\n\
        9,simple,OFF,Off,0,0,visible,,,,,1,,,15,,,,,,,\n\
        10,variation,H-S,Hoodie - S,1,0,visible,,,,,0,,,40,,,HOODIE,Size,S,,\n\
        11,\"variation, virtual\",H-M,Hoodie - M,1,0,visible,,,,,1,2,,45,,,id:7,Size,M,,\n\
        12,variation,X,Lost,1,0,visible,,,,,1,2,,45,,,id:99,Size,M,,\n\
        13,external,E,Extern,1,0,visible,,,,,1,,,5,,,,,,,https://other.example/e\n";
    let (products, report) = report(feed.as_bytes());
    let titles: Vec<_> = products
        .iter()
        .map(|product| product.product.title.as_str())
        .collect();
    assert_eq!(titles, ["Hoodie", "Cap", "Extern"]);
    let hoodie = &products[0];
    assert_eq!(
        (hoodie.amount, hoodie.description.as_str()),
        (Some(40.0), "Warm and soft")
    );
    assert_eq!(hoodie.product.image, "https://shop.example/a.jpg");
    assert_eq!(hoodie.attributes["availability"], "in stock");
    assert_eq!(hoodie.attributes["size"], "S, M");
    let cap = &products[1];
    assert_eq!(
        cap.clone().priced_at(at("2019-01-15T00:00:00Z")).amount,
        Some(10.0)
    );
    assert_eq!(
        cap.clone().priced_at(at("2019-02-02T00:00:00Z")).amount,
        Some(15.0)
    );
    assert_eq!(cap.attributes["availability"], "out of stock");
    assert!(!format!("{cap:?}").contains("f.zip"), "{cap:?}");
    assert_eq!(products[2].product.url, "https://other.example/e");
    assert_eq!(
        (report.rejected.count, report.rejected.first[0].row),
        (1, 7)
    );
    assert_eq!(report.left_out.first[0].row, 4);
}

#[test]
fn google_xml_is_read_from_rss_and_atom() {
    let item = "<g:id>1</g:id><title>Caf&#xE9; &amp; Tea</title><description><![CDATA[<p>Good &eacute;</p>]]></description>\
        <g:image_link>https://cdn.example/1.jpg?a=1&amp;b=2</g:image_link><g:price>15.00 USD</g:price>\
        <g:shipping><g:price>4.95 USD</g:price></g:shipping><g:item_group_id>G</g:item_group_id>";
    let rss = format!(
        "<?xml version=\"1.0\"?><!DOCTYPE rss [<!ENTITY x \"boom\">]><rss xmlns:g=\"http://base.google.com/ns/1.0\">\
        <channel><title>Shop</title><link>https://shop.example</link><image><url>https://shop.example/i.png</url></image>\
        <item>{item}<link>https://shop.example/1</link><g:color>red</g:color><g:note>&x;</g:note></item>\
        <item>{item}<link>https://shop.example/2</link><g:color>blue</g:color></item></channel></rss>"
    );
    let atom = format!(
        "<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>Shop</title><entry>{item}\
        <link rel=\"self\" href=\"https://shop.example/api\"/><link href=\"https://shop.example/1\"/>\
        <g:color>red, blue</g:color></entry></feed>"
    );
    for feed in [rss, atom] {
        let product = only(&feed);
        assert_eq!(product.product.title, "Café & Tea");
        assert_eq!(
            (product.product.price.as_str(), product.amount),
            ("15.00 USD", Some(15.0))
        );
        assert_eq!(product.product.url, "https://shop.example/1");
        assert_eq!(product.product.image, "https://cdn.example/1.jpg?a=1&b=2");
        assert_eq!(product.description, "Good é");
        assert_eq!(product.attributes["color"], "red, blue");
        assert!(!format!("{product:?}").contains("boom"));
    }
}

#[test]
fn broken_xml_is_rejected_as_a_whole() {
    let item = "<rss><channel><item><title>A</title></item>";
    for feed in [
        item.to_owned(),
        format!("{item}<item><title>B</title>"),
        format!("{item}<item"),
    ] {
        assert!(
            matches!(read(&feed), Err(FeedError::BrokenOff { .. })),
            "{feed}"
        );
    }
    let crossed = format!("{item}<item><title>B</item></title></channel></rss>");
    assert!(matches!(read(&crossed), Err(FeedError::Unreadable(_))));
    let long = format!(
        "{item}<item><title>{}</title>",
        "A".repeat(3 * ROW_BYTES_MAX)
    );
    assert!(matches!(
        read_in_pieces(long.as_bytes(), 4096, 10),
        Err(FeedError::RowTooLarge { row: 2, .. })
    ));
    let deep = format!("{item}{}", "<a>".repeat(100));
    assert!(matches!(read(&deep), Err(FeedError::Unreadable(_))));
}

#[test]
fn first_line_can_name_the_separator() {
    for (line, separator) in [
        ("sep=;", ";"),
        ("SEP=,", ","),
        ("sep=\\t", "\t"),
        ("sep=\t", "\t"),
        ("\"sep=;\"", ";"),
        ("sep=^", "^"),
        ("sep=;;", ";"),
    ] {
        for mark in ["", "\u{feff}"] {
            let rows = "Titel|Preis\r\nLampe|1.299 €\r\n".replace('|', separator);
            let product = only(&format!("{mark}{line}\r\n{rows}"));
            assert_eq!(
                (product.product.title.as_str(), product.amount),
                ("Lampe", Some(1299.0)),
                "{line:?}"
            );
        }
    }
    let (_, rejected) = read("sep=;\nTitel;Preis\nLampe;1.299,00 €\n;5\n").unwrap();
    assert_eq!(rejected.first[0].row, 4);
}

#[test]
fn spreadsheet_encodings_are_recognized_over_the_whole_file() {
    let rows: String = (0..30)
        .map(|row| format!("Käse {row};{row},50 €\r\n"))
        .collect();
    // The first accent comes long after the first piece.
    let padding = "Tea;1\r\n".repeat(20_000);
    let text = format!("Titel;Preis\r\n{padding}{rows}");
    let windows: Vec<u8> = text
        .chars()
        .map(|character| match character {
            '€' => 0x80,
            other => u8::try_from(u32::from(other)).unwrap(),
        })
        .collect();
    let utf16 = |swap: bool| -> Vec<u8> {
        let units = std::iter::once(0xfeff).chain(text.encode_utf16());
        units
            .flat_map(|unit| {
                if swap {
                    unit.to_be_bytes()
                } else {
                    unit.to_le_bytes()
                }
            })
            .collect()
    };
    for file in [
        text.clone().into_bytes(),
        windows,
        utf16(true),
        utf16(false),
        utf16(false)[2..].to_vec(),
    ] {
        let (products, rejected) = read_in_pieces(&file, usize::MAX, 50_000).unwrap();
        assert_eq!((products.len(), rejected.count), (20_030, 0));
        let last = &products[20_029].product;
        assert_eq!(
            (last.title.as_str(), last.price.as_str()),
            ("Käse 29", "29,50 €")
        );
    }
    let declared = b"<?xml version='1.0' encoding='ISO-8859-1'?><rss><item><title>K\xe4se</title></item></rss>";
    let (products, _) = read_in_pieces(declared, 7, 10).unwrap();
    assert_eq!(products[0].product.title, "Käse");
}

#[test]
fn sale_price_is_valid_only_while_the_sale_is_on() {
    let feed = "title,price,sale_price,sale_price_effective_date\n\
        Past,20 EUR,15 EUR,2019-01-01T00:00-0800/2019-02-01T23:59-0800\n\
        Future,20 EUR,15 EUR,2098-01-01/2098-02-01\n\
        On,20 EUR,15 EUR,2020-01-01T00:00Z/2098-01-01T00:00Z\n\
        Always,20 EUR,15 EUR,\n\
        Unclear,20 EUR,15 EUR,next week\n\
        Higher,20 EUR,25 EUR,\n\
        Reversed,20 EUR,15 EUR,2098-01-01/2020-01-01\n";
    let (products, report) = report(feed.as_bytes());
    let now = at("2026-01-01T00:00:00Z");
    let prices: Vec<_> = products
        .into_iter()
        .map(|product| product.priced_at(now))
        .map(|product| {
            (
                product.product.price,
                product.amount,
                product.attributes.get("regular_price").cloned(),
            )
        })
        .collect();
    let regular = ("20 EUR".to_owned(), Some(20.0), None);
    let sale = ("15 EUR".to_owned(), Some(15.0), Some("20 EUR".to_owned()));
    assert_eq!(
        prices,
        [
            regular.clone(),
            regular.clone(),
            sale.clone(),
            sale,
            regular.clone(),
            regular.clone(),
            regular
        ]
    );
    let expected = [
        (
            6,
            "the dates of its sale cannot be read; its regular price is shown",
        ),
        (
            8,
            "its sale ends before it begins; its regular price is shown",
        ),
    ];
    assert_eq!(reasons(&report.warnings), expected);
}

#[test]
fn addresses_are_kept_whole_or_left_out_with_a_reason() {
    let long = format!("https://shop.example/{}", "a".repeat(3000));
    let feed = format!(
        "title,link,image_link,manual\nA,https://shop.example/a b?x=1|2,https://cdn.example/a b.jpg,{long}\n\
        B,/products/b,www.shop.example/b.jpg,x\nC,{long},,\nD,https://user:pw@shop.example/,,\n"
    );
    let (products, report) = report(feed.as_bytes());
    assert_eq!(products[0].product.url, "https://shop.example/a%20b?x=1|2");
    assert_eq!(products[0].product.image, "https://cdn.example/a%20b.jpg");
    assert_eq!(products.len(), 4);
    for product in &products[1..] {
        assert_eq!(
            (product.product.url.as_str(), product.product.image.as_str()),
            ("", "")
        );
    }
    let rows: Vec<_> = report
        .warnings
        .first
        .iter()
        .map(|row| (row.row, row.reason.as_str()))
        .collect();
    assert_eq!(rows[0].0, 2);
    assert!(
        rows[0].1.starts_with("its manual contains an address"),
        "{rows:?}"
    );
    assert_eq!(
        rows[1],
        (
            3,
            "its link is no http(s) address and was left out; its picture is no http(s) address and was left out"
        )
    );
    assert_eq!(
        rows[2],
        (4, "its link is longer than 2048 bytes and was left out")
    );
    assert_eq!(
        rows[3],
        (5, "its link is no http(s) address and was left out")
    );
}

#[test]
fn first_of_several_pictures_is_taken_whole() {
    for (list, first) in [
        (
            "https://a.example/1.jpg, https://a.example/2.jpg",
            "https://a.example/1.jpg",
        ),
        (
            "https://a.example/1.jpg,https://a.example/2.jpg",
            "https://a.example/1.jpg",
        ),
        (
            "https://a.example/1,2.jpg|//a.example/3.jpg",
            "https://a.example/1,2.jpg",
        ),
        (
            "//a.example/1.jpg https://a.example/2.jpg",
            "https://a.example/1.jpg",
        ),
        ("https://a.example/1.jpg,", "https://a.example/1.jpg"),
    ] {
        let feed = format!("title\timages\nA\t{list}\n");
        assert_eq!(only(&feed).product.image, first, "{list}");
    }
}
