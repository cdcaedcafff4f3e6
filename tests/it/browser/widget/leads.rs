//! Lead forms in the widget: when they are shown, how they are filled in, and what arrives.

use serde_json::{Value, json};

use super::page::Visitor;
use crate::support::{
    Organization, OrganizationDocument, PATIENCE, Script, eventually, shop_with_settings,
};

const ENTER: &str = "\u{e007}";
const TAB: &str = "\u{e004}";
const FORM: &str = "shown($('.lead')) && !!$('.lead input')";
const THANKS: &str = "Thank you. We have your details.";
const ADA: &str = "ada@visitor.example";

/// Fills the fields of the form in their order and submits it with consent.
const SUBMIT: &str = "
    const fields = all('.lead input:not([type=checkbox]), .lead select, .lead textarea');
    fields.forEach((field, at) => field.value = input[at] ?? '');
    $('.lead [type=checkbox]').checked = true;
    $('.lead').requestSubmit();";

/// Collects the events of leads.
const HEARS: &str = "window.leads = []; SwitchboardWidget.on('lead', lead => leads.push(lead));";

fn form(trigger: &str) -> Value {
    json!({
        "title": "Stay in <i>touch</i>", "text": "We call back.",
        "consent": {"text": "I agree that you contact me.", "link": "https://shop.example/terms"},
        "fields": [
            {"name": "mail", "label": "E-mail", "type": "email", "required": true},
            {"name": "name", "label": "Name", "type": "name"},
        ],
        "trigger": trigger,
    })
}

fn settings(form: &Value) -> Value {
    json!({
        "leadForm": form,
        "features": {"enableLeadCapture": true, "enableEmailCapture": true, "enableRating": true, "enableMarkdown": true}
    })
}

async fn shop(form: &Value) -> Organization {
    let organization = shop_with_settings(settings(form)).await;
    organization.script(Script::says("fine"));
    organization
}

/// Makes the model show its form with the next reply.
fn show_form(organization: &Organization) {
    organization.script(Script::in_turn(vec![
        Script::calls("capture_lead", &json!({})),
        Script::says("Please fill it in."),
    ]));
}

impl Visitor {
    async fn submits(&self, values: Value) {
        self.sees("the form", FORM).await;
        self.run(SUBMIT, values).await;
    }

    /// Waits until the form gives way to the field, although nothing was sent yet.
    async fn may_write(&self) {
        self.sees("the field", "shown($('.composer')) && !shown($('.lead'))")
            .await;
    }

    async fn is_thanked(&self) {
        self.reads("$('.lead').innerText.trim()", json!(THANKS))
            .await;
    }

    async fn reloads(&self) {
        self.browser.command("refresh", &json!({})).await;
        self.sees("the window", "shown($('.panel'))").await;
    }
}

/// Checks that history, list and file of the organization have the lead of its only conversation.
async fn assert_stored(organization: &Organization, trigger: &str) {
    let admin = organization.service().admin();
    let path = organization.admin_path("/leads");
    let stored = async || {
        let page = admin.get(&path).await.json();
        let lead = page["items"].get(0)?.clone();
        (page["items"].as_array()?.len() == 1).then_some(lead)
    };
    let item = eventually("a lead", PATIENCE, stored).await;
    assert_eq!(
        item["lead"]["values"],
        json!({"mail": ADA, "name": "Ada"}),
        "{item}"
    );
    assert_eq!(item["lead"]["trigger"], trigger);
    let csv = admin.get(&format!("{path}?format=csv")).await.text;
    assert!(csv.contains(ADA), "{csv}");
    let list = admin.get(&organization.admin_path("/conversations")).await;
    let metadata = &list.json()["items"][0]["metadata"];
    assert_eq!(metadata["lead"]["values"]["mail"], ADA, "{metadata}");
    assert_eq!(metadata["visitorEmail"], ADA);
}

