//! Attributes of products as filters.

use super::*;

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
fn attribute_name_of_two_words_filters_in_any_spelling() {
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
        "nobody has `cm`, so that it is words"
    );
}

#[test]
fn exact_attribute_value_comes_before_similar_ones() {
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
