//! The audit log: changes by user, in order, without secrets.

use reqwest::Method;
use serde_json::{Value, json};

use super::{PASS, Person};
use crate::support::{Answer, Organization, OrganizationDocument, SharedService, TestService};

/// An organization with one change each of an agent and a key by its owner, and one by the token.
struct ChangedOrganization {
    organization: Organization,
    owner: Person,
    /// Text of the created key.
    key: String,
}

impl ChangedOrganization {
    async fn new(service: &TestService) -> Self {
        let organization = OrganizationDocument::new()
            .shop(json!({}))
            .apply(service)
            .await;
        let owner = Person::new(service, &organization, "owner").await;
        let agent = organization.admin_path(&format!("/agents/{}", organization.shop()));
        let change = json!({
            "name": "Renamed", "instructions": "canary instructions", "theme": {"textColor": "blue"}
        });
        let changed = owner
            .browser
            .send(Method::PATCH, &agent, Some(&change))
            .await;
        changed.assert_status(200);
        // A change to the same values leaves no entry.
        let again = owner.browser.send(Method::PATCH, &agent, Some(&change));
        again.await.assert_status(200);
        let keys = organization.admin_path("/keys");
        let key = owner
            .browser
            .send(Method::POST, &keys, Some(&json!({"name": "made"})))
            .await;
        key.assert_status(201);
        let document = organization.changed_agent("shop", json!({}));
        let applied = service.apply(&document).await;
        applied.assert_status(200);
        Self {
            organization,
            owner,
            key: key.json()["value"].as_str().unwrap().to_owned(),
        }
    }

    /// Returns the response to a request for the audit log.
    async fn audit_log(&self, query: &str) -> Answer {
        let path = self.organization.admin_path(&format!("/audit{query}"));
        let answer = self.owner.browser.get(&path).await;
        answer.assert_status(200);
        answer
    }
}

fn items(log: &Answer) -> Vec<Value> {
    log.json()["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn changes_by_users_and_the_token_are_listed_latest_first() {
    let service = SharedService::get().await;
    let changed = ChangedOrganization::new(&service).await;
    let items = items(&changed.audit_log("?limit=200").await);
    let entries: Vec<_> = items
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
    assert_eq!(entries[..4], expected, "{entries:?}");
    assert_eq!(
        (&items[0]["actor"]["type"], &items[2]["actor"]["email"]),
        (&json!("token"), &json!(changed.owner.login.email))
    );
    let request = items[2]["requestId"].as_str().unwrap();
    assert!(request.starts_with("req_"), "{request}");
    assert_eq!(items[2]["subject"], changed.organization.shop());
    let fields = items[2]["fields"].as_array().unwrap();
    assert_eq!(fields.len(), 3, "{fields:?}");
    let color = fields
        .iter()
        .find(|field| field["field"] == "theme.textColor");
    assert!(color.is_some(), "{fields:?}");
    let renamed = fields
        .iter()
        .find(|field| field["field"] == "name")
        .unwrap();
    assert_eq!(
        (&renamed["before"], &renamed["after"]),
        (&json!("Agent shop"), &json!("Renamed"))
    );
    assert_eq!(items[2]["address"], "127.0.0.0");
}

#[tokio::test]
async fn audit_log_contains_no_secrets() {
    let service = SharedService::get().await;
    let changed = ChangedOrganization::new(&service).await;
    let log = changed.audit_log("?limit=200").await;
    for secret in ["canary", PASS, changed.key.as_str(), "sk-test", "argon2"] {
        assert!(!log.text.contains(secret), "{secret}");
    }
}

#[tokio::test]
async fn audit_log_is_filtered_by_subject_kind_and_user() {
    let service = SharedService::get().await;
    let changed = ChangedOrganization::new(&service).await;
    let all = items(&changed.audit_log("?limit=200").await);
    for query in [
        format!("?id={}", changed.organization.shop()),
        "?kind=agent".to_owned(),
        format!("?user={}&kind=key", changed.owner.id),
    ] {
        let found = items(&changed.audit_log(&query).await);
        assert!(!found.is_empty(), "{query}");
        assert!(found.len() < all.len(), "{query}");
    }
    assert!(items(&changed.audit_log("?action=delete").await).is_empty());
    let path = changed.organization.admin_path("/audit?cursor=x");
    let refused = changed.owner.browser.get(&path).await;
    refused.assert_status(400);
}

#[tokio::test]
async fn pages_of_the_log_join_on_every_ingress() {
    let organization = OrganizationDocument::new().apply_to_shared().await;
    let service = organization.service();
    let owner = Person::new(service, &organization, "owner").await;
    for name in ["One", "Two", "Three", "Four"] {
        let answer = service
            .admin()
            .patch(&organization.admin_path(""), &json!({"name": name}))
            .await;
        answer.assert_status(200);
    }
    let whole = owner
        .browser
        .get(&organization.admin_path("/audit"))
        .await
        .json()["items"]
        .clone();
    for url in service.public_urls() {
        let browser = owner.browser.moved_to(&url);
        let (mut walked, mut cursor): (Vec<Value>, _) = (vec![], String::new());
        loop {
            let page = browser
                .get(&organization.admin_path(&format!("/audit?limit=3{cursor}")))
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
