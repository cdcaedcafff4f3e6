//! Erasure of all data of a visitor, with an anonymous receipt.

use serde_json::{Value, json};

use super::of;
use crate::support::{
    Client, Organization, OrganizationDocument, PATIENCE, Script, SharedService, eventually,
};

/// Creates an organization with conversations of an agent and a team.
async fn visited(service: &SharedService, sessions: &[(&str, Value)]) -> Organization {
    let organization = OrganizationDocument::new()
        .agent("shop", json!({}))
        .team(
            "front",
            json!({"routing": "random", "members": [{"agent": "shop"}]}),
        )
        .apply(service)
        .await;
    organization.script(Script::says("ok"));
    let client = organization.client();
    for (session, visitor) in sessions {
        let mut body = json!({"message": "hi", "sessionId": session, "stream": false});
        body.as_object_mut()
            .unwrap()
            .extend(visitor.as_object().unwrap().clone());
        let path = if session.starts_with("team") {
            format!("/api/public/teams/{}/chat", organization.team("front"))
        } else {
            format!("/api/public/agents/{}/chat", organization.shop())
        };
        let answer = client.post(&path, &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    organization
}

/// Repeats the erasure until its receipt is final.
async fn erase(admin: &Client, organization: &Organization, visitor: &Value) -> Value {
    let begun = admin.post(&of(organization, "/erasures"), visitor).await;
    assert_eq!(begun.status, 201, "{}", begun.text);
    let id = begun.json()["id"].as_str().unwrap().to_owned();
    eventually("the erasure is finished", PATIENCE, async || {
        let receipt = admin
            .post(&of(organization, &format!("/erasures/{id}")), visitor)
            .await;
        assert_eq!(receipt.status, 200, "{}", receipt.text);
        let receipt = receipt.json();
        (receipt["state"] == "finished").then_some(receipt)
    })
    .await
}

async fn sessions(admin: &Client, organization: &Organization) -> Vec<String> {
    let page = admin.get(&of(organization, "/conversations")).await.json();
    let mut sessions: Vec<String> = page["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["sessionId"].as_str().unwrap().to_owned())
        .collect();
    sessions.sort();
    sessions
}

#[tokio::test]
async fn visitor_is_erased_by_either_identifier_and_others_stay() {
    let service = SharedService::get().await;
    let organization = visited(
        &service,
        &[
            ("by-id", json!({"visitorId": "ada-1"})),
            ("by-mail", json!({"visitorEmail": "Ada@Example.com"})),
            (
                "team-both",
                json!({"visitorId": "ada-1", "visitorEmail": "ada@example.com"}),
            ),
            (
                "other",
                json!({"visitorId": "ada-10", "visitorEmail": "bob@example.com"}),
            ),
            ("nobody", json!({})),
        ],
    )
    .await;
    let admin = service.admin();
    let receipt = erase(
        &admin,
        &organization,
        &json!({"visitorId": "ada-1", "visitorEmail": "ada@example.com"}),
    )
    .await;
    assert_eq!(sessions(&admin, &organization).await, ["nobody", "other"]);
    assert_eq!(
        (&receipt["conversations"], &receipt["messages"]),
        (&json!(3), &json!(6)),
        "{receipt}"
    );
    assert_eq!(receipt["lookedAt"], 5, "{receipt}");
    assert_eq!(receipt["by"], json!({"type": "token"}));
    assert!(
        receipt["finishedAt"].as_str() >= receipt["beganAt"].as_str(),
        "{receipt}"
    );
}

#[tokio::test]
async fn erasure_receipt_is_anonymous_and_readable_on_every_ingress() {
    let service = SharedService::get().await;
    let organization = visited(&service, &[("s", json!({"visitorId": "canary-id"}))]).await;
    let admin = service.admin();
    let receipt = erase(&admin, &organization, &json!({"visitorId": "canary-id"})).await;
    let id = receipt["id"].as_str().unwrap();
    for url in service.admin_urls() {
        let admin = Client::new(&url).with_key(crate::support::ADMIN_TOKEN);
        assert_eq!(
            admin
                .get(&of(&organization, &format!("/erasures/{id}")))
                .await
                .json(),
            receipt
        );
    }
    let list = admin.get(&of(&organization, "/erasures")).await;
    assert_eq!(list.json()["items"], json!([receipt]));
    let log = admin.get(&of(&organization, "/audit?kind=erasure")).await;
    assert_eq!(
        log.json()["items"].as_array().unwrap().last().unwrap()["subject"],
        id
    );
    for text in [list.text, log.text, receipt.to_string()] {
        assert!(!text.contains("canary"), "{text}");
    }
    let other = OrganizationDocument::new().apply(&service).await;
    admin
        .get(&of(&other, &format!("/erasures/{id}")))
        .await
        .assert_problem(404, Some("NOT_FOUND"));
}

#[tokio::test]
async fn erasure_is_resumed_only_with_the_visitor_identifier() {
    let service = SharedService::get().await;
    let organization = visited(
        &service,
        &[
            ("s", json!({"visitorId": "ada"})),
            ("t", json!({"visitorId": "bob"})),
        ],
    )
    .await;
    let admin = service.admin();
    let receipt = erase(&admin, &organization, &json!({"visitorId": "ada"})).await;
    let path = of(
        &organization,
        &format!("/erasures/{}", receipt["id"].as_str().unwrap()),
    );
    admin
        .post(&path, &json!({"visitorId": "bob"}))
        .await
        .assert_problem(400, Some("INVALID_REQUEST_DATA"));
    assert_eq!(sessions(&admin, &organization).await, ["t"]);
    assert_eq!(
        admin.post(&path, &json!({"visitorId": "ada"})).await.json(),
        receipt,
        "a finished one stays as it is"
    );
    for body in [
        json!({}),
        json!({"visitorId": "  "}),
        json!({"visitorEmail": 7}),
    ] {
        let answer = admin.post(&of(&organization, "/erasures"), &body).await;
        answer.assert_problem(400, Some("INVALID_REQUEST_DATA"));
    }
}
