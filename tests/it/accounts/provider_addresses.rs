//! Addresses of model providers: members of an organization reach the public internet and the
//! networks that the operator allows.

use reqwest::Method;
use serde_json::{Value, json};

use super::Person;
use crate::support::{Answer, Organization, Script, TestService, shop_saying, unique};

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

/// Saves a new provider of a member.
async fn saved_at(organization: &Organization, person: &Person, slug: &str, host: &str) -> Answer {
    let provider = json!({ "slug": slug, "baseUrl": base_url(organization, host), "model": "m" });
    let path = organization.admin_path("/providers");
    let answer = person.browser.send(Method::POST, &path, Some(&provider));
    answer.await
}

#[tokio::test]
async fn member_cannot_save_private_addresses() {
    let organization = shop_saying("Inside.").await;
    let person = Person::new(organization.service(), &organization, "editor").await;
    for host in [
        "127.0.0.1",
        "2130706433",
        "0x7f.1",
        "0.0.0.0",
        "localhost",
        "[::ffff:127.0.0.1]",
    ] {
        let answer = saved_at(&organization, &person, &unique("own-"), host).await;
        let problem = answer.assert_problem(400, Some("INVALID_REQUEST_DATA"));
        assert_eq!(problem["param"], "baseUrl", "{host}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(
            detail.contains("workers.provider_private_networks"),
            "{host}: {detail}"
        );
    }
}

#[tokio::test]
async fn member_reaches_private_networks_that_the_operator_allows() {
    let setting = "SWITCHBOARD__WORKERS__PROVIDER_PRIVATE_NETWORKS";
    let service = TestService::start_with(&[(setting, "127.0.0.0/8")]).await;
    let organization = Organization::with_agent(&service, Script::says("Hi.")).await;
    let person = Person::new(&service, &organization, "editor").await;
    let slug = unique("own-");
    let saved = saved_at(&organization, &person, &slug, "2130706433").await;
    saved.assert_status(201);
    let events = run_events(&organization, &person, json!({ "provider": slug })).await;
    assert!(events.contains("event: done"), "{events}");
}
