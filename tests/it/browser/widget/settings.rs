//! Effects of each widget setting and theme field, measured in the page.

use serde_json::{Value, json};

use super::{
    super::settings_table::{ANSWER, QUESTION, assert_effects, configuration, settings},
    page::{Visitor, document, served, tag},
};
use crate::support::{Browser, OrganizationDocument, Script, shop_with_settings};

#[tokio::test]
async fn each_setting_and_theme_field_takes_effect() {
    let organization = OrganizationDocument::new()
        .agent("one", configuration(0))
        .agent("other", configuration(1))
        .apply_to_shared()
        .await;
    organization.script(Script::says(ANSWER));
    let settings = settings();
    for (which, agent) in ["one", "other"].into_iter().enumerate() {
        let tag = tag(
            &organization.service().public_urls()[0],
            organization.agent(agent),
            "",
        );
        let visitor = Visitor::at(served(document(&tag), None), Browser::open().await).await;
        visitor.opens().await;
        visitor.says(QUESTION).await;
        visitor
            .is_answered(if which == 0 { "bold" } else { ANSWER })
            .await;
        let measure = async |body: &str| visitor.run(body, Value::Null).await;
        assert_effects(&settings, which, measure).await;
    }
}

#[tokio::test]
async fn message_length_is_counted_as_the_service_counts_it() {
    let limit = json!({"limits": {"maxMessageLength": 10, "rateLimitPerMinute": 100}});
    let organization = shop_with_settings(limit).await;
    organization.script(Script::says("ok"));
    let visitor = Visitor::in_window(&organization).await;
    // Each of these is two UTF-16 units and four bytes.
    visitor.writes(&"😀".repeat(11)).await;
    visitor
        .reads(
            "$('.note')?.innerText.replace('! ', '')",
            json!("1 characters too many"),
        )
        .await;
    visitor.clicks(".send").await;
    assert_eq!(
        visitor.read("all('.row.user').length").await,
        0,
        "it is not sent"
    );
    assert_eq!(
        visitor
            .read("$('.field textarea').getAttribute('aria-invalid')")
            .await,
        "true"
    );
    visitor.writes(&"😀".repeat(10)).await;
    visitor
        .reads("$('.note')?.innerText", json!("0 characters left"))
        .await;
    visitor.clicks(".send").await;
    visitor.is_answered("ok").await;
}

#[tokio::test]
async fn rate_limited_visitor_is_asked_to_wait() {
    let limit = json!({"limits": {"maxMessageLength": 100, "rateLimitPerMinute": 2}});
    let organization = shop_with_settings(limit).await;
    organization.script(Script::says("ok"));
    let visitor = Visitor::in_window(&organization).await;
    for _ in 0..2 {
        visitor.says("hi").await;
        visitor.is_answered("ok").await;
    }
    visitor.says("and another").await;
    visitor
        .sees("the wish", "$('.note').innerText.includes('too fast')")
        .await;
    assert_eq!(
        visitor.read("all('.row.user').length").await,
        2,
        "nothing was sent"
    );
    assert_eq!(
        visitor.read("$('.field textarea').value").await,
        "and another",
        "and nothing was lost"
    );
}

