//! Conversations in the dashboard: filters, transcripts and live updates; text of visitors stays
//! text.

use serde_json::json;

use super::Person;
use crate::support::{OrganizationDocument, Script, shop_saying, shop_with_settings};

/// Global variable set by hostile text when it is executed.
const HOSTILE: &str = "<img src=x onerror=\"window.hit=1\"><script>window.hit=1</script>";

#[tokio::test]
async fn open_transcript_grows() {
    let organization = shop_saying("First answer").await;
    organization.chat("s", "First question").await.complete();
    let person = Person::owner_at(&organization, "/conversations").await;
    person
        .does("await press('Visitor s'); await shows('First answer');")
        .await;
    organization.script(Script::says("Second answer"));
    organization.chat("s", "Second question").await.complete();
    person
        .does("await shows('Second question'); await shows('Second answer');")
        .await;
}

#[tokio::test]
async fn list_is_filtered_by_agent_visitor_and_rating() {
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .agent("other", json!({}))
        .apply_to_shared()
        .await;
    organization.script(Script::says("ok"));
    let client = organization.client();
    for (agent, session, name) in [
        ("shop", "s1", "Ann"),
        ("shop", "s2", "Ben"),
        ("other", "s3", "Cid"),
    ] {
        let body = json!({"message": "hi", "sessionId": session, "visitorName": name, "visitorEmail": format!("{name}@example.com"), "stream": false});
        let path = format!("/api/public/agents/{}/chat", organization.agent(agent));
        assert_eq!(client.post(&path, &body).await.status, 200);
    }
    let rated = organization.path("/conversations/s2");
    assert_eq!(
        client.patch(&rated, &json!({"rating": 2})).await.status,
        200
    );
    let person = Person::owner_at(&organization, "/conversations").await;
    let names =
        "await until('the list', () => document.querySelector('[aria-label=Conversations] li, h2')); const want = JSON.stringify(input);
        return await until('the names ' + want, () => {
            const found = [...document.querySelectorAll('ul[aria-label=Conversations] a')].map(link => link.textContent).sort();
            return JSON.stringify(found) === want && found;
        });";
    person.does_with(names, json!(["Ann", "Ben", "Cid"])).await;
    person
        .does("await choose('Agent or team', 'Agent shop');")
        .await;
    person.does_with(names, json!(["Ann", "Ben"])).await;
    person
        .does("await choose('Rating', '1 and 2 stars');")
        .await;
    person.does_with(names, json!(["Ben"])).await;
    person
        .does("await press('Clear'); await type('Visitor name, email or id', 'Cid@example.com');")
        .await;
    person.does_with(names, json!(["Cid"])).await;
}

#[tokio::test]
async fn list_shows_first_words_and_failures_and_finds_texts() {
    let organization = shop_saying("Yes, green tea.").await;
    let say = async |session: &str, message: &str| {
        let body = json!({"message": message, "sessionId": session, "visitorName": session, "stream": false});
        let path = organization.path("/chat");
        organization.client().post(&path, &body).await.status
    };
    assert_eq!(say("Ann", "Do you have tea?").await, 200);
    organization.script(Script::refuses(500));
    assert_eq!(say("Ben", "Where is my parcel?").await, 503);
    let person = Person::owner_at(&organization, "/conversations").await;
    let rows = "await until('the rows', () => document.querySelectorAll('ul[aria-label=Conversations] li').length === input);
        return [...document.querySelectorAll('ul[aria-label=Conversations] li')].map(row => row.innerText).join('|');";
    let all = person.does_with(rows, json!(2)).await;
    let all = all.as_str().unwrap();
    for part in ["Do you have tea?", "Where is my parcel?", "Failed"] {
        assert!(all.contains(part), "{part}: {all}");
    }
    // A word of a reply finds its conversation, which opens beside the list.
    person.browser.looks_like(1440, 900, "light").await;
    person
        .does("await type('Search messages', 'GREEN tea');")
        .await;
    let found = person.does_with(rows, json!(1)).await;
    assert!(
        found.as_str().unwrap().contains("Yes, green tea."),
        "{found}"
    );
    person
        .does("await press('Ann'); await until('the transcript', () => document.querySelectorAll('article').length === 2);")
        .await;
    let beside = "return [location.search, [...document.querySelectorAll('ul[aria-label=Conversations] a')].filter(visible).length];";
    assert_eq!(
        person.does(beside).await,
        json!(["?text=GREEN+tea", 1]),
        "the filter stays"
    );
}

#[tokio::test]
async fn visitor_and_model_text_is_never_executed() {
    let settings = json!({"name": HOSTILE, "description": HOSTILE, "welcomeMessage": HOSTILE, "placeholderText": HOSTILE});
    let organization = shop_with_settings(settings).await;
    organization.script(Script::says(HOSTILE));
    let body = json!({
        "message": HOSTILE, "sessionId": HOSTILE, "visitorName": HOSTILE, "visitorId": HOSTILE,
        "metadata": {HOSTILE: HOSTILE, "link": "javascript:window.hit=1"}, "stream": false
    });
    let path = organization.path("/chat");
    assert_eq!(organization.client().post(&path, &body).await.status, 200);
    let person = Person::owner_at(&organization, "/conversations").await;
    person
        .does_with(
            "await press(input); await until('the answer', () => document.querySelectorAll('article').length === 2);",
            json!(HOSTILE),
        )
        .await;
    let found = "await new Promise(resolve => setTimeout(resolve, 300)); return [window.hit ?? null, document.querySelectorAll('#root img[src=x], #root script').length];";
    assert_eq!(person.does(found).await, json!([null, 0]));
    for path in [
        "/agents".to_owned(),
        format!("/agents/{}?tab=appearance", organization.shop()),
    ] {
        person.goes_to(&path).await;
        person
            .does_with("await shows(input);", json!(HOSTILE))
            .await;
        assert_eq!(person.does(found).await, json!([null, 0]), "{path}");
    }
}

#[tokio::test]
async fn filter_dates_have_visible_labels() {
    let organization = shop_with_settings(json!({})).await;
    let person = Person::owner_at(&organization, "/conversations").await;
    person.does("await until('the labels', () => ['From', 'To'].every(name => all('label', name).length === 1 && all('input', name).length === 1));").await;
}
