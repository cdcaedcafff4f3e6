//! The same widget in several tabs, and several widgets on one page.

use serde_json::{Value, json};

use super::page::{Visitor, document, served, tag};
use crate::support::{Browser, OrganizationDocument, Script, shop_saying, shop_with};

const ROWS: &str = "all('.row .bubble').slice(1).map(bubble => bubble.innerText.trim())";

#[tokio::test]
async fn two_tabs_show_the_same_running_conversation() {
    let (script, gate) = Script::says("first last").chunk_chars(6).gated();
    let organization = shop_with(script).await;
    let visitor = Visitor::of_shop(&organization).await;
    let switch = async |tab: &str| {
        visitor
            .browser
            .command("window", &json!({ "handle": tab }))
            .await;
    };
    let one = visitor.browser.tab().await;
    visitor.opens().await;
    let other = visitor
        .browser
        .command("window/new", &json!({"type": "tab"}))
        .await["handle"]
        .clone();
    let other = other.as_str().unwrap();
    switch(other).await;
    visitor.browser.visit(&visitor.page.origin()).await;
    visitor.sees("the button", "shown($('.launcher'))").await;
    visitor.opens().await;
    switch(&one).await;
    gate.open(1);
    visitor.says("question").await;
    visitor.reads(ROWS, json!(["question", "first"])).await;
    switch(other).await;
    visitor.reads(ROWS, json!(["question", "first"])).await;
    gate.open(10);
    visitor.reads(ROWS, json!(["question", "first last"])).await;
    // The text arrives before its end; until then the button stops the reply.
    visitor.is_answered("first last").await;
    // A message in the second tab continues the conversation, and the first tab shows it.
    organization.script(Script::says("indeed"));
    visitor.says("really?").await;
    visitor.is_answered("indeed").await;
    switch(&one).await;
    visitor
        .reads(ROWS, json!(["question", "first last", "really?", "indeed"]))
        .await;
    visitor.clicks(".header .plain").await;
    visitor.reads(ROWS, json!([])).await;
    switch(other).await;
    visitor.reads(ROWS, json!([])).await;
}

/// Returns the message bubbles of the frame's widget.
const FRAME_ROWS: &str =
    "[...(frame.contentDocument.querySelector('switchboard-widget')?.shadowRoot
    .querySelectorAll('.row .bubble') ?? [])].slice(1).map(bubble => bubble.innerText.trim())";

/// A frame counts as another tab for a widget and can be driven together with the page.
async fn opens_in_a_frame_too(visitor: &Visitor) {
    let open = "
        window.frame = document.createElement('iframe');
        frame.src = location.href;
        document.body.append(frame);";
    visitor.run(open, Value::Null).await;
}

#[tokio::test]
async fn simultaneous_turns_of_two_tabs_have_the_same_order_in_both() {
    let organization = shop_saying("hello").await;
    let visitor = Visitor::in_window(&organization).await;
    visitor.says("hi").await;
    visitor.is_answered("hello").await;
    opens_in_a_frame_too(&visitor).await;
    visitor.reads(FRAME_ROWS, json!(["hi", "hello"])).await;
    let (script, gate) = Script::says("indeed").gated();
    organization.script(script);
    let speak = "SwitchboardWidget.send('one'); frame.contentWindow.SwitchboardWidget.send('two');";
    visitor.run(speak, Value::Null).await;
    visitor
        .sees(
            "both at work",
            "$('.send.stop') && all('.row').length === 5",
        )
        .await;
    gate.open(10);
    let agree =
        format!("!$('.send.stop') && {ROWS}.length === 6 && {ROWS}.join() === {FRAME_ROWS}.join()");
    visitor.sees("two tabs that agree", &agree).await;
    let expected = json!(["hello", "hi", "indeed", "indeed", "one", "two"]);
    assert_eq!(visitor.read(&format!("{ROWS}.sort()")).await, expected);
}

