//! Actions on conversations in the dashboard: live view, timeline, export, deletion and erasure.

use std::time::Duration;

use serde_json::{Value, json};

use super::Person;
use crate::support::{
    Organization, OrganizationDocument, PATIENCE, Script, eventually, shop_saying, shop_with,
};

async fn conversations(organization: &Organization) -> Vec<Value> {
    let path = organization.admin_path("/conversations");
    organization.service().admin().get(&path).await.json()["items"]
        .as_array()
        .unwrap()
        .clone()
}

async fn said_by(organization: &Organization, session: &str, visitor: &Value) {
    let mut body = json!({"message": "Do you have tea?", "sessionId": session, "stream": false});
    body.as_object_mut()
        .unwrap()
        .extend(visitor.as_object().unwrap().clone());
    let path = organization.path("/chat");
    assert_eq!(organization.client().post(&path, &body).await.status, 200);
}

/// Opens the only conversation.
async fn opened(organization: &Organization) -> Person {
    let id = conversations(organization).await[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    Person::owner_at(organization, &format!("/conversations/{id}")).await
}

#[tokio::test]
async fn running_reply_grows_word_by_word() {
    let organization = shop_saying("We have green tea.").await;
    said_by(&organization, "s", &json!({})).await;
    let person = opened(&organization).await;
    person.does("await shows('We have green tea.');").await;
    let (script, gate) = Script::says("first second third").chunk_chars(6).gated();
    organization.script(script);
    // Response headers arrive with the first token.
    gate.open(1);
    let (reply, response) = organization.begin_chat("s", "go", 6).await;
    person.does("await shows('first');").await;
    assert_eq!(
        person
            .does("return document.body.innerText.includes('second');")
            .await,
        json!(false)
    );
    gate.open(1);
    person.does("await until('the second word', () => document.querySelector('[aria-busy]')?.innerText.includes('second'));").await;
    gate.open(100);
    assert_eq!(
        reply.continue_reading(response).await.complete(),
        "first second third"
    );
    person.does("await shows('third'); await until('the end', () => !document.querySelector('[aria-busy]'));").await;
    assert_eq!(
        person
            .does("return document.querySelectorAll('article').length;")
            .await,
        json!(4)
    );
}

#[tokio::test]
async fn reply_shows_its_timeline() {
    let script = Script::says("We have green tea.").paced(Duration::from_millis(100));
    let organization = shop_with(script).await;
    said_by(&organization, "s", &json!({})).await;
    let person = opened(&organization).await;
    let steps = "(await until('how', () => document.querySelector('summary'))).click();
        const table = await until('the timeline', () => all('table', 'Reply timeline')[0]);
        return [...table.querySelectorAll('tbody tr')].map(row => row.cells[0].innerText);";
    let expected = [
        "Message accepted",
        "Queued",
        "Claimed by a worker",
        "Model called",
        "First token",
        "Reply finished",
    ];
    assert_eq!(person.does(steps).await, json!(expected));
}

#[tokio::test]
async fn conversation_is_deleted_after_confirmation() {
    let organization = shop_saying("We have green tea.").await;
    said_by(&organization, "s", &json!({})).await;
    let person = opened(&organization).await;
    person
        .does("await press('Delete'); await shows('cannot be undone'); await press('Cancel');")
        .await;
    assert_eq!(conversations(&organization).await.len(), 1);
    person
        .does("await press('Delete'); await press('Delete conversation'); await shows('No conversations yet');")
        .await;
    eventually("it is gone", PATIENCE, async || {
        conversations(&organization).await.is_empty().then_some(())
    })
    .await;
}

#[tokio::test]
async fn visitor_is_erased_with_a_receipt() {
    let organization = shop_saying("We have green tea.").await;
    for (session, email) in [
        ("s1", "ann@example.com"),
        ("s2", "ann@example.com"),
        ("s3", "ben@example.com"),
    ] {
        said_by(&organization, session, &json!({"visitorEmail": email})).await;
    }
    let person = Person::owner_at(&organization, "/conversations").await;
    person
        .does("await press('Erase visitor'); await type('Email', 'ann@example.com'); await press('Erase everything');")
        .await;
    person
        .does(
            "await shows('Erased 2 conversations with 4 messages.'); await shows('Receipt era_'); await press('Done');",
        )
        .await;
    person.does("await until('one row', () => document.querySelectorAll('ul[aria-label=Conversations] li').length === 1); await shows('ben@example.com');").await;
    person.does("await press('Erase visitor'); (await until('receipts', () => document.querySelector('[role=dialog] summary'))).click();
        await shows('2 conversations, 4 messages');").await;
    assert_eq!(
        person
            .does("return document.body.innerText.includes('ann@example.com');")
            .await,
        json!(false)
    );
}

#[tokio::test]
async fn erasure_from_a_transcript_shows_only_its_receipt() {
    let organization = shop_saying("We have green tea.").await;
    said_by(
        &organization,
        "s",
        &json!({"visitorEmail": "ann@example.com"}),
    )
    .await;
    let person = opened(&organization).await;
    person
        .does("await shows('We have green tea.'); await press('Erase visitor'); await press('Erase everything');")
        .await;
    person
        .does("await shows('This conversation was deleted'); await shows('Receipt era_');")
        .await;
    assert_eq!(
        person
            .does("return document.body.innerText.includes('green tea');")
            .await,
        json!(false)
    );
    person
        .does("await press('Done'); await shows('No conversations yet');")
        .await;
}

#[tokio::test]
async fn listed_conversations_can_be_exported() {
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .agent("other", json!({}))
        .apply_to_shared()
        .await;
    organization.script(Script::says("We have green tea."));
    said_by(&organization, "s", &json!({"visitorName": "=1+1"})).await;
    let query = format!("?agent={}", organization.shop());
    let person = Person::owner_at(&organization, &format!("/conversations{query}")).await;
    let file = "await shows('=1+1'); await press('Export');
        const link = await control(input);
        const answer = await fetch(link.href);
        return [answer.headers.get('content-disposition').includes('attachment'), new URL(link.href).searchParams.get('agent'), await answer.text()];";
    for (label, expected) in [
        ("CSV, for spreadsheets", "\"'=1+1\""),
        ("JSON lines, for programs", "\"visitorName\":\"=1+1\""),
    ] {
        person.goes_to(&format!("/conversations{query}")).await;
        let found = person.does_with(file, json!(label)).await;
        assert_eq!(
            (&found[0], &found[1]),
            (&json!(true), &json!(organization.shop())),
            "{found}"
        );
        assert!(found[2].as_str().unwrap().contains(expected), "{found}");
    }
}

#[tokio::test]
async fn viewer_is_offered_neither_exports_nor_deletions() {
    let organization = shop_saying("We have green tea.").await;
    said_by(&organization, "s", &json!({"visitorName": "Ann"})).await;
    let person = Person::at(
        organization.service(),
        &organization,
        "viewer",
        "/conversations",
    )
    .await;
    let offered =
        "return [...document.querySelectorAll('main button, main a')].filter(visible).map(nameOf)
        .filter(name => ['Export', 'Erase visitor', 'Delete'].includes(name));";
    assert_eq!(
        person.does(&format!("await shows('Ann'); {offered}")).await,
        json!([])
    );
    assert_eq!(
        person
            .does(&format!(
                "await press('Ann'); await shows('We have green tea.'); {offered}"
            ))
            .await,
        json!([])
    );
}

#[tokio::test]
async fn conversation_deleted_elsewhere_leaves_the_page() {
    let organization = shop_saying("We have green tea.").await;
    said_by(&organization, "s", &json!({})).await;
    let person = opened(&organization).await;
    person.does("await shows('We have green tea.');").await;
    let id = conversations(&organization).await[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = organization.admin_path(&format!("/conversations/{id}"));
    assert!(organization.service().admin().delete(&path).await.status < 300);
    person
        .does("await shows('This conversation was deleted');")
        .await;
    assert_eq!(
        person
            .does("return document.body.innerText.includes('green tea');")
            .await,
        json!(false)
    );
    person
        .does("await press('Go to conversations'); await shows('No conversations yet');")
        .await;
}
