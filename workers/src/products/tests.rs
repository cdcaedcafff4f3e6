//! What shoppers and models ask for, and what they must find.

use std::sync::Arc;

use proptest::prelude::*;
use switchboard_backends::products::{
    FeedRejections, ProductSource, ProductStore, embedded::EmbeddedProducts, writer::ProductsWriter,
};
use switchboard_schemas::{
    agent::{Agent, AgentSettings, EcommerceSettings, Product},
    catalog_product::CatalogProduct,
    ids::{AgentId, OrgId},
    secret::InstallationSecret,
};

use super::{PriceLimits, ProductQuery, ProductSearch, ProductsFound, index::Index};

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

fn index(products: &[CatalogProduct]) -> Index {
    let lines: Vec<String> = products
        .iter()
        .map(|product| serde_json::to_string(product).unwrap())
        .collect();
    Index::build(&[], &[lines.join("\n").into_bytes()]).unwrap()
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
fn a_product_is_found_by_its_words_in_any_case_number_accent_and_language() {
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
fn misspelt_words_find_what_was_meant() {
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
fn what_the_shop_does_not_have_is_not_found() {
    for text in ["quantum spaceship", "sofa", "x13", "boat", "飛行機"] {
        assert_eq!(finds(&query(text)), [""; 0], "{text}");
    }
}

#[test]
fn words_in_the_title_come_before_words_in_the_description() {
    assert_eq!(
        finds(&query("red shoes")),
        ["Red running shoes", "Leather boots"]
    );
}

#[test]
fn what_is_wished_for_comes_before_what_it_is_for_and_a_title_before_any_description() {
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
    // `gloves` is the more common word by far, which tells less.
    products.extend((0..30).map(|number| product(&format!("Gloves {number}"), "9", "", &[])));
    let index = index(&products);
    let found = index.search(&query("gloves for roses")).unwrap();
    assert_eq!(titles(&found)[0], "Garden gloves");
    assert_eq!(found.total, 3);
}

#[test]
fn long_wishes_find_what_has_the_most_telling_half_of_their_words() {
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
fn words_around_the_wish_do_not_hide_it() {
    let asked = "Hello, please show me comfortable red running shoes for my daughter";
    assert_eq!(finds(&query(asked))[0], "Red running shoes");
    assert_eq!(finds(&query("do you have any boots?"))[0], "Leather boots");
}

#[test]
fn prices_are_limits_and_products_without_one_are_outside_them() {
    let between = |min, max| ProductQuery {
        prices: PriceLimits { min, max },
        ..query("running shoes")
    };
    assert_eq!(finds(&between(None, Some(50.0))), ["Blue running shoe"]);
    assert_eq!(finds(&between(Some(50.0), None)), ["Red running shoes"]);
    assert_eq!(
        finds(&between(Some(79.9), Some(79.9))),
        ["Red running shoes"]
    );
    assert_eq!(finds(&between(Some(f64::NAN), Some(f64::NAN))).len(), 2);
    assert_eq!(finds(&between(Some(60.0), Some(50.0))), [""; 0]);
    let cheap = ProductQuery {
        prices: PriceLimits::up_to(20.0),
        ..query("")
    };
    assert_eq!(finds(&cheap), ["T-Shirt Oslo", "Πράσινο παπούτσι"]);
    assert_eq!(
        finds(&ProductQuery {
            prices: PriceLimits::up_to(1000.0),
            ..query("creme")
        }),
        [""; 0]
    );
}

#[test]
fn prices_among_the_words_are_limits_where_the_query_has_none() {
    let index = index(&shop());
    let search = |query: &ProductQuery| {
        let found = index.search(query).unwrap();
        (
            titles(&found)
                .into_iter()
                .map(str::to_owned)
                .collect::<Vec<_>>(),
            found.typed,
        )
    };
    let max = |max| PriceLimits {
        min: None,
        max: Some(max),
    };
    assert_eq!(
        search(&query("running shoes under 50 EUR")),
        (vec!["Blue running shoe".into()], max(50.0))
    );
    assert_eq!(
        search(&query("running shoes under 50")).1,
        PriceLimits::default()
    );
    let (all, read) = search(&query("bis 20 €"));
    assert_eq!((all.len(), read), (2, max(20.0)), "{all:?}");
    let said_apart = ProductQuery {
        prices: PriceLimits::up_to(100.0),
        ..query("running shoes under 50 EUR")
    };
    let (both, read) = search(&said_apart);
    assert_eq!((both.len(), read), (2, PriceLimits::default()), "{both:?}");
    let lower = ProductQuery {
        prices: PriceLimits::up_to(100.0),
        ..query("running shoes over 50 EUR")
    };
    assert_eq!(
        search(&lower),
        (
            vec!["Red running shoes".into()],
            PriceLimits {
                min: Some(50.0),
                max: None
            }
        )
    );
}

#[test]
fn attributes_are_filters_by_name_and_an_unknown_one_is_words() {
    let with = |text: &str, name: &str, value: &str| ProductQuery {
        attributes: [(name.to_owned(), value.to_owned())].into(),
        ..query(text)
    };
    assert_eq!(
        finds(&with("shoes", "Color", "blue")),
        ["Blue running shoe"]
    );
    assert_eq!(
        finds(&with("", "COLOR", "reds")),
        ["Red running shoes", "T-Shirt Oslo"]
    );
    assert_eq!(
        finds(&with("", "farbe", "grun")),
        ["Kinder-Laufschuhe grün"]
    );
    assert_eq!(finds(&with("shoes", "color", "purple")), [""; 0]);
    assert_eq!(finds(&with("", "stock", "in stock")), ["Leather boots"]);
    // No product says for which sport it is.
    assert_eq!(finds(&with("shoes", "sport", "running")).len(), 2);
    assert_eq!(finds(&with("shoes", "sport", "diving")), [""; 0]);
}

/// A shop of these titles, each with one attribute.
fn labelled(products: &[(&str, &str, &str)]) -> Index {
    let products = products
        .iter()
        .map(|(title, name, value)| product(title, "1", "", &[(name, value)]));
    index(&products.collect::<Vec<_>>())
}

fn found_with(index: &Index, name: &str, value: &str) -> Vec<String> {
    let asked = ProductQuery {
        attributes: [(name.to_owned(), value.to_owned())].into(),
        ..query("")
    };
    titles(&index.search(&asked).unwrap())
        .into_iter()
        .map(str::to_owned)
        .collect()
}

#[test]
fn an_attribute_of_two_words_is_a_filter_however_its_name_is_written() {
    let index = labelled(&[
        ("Present", "in_stock", "yes"),
        ("Absent", "in_stock", "no"),
        ("Long", "length_cm", "30"),
        ("Short", "length_cm", "12"),
        ("Coat", "product_type", "Winter coats > Wool"),
        ("Toy", "age_group", "toddler"),
        ("Dress", "size_type", "plus size"),
        ("Worn", "condition", "used"),
    ]);
    for (names, value, title) in [
        (
            ["in_stock", "in stock", "in-stock", "inStock"],
            "yes",
            "Present",
        ),
        (
            ["length_cm", "Length CM", "length-cm", "lengthCm"],
            "30",
            "Long",
        ),
        (
            [
                "product_type",
                "product type",
                "Product-Type",
                "productType",
            ],
            "winter coats",
            "Coat",
        ),
        (
            ["age_group", "age group", "age-group", "ageGroup"],
            "Toddler",
            "Toy",
        ),
        (
            ["size_type", "size type", "size-type", "sizeType"],
            "size plus",
            "Dress",
        ),
    ] {
        for name in names {
            assert_eq!(found_with(&index, name, value), [title], "{name}");
            assert_eq!(found_with(&index, name, "cardboard"), [""; 0], "{name}");
        }
    }
    // A part of a name is another name, and the values of one are not those of another.
    assert_eq!(
        found_with(&index, "stock", "used"),
        ["Worn"],
        "nobody has `stock`, so that it is words"
    );
    assert_eq!(found_with(&index, "in_stock", "used"), [""; 0]);
    assert_eq!(found_with(&index, "condition", "30"), [""; 0]);
}

#[test]
fn a_part_of_an_attributes_name_is_another_attribute() {
    let index = labelled(&[
        ("Table", "length_cm", "30"),
        ("Rug", "length", "30"),
        ("Stick", "length", "12"),
    ]);
    assert_eq!(found_with(&index, "length", "30"), ["Rug"]);
    assert_eq!(found_with(&index, "length_cm", "30"), ["Table"]);
    assert_eq!(
        found_with(&index, "cm", "12"),
        ["Stick"],
        "nobody has `cm`, so that it is words"
    );
}

#[test]
fn the_very_value_of_an_attribute_comes_before_values_like_it() {
    let colors = [
        ("Fog", "Grey"),
        ("Leaf", "Green"),
        ("Night", "Navy Blue"),
        ("Sky", "blue"),
        ("Ash", "gray"),
    ];
    let index = labelled(&colors.map(|(title, color)| (title, "Colour", color)));
    for (name, value, found) in [
        ("color", "grey", &["Fog", "Ash"][..]),
        ("colour", "GRAY", &["Fog", "Ash"]),
        ("color", "green", &["Leaf"]),
        ("colour", "blue", &["Night", "Sky"]),
        ("color", "navy blue", &["Night"]),
        // Nobody has these, and they are near to what somebody has.
        ("color", "gren", &["Leaf"]),
        ("color", "greens", &["Leaf"]),
        ("color", "blu", &["Night", "Sky"]),
        ("color", "red", &[]),
    ] {
        assert_eq!(found_with(&index, name, value), found, "{value}");
    }
    let index = labelled(&[
        ("Leaf", "color", "green"),
        ("Gown", "type", "dress"),
        ("Bread", "type", "Brötchen"),
    ]);
    assert_eq!(found_with(&index, "color", "grey"), [""; 0]);
    assert_eq!(found_with(&index, "type", "dresses"), ["Gown"]);
    assert_eq!(found_with(&index, "type", "broetchen"), ["Bread"]);
}

#[test]
fn everything_is_found_by_no_words_and_at_most_so_much_is_given() {
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
fn operators_of_the_index_are_words_like_any_others() {
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
        "nothing was changed"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_is_searched_without_an_error(text: String, name: String, value: String, min: f64, limit: usize) {
        thread_local! {
            static INDEX: Index = index(&shop());
        }
        let attributes = [(name, value.clone()), ("color".into(), value)].into();
        let query = ProductQuery { text, prices: PriceLimits { min: Some(min), max: None }, attributes, limit };
        let found = INDEX.with(|index| index.search(&query)).unwrap();
        prop_assert!(found.products.len() as u64 <= found.total);
    }
}

#[test]
fn the_folders_of_a_link_say_what_a_product_is() {
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

/// A shop whose products are kept.
struct World {
    products: Arc<dyn ProductStore>,
    search: ProductSearch,
    agent: Agent,
    _directory: tempfile::TempDir,
}

impl World {
    fn new(index_bytes_max: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let products: Arc<dyn ProductStore> =
            Arc::new(EmbeddedProducts::open(&directory.path().join("products.db")).unwrap());
        let search = ProductSearch::new(Arc::clone(&products), index_bytes_max);
        Self {
            products,
            search,
            agent: agent("acme", "shop"),
            _directory: directory,
        }
    }

    async fn keep(&self, titles: &[&str]) {
        let (org, agent) = (self.agent.org_id.clone(), self.agent.id.clone());
        let mut writer = ProductsWriter::begin(Arc::clone(&self.products), org, agent)
            .await
            .unwrap();
        for title in titles {
            writer.push(&product(title, "1", "", &[])).await.unwrap();
        }
        writer
            .publish(ProductSource::Upload, FeedRejections::default())
            .await
            .unwrap();
    }

    async fn titles(&self, agent: &Agent) -> Vec<String> {
        let found = self.search.search(agent, &query("")).await.unwrap();
        titles(&found).into_iter().map(str::to_owned).collect()
    }

    async fn eventually(&self, expected: &[&str]) {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(2);
        while self.titles(&self.agent).await != expected {
            assert!(std::time::Instant::now() < deadline, "not live within 2 s");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
}

fn agent(org: &str, slug: &str) -> Agent {
    let secret = InstallationSecret::from_bytes([7; 32]);
    let org_id = OrgId::derive(&secret, org);
    Agent {
        id: AgentId::derive(&secret, &org_id, slug),
        org_id,
        slug: slug.into(),
        name: slug.into(),
        provider: None,
        fallback_provider: None,
        settings: AgentSettings::default(),
    }
}

#[tokio::test]
async fn what_is_kept_is_found_and_a_change_is_live_within_two_seconds() {
    let world = World::new(INDEX_BYTES_MAX);
    assert!(world.titles(&world.agent).await.is_empty());
    world.keep(&["Tea", "Cup"]).await;
    world.eventually(&["Tea", "Cup"]).await;
    world.keep(&["Coffee"]).await;
    world.eventually(&["Coffee"]).await;
    world
        .products
        .remove(&world.agent.org_id, &world.agent.id)
        .await
        .unwrap();
    world.eventually(&[]).await;
}

#[tokio::test]
async fn products_of_the_agents_own_document_come_first_and_change_at_once() {
    let world = World::new(INDEX_BYTES_MAX);
    world.keep(&["Tea"]).await;
    let mut agent = world.agent.clone();
    for title in ["Cup", "Pot"] {
        let named = product(title, "1", "", &[]).product;
        agent.settings.ecommerce = EcommerceSettings {
            products: vec![named],
            ..EcommerceSettings::default()
        };
        assert_eq!(world.titles(&agent).await, [title, "Tea"]);
    }
}

#[tokio::test]
async fn nobody_finds_the_products_of_another_agent_or_organization() {
    let world = World::new(INDEX_BYTES_MAX);
    world.keep(&["Tea"]).await;
    assert_eq!(world.titles(&world.agent).await, ["Tea"]);
    for (org, slug) in [("acme", "other"), ("other", "shop")] {
        assert!(world.titles(&agent(org, slug)).await.is_empty());
    }
}

#[tokio::test]
async fn an_index_that_does_not_fit_into_memory_is_made_again_and_finds_the_same() {
    let world = World::new(1);
    world.keep(&["Tea"]).await;
    for _ in 0..3 {
        assert_eq!(world.titles(&world.agent).await, ["Tea"]);
    }
}

#[tokio::test]
async fn an_index_is_finished_though_nobody_waits_so_long() {
    let world = World::new(INDEX_BYTES_MAX);
    let many: Vec<String> = (0..2_000)
        .map(|number| format!("Tea number {number}"))
        .collect();
    world
        .keep(&many.iter().map(String::as_str).collect::<Vec<_>>())
        .await;
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    let asked = query("tea");
    // Far less than making an index of so many takes.
    let patience = std::time::Duration::from_millis(5);
    while tokio::time::timeout(patience, world.search.search(&world.agent, &asked))
        .await
        .is_err()
    {
        assert!(
            std::time::Instant::now() < deadline,
            "each who asks begins anew"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_ask_at_once_all_find() {
    let world = World::new(INDEX_BYTES_MAX);
    world.keep(&["Tea", "Tea cup"]).await;
    let asked = query("tea");
    let searches = (0..50).map(|_| world.search.search(&world.agent, &asked));
    for found in futures::future::join_all(searches).await {
        assert_eq!(found.unwrap().total, 2);
    }
}
