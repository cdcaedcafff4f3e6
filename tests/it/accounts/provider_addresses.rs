//! Addresses of model providers: members of an organization reach the public internet and the
//! networks that the operator allows.

use reqwest::Method;
use serde_json::{Value, json};

use super::Person;
use crate::support::{Organization, Script, TestService, shop_saying, unique};

/// Returns the base URL that the operator has chosen, with another host.
fn base_url(organization: &Organization, host: &str) -> String {
    let provider = &organization.document["organizations"][0]["providers"][0];
    let operators = provider["baseUrl"].as_str().unwrap();
    operators.replace("127.0.0.1", host)
}

/// Returns the events of a playground run of the agent `shop` with a draft.
async fn run_events(organization: &Organization, person: &Person, draft: Value) -> String {
    let path = organization.admin_path(&format!("/agents/{}/try", organization.shop()));
    let body = json!({ "message": "Hi", "draft": draft });
    let answer = person.browser.send(Method::POST, &path, Some(&body));
    answer.await.text
}

/// Returns the events of a playground run with a new provider of a member.
async fn run_events_at(organization: &Organization, person: &Person, host: &str) -> String {
    let slug = unique("own-");
    let provider = json!({ "slug": slug, "baseUrl": base_url(organization, host), "model": "m" });
    let path = organization.admin_path("/providers");
    let answer = person.browser.send(Method::POST, &path, Some(&provider));
    answer.await.assert_status(201);
    run_events(organization, person, json!({ "provider": slug })).await
}

#[tokio::test]
async fn member_cannot_reach_private_networks() {
    let organization = shop_saying("Inside.").await;
    let person = Person::new(organization.service(), &organization, "editor").await;
    let events = run_events(&organization, &person, json!({})).await;
    assert!(events.contains("Inside."), "{events}");
    let calls = organization.requests().len();
    for host in [
        "127.0.0.1",
        "2130706433",
        "0x7f.1",
        "0.0.0.0",
        "localhost",
        "[::ffff:127.0.0.1]",
    ] {
        // The same code as for a closed port, so that ports cannot be scanned.
        let events = run_events_at(&organization, &person, host).await;
        assert!(events.contains(r#""UNAVAILABLE""#), "{host}: {events}");
    }
    assert_eq!(organization.requests().len(), calls);
}

#[tokio::test]
async fn member_reaches_private_networks_that_the_operator_allows() {
    let setting = "SWITCHBOARD__WORKERS__PROVIDER_PRIVATE_NETWORKS";
    let service = TestService::start_with(&[(setting, "127.0.0.0/8")]).await;
    let organization = Organization::with_agent(&service, Script::says("Hi.")).await;
    let person = Person::new(&service, &organization, "editor").await;
    let events = run_events_at(&organization, &person, "2130706433").await;
    assert!(events.contains("event: done"), "{events}");
}
