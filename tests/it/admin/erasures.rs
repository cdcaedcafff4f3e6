//! Erasure of all data of a visitor, with an anonymous receipt.

use serde_json::{Value, json};

use super::removals::files_with;
use crate::support::{
    Client, Organization, OrganizationDocument, PATIENCE, Profile, Script, eventually,
};

/// Creates an organization with conversations of an agent and a team.
async fn visited(sessions: &[(&str, Value)]) -> Organization {
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .team(
            "front",
            json!({"routing": "random", "members": [{"agent": "shop"}]}),
        )
        .apply_to_shared()
        .await;
    organization.script(Script::says("ok"));
    let client = organization.client();
    for (session, visitor) in sessions {
        let mut body = json!({"message": "hi", "sessionId": session, "stream": false});
        body.as_object_mut()
            .unwrap()
            .extend(visitor.as_object().unwrap().clone());
        let path = if session.starts_with("team") {
            organization.team_path()
        } else {
            organization.path("/chat")
        };
        let answer = client.post(&path, &body).await;
        answer.assert_status(200);
    }
    organization
}

/// Repeats the erasure until its receipt is final.
async fn erase(admin: &Client, organization: &Organization, visitor: &Value) -> Value {
    let begun = admin
        .post(&organization.admin_path("/erasures"), visitor)
        .await;
    begun.assert_status(201);
    let id = begun.json()["id"].as_str().unwrap().to_owned();
    eventually("the erasure is finished", PATIENCE, async || {
        let receipt = admin
            .post(
                &organization.admin_path(&format!("/erasures/{id}")),
                visitor,
            )
            .await;
        receipt.assert_status(200);
        let receipt = receipt.json();
        (receipt["state"] == "finished").then_some(receipt)
    })
    .await
}

async fn sessions(admin: &Client, organization: &Organization) -> Vec<String> {
    let page = admin
        .get(&organization.admin_path("/conversations"))
        .await
        .json();
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
async fn finished_erasure_leaves_no_text_in_any_file() {
    let organization = visited(&[]).await;
    let service = organization.service();
    if service.profile == Profile::Cluster {
        // Kafka keeps records until their retention ends.
        return;
    }
    let (question, answer) = ("qzebrafish", "aokapi");
    organization.script(Script::says(&format!("{answer} {answer}")));
    let (client, visitor) = (organization.client(), json!({"visitorId": "ada-1"}));
    let (agent, team) = (organization.path("/chat"), organization.team_path());
    for (path, session) in [(&agent, "one"), (&agent, "two"), (&team, "three")] {
        let message = format!("{question} {}", "word ".repeat(300));
        for _ in 0..3 {
            let body = json!({
                "message": message, "sessionId": session, "stream": false, "visitorId": "ada-1",
            });
            client.post(path, &body).await.assert_status(200);
        }
    }
    let data = service.data_directory();
    assert!(!files_with(&data, question).is_empty());
    let receipt = erase(&service.admin(), &organization, &visitor).await;
    assert_eq!(receipt["conversations"], 3);
    for text in [question, answer] {
        assert_eq!(
            files_with(&data, text),
            [""; 0].map(std::path::PathBuf::from),
            "{text}"
        );
    }
}

#[tokio::test]
async fn visitor_is_erased_by_either_identifier_and_others_stay() {
    let organization = visited(&[
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
    ])
    .await;
    let service = organization.service();
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
    let organization = visited(&[("s", json!({"visitorId": "canary-id"}))]).await;
    let service = organization.service();
    let admin = service.admin();
    let receipt = erase(&admin, &organization, &json!({"visitorId": "canary-id"})).await;
    let id = receipt["id"].as_str().unwrap();
    for url in service.admin_urls() {
        let admin = Client::new(&url).with_key(crate::support::ADMIN_TOKEN);
        assert_eq!(
            admin
                .get(&organization.admin_path(&format!("/erasures/{id}")))
                .await
                .json(),
            receipt
        );
    }
    let list = admin.get(&organization.admin_path("/erasures")).await;
    assert_eq!(list.json()["items"], json!([receipt]));
    let log = admin
        .get(&organization.admin_path("/audit?kind=erasure"))
        .await;
    assert_eq!(
        log.json()["items"].as_array().unwrap().last().unwrap()["subject"],
        id
    );
    for text in [list.text, log.text, receipt.to_string()] {
        assert!(!text.contains("canary"), "{text}");
    }
    let other = OrganizationDocument::new().apply(service).await;
    admin
        .get(&other.admin_path(&format!("/erasures/{id}")))
        .await
        .assert_problem(404, Some("NOT_FOUND"));
}

#[tokio::test]
async fn erasure_is_resumed_only_with_the_visitor_identifier() {
    let organization = visited(&[
        ("s", json!({"visitorId": "ada"})),
        ("t", json!({"visitorId": "bob"})),
    ])
    .await;
    let service = organization.service();
    let admin = service.admin();
    let receipt = erase(&admin, &organization, &json!({"visitorId": "ada"})).await;
    let path = organization.admin_path(&format!("/erasures/{}", receipt["id"].as_str().unwrap()));
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
        let answer = admin
            .post(&organization.admin_path("/erasures"), &body)
            .await;
        answer.assert_problem(400, Some("INVALID_REQUEST_DATA"));
    }
}