#[tokio::test]
async fn first_message_takes_the_lead_along() {
    let organization = shop(&form("before-first-message")).await;
    let visitor = Visitor::of_shop(&organization).await;
    visitor.run(HEARS, Value::Null).await;
    visitor.clicks(".launcher").await;
    visitor.sees("the form", FORM).await;
    let state = "({composer: shown($('.composer')), forms: all('.ask').filter(shown).length, skip: shown($('.lead .link')),
        title: $('.lead h3').textContent, link: $('.lead a').href, focus: host.shadowRoot.activeElement.type})";
    let expected = json!({
        "composer": false, "forms": 1, "skip": false, "title": "Stay in <i>touch</i>",
        "link": "https://shop.example/terms", "focus": "email"
    });
    assert_eq!(visitor.read(state).await, expected);
    visitor.submits(json!([ADA, "Ada"])).await;
    visitor.may_write().await;
    assert_eq!(visitor.read("window.leads").await, json!([]));
    visitor.reloads().await;
    visitor.run(HEARS, Value::Null).await;
    visitor
        .sees(
            "the field instead of the form",
            "shown($('.composer')) && !shown($('.lead'))",
        )
        .await;
    visitor.says("hello").await;
    visitor.is_answered("fine").await;
    let values = json!([{"values": {"mail": ADA, "name": "Ada"}}]);
    assert_eq!(visitor.read("window.leads").await, values);
    assert_stored(&organization, "before-first-message").await;
    let kept = "Object.keys(localStorage).filter(name => name.includes('ToSend'))";
    assert_eq!(visitor.read(kept).await, json!([]));
    visitor.clicks(".header .plain").await;
    visitor
        .sees(
            "an empty form for another conversation",
            &format!("{FORM} && $('.lead input').value === ''"),
        )
        .await;
}

#[tokio::test]
async fn form_follows_the_chosen_number_of_replies() {
    let mut form = form("after-replies");
    form["afterReplies"] = json!(2);
    let organization = shop(&form).await;
    let visitor = Visitor::in_window(&organization).await;
    visitor.says("one").await;
    visitor.is_answered("fine").await;
    assert_eq!(visitor.read("shown($('.lead'))").await, false);
    visitor.reloads().await;
    let (script, gate) = Script::says("begun ended").chunk_chars(6).gated();
    organization.script(script);
    visitor.says("two").await;
    gate.open(1);
    visitor
        .reads(
            "all('.row.assistant .bubble').at(-1).innerText.trim()",
            json!("begun"),
        )
        .await;
    assert_eq!(visitor.read("shown($('.lead'))").await, false);
    gate.open(10);
    visitor.is_answered("begun ended").await;
    visitor.sees("the form", FORM).await;
    let state = "({composer: shown($('.composer')), forms: all('.ask').filter(shown).length, skip: shown($('.lead .link'))})";
    assert_eq!(
        visitor.read(state).await,
        json!({"composer": true, "forms": 1, "skip": false})
    );
    visitor.submits(json!([ADA, "Ada"])).await;
    visitor.is_thanked().await;
    assert_stored(&organization, "after-replies").await;
    visitor.sees("the rating", "shown($('.rating'))").await;
    visitor.reloads().await;
    visitor.is_answered("begun ended").await;
    visitor.sees("the rating", "shown($('.rating'))").await;
    assert_eq!(visitor.read("shown($('.lead'))").await, false);
}

#[tokio::test]
async fn agent_shows_its_form_again_after_it_was_skipped() {
    let mut form = form("tool");
    form["fields"][0]["required"] = json!(false);
    let organization = shop(&form).await;
    let visitor = Visitor::in_window(&organization).await;
    visitor.says("hello").await;
    visitor.is_answered("fine").await;
    assert_eq!(visitor.read("shown($('.lead'))").await, false);
    show_form(&organization);
    visitor.says("call me").await;
    visitor.is_answered("Please fill it in.").await;
    visitor.sees("the form", FORM).await;
    visitor.reloads().await;
    visitor.clicks(".lead .link").await;
    visitor.reads("shown($('.lead'))", json!(false)).await;
    visitor.reloads().await;
    visitor.is_answered("Please fill it in.").await;
    visitor.sees("the rating", "shown($('.rating'))").await;
    assert_eq!(visitor.read("shown($('.lead'))").await, false);
    show_form(&organization);
    visitor.says("do call me").await;
    visitor.is_answered("Please fill it in.").await;
    visitor.submits(json!([ADA, "Ada"])).await;
    visitor.is_thanked().await;
    assert_stored(&organization, "tool").await;
    // The browser forgets; the history remembers.
    let forget = "for (const name of Object.keys(localStorage)) if (name.endsWith(':lead')) localStorage.removeItem(name);";
    visitor.run(forget, Value::Null).await;
    visitor.reloads().await;
    visitor.sees("the rating", "shown($('.rating'))").await;
    assert_eq!(visitor.read("shown($('.lead'))").await, false);
}

