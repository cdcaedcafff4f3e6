//! Each setting and each field of the theme has its effect: the page measures it for two values, and they differ as they
//! should.

use serde_json::{Value, json};

use super::page::{Visitor, document, served, tag};
use crate::support::{Browser, OrganizationDocument, Script, SharedService};

/// What the browser makes of a widget, one measure for each setting.
const MEASURE: &str = "
    const box = selector => $(selector).getBoundingClientRect();
    const style = selector => getComputedStyle($(selector));
    const launcher = box('.launcher'), panel = box('.panel');
    return {
        position: [launcher.top < innerHeight / 2 ? 'top' : 'bottom', launcher.left < innerWidth / 2 ? 'left' : 'right'].join('-'),
        size: panel.width,
        showAvatar: shown($('.row.assistant .avatar')),
        showTimestamp: shown($('time')),
        enableMarkdown: all('.row.assistant strong').length > 0,
        enableEmailCapture: shown($('.ask:not(.rating)')),
        enableRating: shown($('.rating')),
        showPoweredBy: shown($('.powered')),
        placeholderText: $('.field textarea').placeholder,
        welcomeMessage: $('.row.assistant .bubble').innerText,
        primaryColor: style('.launcher').backgroundColor,
        backgroundColor: style('.panel').backgroundColor,
        textColor: style('.root').color,
        borderRadius: style('.bubble').borderTopRightRadius,
        fontFamily: style('.bubble').fontFamily,
        chatHeaderColor: style('header').backgroundColor,
        userMessageColor: style('.row.user .bubble').backgroundColor,
        botMessageColor: style('.row.assistant .bubble').backgroundColor,
        inputBackgroundColor: style('.field').backgroundColor,
        sendButtonColor: style('.send').backgroundColor,
    };";

#[tokio::test]
async fn each_setting_and_each_field_of_the_theme_has_its_effect() {
    let service = SharedService::get().await;
    let one = json!({
        "welcomeMessage": "Welcome!", "placeholderText": "Write",
        "features": {"enableMarkdown": true, "enableEmailCapture": true, "enableRating": true},
        "widget": {"position": "bottom-right", "size": "small", "showAvatar": true, "showTimestamp": true, "showPoweredBy": true},
        "theme": {
            "primaryColor": "#102030", "backgroundColor": "#fefefe", "textColor": "#010203", "borderRadius": "14px",
            "fontFamily": "Georgia, serif", "chatHeaderColor": "rgb(1, 60, 90)", "userMessageColor": "navy",
            "botMessageColor": "#eeeeee", "inputBackgroundColor": "#f5f5f5", "sendButtonColor": "hsl(120, 100%, 20%)"
        }
    });
    let other = json!({
        "welcomeMessage": "Servus", "placeholderText": "Ask",
        "features": {"enableMarkdown": false, "enableEmailCapture": false, "enableRating": false},
        "widget": {"position": "top-left", "size": "large", "showAvatar": false, "showTimestamp": false, "showPoweredBy": false},
        "theme": {
            "primaryColor": "#ffcc00", "backgroundColor": "#101014", "textColor": "#f0f0f0", "borderRadius": "0",
            "fontFamily": "monospace", "chatHeaderColor": "#223344", "userMessageColor": "#004400",
            "botMessageColor": "#202020", "inputBackgroundColor": "#000000", "sendButtonColor": "#ff8800"
        }
    });
    let organization = OrganizationDocument::new().agent("one", one).agent("other", other).apply(&service).await;
    organization.script(Script::says("**bold**"));
    let measured = async |agent: &str| {
        let tag = tag(&service.public_urls()[0], organization.agent(agent), "");
        let visitor = Visitor::at(served(document(&tag), None), Browser::open().await).await;
        visitor.opens().await;
        visitor.says("hello").await;
        visitor.is_answered(if agent == "one" { "bold" } else { "**bold**" }).await;
        visitor.run(MEASURE, Value::Null).await
    };
    let (one, other) = (measured("one").await, measured("other").await);
    for (setting, of_one, of_other) in [
        ("position", json!("bottom-right"), json!("top-left")),
        ("size", json!(336), json!(456)),
        ("showAvatar", json!(true), json!(false)),
        ("showTimestamp", json!(true), json!(false)),
        ("enableMarkdown", json!(true), json!(false)),
        ("enableEmailCapture", json!(true), json!(false)),
        ("enableRating", json!(true), json!(false)),
        ("showPoweredBy", json!(true), json!(false)),
        ("placeholderText", json!("Write"), json!("Ask")),
        ("welcomeMessage", json!("Welcome!"), json!("Servus")),
        ("primaryColor", json!("rgb(16, 32, 48)"), json!("rgb(255, 204, 0)")),
        ("backgroundColor", json!("rgb(254, 254, 254)"), json!("rgb(16, 16, 20)")),
        ("textColor", json!("rgb(1, 2, 3)"), json!("rgb(240, 240, 240)")),
        ("borderRadius", json!("14px"), json!("0px")),
        ("fontFamily", json!("Georgia, serif"), json!("monospace")),
        ("chatHeaderColor", json!("rgb(1, 60, 90)"), json!("rgb(34, 51, 68)")),
        ("userMessageColor", json!("rgb(0, 0, 128)"), json!("rgb(0, 68, 0)")),
        ("botMessageColor", json!("rgb(238, 238, 238)"), json!("rgb(32, 32, 32)")),
        ("inputBackgroundColor", json!("rgb(245, 245, 245)"), json!("rgb(0, 0, 0)")),
        ("sendButtonColor", json!("rgb(0, 102, 0)"), json!("rgb(255, 136, 0)")),
    ] {
        assert_eq!((&one[setting], &other[setting]), (&of_one, &of_other), "{setting}");
    }
}

