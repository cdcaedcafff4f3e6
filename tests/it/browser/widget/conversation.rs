//! Conversations in the widget: streaming, refresh, stop, retry and feedback.

use serde_json::{Value, json};

use super::page::Visitor;
use crate::support::{
    Browser, End, Organization, PATIENCE, Script, eventually, shop_saying, shop_with,
    shop_with_settings,
};

const LAST_REPLY: &str = "all('.row.assistant .bubble').at(-1).innerText.trim()";

/// Returns the metadata of the only conversation of the organization's shop.
async fn noted(organization: &Organization, field: &str) -> Value {
    let path = organization.admin_path("/conversations");
    let list = organization.service().admin().get(&path).await;
    list.assert_status(200);
    list.json()["items"][0]["metadata"][field].clone()
}

#[tokio::test]
async fn reply_streams_into_a_widget_on_another_origin() {
    let (script, gate) = Script::says("one   two   **three**").chunk_chars(6).gated();
    let organization = shop_with(script).await;
    let visitor = Visitor::in_window(&organization).await;
    visitor.says("hello there").await;
    visitor
        .reads(
            "all('.row.user .bubble').at(-1).innerText",
            json!("hello there"),
        )
        .await;
    visitor
        .sees("that somebody is typing", "shown($('.dots'))")
        .await;
    gate.open(1);
    visitor.reads(LAST_REPLY, json!("one")).await;
    gate.open(1);
    visitor.reads(LAST_REPLY, json!("one two")).await;
    gate.open(10);
    visitor.is_answered("one two three").await;
    assert_eq!(
        visitor
            .read("all('.bubble strong').at(-1)?.textContent")
            .await,
        "three",
        "markdown is drawn"
    );
}

#[tokio::test]
async fn page_refreshed_mid_reply_continues_it() {
    let (script, gate) = Script::says("begun ended").chunk_chars(6).gated();
    let organization = shop_with(script).await;
    let visitor = Visitor::in_window(&organization).await;
    gate.open(1);
    visitor.says("a long question").await;
    visitor.reads(LAST_REPLY, json!("begun")).await;
    visitor.browser.command("refresh", &json!({})).await;
    // The window reopens automatically with the question and the text so far.
    visitor
        .reads(
            "all('.row.user .bubble').map(bubble => bubble.innerText)",
            json!(["a long question"]),
        )
        .await;
    visitor.reads(LAST_REPLY, json!("begun")).await;
    gate.open(10);
    visitor.is_answered("begun ended").await;
    visitor.browser.command("refresh", &json!({})).await;
    visitor.is_answered("begun ended").await;
    assert_eq!(visitor.read("all('.row.user').length").await, 1);
}

#[tokio::test]
async fn stopped_reply_keeps_its_text() {
    let organization = shop_with(Script::says("so far").ends(End::Silence)).await;
    let visitor = Visitor::in_window(&organization).await;
    visitor.says("talk").await;
    visitor.reads(LAST_REPLY, json!("so far")).await;
    visitor.clicks(".send.stop").await;
    visitor
        .sees(
            "that it was stopped",
            "!$('.send.stop') && $('.meta').closest('.rows').innerText.includes('Stopped')",
        )
        .await;
    assert_eq!(visitor.read(LAST_REPLY).await, "so far");
    organization.script(Script::says("again"));
    visitor.says("go on").await;
    visitor.is_answered("again").await;
}

#[tokio::test]
async fn interrupted_reply_says_so_and_can_be_retried() {
    let organization = shop_with(Script::says("half a").ends(End::Cut)).await;
    let visitor = Visitor::in_window(&organization).await;
    visitor.says("tell me").await;
    visitor
        .sees(
            "that it was interrupted",
            "$('.rows').innerText.includes('The reply was interrupted.')",
        )
        .await;
    assert_eq!(visitor.read(LAST_REPLY).await, "half a");
    organization.script(Script::says("all of it"));
    visitor.clicks(".meta button").await;
    visitor.is_answered("all of it").await;
    assert_eq!(
        visitor
            .read("all('.meta button').filter(shown).length")
            .await,
        0
    );
    visitor.browser.command("refresh", &json!({})).await;
    visitor.is_answered("all of it").await;
    assert_eq!(
        visitor
            .read("all('.meta button').filter(shown).length")
            .await,
        0
    );
}

#[tokio::test]
async fn unsent_message_does_not_drop_the_ones_behind_it() {
    let organization = shop_saying("ok").await;
    let visitor = Visitor::of_shop(&organization).await;
    visitor.is_too_fast().await;
    let send = "
        window.errors = [];
        SwitchboardWidget.on('error', ({code}) => errors.push(code));
        SwitchboardWidget.send('one');
        SwitchboardWidget.send('two');";
    visitor.run(send, Value::Null).await;
    let questions = "all('.row.user .bubble').map(bubble => bubble.innerText)";
    visitor
        .reads("all('.row.user .meta button').length", json!(2))
        .await;
    assert_eq!(visitor.read(questions).await, json!(["one", "two"]));
    assert_eq!(
        visitor.read("window.errors").await,
        json!(["RATE_LIMIT_EXCEEDED", "RATE_LIMIT_EXCEEDED"])
    );
    visitor.run("window.patient();", Value::Null).await;
    for left in [1, 0] {
        visitor.clicks(".row.user .meta button").await;
        visitor.is_answered("ok").await;
        visitor
            .reads("all('.row.user .meta button').length", json!(left))
            .await;
    }
    visitor
        .reads(
            "all('.row .bubble').slice(1).map(bubble => bubble.innerText.trim())",
            json!(["one", "ok", "two", "ok"]),
        )
        .await;
}

