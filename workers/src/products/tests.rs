//! Tests of the product search: queries of shoppers and models, with the products that they must
//! find.

mod filters;
mod live_search;

use std::sync::Arc;

use proptest::prelude::*;
use switchboard_backends::products::{
    ProductSource, ProductStore, embedded::EmbeddedProducts, feed::FeedReport,
    writer::ProductsWriter,
};
use switchboard_schemas::{
    agent::{Agent, AgentSettings, EcommerceSettings, Product},
    catalog_product::{CatalogProduct, TimedSale},
    ids::{AgentId, OrgId},
    secret::InstallationSecret,
    time::Timestamp,
};

use super::{PriceLimits, ProductQuery, ProductSearch, ProductsFound, index::ProductIndex};

const INDEX_BYTES_MAX: u64 = 64 << 20;

/// A product with a price and attributes such as `brand=Feet`.
fn product(
    title: &str,
    price: &str,
    description: &str,
    attributes: &[(&str, &str)],
) -> CatalogProduct {
    let product = Product {
        title: title.into(),
        price: price.into(),
        image: String::new(),
        url: String::new(),
    };
    let attributes = attributes
        .iter()
        .map(|(name, value)| ((*name).into(), (*value).into()))
        .collect();
    CatalogProduct {
        description: description.into(),
        attributes,
        ..product.into()
    }
}

fn shop() -> Vec<CatalogProduct> {
    vec![
        product(
            "Red running shoes",
            "79.90 EUR",
            "Light, for long ways",
            &[("color", "Red"), ("brand", "Feet")],
        ),
        product(
            "Blue running shoe",
            "49,90 €",
            "",
            &[("color", "Navy Blue"), ("brand", "Feet")],
        ),
        product(
            "Leather boots",
            "129",
            "Brown boots that go with red shoes",
            &[("color", "brown"), ("stock", "in_stock")],
        ),
        product("Kinder-Laufschuhe grün", "39 EUR", "", &[("Farbe", "Grün")]),
        product(
            "T-Shirt Oslo",
            "15 EUR",
            "",
            &[("color", "red"), ("stock", "out of stock")],
        ),
        product(
            "Wireless headphones X12",
            "$199",
            "Noise cancelling",
            &[("category", "Audio > Headphones")],
        ),
        product("Crème brûlée set 500ml", "on request", "", &[]),
        product("Πράσινο παπούτσι", "20 EUR", "", &[]),
        product("Красные кроссовки", "4 990 ₽", "", &[]),
        product("赤いランニングシューズ", "¥9,800", "", &[]),
        product("빨간 운동화", "₩59,000", "", &[]),
        product("รองเท้าวิ่งสีแดง", "990 บาท", "", &[]),
        product("حذاء أحمر", "50", "", &[]),
    ]
}

fn index(products: &[CatalogProduct]) -> ProductIndex {
    let lines: Vec<String> = products
        .iter()
        .map(|product| serde_json::to_string(product).unwrap())
        .collect();
    ProductIndex::build(&[], &[lines.join("\n").into_bytes()]).unwrap()
}

fn query(text: &str) -> ProductQuery {
    ProductQuery {
        text: text.into(),
        limit: 10,
        ..ProductQuery::default()
    }
}

fn titles(found: &ProductsFound) -> Vec<&str> {
    found
        .products
        .iter()
        .map(|found| found.product.title.as_str())
        .collect()
}

fn finds(query: &ProductQuery) -> Vec<String> {
    let found = index(&shop()).search(query).unwrap();
    assert_eq!(found.total as usize, found.products.len());
    titles(&found).into_iter().map(str::to_owned).collect()
}

