//! Lead capture: forms, submitted leads, their storage, lists, files and erasure.

use serde_json::{Value, json};

use crate::support::{Answer, Organization, OrganizationDocument, PATIENCE, Script, eventually};

const CONSENT: &str = "I agree that you contact me.";

fn form(trigger: &str) -> Value {
    json!({
        "title": "Stay in touch", "consent": {"text": CONSENT, "link": "https://shop.example/privacy"},
        "fields": [
            {"name": "name", "label": "Name", "type": "name", "required": false, "options": []},
            {"name": "mail", "label": "E-mail", "type": "email", "required": true, "options": []},
            {"name": "notes", "label": "Notes", "type": "text", "required": false, "options": []},
        ],
        "text": "", "trigger": trigger, "afterReplies": null,
    })
}

async fn shop(trigger: &str) -> Organization {
    let settings = json!({"features": {"enableLeadCapture": true}, "leadForm": form(trigger)});
    let organization = OrganizationDocument::new()
        .shop(settings)
        .agent("silent", json!({"leadForm": form(trigger)}))
        .apply_to_shared()
        .await;
    organization.script(Script::says("ok"));
    organization
}

fn ada() -> Value {
    json!({"name": "Ada", "mail": "ada@shop.example", "notes": "=1+1", "consent": true})
}

async fn metadata(organization: &Organization, session: &str) -> Value {
    organization.history(session).await["metadata"].clone()
}

async fn leads(organization: &Organization, query: &str) -> Answer {
    let path = organization.admin_path(&format!("/leads{query}"));
    organization.service().admin().get(&path).await
}

#[tokio::test]
async fn form_is_part_of_the_widget_only_while_the_feature_is_on() {
    let organization = shop("before-first-message").await;
    let client = organization.client();
    let widget = client.get(&organization.path("/widget")).await.json();
    let mut shown = form("before-first-message");
    shown["version"] = widget["leadForm"]["version"].clone();
    assert_eq!(widget["leadForm"], shown);
    let silent = format!("/api/public/agents/{}/widget", organization.agent("silent"));
    assert_eq!(client.get(&silent).await.json().get("leadForm"), None);
}

#[tokio::test]
async fn changed_lead_replaces_the_first_and_names_the_visitor() {
    let organization = shop("tool").await;
    organization.chat("s", "hi").await.complete();
    let path = organization.path("/conversations/s");
    let client = organization.client();
    let first = client
        .patch(&path, &json!({"lead": ada(), "rating": 4}))
        .await;
    first.assert_status(200);
    assert_eq!(first.json()["updated"]["lead"], ada());
    let stored = metadata(&organization, "s").await;
    assert_eq!(stored["visitorName"], "Ada");
    assert_eq!(stored["visitorEmail"], "ada@shop.example");
    let lead = &stored["lead"];
    assert_eq!(lead["values"]["notes"], "=1+1");
    assert_eq!(
        (&lead["consent"], &lead["trigger"]),
        (&json!(CONSENT), &json!("tool"))
    );
    assert!(
        lead["capturedAt"].is_string() && lead["formVersion"].is_string(),
        "{lead}"
    );

    let second = json!({"lead": {"mail": "grace@shop.example", "consent": true}});
    client.patch(&path, &second).await.assert_status(200);
    let stored = metadata(&organization, "s").await;
    assert_eq!(
        stored["lead"]["values"],
        json!({"mail": "grace@shop.example"})
    );
    assert_eq!(stored["visitorEmail"], "grace@shop.example");
    assert_eq!(
        stored.get("visitorName"),
        None,
        "it was that of another lead"
    );
    let withdrawn = client.patch(&path, &json!({"lead": null})).await;
    withdrawn.assert_status(200);
    let stored = metadata(&organization, "s").await;
    assert_eq!(
        (stored.get("lead"), stored.get("visitorEmail")),
        (None, None)
    );
    assert_eq!(leads(&organization, "").await.json()["items"], json!([]));
}

#[tokio::test]
async fn refused_lead_changes_nothing() {
    let organization = shop("tool").await;
    organization.chat("s", "hi").await.complete();
    let path = organization.path("/conversations/s");
    let client = organization.client();
    let before = metadata(&organization, "s").await;
    let mail = "ada@shop.example";
    for (lead, param) in [
        (json!({"mail": mail}), "lead.consent"),
        (json!({"consent": true}), "lead.mail"),
        (json!({"mail": "ada", "consent": true}), "lead.mail"),
        (
            json!({"mail": mail, "consent": true, "size": 1}),
            "lead.size",
        ),
        (
            json!({"mail": mail, "consent": true, "name": "a\u{0}"}),
            "lead.name",
        ),
        (
            json!({"mail": mail, "consent": true, "notes": "x".repeat(10_000)}),
            "lead.notes",
        ),
        (
            json!({"mail": mail, "consent": true, "formVersion": "of another form"}),
            "lead.formVersion",
        ),
        (json!([]), "lead"),
    ] {
        let refused = client
            .patch(&path, &json!({"rating": 5, "lead": lead}))
            .await;
        let problem = refused.assert_problem(400, Some("INVALID_REQUEST_DATA"));
        assert_eq!(problem["param"], param, "{problem}");
    }
    assert_eq!(metadata(&organization, "s").await, before);

    let silent = organization.agent("silent");
    client.chat(silent, "s", "hi").await.complete();
    let path = format!("/api/public/agents/{silent}/conversations/s");
    let refused = client.patch(&path, &json!({"lead": ada()})).await;
    assert_eq!(
        refused.assert_problem(400, Some("INVALID_REQUEST_DATA"))["param"],
        "lead"
    );
    let forged = json!({"metadata": {"lead": {"values": {}}}});
    assert_eq!(
        client.patch(&path, &forged).await.json()["updated"]["metadata"],
        json!({})
    );
}

