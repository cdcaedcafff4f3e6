//! The notice that visitors talk to a machine, and the link to the privacy notice.

use serde_json::{Value, json};

use super::page::{Visitor, document, served, tag};
use crate::support::{Browser, Organization, shop_with_settings};

const PRIVACY: &str = "https://shop.example/privacy";
const LINKS: &str =
    "all('a').filter(shown).map(link => [link.innerText, link.href, link.target, link.rel])";

async fn shop(disclosure: Value) -> Organization {
    shop_with_settings(json!({
        "disclosure": disclosure, "features": {"enableEmailCapture": true, "enableMarkdown": true}
    }))
    .await
}

#[tokio::test]
async fn disclosure_is_on_by_default_and_translated() {
    let organization = shop_with_settings(json!({})).await;
    let visitor = Visitor::in_window(&organization).await;
    visitor
        .reads(
            "$('.notice').innerText.trim()",
            json!("You are chatting with an AI assistant."),
        )
        .await;
    let place = "({name: $('.notice').ariaLabel, below: $('.notice').previousElementSibling.innerText.includes('Hello'), links: all('.notice a').length})";
    let expected = json!({"name": "About this chat", "below": true, "links": 0});
    assert_eq!(visitor.read(place).await, expected);

    let tag = tag(
        &organization.service().public_urls()[0],
        organization.shop(),
        "data-language=de",
    );
    let german = Visitor::at(served(document(&tag), None), Browser::open().await).await;
    german.opens().await;
    german
        .reads(
            "$('.notice').innerText.trim()",
            json!("Sie chatten mit einem KI-Assistenten."),
        )
        .await;
}

#[tokio::test]
async fn own_words_and_the_privacy_link_are_shown() {
    let organization =
        shop(json!({"text": "<b>A robot</b> answers.", "privacyLink": PRIVACY})).await;
    let visitor = Visitor::in_window(&organization).await;
    visitor
        .reads(
            "$('.notice').innerText",
            json!("<b>A robot</b> answers. Privacy"),
        )
        .await;
    let link = json!(["Privacy", PRIVACY, "_blank", "noopener noreferrer"]);
    visitor.reads(LINKS, json!([link, link])).await;
    assert_eq!(
        visitor.read("shown($('.ask a'))").await,
        true,
        "one of them is in the form"
    );
}

#[tokio::test]
async fn disclosure_that_is_off_leaves_the_privacy_link() {
    let organization = shop(json!({"enabled": false, "text": "unseen"})).await;
    let visitor = Visitor::in_window(&organization).await;
    visitor.sees("the form", "shown($('.ask input'))").await;
    assert_eq!(visitor.read("$('.notice')").await, Value::Null);
    let organization = shop(json!({"enabled": false, "privacyLink": PRIVACY})).await;
    let visitor = Visitor::in_window(&organization).await;
    visitor
        .reads("$('.notice').innerText.trim()", json!("Privacy"))
        .await;
}

#[tokio::test]
async fn inactive_agent_keeps_its_notice() {
    let settings = json!({"status": "inactive", "disclosure": {"text": "A robot answers."}});
    let visitor = Visitor::of_shop(&shop_with_settings(settings).await).await;
    visitor.clicks(".launcher").await;
    visitor
        .reads("$('.notice')?.innerText.trim()", json!("A robot answers."))
        .await;
}