#[test]
fn word_forms_and_accents_do_not_matter() {
    for (text, first) in [
        ("LEATHER boot", "Leather boots"),
        ("creme brulee", "Crème brûlée set 500ml"),
        ("500 ml", "Crème brûlée set 500ml"),
        ("tshirt", "T-Shirt Oslo"),
        ("t shirt oslo", "T-Shirt Oslo"),
        ("head phones", "Wireless headphones X12"),
        ("schuhe", "Kinder-Laufschuhe grün"),
        ("gruene laufschuhe", "Kinder-Laufschuhe grün"),
        ("παπουτσι", "Πράσινο παπούτσι"),
        ("кроссовки", "Красные кроссовки"),
        ("ランニング", "赤いランニングシューズ"),
        ("운동화", "빨간 운동화"),
        ("รองเท้า", "รองเท้าวิ่งสีแดง"),
        ("أحمر", "حذاء أحمر"),
        ("audio", "Wireless headphones X12"),
        ("noise cancelling", "Wireless headphones X12"),
    ] {
        assert_eq!(
            finds(&query(text)).first().map(String::as_str),
            Some(first),
            "{text}"
        );
    }
}

#[test]
fn misspelt_words_find_the_intended_products() {
    for (text, first) in [
        ("red runing shoes", "Red running shoes"),
        ("haedphones", "Wireless headphones X12"),
        ("wirelss hedphones", "Wireless headphones X12"),
        ("lether boots", "Leather boots"),
        ("кросовки", "Красные кроссовки"),
    ] {
        assert_eq!(
            finds(&query(text)).first().map(String::as_str),
            Some(first),
            "{text}"
        );
    }
}

#[test]
fn unknown_products_are_not_found() {
    for text in ["quantum spaceship", "sofa", "x13", "boat", "飛行機"] {
        assert_eq!(finds(&query(text)), [""; 0], "{text}");
    }
}

#[test]
fn title_matches_rank_before_description_matches() {
    assert_eq!(
        finds(&query("red shoes")),
        ["Red running shoes", "Leather boots"]
    );
}

#[test]
fn wanted_product_ranks_before_its_purpose() {
    let mut products = vec![
        product("Climbing roses", "9", "Wear gloves", &[]),
        product(
            "Roses, roses and roses for roses",
            "9",
            "Thorns go through gloves",
            &[],
        ),
        product(
            "Garden gloves",
            "9",
            "They save your hands from the thorns of berries, of wild and tame roses",
            &[],
        ),
    ];
    // `gloves` is far more common and therefore less distinctive.
    products.extend((0..30).map(|number| product(&format!("Gloves {number}"), "9", "", &[])));
    let index = index(&products);
    let found = index.search(&query("gloves for roses")).unwrap();
    assert_eq!(titles(&found)[0], "Garden gloves");
    assert_eq!(found.total, 3);
}

#[test]
fn long_queries_match_by_their_rarest_words() {
    let index = index(&[
        product("Waterproof umbrella", "9", "", &[]),
        product("Red winter jacket", "9", "cotton", &[]),
        product("Red scarf", "9", "cotton", &[]),
    ]);
    let found = index
        .search(&query("waterproof red winter jacket cotton"))
        .unwrap();
    assert_eq!(titles(&found), ["Red winter jacket"]);
}

#[test]
fn filler_words_do_not_hide_the_product() {
    let asked = "Hello, please show me comfortable red running shoes for my daughter";
    assert_eq!(finds(&query(asked))[0], "Red running shoes");
    assert_eq!(finds(&query("do you have any boots?"))[0], "Leather boots");
}

#[test]
fn empty_query_finds_everything_up_to_the_limit() {
    let index = index(&shop());
    let found = index
        .search(&ProductQuery {
            limit: 3,
            ..ProductQuery::default()
        })
        .unwrap();
    assert_eq!((found.products.len(), found.total), (3, 13));
    assert_eq!(
        index
            .search(&ProductQuery {
                limit: 0,
                ..query("shoe")
            })
            .unwrap()
            .products
            .len(),
        1
    );
    assert_eq!(
        index
            .search(&ProductQuery {
                limit: usize::MAX,
                ..query("")
            })
            .unwrap()
            .products
            .len(),
        13
    );
}