#[tokio::test]
async fn ratings_feedback_and_email_reach_the_organization() {
    let features = json!({"features": {"enableRating": true, "enableEmailCapture": true, "enableMarkdown": true}});
    let organization = shop_with_settings(features).await;
    organization.script(Script::says("fine"));
    let visitor = Visitor::in_window(&organization).await;
    assert_eq!(
        visitor.read("shown($('.rating'))").await,
        false,
        "nothing was said yet"
    );
    let give = "
        const form = $('.ask:not(.rating)');
        form.querySelector('input').value = input;
        form.requestSubmit();";
    visitor.sees("the form", "shown($('.ask input'))").await;
    visitor.run(give, json!("not an address")).await;
    visitor
        .sees("what is wrong", "$('.ask .bad').innerText !== ''")
        .await;
    visitor.run(give, json!("ada@visitor.example")).await;
    visitor
        .sees("thanks", "$('.ask').innerText.includes('Thank you')")
        .await;
    visitor.says("hello").await;
    visitor.is_answered("fine").await;
    visitor.clicks(".star:nth-child(4)").await;
    visitor
        .sees("the rating", "all('.star.lit').length === 4")
        .await;
    visitor
        .run(
            "$('.more textarea').value = input; $('.rating').requestSubmit();",
            json!("more tea"),
        )
        .await;
    visitor
        .reads(
            "$('.rating').innerText.trim()",
            json!("Thank you for your rating!"),
        )
        .await;
    for (field, expected) in [
        ("visitorEmail", json!("ada@visitor.example")),
        ("rating", json!(4)),
        ("feedback", json!("more tea")),
    ] {
        let arrived = async || (noted(&organization, field).await == expected).then_some(());
        eventually(field, PATIENCE, arrived).await;
    }
    visitor.browser.command("refresh", &json!({})).await;
    visitor.is_answered("fine").await;
    assert_eq!(
        visitor.read("all('.ask').filter(shown).length").await,
        0,
        "an address and a rating are asked for once"
    );
    visitor.says("hello again").await;
    visitor.is_answered("fine").await;
    assert_eq!(visitor.read("all('.ask').filter(shown).length").await, 0);
    // Another conversation has a rating of its own.
    visitor.clicks(".header .plain").await;
    visitor.says("hello").await;
    visitor.is_answered("fine").await;
    visitor
        .sees("a new form", "shown($('.star')) && !$('.star.lit')")
        .await;
}

#[tokio::test]
async fn forms_are_hidden_while_a_reply_streams() {
    let features = json!({"features": {"enableRating": true, "enableEmailCapture": true, "enableMarkdown": true}});
    let organization = shop_with_settings(features).await;
    organization.script(Script::says("fine"));
    let visitor = Visitor::in_window(&organization).await;
    visitor.says("hello").await;
    visitor.is_answered("fine").await;
    let forms = "all('.ask').filter(shown).length";
    visitor.reads(forms, json!(2)).await;
    visitor.clicks(".star:nth-child(2)").await;
    visitor.sees("the comment", "shown($('.more'))").await;
    let (script, gate) = Script::says("begun ended").chunk_chars(6).gated();
    organization.script(script);
    gate.open(1);
    visitor.says("go on").await;
    visitor.reads(LAST_REPLY, json!("begun")).await;
    assert_eq!(visitor.read(forms).await, 0);
    gate.open(10);
    visitor.is_answered("begun ended").await;
    visitor.reads(forms, json!(1)).await;
    assert_eq!(visitor.read("shown($('.ask input'))").await, true);
    visitor.clicks(".ask .link").await;
    visitor.reads(forms, json!(0)).await;
    visitor.browser.command("refresh", &json!({})).await;
    visitor.is_answered("begun ended").await;
    assert_eq!(visitor.read(forms).await, 0, "nothing is asked again");
}