#[tokio::test]
async fn the_longest_message_is_counted_in_characters_as_the_service_counts_them() {
    let service = SharedService::get().await;
    let limit = json!({"limits": {"maxMessageLength": 10, "rateLimitPerMinute": 100}});
    let organization = OrganizationDocument::new().agent("shop", limit).apply(&service).await;
    organization.script(Script::says("ok"));
    let visitor = Visitor::of_shop(&service, &organization).await;
    visitor.opens().await;
    // Each of these is two UTF-16 units and four bytes.
    visitor.writes(&"😀".repeat(11)).await;
    visitor.reads("$('.note').innerText.replace('! ', '')", json!("1 characters too many")).await;
    visitor.clicks(".send").await;
    assert_eq!(visitor.read("all('.row.user').length").await, 0, "it is not sent");
    assert_eq!(visitor.read("$('.field textarea').getAttribute('aria-invalid')").await, "true");
    visitor.writes(&"😀".repeat(10)).await;
    visitor.reads("$('.note').innerText", json!("0 characters left")).await;
    visitor.clicks(".send").await;
    visitor.is_answered("ok").await;
}

#[tokio::test]
async fn a_visitor_who_writes_faster_than_the_agent_allows_is_asked_to_wait() {
    let service = SharedService::get().await;
    let limit = json!({"limits": {"maxMessageLength": 100, "rateLimitPerMinute": 2}});
    let organization = OrganizationDocument::new().agent("shop", limit).apply(&service).await;
    organization.script(Script::says("ok"));
    let visitor = Visitor::of_shop(&service, &organization).await;
    visitor.opens().await;
    for _ in 0..2 {
        visitor.says("hi").await;
        visitor.is_answered("ok").await;
    }
    visitor.says("and another").await;
    visitor.sees("the wish", "$('.note').innerText.includes('very fast')").await;
    assert_eq!(visitor.read("all('.row.user').length").await, 2, "nothing was sent");
    assert_eq!(visitor.read("$('.field textarea').value").await, "and another", "and nothing was lost");
}

#[tokio::test]
async fn the_button_says_its_text_and_the_window_opens_by_itself_after_its_delay() {
    let service = SharedService::get().await;
    let organization = OrganizationDocument::new()
        .agent("silent", json!({"widget": {"triggerText": "", "autoOpen": false, "autoOpenDelay": 0}}))
        .agent("eager", json!({"widget": {"triggerText": "Ask us!", "autoOpen": true, "autoOpenDelay": 300}}))
        .apply(&service)
        .await;
    let at = async |agent: &str| {
        let tag = tag(&service.public_urls()[0], organization.agent(agent), "");
        Visitor::at(served(document(&tag), None), Browser::open().await).await
    };
    let silent = at("silent").await;
    assert_eq!(silent.read("$('.launcher').innerText").await, "");
    assert_eq!(silent.read("$('.launcher').getAttribute('aria-label')").await, "Open chat");
    silent.sees("the window's part", "$('.panel')").await;
    assert_eq!(silent.read("shown($('.panel'))").await, false);
    let eager = at("eager").await;
    assert_eq!(eager.read("$('.label').textContent").await, "Ask us!");
    eager.sees("the window", "shown($('.panel'))").await;
    assert_eq!(eager.read("document.activeElement === document.body").await, true, "the focus stays the page's");
    // Who has closed it is not asked again on the next page.
    eager.clicks("header .plain:last-child").await;
    eager.browser.command("refresh", &json!({})).await;
    eager.sees("the button", "shown($('.launcher'))").await;
    eager.sees("the window's part", "$('.panel')").await;
    eager.run("await new Promise(resolve => setTimeout(resolve, 400));", Value::Null).await;
    assert_eq!(eager.read("shown($('.panel'))").await, false);
}

#[tokio::test]
async fn a_page_in_another_language_gets_it_and_arabic_runs_from_right_to_left() {
    let service = SharedService::get().await;
    let organization = OrganizationDocument::new()
        .agent("shop", json!({"placeholderText": "", "widget": {"triggerText": ""}}))
        .apply(&service)
        .await;
    for (language, direction, button) in [
        ("de-AT", "ltr", "Chat öffnen"),
        ("ar", "rtl", "فتح المحادثة"),
        ("ja", "ltr", "チャットを開く"),
        ("xx", "ltr", "Open chat"),
    ] {
        let tag = tag(&service.public_urls()[0], organization.shop(), "");
        let page = served(document(&tag).replace("lang=en", &format!("lang={language}")), None);
        let visitor = Visitor::at(page, Browser::open().await).await;
        assert_eq!(visitor.read("$('.launcher').getAttribute('aria-label')").await, button, "{language}");
        assert_eq!(visitor.read("$('.root').dir").await, direction, "{language}");
    }
}
