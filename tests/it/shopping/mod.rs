//! Shopping with an agent that has products. Found products are in a header before the first byte,
//! in the `ui` event and in the history, and a failing tool never fails the reply.

mod product_grids;
mod tool_calls;

use serde_json::{Value, json};

use crate::support::{Organization, OrganizationDocument, Reply};

fn product(title: &str, price: &str) -> Value {
    let name = title.to_lowercase().replace(' ', "-");
    json!({"title": title, "price": price, "image": format!("https://shop.example/{name}.jpg"), "url": format!("https://shop.example/{name}")})
}

fn catalog() -> Vec<Value> {
    let lamps = [
        ("Desk Lamp", "$39"),
        ("Floor Lamp", "$89"),
        ("Reading Lamp", "$25"),
    ];
    let others = [
        ("Oak Table", "$240"),
        ("Blue Chair", "$75"),
        ("Lamp „Süd“ ☕", "19,90 €"),
    ];
    lamps
        .into_iter()
        .chain(others)
        .map(|(title, price)| product(title, price))
        .collect()
}

fn shop(products: Vec<Value>) -> OrganizationDocument {
    let ecommerce = json!({"enabled": true, "products": products});
    OrganizationDocument::new()
        .continuing()
        .shop(json!({ "ecommerce": ecommerce }))
}

fn titles(spec: &Value) -> Vec<&str> {
    assert_eq!(spec["type"], "product-grid", "{spec}");
    spec["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|card| card["title"].as_str().unwrap())
        .collect()
}

fn header(reply: &Reply) -> Option<Value> {
    reply
        .header("x-ui-spec")
        .map(|text| serde_json::from_str(text).unwrap())
}

/// Returns the tool results in the last request to the model.
fn tool_results(organization: &Organization) -> Vec<String> {
    let request = organization.requests().pop().unwrap();
    request
        .messages
        .into_iter()
        .filter(|(role, _)| role == "tool")
        .map(|(_, text)| text)
        .collect()
}