#[tokio::test]
async fn mistakes_are_shown_beside_their_fields() {
    let mut form = form("tool");
    form["fields"][1] =
        json!({"name": "phone", "label": "<b>Phone</b>", "type": "phone", "required": true});
    let organization = shop(&form).await;
    show_form(&organization);
    let visitor = Visitor::in_window(&organization).await;
    visitor.says("call me").await;
    visitor.sees("the form", FORM).await;
    let mistakes = "all('.lead [aria-invalid]').map(field => [field.type, host.shadowRoot.getElementById(field.getAttribute('aria-describedby')).innerText.replace('! ', '')])";
    let focus = "host.shadowRoot.activeElement.type";
    let expected = json!([
        ["email", "Please check this email address."],
        ["tel", "Please fill in this field."],
        ["checkbox", "Please agree to continue."]
    ]);
    visitor
        .run("$('.lead input').value = 'ada';", Value::Null)
        .await;
    visitor.clicks(".lead .filled").await;
    assert_eq!(visitor.read(mistakes).await, expected);
    assert_eq!(visitor.read(focus).await, "email");
    // Only the service knows which numbers are valid.
    visitor.submits(json!([ADA, "no number"])).await;
    visitor
        .reads(mistakes, json!([["tel", "Please check this entry."]]))
        .await;
    assert_eq!(visitor.read(focus).await, "tel");
    let offline = "
        const service = window.fetch;
        window.fetch = (address, options) => options.method === 'PATCH' ? Promise.reject(new Error('offline')) : service(address, options);
        window.online = () => window.fetch = service;";
    visitor.run(offline, Value::Null).await;
    visitor.submits(json!([ADA, "+49 30 1234567"])).await;
    visitor
        .sees(
            "what failed",
            "$('.lead').innerText.includes('Your details were not sent.') && !$('.lead [aria-invalid]')",
        )
        .await;
    visitor
        .run("window.online(); $('.lead').requestSubmit();", Value::Null)
        .await;
    visitor.is_thanked().await;
}

#[tokio::test]
async fn refused_lead_of_the_first_message_is_asked_for_again() {
    let organization = shop(&form("before-first-message")).await;
    let visitor = Visitor::of_shop(&organization).await;
    visitor.clicks(".launcher").await;
    // Browsers accept this address, the service does not.
    let long = format!("{}@visitor.example", "a".repeat(65));
    visitor.submits(json!([long, "Ada"])).await;
    visitor.may_write().await;
    visitor
        .run("$('.field textarea').focus();", Value::Null)
        .await;
    visitor.says("hello").await;
    visitor
        .sees(
            "what is wrong",
            "$('.lead [type=email]')?.ariaInvalid === 'true' && $('.lead').innerText.includes('Please check this email address.')",
        )
        .await;
    let state = "({values: all('.lead input').map(field => field.value).slice(0, 2), composer: shown($('.composer')),
        unsent: $('.row.user .meta').innerText.includes('not sent'), focus: host.shadowRoot.activeElement.type})";
    let expected = json!({
        "values": [long, "Ada"], "composer": false, "unsent": true, "focus": "email"
    });
    assert_eq!(visitor.read(state).await, expected);
    visitor.submits(json!([ADA, "Ada"])).await;
    visitor.may_write().await;
    visitor.clicks(".row.user .meta button").await;
    visitor.is_answered("fine").await;
    assert_eq!(visitor.read("all('.row.user').length").await, 1);
    assert_stored(&organization, "before-first-message").await;
}

#[tokio::test]
async fn form_that_was_removed_blocks_no_first_message() {
    let organization = shop(&form("before-first-message")).await;
    let visitor = Visitor::of_shop(&organization).await;
    visitor.clicks(".launcher").await;
    visitor.submits(json!([ADA, "Ada"])).await;
    visitor.may_write().await;
    let mut off = settings(&form("before-first-message"));
    off["features"]["enableLeadCapture"] = json!(false);
    let off = organization.changed_agent("shop", off);
    organization.service().apply(&off).await.assert_status(200);
    let gone = async || {
        let path = organization.path("/widget");
        let widget = organization.client().get(&path).await.json();
        widget.get("leadForm").is_none().then_some(())
    };
    eventually("no form", PATIENCE, gone).await;
    visitor.says("hello").await;
    visitor.is_answered("fine").await;
    assert_eq!(visitor.read("all('.row.user').length").await, 1);
}

#[tokio::test]
async fn first_form_without_required_fields_can_be_skipped() {
    let mut form = form("before-first-message");
    form["fields"][0]["required"] = json!(false);
    let organization = shop(&form).await;
    let visitor = Visitor::of_shop(&organization).await;
    visitor.clicks(".launcher").await;
    visitor.sees("the form", FORM).await;
    assert_eq!(visitor.read("shown($('.composer'))").await, false);
    visitor.clicks(".lead .link").await;
    visitor
        .sees(
            "the field, with the focus",
            "!shown($('.lead')) && host.shadowRoot.activeElement === $('.field textarea')",
        )
        .await;
    visitor.reloads().await;
    visitor.sees("the field", "shown($('.composer'))").await;
    assert_eq!(visitor.read("all('.ask').filter(shown).length").await, 0);
    visitor.says("hello").await;
    visitor.is_answered("fine").await;
    assert_eq!(visitor.read("shown($('.lead'))").await, false);
}

