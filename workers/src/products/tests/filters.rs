//! Tests of price limits and attribute filters.

use super::*;

#[test]
fn price_limits_exclude_unpriced_products() {
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
fn typed_prices_are_limits_if_the_query_has_none() {
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
fn attributes_filter_and_unknown_ones_are_words() {
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
    // No product has this attribute.
    assert_eq!(finds(&with("shoes", "sport", "running")).len(), 2);
    assert_eq!(finds(&with("shoes", "sport", "diving")), [""; 0]);
}

/// Returns an index of these titles, each with one attribute.
fn labelled(products: &[(&str, &str, &str)]) -> ProductIndex {
    let products = products
        .iter()
        .map(|(title, name, value)| product(title, "1", "", &[(name, value)]));
    index(&products.collect::<Vec<_>>())
}

fn found_with(index: &ProductIndex, name: &str, value: &str) -> Vec<String> {
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
fn attribute_names_match_in_every_spelling() {
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
        "no product has `stock`, so its value is searched as words"
    );
    assert_eq!(found_with(&index, "in_stock", "used"), [""; 0]);
    assert_eq!(found_with(&index, "condition", "30"), [""; 0]);
}

#[test]
fn part_of_an_attribute_name_is_another_attribute() {
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
        "no product has `cm`, so its value is searched as words"
    );
}

#[test]
fn exact_attribute_values_rank_before_similar_ones() {
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
        // No product has these values, but similar ones exist.
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
fn price_of_a_timed_sale_is_filtered_and_shown_while_it_is_on() {
    let sale = TimedSale {
        price: "15 EUR".into(),
        starts_at: Some(Timestamp::from_micros(100)),
        ends_at: Some(Timestamp::from_micros(200)),
    };
    let lamp = CatalogProduct {
        sale: Some(sale),
        ..product("Lamp", "20 EUR", "", &[])
    };
    let index = index(&[lamp]);
    let price_at = |text: &str, max: f64, micros: i64| {
        let asked = ProductQuery {
            prices: PriceLimits::up_to(max),
            ..query(text)
        };
        let found = index
            .search_at(&asked, Timestamp::from_micros(micros))
            .unwrap();
        assert_eq!(found.total as usize, found.products.len());
        found
            .products
            .first()
            .map(|found| found.product.price.clone())
    };
    for text in ["lamp", ""] {
        assert_eq!(price_at(text, 16.0, 99), None);
        assert_eq!(price_at(text, 20.0, 99).as_deref(), Some("20 EUR"));
        assert_eq!(price_at(text, 16.0, 100).as_deref(), Some("15 EUR"));
        assert_eq!(price_at(text, 16.0, 199).as_deref(), Some("15 EUR"));
        assert_eq!(price_at(text, 16.0, 200), None);
    }
}