#[tokio::test]
async fn refused_email_is_asked_for_again_and_blocks_no_message() {
    let features = json!({"features": {"enableEmailCapture": true, "enableMarkdown": true}});
    let organization = shop_with_settings(features).await;
    organization.script(Script::says("fine"));
    let visitor = Visitor::in_window(&organization).await;
    visitor.sees("the form", "shown($('.ask input'))").await;
    let give = "$('.ask input').value = input; $('.ask').requestSubmit();";
    // HTML accepts this address.
    visitor.run(give, json!("ada@localhost")).await;
    visitor
        .sees("what is wrong", "$('.ask .bad').innerText !== ''")
        .await;
    // As stored by an earlier, less strict form.
    let keep = "
        const name = `switchboard:${input}:`;
        localStorage.setItem(name + 'email', 'given');
        localStorage.setItem(name + 'emailToSend', 'ada@localhost');";
    visitor.run(keep, json!(organization.shop())).await;
    visitor.browser.command("refresh", &json!({})).await;
    visitor
        .sees(
            "the window",
            "shown($('.panel')) && !shown($('.ask input'))",
        )
        .await;
    visitor.says("hello").await;
    visitor.is_answered("fine").await;
    assert_eq!(visitor.read("all('.row.user').length").await, 1);
    visitor
        .sees(
            "the wish to look again",
            "shown($('.ask input')) && shown($('.ask .bad'))",
        )
        .await;
    assert_eq!(
        visitor
            .read("Object.keys(localStorage).filter(name => name.includes('email'))")
            .await,
        json!([])
    );
    assert_eq!(noted(&organization, "visitorEmail").await, Value::Null);
}

#[tokio::test]
async fn inactive_agent_shows_its_offline_message_only() {
    let settings = json!({"status": "inactive", "widget": {"offlineMessage": "Back on Monday.", "position": "top-left"}});
    let organization = shop_with_settings(settings).await;
    let visitor = Visitor::of_shop(&organization).await;
    visitor.clicks(".launcher").await;
    visitor
        .sees(
            "the message",
            "shown($('.away')) && $('.away p').innerText === 'Back on Monday.'",
        )
        .await;
    assert_eq!(visitor.read("shown($('.composer'))").await, false);
    assert_eq!(
        visitor
            .read("$('.launcher').getBoundingClientRect().left < 100")
            .await,
        true,
        "its corner is known"
    );
}

#[tokio::test]
async fn agent_deactivated_mid_conversation_informs_the_visitor() {
    let organization = shop_saying("hi").await;
    let service = organization.service();
    let visitor = Visitor::in_window(&organization).await;
    let off = json!({"status": "inactive", "widget": {"offlineMessage": "Closed for today."}});
    let off = organization.changed_agent("shop", off);
    service.apply(&off).await.assert_status(200);
    let refused = async || {
        visitor.says("anybody there?").await;
        visitor.sees("an end", "!$('.send.stop')").await;
        (visitor.read("shown($('.away'))").await == true).then_some(())
    };
    eventually("the agent is away", PATIENCE, refused).await;
    assert_eq!(
        visitor.read("$('.away p').innerText").await,
        "Closed for today."
    );
    assert_eq!(visitor.read("shown($('.composer'))").await, false);
    let on = organization.changed_agent("shop", json!({"status": "active"}));
    service.apply(&on).await.assert_status(200);
    visitor
        .sees(
            "the field again, by itself",
            "shown($('.composer')) && !shown($('.away'))",
        )
        .await;
}

#[tokio::test]
async fn service_outage_is_shown_and_recovered_from() {
    let settings = json!({"widget": {"offlineMessage": "Nobody is here."}});
    let organization = shop_with_settings(settings).await;
    organization.script(Script::says("hi"));
    let visitor = Visitor::of_shop(&organization).await;
    let network = async |offline: bool| {
        let conditions = json!({"offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1});
        let command = json!({"cmd": "Network.emulateNetworkConditions", "params": conditions});
        visitor.browser.command("goog/cdp/execute", &command).await;
    };
    visitor.opens().await;
    visitor
        .browser
        .command(
            "goog/cdp/execute",
            &json!({"cmd": "Network.enable", "params": {}}),
        )
        .await;
    network(true).await;
    visitor.says("hello?").await;
    visitor
        .sees(
            "that the message waits",
            "$('.rows').innerText.includes('Trying again')",
        )
        .await;
    network(false).await;
    // The message was kept and is sent automatically.
    visitor.is_answered("hi").await;
    assert_eq!(visitor.read("all('.row.user').length").await, 1);
}

#[tokio::test]
async fn widget_works_with_blocked_storage() {
    let organization = shop_saying("hi").await;
    // Browser setting: no site may store anything.
    let browser =
        Browser::open_with(json!({"profile.default_content_setting_values.cookies": 2})).await;
    let tag = super::page::tag(
        &organization.service().public_urls()[0],
        organization.shop(),
        "",
    );
    let visitor = Visitor::at(
        super::page::served(super::page::document(&tag), None),
        browser,
    )
    .await;
    let storage =
        "(() => { try { return typeof localStorage; } catch (error) { return error.name; } })()";
    assert_eq!(
        visitor.read(storage).await,
        "SecurityError",
        "it is blocked"
    );
    visitor.opens().await;
    for turn in 1..=2 {
        visitor.says("hello").await;
        visitor.is_answered("hi").await;
        assert_eq!(visitor.read("all('.row.user').length").await, turn);
    }
    let history = noted(&organization, "source").await;
    assert_eq!(history, "widget", "one conversation, of a page");
}
