//! Widget settings in the dashboard: their effect in the preview before saving, and on a page of
//! another origin afterwards.

use serde_json::{Value, json};

use super::Person;
use crate::{
    browser::{
        settings_table::{ANSWER, Control, QUESTION, Setting, assert_effects, settings},
        widget::page::{FIND, Visitor, document, served, tag},
    },
    support::{Browser, Client, Organization, PATIENCE, PROMISED, eventually},
};

use crate::support::{shop_saying, shop_with_settings};

const TABS: [&str; 3] = ["General", "Appearance", "Behavior"];
/// Fills in the controls of one form tab.
const FILLS_IN: &str = "
    const [tab, rows] = input;
    await press(tab);
    for (const [kind, label, value] of rows) {
        if (kind === 'field') await type(label, value);
        else if (kind === 'list') await choose(label, value);
        else if ((await control(label)).checked !== value) await press(label);
    }";
const SAVES: &str = "
    await press('Save');
    await until('it to be saved', () => all('button', 'Save').length + all('button', 'Discard').length === 0);";
const PREVIEW: &str = "iframe[title='Preview of the widget']";

async fn fill_in(person: &Person, settings: &[Setting], which: usize) {
    for tab in TABS {
        let row = |setting: &Setting| {
            let value = &setting.values[which];
            match setting.control {
                Control::Field => {
                    json!([
                        "field",
                        setting.label,
                        value
                            .as_str()
                            .map_or_else(|| value.to_string(), str::to_owned)
                    ])
                }
                Control::List(names) => json!(["list", setting.label, names[which]]),
                Control::Switch => json!(["switch", setting.label, value]),
            }
        };
        let rows: Vec<Value> = settings
            .iter()
            .filter(|setting| setting.tab == tab)
            .map(row)
            .collect();
        person.does_with(FILLS_IN, json!([tab, rows])).await;
    }
}

/// Waits until the widget configuration has this value at this path on every ingress.
async fn is_live(organization: &Organization, place: &str, expected: &str) {
    for url in organization.service().public_urls() {
        let client: Client = organization.client_at(&url);
        eventually("the change is live", PROMISED, async || {
            let answer = client
                .post(
                    "/api/widget/token",
                    &json!({"agentId": organization.shop()}),
                )
                .await;
            (answer.json().pointer(place)? == expected).then_some(())
        })
        .await;
    }
}

async fn visitor_of(organization: &Organization, more: &str) -> Visitor {
    let tag = tag(
        &organization.service().public_urls()[0],
        organization.shop(),
        "",
    );
    Visitor::at(
        served(document(&format!("{more}{tag}")), None),
        Browser::open().await,
    )
    .await
}

#[tokio::test]
async fn each_setting_of_the_form_takes_effect_on_another_page() {
    let organization = shop_saying(ANSWER).await;
    let person = Person::owner_at(&organization, &format!("/agents/{}", organization.shop())).await;
    let settings = settings();
    let name = settings
        .iter()
        .find(|setting| setting.field == "name")
        .unwrap();
    for which in [0, 1] {
        fill_in(&person, &settings, which).await;
        person.does(SAVES).await;
        is_live(
            &organization,
            "/configuration/name",
            name.values[which].as_str().unwrap(),
        )
        .await;
        let visitor = visitor_of(&organization, "").await;
        visitor.opens().await;
        visitor.says(QUESTION).await;
        visitor.is_answered(["bold", ANSWER][which]).await;
        let measure = async |body: &str| visitor.run(body, Value::Null).await;
        assert_effects(&settings, which, measure).await;
    }
}

#[tokio::test]
async fn each_setting_takes_effect_in_the_preview_before_saving() {
    let organization = shop_saying(ANSWER).await;
    let path = format!("/agents/{}?tab=appearance", organization.shop());
    let person = Person::owner_at(&organization, &path).await;
    let mut settings = settings();
    // Nothing is sent in a preview.
    settings.retain(|setting| setting.field != "limits.rateLimitPerMinute");
    // A hidden frame draws nothing, including animations.
    person.browser.looks_like(1440, 900, "light").await;
    person.does("await press('Preview');").await;
    let measure = async |body: &str| {
        let body = format!("{FIND}\nif (!shown($('.row.user'))) return {{}};\n{body}");
        person
            .browser
            .run_in_frame(PREVIEW, &body, Value::Null)
            .await
    };
    for which in [0, 1] {
        fill_in(&person, &settings, which).await;
        assert_effects(&settings, which, measure).await;
    }
    // The frame has an opaque origin and thus no access to the session.
    assert_eq!(
        person
            .browser
            .run_in_frame(PREVIEW, "return self.origin;", Value::Null)
            .await,
        "null"
    );
}

