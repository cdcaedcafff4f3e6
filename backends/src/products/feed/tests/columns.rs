//! Names of columns that are misspelled, and quotes in files without quoting.

use super::*;

fn report(feed: &str) -> FeedReport {
    let mut file = Cursor::new(feed.as_bytes());
    read_with_report(&mut file, 1000).unwrap().1
}

#[test]
fn misspelled_columns_are_named_with_the_meant_one() {
    for (head, meant) in [
        ("title,pirce,colour", "pirce=price"),
        ("Titel,Preiss,Farbe", "preiss=price"),
        ("Titel,Preis ab Lager,Farbe", "preis_ab_lager=price"),
        ("title,price,sale_prise", "sale_prise=sale_price"),
        ("title,price,imagelnik", "imagelnik=image_link"),
        ("title,price,Prices", ""),
        ("title,cost price,colour", ""),
    ] {
        let report = report(&format!("{head}\nLamp,1,2\n"));
        let columns = report.attribute_columns.iter();
        let suggestions: Vec<_> = columns
            .filter_map(|column| Some(format!("{}={}", column.name, column.meant.as_ref()?)))
            .collect();
        assert_eq!(suggestions.join(" "), meant, "{head}");
    }
    let json = report(r#"[{"title":"A","colour":"red"},{"title":"B","pirce":5}]"#);
    let names: Vec<_> = json.attribute_columns.iter().map(|it| &it.name).collect();
    assert_eq!(names, ["pirce", "colour"]);
    let many: String = (0..100).map(|number| format!("a{number},")).collect();
    let report = report(&format!("{many}title\n{}Lamp\n", "x,".repeat(100)));
    assert_eq!(report.attribute_columns.len(), 20);
}

#[test]
fn lone_quotes_of_tsv_are_text() {
    for (rows, expected) in [
        ("12\" lamp\t5\nCup\t7\n", "12\" lamp=5|Cup=7"),
        ("\"Best\" lamp\t5\nCup\t7\n", "\"Best\" lamp=5|Cup=7"),
        ("\"Lamp\t5\nCup\t7\nPot\t9\n", "\"Lamp=5|Cup=7|Pot=9"),
        ("\"Lamp\t5\r\nCup\t7", "\"Lamp=5|Cup=7"),
        (
            "\"Lamp\t5\nCup 12\"\t7\nPot\t9\n",
            "\"Lamp=5|Cup 12\"=7|Pot=9",
        ),
        ("Lamp\t\"5\nCup\t7\"\nPot\t9\n", "Lamp=5|Cup=7|Pot=9"),
        ("\"A\t1\n\"B\t2\n\"C\t3", "\"A=1|\"B=2|\"C=3"),
        // Spreadsheets quote fields.
        ("\"Two\nlines\"\t5\nCup\t7\n", "Two lines=5|Cup=7"),
        ("\"A \"\"B\"\"\tC\"\t5\n", "A \"B\" C=5"),
        ("Lamp\t\"5\n6\"\nCup\t7\n", "Lamp=5 6|Cup=7"),
    ] {
        let (products, rejected) = read(&format!("title\tprice\n{rows}")).unwrap();
        assert_eq!(rejected.count, 0, "{rows}");
        let found: Vec<_> = products
            .iter()
            .map(|it| format!("{}={}", it.product.title, it.product.price))
            .collect();
        assert_eq!(found.join("|"), expected, "{rows}");
    }
    let rows = "Cup\t7\n".repeat(ROW_BYTES_MAX / 4);
    let feed = format!("title\tprice\tcolour\n\"Lamp\t5\n{rows}");
    let (products, _) = read_in_pieces(feed.as_bytes(), 4096, 1_000_000).unwrap();
    assert_eq!(products.len(), ROW_BYTES_MAX / 4 + 1);
    let broken_off = "title\tprice\tbody\nLamp\t5\t\"two\nli";
    assert_eq!(read(broken_off), Err(FeedError::BrokenOff { row: 2 }));
}

#[test]
fn heading_below_captions_is_found_and_sums_are_no_products() {
    for feed in [
        "Preisliste 2026;;\r\n;;\r\nName;VK-Preis;Link\r\nLampe;'12,50;https://a.example/1\r\n;;\r\nSumme:;12,50;\r\n",
        "Product list, spring\n\nitem name\tprice\nLampe\t=\"12,50\"\nTotal\t12,50",
        "sep=;\nPreise, Stand Mai\nTitel;Preis\nLampe;12,50\nGesamt;12,50\n",
    ] {
        let (products, rejected) = read(feed).unwrap();
        let products: Vec<_> = products
            .iter()
            .map(|it| (it.product.title.as_str(), it.product.price.as_str()))
            .collect();
        assert_eq!(products, [("Lampe", "12,50")], "{feed}");
        assert_eq!(rejected.first[0].reason, "it is a sum of other rows");
    }
    let late = format!("{}title\nLamp\n", "caption\n".repeat(10));
    assert!(matches!(read(&late), Err(FeedError::Unreadable(_))));
}
