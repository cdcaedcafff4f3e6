//! Product cards of a real agent in the widget.

use serde_json::{Value, json};

use super::{canary::Canary, page::Visitor};
use crate::support::{Organization, Script, SharedService, shop_with_settings};

const CARDS: &str = "all('.card').map(card => [card.tagName, card.getAttribute('href'), card.querySelector('.title').textContent, card.querySelector('.price')?.textContent ?? null])";

async fn shop(products: Value) -> Organization {
    let ecommerce = json!({"enabled": true, "products": products});
    let organization = shop_with_settings(json!({"ecommerce": ecommerce})).await;
    organization.script(Script::in_turn(vec![
        Script::searches("lamp"),
        Script::says("Look at these."),
    ]));
    organization
}

#[tokio::test]
async fn found_products_are_cards_that_survive_a_refresh() {
    let canary = Canary::start();
    let picture = format!("{}/lamp.png", canary.url);
    let products = json!([
        {"title": "Desk Lamp", "price": "$39", "image": picture, "url": "https://shop.example/desk"},
        {"title": "Floor Lamp", "price": "$89", "image": "", "url": ""},
        {"title": "Mirror", "price": "$10", "image": "", "url": ""}
    ]);
    let organization = shop(products).await;
    let visitor = Visitor::in_window(&organization).await;
    visitor.says("a lamp?").await;
    visitor.is_answered("Look at these.").await;
    let cards = json!([
        ["A", "https://shop.example/desk", "Desk Lamp", "$39"],
        ["DIV", null, "Floor Lamp", "$89"]
    ]);
    assert_eq!(visitor.read(CARDS).await, cards);
    visitor.browser.command("refresh", &json!({})).await;
    visitor.is_answered("Look at these.").await;
    visitor.reads(CARDS, cards).await;
}

#[tokio::test]
async fn hostile_catalog_fields_do_nothing() {
    let service = SharedService::get().await;
    let canary = Canary::start();
    let evil = format!(
        "lamp <img src=x onerror=executed=1><script src={}/s></script>",
        canary.url
    );
    let named = json!([{"title": evil, "price": "<b onclick=executed=1>", "image": "", "url": "https://shop.example/lamp"}]);
    let organization = shop(named).await;
    // An uploaded file is a third-party export and may contain any URL.
    let uploaded = json!([
        {"title": "lamp {{constructor}}", "price": "1", "image": "data:text/html,<script>x</script>", "link": "data:text/html,x"},
        {"title": "lamp", "price": "2", "image": "javascript:executed=1", "link": " JaVaScRiPt:executed=1"}
    ]);
    let path = organization.admin_path(&format!("/agents/{}/products", organization.shop()));
    let answer = service.admin().put(&path, &uploaded).await;
    assert_eq!(
        (answer.status, &answer.json()["count"]),
        (200, &json!(2)),
        "{}",
        answer.text
    );
    let visitor = Visitor::of_shop(&organization).await;
    visitor.run("window.executed = 0;", Value::Null).await;
    visitor.opens().await;
    visitor.says("a lamp?").await;
    visitor.is_answered("Look at these.").await;
    let touch = "for (const card of all('.card')) { card.addEventListener('click', event => event.preventDefault()); card.click(); }";
    visitor.run(touch, Value::Null).await;
    let state = "({executed, cards: all('.card').length, links: all('.card[href]').map(card => card.href), pictures: all('.card img').length, inside: all('.card *').filter(element => element.tagName !== 'SPAN').length})";
    let expected = json!({"executed": 0, "cards": 3, "links": ["https://shop.example/lamp"], "pictures": 0, "inside": 0});
    assert_eq!(visitor.read(state).await, expected);
    let texts = visitor
        .read("all('.card').map(card => card.textContent)")
        .await;
    assert!(
        texts
            .as_array()
            .unwrap()
            .iter()
            .all(|text| !text.as_str().unwrap().contains('<')),
        "{texts}"
    );
    assert_eq!(canary.request_count(), 0, "somebody asked the canary");
}
