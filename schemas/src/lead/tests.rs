//! Tests of lead forms and of the leads that they accept.

use serde_json::json;

use super::*;

fn form() -> LeadForm {
    serde_json::from_value(json!({
        "title": "Stay in touch", "consent": {"text": "I agree."}, "trigger": "tool",
        "fields": [
            {"name": "name", "label": "Name", "type": "name"},
            {"name": "mail", "label": "E-mail", "type": "email", "required": true},
            {"name": "phone", "label": "Phone", "type": "phone"},
            {"name": "size", "label": "Size", "type": "select", "options": ["small", "large"]},
            {"name": "notes", "label": "Notes", "type": "text"},
        ],
    }))
    .unwrap()
}

fn accept(submitted: Value) -> Result<CapturedLead, LeadError> {
    let Value::Object(submitted) = submitted else {
        unreachable!("tests submit objects")
    };
    form().accept(&submitted, Timestamp::from_micros(0))
}

fn refused_path(submitted: Value) -> String {
    accept(submitted).unwrap_err().path
}

#[test]
fn lead_has_the_values_that_were_given() {
    let lead = accept(json!({
        "name": " Ada ", "mail": "ada@shop.example", "phone": "", "size": "small",
        "notes": "=1+1\n<b>é🦀</b>", "consent": true,
    }))
    .unwrap();
    let values = json!({
        "name": "Ada", "mail": "ada@shop.example", "size": "small", "notes": "=1+1\n<b>é🦀</b>",
    });
    assert_eq!(Value::Object(lead.values.clone()), values);
    assert_eq!(lead.consent, "I agree.");
    assert_eq!(lead.form_version, form().version());
    assert_eq!(
        form().value_of(&lead, LeadFieldKind::Email),
        Some("ada@shop.example")
    );
    assert_eq!(form().value_of(&lead, LeadFieldKind::Name), Some("Ada"));
    assert_eq!(form().value_of(&lead, LeadFieldKind::Phone), None);
}

#[test]
fn refused_lead_names_its_field() {
    let mail = "ada@shop.example";
    for (submitted, path) in [
        (json!({"consent": true}), "mail"),
        (json!({"mail": " ", "consent": true}), "mail"),
        (json!({"mail": "a@b", "consent": true}), "mail"),
        (json!({"mail": 1, "consent": true}), "mail"),
        (json!({"mail": mail}), "consent"),
        (json!({"mail": mail, "consent": "true"}), "consent"),
        (json!({"mail": mail, "consent": false}), "consent"),
        (json!({"mail": mail, "consent": true, "other": ""}), "other"),
        (
            json!({"mail": mail, "consent": true, "formVersion": "000000000000"}),
            "formVersion",
        ),
        (
            json!({"mail": mail, "consent": true, "name": "a\u{202e}b"}),
            "name",
        ),
        (
            json!({"mail": mail, "consent": true, "name": "\u{200b}"}),
            "name",
        ),
        (
            json!({"mail": mail, "consent": true, "phone": "0"}),
            "phone",
        ),
        (
            json!({"mail": mail, "consent": true, "phone": "call me 1234"}),
            "phone",
        ),
        (
            json!({"mail": mail, "consent": true, "size": "Small"}),
            "size",
        ),
        (
            json!({"mail": mail, "consent": true, "name": "a\u{0}b"}),
            "name",
        ),
        (
            json!({"mail": mail, "consent": true, "name": "a\nb"}),
            "name",
        ),
        (
            json!({"mail": mail, "consent": true, "name": "x".repeat(201)}),
            "name",
        ),
        (
            json!({"mail": mail, "consent": true, "notes": "x".repeat(2001)}),
            "notes",
        ),
    ] {
        assert_eq!(refused_path(submitted.clone()), path, "{submitted}");
    }
    let long = "x".repeat(10_000);
    assert_eq!(
        refused_path(json!({ long: "" })).len(),
        FIELD_NAME_CHARS_MAX
    );
}

#[test]
fn phone_numbers_are_accepted_as_people_write_them() {
    for phone in [
        "+49 (0)30 / 123-456",
        "0800.123.456",
        "1234",
        "٠١٢٣٤٥٦٧٨",
        "０３-１２３４",
        "+1 555 0100 ext. 3",
    ] {
        let version = form().version();
        let lead =
            json!({"mail": "a@b.example", "phone": phone, "consent": true, "formVersion": version});
        assert!(accept(lead).is_ok(), "{phone}");
    }
}

#[test]
fn invalid_form_names_its_field() {
    let with = |pointer: &str, value: Value| {
        let mut form = serde_json::to_value(form()).unwrap();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        form.pointer_mut(parent).unwrap()[name] = value;
        let form: LeadForm = serde_json::from_value(form).unwrap();
        form.check().err().map(|error| error.path)
    };
    let field = |name: &str| json!({"name": name, "label": "x", "type": "name"});
    let nine: Vec<_> = (0..9).map(|number| field(&format!("f{number}"))).collect();
    for (pointer, value, path) in [
        ("/title", json!("x".repeat(201)), "title"),
        ("/title", json!("a\u{7}"), "title"),
        ("/text", json!("x".repeat(2001)), "text"),
        ("/consent/text", json!(" "), "consent.text"),
        ("/fields", json!([]), "fields"),
        ("/fields", json!(nine), "fields"),
        ("/fields", json!([field("a"), field("a")]), "fields[1].name"),
        ("/fields", json!([field("A")]), "fields[0].name"),
        ("/fields", json!([field("consent")]), "fields[0].name"),
        ("/fields", json!([field("formVersion")]), "fields[0].name"),
        ("/title", json!("\u{202e}"), "title"),
        ("/fields", json!([field("")]), "fields[0].name"),
        (
            "/fields",
            json!([{"name": "a", "label": "", "type": "name"}]),
            "fields[0].label",
        ),
        (
            "/fields",
            json!([{"name": "a", "label": "A", "type": "select"}]),
            "fields[0].options",
        ),
        (
            "/fields",
            json!([{"name": "a", "label": "A", "type": "select", "options": ["x", " x"]}]),
            "fields[0].options[1]",
        ),
        (
            "/fields",
            json!([{"name": "a", "label": "A", "type": "name", "options": ["x"]}]),
            "fields[0].options",
        ),
        ("/afterReplies", json!(3), "afterReplies"),
        ("/trigger", json!("after-replies"), "afterReplies"),
    ] {
        assert_eq!(
            with(pointer, value.clone()).as_deref(),
            Some(path),
            "{value}"
        );
    }
    assert_eq!(form().check(), Ok(()));
    let mut after = form();
    after.trigger = LeadTrigger::AfterReplies;
    for (count, is_valid) in [(0, false), (1, true), (20, true), (21, false)] {
        after.after_replies = Some(count);
        assert_eq!(after.check().is_ok(), is_valid, "{count}");
    }
}

#[test]
fn version_follows_the_content() {
    let mut other = form();
    other.consent.text = "I agree to more.".into();
    assert_eq!(form().version(), form().version());
    assert_ne!(form().version(), other.version());
}