#[tokio::test]
async fn button_shows_its_text_and_the_window_opens_after_its_delay() {
    let organization = OrganizationDocument::new()
        .agent(
            "silent",
            json!({"widget": {"triggerText": "", "autoOpen": false, "autoOpenDelay": 0}}),
        )
        .agent(
            "eager",
            json!({"widget": {"triggerText": "Ask us!", "autoOpen": true, "autoOpenDelay": 300}}),
        )
        .apply_to_shared()
        .await;
    let at = async |agent: &str| {
        let tag = tag(
            &organization.service().public_urls()[0],
            organization.agent(agent),
            "",
        );
        Visitor::at(served(document(&tag), None), Browser::open().await).await
    };
    let silent = at("silent").await;
    assert_eq!(silent.read("$('.launcher').innerText").await, "");
    assert_eq!(
        silent
            .read("$('.launcher').getAttribute('aria-label')")
            .await,
        "Open chat"
    );
    silent.sees("the window's part", "$('.panel')").await;
    assert_eq!(silent.read("shown($('.panel'))").await, false);
    let eager = at("eager").await;
    assert_eq!(eager.read("$('.label').textContent").await, "Ask us!");
    eager.sees("the window", "shown($('.panel'))").await;
    assert_eq!(
        eager.read("document.activeElement === document.body").await,
        true,
        "the focus stays the page's"
    );
    // A visitor who closed the window does not see it again on the next page.
    eager.clicks(".header .plain:last-child").await;
    eager.browser.command("refresh", &json!({})).await;
    eager.sees("the button", "shown($('.launcher'))").await;
    eager.sees("the window's part", "$('.panel')").await;
    eager
        .run(
            "await new Promise(resolve => setTimeout(resolve, 400));",
            Value::Null,
        )
        .await;
    assert_eq!(eager.read("shown($('.panel'))").await, false);
}

#[tokio::test]
async fn full_page_window_opens_only_on_request_and_takes_focus() {
    let eager = json!({"widget": {"autoOpen": true, "autoOpenDelay": 300}});
    let organization = shop_with_settings(eager).await;
    let visitor = Visitor::of_shop(&organization).await;
    visitor.takes_a_phone().await;
    visitor.run("sessionStorage.clear();", Value::Null).await;
    visitor.browser.command("refresh", &json!({})).await;
    visitor.sees("the window's part", "$('.panel')").await;
    visitor
        .run(
            "await new Promise(resolve => setTimeout(resolve, 400));",
            Value::Null,
        )
        .await;
    assert_eq!(visitor.read("shown($('.panel'))").await, false);
    visitor.run("SwitchboardWidget.open();", Value::Null).await;
    visitor
        .sees(
            "the focus in the window",
            "$('.panel').contains(host.shadowRoot.activeElement)",
        )
        .await;
    // It is open again on the next page and has the focus.
    visitor.browser.command("refresh", &json!({})).await;
    visitor
        .sees(
            "the focus in the window",
            "$('.panel')?.contains(host.shadowRoot.activeElement)",
        )
        .await;
}

#[tokio::test]
async fn widget_uses_the_page_language_and_arabic_is_right_to_left() {
    let organization =
        shop_with_settings(json!({"placeholderText": "", "widget": {"triggerText": ""}})).await;
    for (language, direction, button) in [
        ("de-AT", "ltr", "Chat öffnen"),
        ("ar", "rtl", "فتح المحادثة"),
        ("ja", "ltr", "チャットを開く"),
        ("xx", "ltr", "Open chat"),
    ] {
        let tag = tag(
            &organization.service().public_urls()[0],
            organization.shop(),
            "",
        );
        let page = served(
            document(&tag).replace("lang=en", &format!("lang={language}")),
            None,
        );
        let visitor = Visitor::at(page, Browser::open().await).await;
        assert_eq!(
            visitor
                .read("$('.launcher').getAttribute('aria-label')")
                .await,
            button,
            "{language}"
        );
        assert_eq!(
            visitor.read("$('.root').dir").await,
            direction,
            "{language}"
        );
    }
}

#[tokio::test]
async fn default_texts_are_in_the_language_of_the_page() {
    let organization = shop_with_settings(json!({})).await;
    let tag = tag(
        &organization.service().public_urls()[0],
        organization.shop(),
        "",
    );
    let page = served(document(&tag).replace("lang=en", "lang=de"), None);
    let visitor = Visitor::at(page, Browser::open().await).await;
    assert_eq!(
        visitor.read("$('.label').textContent").await,
        "Chatten Sie mit uns"
    );
    visitor.opens().await;
    assert_eq!(
        visitor.read("$('.field textarea').placeholder").await,
        "Nachricht schreiben…"
    );
    visitor
        .reads(
            "$('.bubble')?.innerText",
            json!("Hallo! Wie kann ich Ihnen helfen?"),
        )
        .await;
}