#[tokio::test]
async fn first_message_brings_a_lead() {
    let organization = shop("before-first-message").await;
    let client = organization.client();
    let mut body =
        json!({"message": "hi", "sessionId": "s", "stream": false, "lead": {"consent": true}});
    let refused = client.post(&organization.path("/chat"), &body).await;
    assert_eq!(
        refused.assert_problem(400, Some("INVALID_REQUEST_DATA"))["param"],
        "lead.mail"
    );
    body["lead"] = ada();
    let answer = client.post(&organization.path("/chat"), &body).await;
    answer.assert_status(200);
    assert_eq!(answer.header("x-ai-generated"), Some("true"));
    let stored = metadata(&organization, "s").await;
    assert_eq!(stored["lead"]["values"]["name"], "Ada");
    assert_eq!(stored["visitorEmail"], "ada@shop.example");
}

#[tokio::test]
async fn model_shows_the_form_once_and_is_told_that_it_was_filled_in() {
    let organization = shop("tool").await;
    let ask = || {
        Script::in_turn(vec![
            Script::calls("capture_lead", &json!({"email": "made up"})),
            Script::says("Please fill it in."),
        ])
    };
    organization.script(ask());
    let events = organization.chat_events("s", "call me").await;
    let shown = events.only("ui");
    assert_eq!(shown["type"], "lead-form");
    assert_eq!(shown["fields"], form("tool")["fields"]);
    let history = organization.history("s").await;
    assert_eq!(history["messages"][1]["uiSpec"], *shown);

    let path = organization.path("/conversations/s");
    let lead = json!({"lead": ada()});
    organization
        .client()
        .patch(&path, &lead)
        .await
        .assert_status(200);
    organization.script(ask());
    let again = organization.chat_events("s", "call me").await;
    assert!(!again.names().contains(&"ui"), "{:?}", again.names());
    let request = organization.requests().pop().unwrap();
    let told = request
        .messages
        .iter()
        .rfind(|(role, _)| role == "tool")
        .unwrap();
    assert!(told.1.contains("filled in the form before"), "{told:?}");

    let silent = organization.agent("silent");
    organization.script(ask());
    let reply = organization.client().chat(silent, "s", "call me").await;
    assert_eq!(reply.header("x-ui-spec"), None);
}

#[tokio::test]
async fn leads_are_listed_searched_and_exported() {
    let organization = shop("tool").await;
    let client = organization.client();
    for (session, lead) in [
        ("one", ada()),
        (
            "two",
            json!({"mail": "grace@shop.example", "consent": true}),
        ),
    ] {
        organization.chat(session, "hi").await.complete();
        let path = organization.path(&format!("/conversations/{session}"));
        client
            .patch(&path, &json!({ "lead": lead }))
            .await
            .assert_status(200);
    }
    organization.chat("none", "hi").await.complete();
    let page = leads(&organization, "").await.json();
    let sessions: Vec<_> = page["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["sessionId"])
        .collect();
    assert_eq!(sessions, ["two", "one"]);
    assert_eq!(page["items"][1]["lead"]["values"]["name"], "Ada");
    assert_eq!(page["items"][1]["agentId"], organization.shop());
    let found = leads(&organization, "?search=GRACE").await.json();
    assert_eq!(found["items"].as_array().unwrap().len(), 1);
    let others = leads(
        &organization,
        &format!("?agent={}", organization.agent("silent")),
    )
    .await;
    assert_eq!(others.json()["items"], json!([]));

    let csv = leads(&organization, "?format=csv").await;
    assert_eq!(csv.header("content-type"), Some("text/csv; charset=utf-8"));
    let lines: Vec<_> = csv.text.lines().collect();
    assert!(
        lines[0].ends_with("consent,values.mail,values.name,values.notes,otherValues"),
        "{}",
        lines[0]
    );
    assert!(
        lines[2].contains("ada@shop.example") && lines[2].contains("\"'=1+1\""),
        "{}",
        lines[2]
    );
    let now = page["items"][0]["lead"]["capturedAt"].as_str().unwrap();
    let since = leads(&organization, &format!("?since={now}")).await.json();
    assert_eq!(since["items"].as_array().unwrap().len(), 1, "{since}");
    let jsonl = leads(&organization, "?format=jsonl").await;
    assert_eq!(jsonl.header("content-type"), Some("application/x-ndjson"));
    assert_eq!(jsonl.text.lines().count(), 2);
    leads(&organization, "?format=pdf")
        .await
        .assert_problem(400, Some("INVALID_REQUEST_DATA"));
}

#[tokio::test]
async fn erased_visitor_leaves_no_lead() {
    let organization = shop("tool").await;
    organization.chat("s", "hi").await.complete();
    let path = organization.path("/conversations/s");
    // The address of the lead alone finds it.
    let lead = json!({"lead": ada(), "visitorEmail": "other@shop.example"});
    organization
        .client()
        .patch(&path, &lead)
        .await
        .assert_status(200);
    let admin = organization.service().admin();
    let visitor = json!({"visitorEmail": "ada@shop.example"});
    let begun = admin
        .post(&organization.admin_path("/erasures"), &visitor)
        .await;
    let receipt = organization.admin_path(&format!(
        "/erasures/{}",
        begun.json()["id"].as_str().unwrap()
    ));
    eventually("the erasure is finished", PATIENCE, async || {
        let receipt = admin.post(&receipt, &visitor).await.json();
        (receipt["state"] == "finished").then_some(())
    })
    .await;
    assert_eq!(leads(&organization, "").await.json()["items"], json!([]));
}
