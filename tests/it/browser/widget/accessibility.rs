//! Accessibility of the widget (WCAG 2.2 AA): axe rules, keyboard, focus and announcements.

use serde_json::{Value, json};

use super::page::Visitor;
use crate::support::{PATIENCE, Script, eventually, shop_with_settings};

const ESCAPE: &str = "\u{e00c}";
const TAB: &str = "\u{e004}";

const REPLY: &str = "# Title\n\nText with [a link](https://x.example) and `code`.\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```\ncode\n```\n";

const AXE: &str = include_str!("../assets/axe.min.js");

async fn findings(visitor: &Visitor) -> Value {
    let check = "
        if (!window.axe) (0, eval)(input);
        const found = await axe.run(document, {resultTypes: ['violations']});
        return found.violations.map(({id, nodes}) => [id, ...nodes.map(node => node.target.flat().join(' ') + ': ' + node.failureSummary)]);";
    visitor.run(check, json!(AXE)).await
}

async fn visitor_of_everything(theme: Value) -> Visitor {
    let settings = json!({
        "name": "Ada", "theme": theme,
        "features": {"enableMarkdown": true, "enableEmailCapture": true, "enableRating": true},
        "widget": {"showTimestamp": true}
    });
    let organization = shop_with_settings(settings).await;
    organization.script(Script::says(REPLY));
    Visitor::of_shop(&organization).await
}

#[tokio::test]
async fn axe_finds_nothing_on_desktop_and_phone_in_any_theme() {
    let dark = json!({"backgroundColor": "#15161a", "textColor": "#eeeeee", "botMessageColor": "#24262c", "inputBackgroundColor": "#1c1d22"});
    // These colors have no contrast: the widget chooses its own text color.
    let careless = json!({"primaryColor": "#ffee00", "textColor": "#dddddd", "chatHeaderColor": "#fafafa", "userMessageColor": "#cccccc", "sendButtonColor": "white"});
    for (theme, phone) in [
        (json!({}), false),
        (json!({}), true),
        (dark, false),
        (careless, true),
    ] {
        let visitor = visitor_of_everything(theme.clone()).await;
        if phone {
            visitor.takes_a_phone().await;
        }
        assert_eq!(findings(&visitor).await, json!([]), "closed, {theme}");
        visitor.opens().await;
        visitor.says("hello").await;
        visitor
            .sees(
                "the reply",
                "!$('.send.stop') && $('.rating') && shown($('.rating'))",
            )
            .await;
        visitor
            .sees(
                "no movement",
                "host.shadowRoot.getAnimations().length === 0",
            )
            .await;
        assert_eq!(
            findings(&visitor).await,
            json!([]),
            "open, phone: {phone}, {theme}"
        );
    }
}

#[tokio::test]
async fn axe_finds_nothing_in_a_lead_form() {
    let kinds = ["name", "email", "phone", "company", "select", "text"];
    let fields = kinds.map(|kind| {
        let mut field = json!({"name": kind, "label": kind, "type": kind, "required": true});
        if kind == "select" {
            field["options"] = json!(["a"]);
        }
        field
    });
    let settings = json!({
        "features": {"enableLeadCapture": true},
        "disclosure": {"privacyLink": "https://shop.example/privacy"},
        "leadForm": {"title": "", "consent": {"text": "I agree."}, "fields": fields, "trigger": "before-first-message"}
    });
    let organization = shop_with_settings(settings).await;
    for phone in [false, true] {
        let visitor = Visitor::of_shop(&organization).await;
        if phone {
            visitor.takes_a_phone().await;
        }
        visitor.clicks(".launcher").await;
        visitor.sees("the form", "shown($('.lead'))").await;
        let still = "host.shadowRoot.getAnimations().length === 0";
        visitor.sees("no movement", still).await;
        assert_eq!(findings(&visitor).await, json!([]), "empty, phone: {phone}");
        visitor.clicks(".lead .filled").await;
        visitor
            .sees("the mistakes", "all('.lead [aria-invalid]').length === 7")
            .await;
        assert_eq!(findings(&visitor).await, json!([]), "wrong, phone: {phone}");
        let small = "all('.lead :is(button, input, select, textarea)').map(element => element.getBoundingClientRect())
            .filter(box => box.width < 24 || box.height < 24).length";
        assert_eq!(visitor.read(small).await, 0, "large enough for a finger");
    }
}

