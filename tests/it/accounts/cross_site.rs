//! Cross-site requests of another page in a signed-in browser.

use reqwest::Method;
use serde_json::{Value, json};

use super::{PASS, PASSWORD, Person, SESSION};
use crate::support::{Client, Organization, send, shop_with_settings};

async fn organization_with_owner() -> (Organization, Person) {
    let organization = shop_with_settings(json!({})).await;
    let owner = Person::new(organization.service(), &organization, "owner").await;
    (organization, owner)
}

fn agent_path(organization: &Organization) -> String {
    organization.admin_path(&format!("/agents/{}", organization.shop()))
}

/// Returns a request of every kind that would change something for this person.
fn changes(organization: &Organization, person: &Person) -> Vec<(Method, String, Option<Value>)> {
    let agent = agent_path(organization);
    let (agents, users) = (
        organization.admin_path("/agents"),
        organization.admin_path("/users"),
    );
    let named = |slug: &str| Some(json!({"slug": slug, "name": "Evil"}));
    let invited = json!({"email": "e@evil.example", "role": "owner"});
    let password = json!({"currentPassword": PASS, "newPassword": "evil evil evil"});
    let sign_in = person.login.with(PASS);
    vec![
        (Method::POST, agents, named("evil")),
        (Method::PATCH, agent.clone(), Some(json!({"name": "Evil"}))),
        (Method::PUT, agent.clone(), named("shop")),
        (Method::DELETE, agent, None),
        (Method::POST, users, Some(invited)),
        (Method::POST, PASSWORD.to_owned(), Some(password)),
        (Method::POST, SESSION.to_owned(), Some(sign_in)),
        (Method::DELETE, SESSION.to_owned(), None),
    ]
}

#[tokio::test]
async fn cross_site_requests_change_nothing() {
    let (organization, person) = organization_with_owner().await;
    let agent = agent_path(&organization);
    let before = person.browser.get(&agent).await.json();
    let host = organization.service().public_urls()[0].clone();
    let evil_port = format!("{host}1");
    for page in [
        &[("sec-fetch-site", "cross-site")][..],
        &[("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "cross-site"), ("origin", host.as_str())],
        &[("origin", "https://evil.example")],
        &[("origin", "null")],
        &[("origin", evil_port.as_str())],
        &[],
    ] {
        for (method, path, body) in changes(&organization, &person) {
            let answer = person
                .browser
                .send_from(page, method, &path, body.as_ref())
                .await;
            answer.assert_problem(403, Some("DOMAIN_NOT_ALLOWED"));
        }
    }
    assert_eq!(person.browser.get(&agent).await.json(), before);
    assert!(person.browser.is_signed_in().await);
}

#[tokio::test]
async fn html_forms_of_a_signed_in_browser_change_nothing() {
    let (organization, person) = organization_with_owner().await;
    let agents = organization.admin_path("/agents");
    let before = person.browser.get(&agents).await.json();
    for form in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
    ] {
        let request = Client::new(&organization.service().public_urls()[0])
            .request(Method::POST, &agents)
            .header("cookie", &person.browser.cookie)
            .header("sec-fetch-site", "same-origin")
            .header("content-type", form)
            .body(r#"{"slug":"evil","name":"Evil"}"#);
        let answer = send(request).await;
        answer.assert_problem(415, Some("UNSUPPORTED_MEDIA_TYPE"));
    }
    assert_eq!(person.browser.get(&agents).await.json(), before);
    assert!(person.browser.is_signed_in().await);
    let as_json = json!({"slug": "evil", "name": "Evil"});
    let answer = person.browser.send(Method::POST, &agents, Some(&as_json));
    answer.await.assert_status(201);
}

#[tokio::test]
async fn browser_without_sec_fetch_site_is_known_by_its_origin() {
    let (organization, person) = organization_with_owner().await;
    let host = organization.service().public_urls()[0].clone();
    let rename = json!({"name": "Ours"});
    let answer = person
        .browser
        .send_from(
            &[("origin", host.as_str())],
            Method::PATCH,
            &agent_path(&organization),
            Some(&rename),
        )
        .await;
    answer.assert_status(200);
}