#[tokio::test]
async fn form_is_filled_in_with_the_keyboard_alone() {
    let mut form = form("before-first-message");
    form["fields"].as_array_mut().unwrap().push(
        json!({"name": "size", "label": "Size", "type": "select", "options": ["small", "large"]}),
    );
    let organization = shop(&form).await;
    let visitor = Visitor::of_shop(&organization).await;
    visitor.sees("the window's part", "$('.panel')").await;
    for key in [TAB, ENTER] {
        visitor.presses(key).await;
    }
    visitor
        .sees(
            "the first field",
            &format!("{FORM} && host.shadowRoot.activeElement === $('.lead input')"),
        )
        .await;
    for letter in ADA.chars() {
        visitor.presses(&letter.to_string()).await;
    }
    for key in [TAB, "A", "d", "a", TAB, "l", TAB, " ", ENTER] {
        visitor.presses(key).await;
    }
    visitor.may_write().await;
    let focus = "host.shadowRoot.activeElement === $('.field textarea')";
    visitor.sees("the focus in the field", focus).await;
    for key in ["h", "i", ENTER] {
        visitor.presses(key).await;
    }
    visitor.is_answered("fine").await;
    let path = organization.admin_path("/leads");
    let item = organization.service().admin().get(&path).await.json()["items"][0].clone();
    let values = json!({"mail": ADA, "name": "Ada", "size": "large"});
    assert_eq!(item["lead"]["values"], values);
}

#[tokio::test]
async fn fields_fit_their_types() {
    let types = ["name", "email", "phone", "company", "select", "text"];
    let fields = types.map(|kind| {
        let mut field = json!({"name": kind, "label": kind, "type": kind});
        if kind == "select" {
            field["options"] = json!(["a", "b"]);
        }
        field
    });
    let mut form = form("before-first-message");
    form["fields"] = json!(fields);
    let organization = OrganizationDocument::new()
        .shop(settings(&form))
        .apply_to_shared()
        .await;
    let visitor = Visitor::of_shop(&organization).await;
    visitor.clicks(".launcher").await;
    visitor.sees("the form", FORM).await;
    let inputs = "all('.lead input, .lead select, .lead textarea').map(field => [field.type, field.autocomplete, field.inputMode, field.labels[0].innerText, field.maxLength ?? null])";
    let expected = json!([
        ["text", "name", "", "name", 200],
        ["email", "email", "email", "email", 200],
        ["tel", "tel", "tel", "phone", 200],
        ["text", "organization", "", "company", 200],
        ["select-one", "", "", "select", null],
        ["textarea", "", "", "text", 2000],
        ["checkbox", "", "", "I agree that you contact me.", -1]
    ]);
    assert_eq!(visitor.read(inputs).await, expected);
    let options = "[...$('.lead select').options].map(option => [option.value, option.text])";
    let expected = json!([["", "Choose…"], ["a", "a"], ["b", "b"]]);
    assert_eq!(visitor.read(options).await, expected);
    let covered = "$('.log').scrollHeight > $('.log').clientHeight && $('.notice').getBoundingClientRect().top < $('.log').getBoundingClientRect().top";
    assert_eq!(
        visitor.read(covered).await,
        false,
        "a long form hides no notice"
    );
}

#[tokio::test]
async fn changed_form_is_shown_before_it_is_agreed_to() {
    let organization = shop(&form("tool")).await;
    let visitor = Visitor::in_window(&organization).await;
    show_form(&organization);
    visitor.says("call me").await;
    visitor.sees("the form", FORM).await;
    let mut changed = form("tool");
    changed["consent"]["text"] = json!("I agree to letters.");
    changed["fields"][1]["label"] = json!("Full name");
    let changed = organization.changed_agent("shop", settings(&changed));
    organization
        .service()
        .apply(&changed)
        .await
        .assert_status(200);
    let path = organization.path("/widget");
    let is_known = async || {
        let widget = organization.client().get(&path).await.json();
        (widget["leadForm"]["consent"]["text"] == "I agree to letters.").then_some(())
    };
    eventually("the changed form", PATIENCE, is_known).await;
    visitor.submits(json!([ADA, "Ada"])).await;
    visitor
        .sees(
            "the changed form",
            "$('.lead').innerText.includes('I agree to letters.')",
        )
        .await;
    let state = "[...all('.lead input').map(field => field.value).slice(0, 2), $('.lead [type=checkbox]').checked]";
    assert_eq!(visitor.read(state).await, json!([ADA, "Ada", false]));
    visitor.submits(json!([ADA, "Ada"])).await;
    visitor.is_thanked().await;
    let page = organization
        .service()
        .admin()
        .get(&organization.admin_path("/leads"))
        .await
        .json();
    assert_eq!(page["items"][0]["lead"]["consent"], "I agree to letters.");
}