#[tokio::test]
async fn preview_shows_the_closed_widget_and_the_offline_message() {
    let texts = json!({"widget": {"triggerText": "Ask us!", "offlineMessage": "We sleep."}});
    let organization = shop_with_settings(texts).await;
    let path = format!("/agents/{}?tab=appearance", organization.shop());
    let person = Person::owner_at(&organization, &path).await;
    person.browser.looks_like(1440, 900, "light").await;
    for (view, expected) in [
        ("Open", json!([true, false, ""])),
        ("Closed", json!([false, true, ""])),
        ("Offline", json!([true, false, "We sleep."])),
        ("Closed", json!([false, true, ""])),
        ("Open", json!([true, false, ""])),
    ] {
        person.does_with("await press(input);", json!(view)).await;
        let look = format!(
            "{FIND}\nreturn [shown($('.panel')), shown($('.label')), shown($('.away p')) ? $('.away p').innerText : ''];"
        );
        eventually(view, PATIENCE, async || {
            let seen = person
                .browser
                .run_in_frame(PREVIEW, &look, Value::Null)
                .await;
            (seen == expected).then_some(())
        })
        .await;
        assert_eq!(
            person.does("return document.activeElement.tagName;").await,
            "INPUT",
            "the focus stays where it was"
        );
    }
}

#[tokio::test]
async fn deactivated_agent_shows_its_offline_message_to_visitors() {
    let organization = shop_saying("ok").await;
    let person = Person::owner_at(&organization, &format!("/agents/{}", organization.shop())).await;
    person.does("await press('Inactive');").await;
    for message in ["We sleep.", "Back at nine."] {
        let writes = "await press('Appearance'); await type('Offline message', input);";
        person.does_with(writes, json!(message)).await;
        person.does(SAVES).await;
        is_live(&organization, "/offline/offlineMessage", message).await;
        let visitor = visitor_of(&organization, "").await;
        visitor.clicks(".launcher").await;
        visitor
            .reads("$('.away p')?.innerText", json!(message))
            .await;
    }
}

#[tokio::test]
async fn window_opens_automatically_as_configured() {
    const WATCH: &str = "<script>(window.SwitchboardWidget ||= []).push(widgets => {
        widgets.on('ready', () => { window.readyAt = performance.now(); });
        widgets.on('open', () => { window.openedAt = performance.now(); });
    });</script>";
    let silent = json!({"widget": {"autoOpen": false, "autoOpenDelay": 0}});
    let organization = shop_with_settings(silent).await;
    let path = format!("/agents/{}?tab=behavior", organization.shop());
    let person = Person::owner_at(&organization, &path).await;
    let rest = "await new Promise(resolve => setTimeout(resolve, 700)); return window.openedAt === undefined;";
    assert_eq!(
        visitor_of(&organization, WATCH)
            .await
            .run(rest, Value::Null)
            .await,
        true
    );
    for (number, (delay, soonest_ms)) in [(0, 0), (1_500, 1_500)].into_iter().enumerate() {
        let opens = "if (!(await control('Open the widget automatically')).checked) await press('Open the widget automatically');
            await type('Delay', String(input[0])); await press('Appearance'); await type('Button text', input[1]);";
        person
            .does_with(opens, json!([delay, format!("Text {number}")]))
            .await;
        person.does(SAVES).await;
        person.does("await press('Behavior');").await;
        is_live(
            &organization,
            "/configuration/widget/triggerText",
            &format!("Text {number}"),
        )
        .await;
        let visitor = visitor_of(&organization, WATCH).await;
        visitor.sees("the window", "shown($('.panel'))").await;
        // The page records the two times one after the other.
        let took = visitor.read("openedAt - readyAt").await.as_f64().unwrap();
        assert!(
            took >= f64::from(soonest_ms) - 50.0 && took < f64::from(soonest_ms) + 1_400.0,
            "{took}"
        );
    }
}