#[tokio::test]
async fn first_messages_of_two_tabs_share_one_session() {
    let organization = shop_saying("hello").await;
    let visitor = Visitor::in_window(&organization).await;
    opens_in_a_frame_too(&visitor).await;
    let is_shown = "frame.contentWindow.SwitchboardWidget?.get()?.isShown";
    visitor.sees("the frame's widget", is_shown).await;
    let speak = "SwitchboardWidget.send('one'); frame.contentWindow.SwitchboardWidget.send('two');";
    let agree =
        format!("!$('.send.stop') && {ROWS}.length === 4 && {ROWS}.join() === {FRAME_ROWS}.join()");
    visitor.run(speak, Value::Null).await;
    visitor.sees("two tabs that agree", &agree).await;
    // A new conversation has one session in both tabs, too.
    visitor.clicks(".header .plain").await;
    visitor.reads(FRAME_ROWS, json!([])).await;
    visitor.run(speak, Value::Null).await;
    visitor.sees("two tabs that agree again", &agree).await;
    let admin = organization.service().admin();
    let conversations = organization.conversations(&admin).await.unwrap();
    assert_eq!(conversations.len(), 2);
}

#[tokio::test]
async fn tab_leaves_a_reply_when_another_starts_a_conversation() {
    let (script, gate) = Script::says("first last").chunk_chars(6).gated();
    let organization = shop_with(script).await;
    let visitor = Visitor::in_window(&organization).await;
    opens_in_a_frame_too(&visitor).await;
    visitor
        .sees(
            "the frame's widget",
            "frame.contentWindow.SwitchboardWidget?.get()?.isShown",
        )
        .await;
    gate.open(1);
    visitor.says("question").await;
    visitor
        .reads(FRAME_ROWS, json!(["question", "first"]))
        .await;
    visitor.clicks(".header .plain").await;
    visitor.reads(FRAME_ROWS, json!([])).await;
    organization.script(Script::says("anew"));
    visitor
        .run(
            "frame.contentWindow.SwitchboardWidget.send('again');",
            Value::Null,
        )
        .await;
    for rows in [ROWS, FRAME_ROWS] {
        visitor.reads(rows, json!(["again", "anew"])).await;
    }
}

#[tokio::test]
async fn several_widgets_of_a_page_are_driven_by_its_scripts() {
    let organization = OrganizationDocument::new()
        .shop(json!({"name": "Shop"}))
        .agent("help", json!({"name": "Help"}))
        .apply_to_shared()
        .await;
    organization.script(Script::says("done"));
    let url = &organization.service().public_urls()[0];
    let queued = "<script>
        window.SwitchboardWidget = [api => window.queued = typeof api.open];
        window.heard = [];
    </script>";
    let tags = format!(
        "{queued}{}{}",
        tag(url, organization.shop(), ""),
        tag(url, organization.agent("help"), "")
    );
    let visitor = Visitor::at(served(document(&tags), None), Browser::open().await).await;
    visitor
        .reads(
            "document.querySelectorAll('switchboard-widget').length",
            json!(2),
        )
        .await;
    let apart = "
        const [one, other] = [...document.querySelectorAll('switchboard-widget')]
            .map(host => host.shadowRoot.querySelector('.launcher').getBoundingClientRect());
        return Math.abs(one.top - other.top) >= one.height;";
    visitor
        .sees("two buttons", "document.querySelectorAll('switchboard-widget')[1].shadowRoot.querySelector('.launcher')")
        .await;
    assert_eq!(
        visitor.run(apart, Value::Null).await,
        true,
        "buttons do not cover each other"
    );
    assert_eq!(
        visitor.read("window.queued").await,
        "function",
        "calls from before the script are made"
    );
    let drive = "
        const api = window.SwitchboardWidget, widget = api.get(input);
        widget.on('open', () => heard.push('open'));
        widget.on('close', () => heard.push('close'));
        widget.on('destroy', () => heard.push('destroy'));
        const answered = new Promise(resolve => widget.on('message', event => event.role === 'assistant' && resolve(event.text)));
        api.send('from the page', input);
        heard.push(await answered);
        api.toggle(input);
        api.destroy(input);
        return {heard, left: document.querySelectorAll('switchboard-widget').length};";
    let outcome = visitor.run(drive, json!(organization.agent("help"))).await;
    assert_eq!(
        outcome,
        json!({"heard": ["open", "done", "close", "destroy"], "left": 1})
    );
}