#[tokio::test]
async fn window_works_with_the_keyboard_alone() {
    let visitor = visitor_of_everything(json!({})).await;
    visitor.sees("the window's part", "$('.panel')").await;
    let focused =
        "host.shadowRoot.activeElement?.className || host.shadowRoot.activeElement?.tagName || ''";
    visitor.presses(TAB).await;
    visitor.reads(focused, json!("launcher")).await;
    visitor.presses("\u{e006}").await;
    visitor
        .sees(
            "the field",
            "host.shadowRoot.activeElement === $('.field textarea')",
        )
        .await;
    assert_eq!(
        visitor.read("shown($('.launcher'))").await,
        false,
        "only the header has a button to close the window"
    );
    for key in ["h", "i", "\u{e006}"] {
        visitor.presses(key).await;
    }
    visitor
        .reads("all('.row.user .bubble').at(-1)?.innerText", json!("hi"))
        .await;
    visitor
        .sees(
            "the reply",
            "!$('.send.stop') && all('.row.assistant').length === 2",
        )
        .await;
    visitor.presses(ESCAPE).await;
    visitor
        .sees(
            "the button again",
            "!shown($('.panel')) && host.shadowRoot.activeElement === $('.launcher')",
        )
        .await;
    assert_eq!(
        visitor
            .read("$('.launcher').getAttribute('aria-expanded')")
            .await,
        "false"
    );
}

#[tokio::test]
async fn only_the_finished_reply_is_announced() {
    let (script, gate) = Script::says("one   **two**").chunk_chars(6).gated();
    let organization = shop_with_settings(json!({})).await;
    organization.script(script);
    let visitor = Visitor::in_window(&organization).await;
    assert_eq!(
        visitor
            .read("all('[aria-live], [role=status], [role=log]').length")
            .await,
        1,
        "one live region"
    );
    visitor.run("window.spoken = []; new MutationObserver(() => spoken.push($('[aria-live]').textContent)).observe($('[aria-live]'), {childList: true, characterData: true, subtree: true});", Value::Null).await;
    gate.open(1);
    visitor.says("count").await;
    visitor
        .sees(
            "the first word",
            "all('.row.assistant .bubble').at(-1).innerText.includes('one')",
        )
        .await;
    assert_eq!(visitor.read("window.spoken").await, json!([]));
    gate.open(10);
    visitor.reads("window.spoken", json!(["one two"])).await;
}

#[tokio::test]
async fn failure_is_announced_at_once_outside_the_reply_region() {
    let limits = json!({"limits": {"maxMessageLength": 100, "rateLimitPerMinute": 1}});
    let organization = shop_with_settings(limits).await;
    organization.script(Script::says("unheard"));
    let visitor = Visitor::in_window(&organization).await;
    visitor.is_too_fast().await;
    let alert = "$('.root > [role=alert]').textContent";
    assert_eq!(visitor.read(alert).await, "");
    visitor.says("refused by the service").await;
    visitor
        .reads(
            alert,
            json!("You are sending messages too fast. You can continue in 7 s."),
        )
        .await;
    visitor
        .run("$('.root > [role=alert]').textContent = '';", Value::Null)
        .await;
    visitor.says("held back by the widget").await;
    visitor
        .sees(
            "the reason",
            &format!("{alert}.startsWith('You are sending messages too fast.')"),
        )
        .await;
    assert_eq!(visitor.read("$('[aria-live]').textContent").await, "");
}

#[tokio::test]
async fn phone_window_covers_the_page_and_keeps_the_focus() {
    let visitor = visitor_of_everything(json!({})).await;
    visitor.takes_a_phone().await;
    visitor.opens().await;
    let covers = "(() => { const box = $('.panel').getBoundingClientRect(); return [box.left, box.top, box.width === innerWidth, box.height === innerHeight]; })()";
    visitor.reads(covers, json!([0, 0, true, true])).await;
    assert_eq!(
        visitor.read("$('.panel').getAttribute('aria-modal')").await,
        "true"
    );
    assert_eq!(visitor.read("shown($('.launcher'))").await, false);
    for _ in 0..25 {
        visitor.presses(TAB).await;
        let inside = visitor
            .read("$('.panel').contains(host.shadowRoot.activeElement)")
            .await;
        assert_eq!(inside, true, "the focus stays in the window");
    }
    let small = "all('.panel button, .panel input').filter(shown).map(element => element.getBoundingClientRect())
        .filter(box => box.width < 24 || box.height < 24).length";
    assert_eq!(
        visitor.read(small).await,
        0,
        "everything is large enough for a finger"
    );
    visitor.presses(ESCAPE).await;
    visitor
        .sees(
            "the button",
            "shown($('.launcher')) && host.shadowRoot.activeElement === $('.launcher')",
        )
        .await;
}

#[tokio::test]
async fn reduced_motion_preference_disables_animation() {
    let visitor = visitor_of_everything(json!({})).await;
    let moves = "getComputedStyle($('.launcher')).transitionDuration";
    assert_ne!(visitor.read(moves).await, "0s");
    let features = json!([{"name": "prefers-reduced-motion", "value": "reduce"}]);
    let command = json!({"cmd": "Emulation.setEmulatedMedia", "params": { "features": features }});
    visitor.browser.command("goog/cdp/execute", &command).await;
    visitor.reads(moves, json!("0s")).await;
    let moving = async || {
        visitor.opens().await;
        Some(visitor.read("host.shadowRoot.getAnimations().length").await)
    };
    assert_eq!(eventually("an open window", PATIENCE, moving).await, 0);
}
