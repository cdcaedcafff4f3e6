//! The audit log: changes by user, in order, without secrets.

use reqwest::Method;
use serde_json::{Value, json};

use super::{PASS, Person, of};
use crate::support::{OrganizationDocument, SharedService};

#[tokio::test]
async fn changes_by_users_and_the_token_are_listed_latest_first() {
    let service = SharedService::get().await;
    let organization = OrganizationDocument::new()
        .agent("shop", json!({}))
        .apply(&service)
        .await;
    let owner = Person::new(&service, &organization, "owner").await;
    let agent = of(&organization, &format!("/agents/{}", organization.shop()));
    let change = json!({"name": "Renamed", "instructions": "canary instructions"});
    assert_eq!(
        owner
            .browser
            .send(Method::PATCH, &agent, Some(&change))
            .await
            .status,
        200
    );
    let key = owner
        .browser
        .send(
            Method::POST,
            &of(&organization, "/keys"),
            Some(&json!({"name": "made"})),
        )
        .await;
    assert_eq!(key.status, 201, "{}", key.text);
    assert_eq!(
        service
            .admin()
            .post(
                "/api/admin/apply",
                &organization.changed_agent("shop", json!({}))
            )
            .await
            .status,
        200
    );
    let log = owner
        .browser
        .get(&of(&organization, "/audit?limit=200"))
        .await;
    assert_eq!(log.status, 200, "{}", log.text);
    let items = log.json()["items"].as_array().unwrap().clone();
    let told: Vec<_> = items
        .iter()
        .map(|item| {
            (
                item["kind"].as_str().unwrap(),
                item["action"].as_str().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("agent", "update"),
        ("key", "create"),
        ("agent", "update"),
        ("user", "sign-in"),
    ];
    assert_eq!(told[..4], expected, "{told:?}");
    assert_eq!(
        (&items[0]["actor"]["type"], &items[2]["actor"]["email"]),
        (&json!("token"), &json!(owner.email))
    );
    assert_eq!(items[2]["fields"].as_array().unwrap().len(), 2);
    let renamed = items[2]["fields"]
        .as_array()
        .unwrap()
        .iter()
        .find(|field| field["field"] == "name")
        .unwrap();
    assert_eq!(renamed["after"], "Renamed");
    assert_eq!(items[2]["address"], "127.0.0.0");
    let value = key.json()["value"].as_str().unwrap().to_owned();
    for secret in ["canary", PASS, value.as_str(), "sk-test", "argon2"] {
        assert!(!log.text.contains(secret), "{secret}");
    }
    for query in [
        format!("?id={}", organization.shop()),
        "?kind=agent".into(),
        format!("?user={}&kind=key", owner.id),
    ] {
        let found = owner
            .browser
            .get(&of(&organization, &format!("/audit{query}")))
            .await
            .json();
        assert!(!found["items"].as_array().unwrap().is_empty(), "{query}");
        assert!(
            found["items"].as_array().unwrap().len() < items.len(),
            "{query}"
        );
    }
}

#[tokio::test]
async fn pages_of_the_log_join_on_every_ingress() {
    let service = SharedService::get().await;
    let organization = OrganizationDocument::new().apply(&service).await;
    let owner = Person::new(&service, &organization, "owner").await;
    for name in ["One", "Two", "Three", "Four"] {
        let answer = service
            .admin()
            .patch(&of(&organization, ""), &json!({"name": name}))
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    let whole = owner.browser.get(&of(&organization, "/audit")).await.json()["items"].clone();
    for url in service.public_urls() {
        let browser = owner.browser.moved_to(&url);
        let (mut walked, mut cursor): (Vec<Value>, _) = (vec![], String::new());
        loop {
            let page = browser
                .get(&of(&organization, &format!("/audit?limit=3{cursor}")))
                .await
                .json();
            walked.extend(page["items"].as_array().unwrap().clone());
            match page["nextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(Value::from(walked), whole);
    }
}