#[test]
fn query_operators_are_plain_words() {
    let index = index(&shop());
    for text in [
        "\"",
        "shoes\"",
        "\"shoes",
        "NOT",
        "red AND",
        "OR OR",
        "NEAR(",
        "title:red",
        "red*",
        "^red",
        "-red",
        "(((",
        "{title}: red",
        "'; DROP TABLE products; --",
        "a\0b",
        "\u{e000}",
        "color\u{e000}red",
        "%",
        "__",
        "😀",
    ] {
        index.search(&query(text)).unwrap();
        let attributes = [
            (text.to_owned(), text.to_owned()),
            ("color".to_owned(), text.to_owned()),
        ]
        .into();
        index
            .search(&ProductQuery {
                attributes,
                ..query(text)
            })
            .unwrap();
    }
    assert_eq!(
        index
            .search(&query("title:red \"shoes\""))
            .unwrap()
            .products[0]
            .product
            .title,
        "Red running shoes"
    );
    assert_eq!(
        index.search(&query("")).unwrap().total,
        13,
        "the index was changed"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn arbitrary_text_is_a_valid_query(text: String, name: String, value: String, min: f64, limit: usize) {
        thread_local! {
            static INDEX: ProductIndex = index(&shop());
        }
        let attributes = [(name, value.clone()), ("color".into(), value)].into();
        let query = ProductQuery { text, prices: PriceLimits { min: Some(min), max: None }, attributes, limit };
        let found = INDEX.with(|index| index.search(&query)).unwrap();
        prop_assert!(found.products.len() as u64 <= found.total);
    }
}

#[test]
fn folders_of_the_product_url_are_searched() {
    let at = |title: &str, url: &str| {
        let mut product = product(title, "1", "", &[]);
        product.product.url = url.into();
        product
    };
    let index = index(&[
        at(
            "Mountain Oolong",
            "https://shop.example/tea/mountain-oolong?from=feed/list",
        ),
        at(
            "Garden Mint",
            "https://shop.example/hot-drinks/tea/garden-mint/",
        ),
        at("Kit", "https://shop.example/kit#/tea/x"),
        at("Cup", "https://tea.example/gear/17"),
        at("Pot", "https://shop.example/t%65a/pot"),
    ]);
    assert_eq!(
        titles(&index.search(&query("tea")).unwrap()),
        ["Mountain Oolong", "Garden Mint"]
    );
    assert_eq!(
        titles(&index.search(&query("drinks")).unwrap()),
        ["Garden Mint"]
    );
    for word in ["https", "example", "feed"] {
        assert_eq!(index.search(&query(word)).unwrap().total, 0, "{word}");
    }
}

#[test]
fn query_that_lists_products_finds_each() {
    let shop = [
        "Red mug",
        "Oak shelf",
        "Red oak shelf",
        "Red oak table",
        "Blue mug",
        "Blue shoes",
        "Red shoes",
        "Red mug and pine shelf",
    ]
    .map(|title| product(title, "10 EUR", "", &[]));
    let index = index(&shop);
    for (text, first) in [
        ("red mug and the oak shelf", ["Red mug", "Oak shelf"]),
        (
            "Do you have an oak shelf, or a blue mug?",
            ["Oak shelf", "Blue mug"],
        ),
        ("red mug + blue mug", ["Red mug", "Blue mug"]),
        (
            "red oak table und blue shoes",
            ["Red oak table", "Blue shoes"],
        ),
        ("mug blue et oak shelves", ["Blue mug", "Oak shelf"]),
    ] {
        let found = index.search(&query(text)).unwrap();
        assert_eq!(titles(&found)[..2], first, "{text}");
    }
    // One product has all words, or a part has only one word.
    for (text, only) in [
        ("red mug and pine shelf", &["Red mug and pine shelf"][..]),
        ("red and blue shoes", &["Blue shoes", "Red shoes"]),
    ] {
        let found = index.search(&query(text)).unwrap();
        let mut titles = titles(&found);
        titles.sort_unstable();
        assert_eq!(titles, only, "{text}");
    }
    let two = ProductQuery {
        limit: 2,
        ..query("red mug and the oak shelf")
    };
    assert_eq!(
        titles(&index.search(&two).unwrap()),
        ["Red mug", "Oak shelf"]
    );
}
