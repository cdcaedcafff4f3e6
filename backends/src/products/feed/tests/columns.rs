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
        ("Titel,Preis inkl. MwSt,Farbe", "preis_inkl_mw_st=price"),
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
        ("Lamp\t\"5\nCup\t7\"\nPot\t9\n", "Lamp=\"5|Cup=7\"|Pot=9"),
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
