//! Deletion of conversations: also during a running reply, and with a fresh start of the same
//! session.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    Client, Organization, OrganizationDocument, PATIENCE, Script, ScriptedModel, SharedService,
    TestService, eventually, send, shop_saying, shop_with,
};

/// Returns the session ids of the listed conversations.
async fn listed(admin: &Client, organization: &Organization) -> Vec<(String, String)> {
    let items = admin
        .get(&organization.admin_path("/conversations"))
        .await
        .json()["items"]
        .as_array()
        .unwrap()
        .clone();
    let text = |item: &Value, field: &str| item[field].as_str().unwrap().to_owned();
    items
        .iter()
        .map(|item| (text(item, "sessionId"), text(item, "id")))
        .collect()
}

async fn id_of(admin: &Client, organization: &Organization, session: &str) -> String {
    let listed = listed(admin, organization).await;
    listed
        .into_iter()
        .find(|(found, _)| found == session)
        .map(|(_, id)| id)
        .unwrap()
}

/// Deletes a conversation and waits until its worker has stopped.
async fn delete(admin: &Client, organization: &Organization, id: &str) {
    let path = organization.admin_path(&format!("/conversations/{id}"));
    let answer = admin.delete(&path).await;
    assert!([202, 204].contains(&answer.status), "{}", answer.text);
    eventually("the conversation is gone", PATIENCE, async || {
        (admin.get(&path).await.status == 404).then_some(())
    })
    .await;
}

/// An organization with a rated conversation that was deleted.
struct DeletedConversation {
    organization: Organization,
    id: String,
    /// Id of the deleted reply.
    message: String,
    /// Public path of the conversation.
    history: String,
}

impl DeletedConversation {
    async fn new(service: &TestService) -> Self {
        let organization = Organization::with_agent(service, Script::says("canary answer")).await;
        let (client, agent) = (organization.client(), organization.shop());
        let reply = client.chat(agent, "gone", "canary question").await;
        reply.complete();
        client.settled_history(agent, "gone", 2).await;
        let history = format!("/api/public/agents/{agent}/conversations/gone");
        let rating = json!({"rating": 1, "visitorEmail": "ada@example.com"});
        let rated = client.patch(&history, &rating).await;
        rated.assert_status(200);
        let id = id_of(&service.admin(), &organization, "gone").await;
        delete(&service.admin(), &organization, &id).await;
        Self {
            organization,
            id,
            message: reply.required_header("x-message-id"),
            history,
        }
    }
}

#[tokio::test]
async fn deleted_conversation_is_not_found_on_any_route() {
    let service = SharedService::get().await;
    let deleted = DeletedConversation::new(&service).await;
    let (client, admin) = (deleted.organization.client(), service.admin());
    client
        .get(&deleted.history)
        .await
        .assert_problem(404, Some("CONVERSATION_NOT_FOUND"));
    client
        .patch(&deleted.history, &json!({"rating": 2}))
        .await
        .assert_problem(404, Some("CONVERSATION_NOT_FOUND"));
    let message = format!("/api/public/messages/{}", deleted.message);
    for path in [message.clone(), format!("{message}/stream")] {
        client
            .get(&path)
            .await
            .assert_problem(404, Some("MESSAGE_NOT_FOUND"));
    }
    let path = deleted
        .organization
        .admin_path(&format!("/conversations/{}", deleted.id));
    admin
        .delete(&path)
        .await
        .assert_problem(404, Some("NOT_FOUND"));
    assert!(listed(&admin, &deleted.organization).await.is_empty());
}

#[tokio::test]
async fn other_conversations_of_an_agent_survive_a_deletion() {
    let organization = shop_saying("ok").await;
    let (client, admin) = (organization.client(), organization.service().admin());
    let agent = organization.shop();
    for session in ["gone", "stays"] {
        client.chat(agent, session, "hi").await.complete();
        client.settled_history(agent, session, 2).await;
    }
    let id = id_of(&admin, &organization, "gone").await;
    delete(&admin, &organization, &id).await;
    let sessions: Vec<String> = listed(&admin, &organization)
        .await
        .into_iter()
        .map(|(session, _)| session)
        .collect();
    assert_eq!(sessions, ["stays"]);
    let kept = client.history(agent, "stays").await;
    assert_eq!(kept["messages"][0]["content"], "hi");
}

#[tokio::test]
async fn session_of_a_deleted_conversation_starts_over() {
    let service = SharedService::get().await;
    let deleted = DeletedConversation::new(&service).await;
    let (client, agent) = (deleted.organization.client(), deleted.organization.shop());
    client.chat(agent, "gone", "hello again").await.complete();
    let asked = ScriptedModel::get()
        .requests(&deleted.organization.model)
        .pop()
        .unwrap()
        .body
        .to_string();
    assert!(
        asked.contains("hello again") && !asked.contains("canary question"),
        "{asked}"
    );
    let anew = client.settled_history(agent, "gone", 2).await;
    assert_eq!(anew["messages"][0]["content"], "hello again");
    let metadata = &anew["metadata"];
    assert_eq!(
        (&metadata["visitorEmail"], &metadata["rating"]),
        (&Value::Null, &Value::Null)
    );
    let rated = client.patch(&deleted.history, &json!({"rating": 5})).await;
    rated.assert_status(200);
    let history = client.history(agent, "gone").await;
    assert_eq!(history["metadata"]["rating"], 5);
}

#[tokio::test]
async fn retry_of_a_deleted_message_is_refused() {
    let organization = shop_saying("canary answer").await;
    let (client, admin) = (organization.client(), organization.service().admin());
    let path = organization.path("/chat");
    let ask = async || {
        let body = json!({"message": "canary question", "sessionId": "s", "stream": false});
        client
            .request(Method::POST, &path)
            .header("Idempotency-Key", "once")
            .json(&body)
            .send()
            .await
            .unwrap()
    };
    assert_eq!(ask().await.status(), 200);
    client.settled_history(organization.shop(), "s", 2).await;
    let id = id_of(&admin, &organization, "s").await;
    delete(&admin, &organization, &id).await;
    for _ in 0..2 {
        let refused = ask().await;
        assert_eq!(refused.status(), 409);
        assert_eq!(refused.json::<Value>().await.unwrap()["code"], "CONFLICT");
    }
    assert!(listed(&admin, &organization).await.is_empty());
}

#[tokio::test]
async fn deletion_stops_all_replies_and_leaves_nothing() {
    let organization = shop_with(Script::counts(400, Duration::from_millis(50))).await;
    let (client, admin) = (organization.client(), organization.service().admin());
    let (reply, response) = client.begin_chat(organization.shop(), "s", "go", 12).await;
    let body = json!({"message": "wait", "sessionId": "s"});
    let waiting = client
        .request(reqwest::Method::POST, &organization.path("/chat"))
        .header("prefer", "respond-async")
        .json(&body);
    send(waiting).await.assert_status(202);
    let id = id_of(&admin, &organization, "s").await;
    delete(&admin, &organization, &id).await;
    eventually("the model call stops", PATIENCE, async || {
        let open = organization
            .requests()
            .iter()
            .any(|request| request.is_open());
        (!open).then_some(())
    })
    .await;
    assert!(!reply.continue_reading(response).await.ended_cleanly);
    assert_eq!(
        organization.requests().len(),
        1,
        "no model for the waiting message"
    );
    let history = client.get(&organization.path("/conversations/s")).await;
    history.assert_problem(404, Some("CONVERSATION_NOT_FOUND"));
}

#[tokio::test]
async fn team_conversation_is_deleted_with_its_routing_decisions() {
    let organization = OrganizationDocument::new()
        .agent("billing", json!({}))
        .team(
            "front",
            json!({"routing": "round-robin", "members": [{"agent": "billing"}]}),
        )
        .apply_to_shared()
        .await;
    organization.script(Script::says("answered"));
    let (client, admin) = (organization.client(), organization.service().admin());
    client
        .team_chat(organization.team("front"), "s", "hi")
        .await
        .complete();
    let history = format!(
        "/api/public/agents/{}/conversations/s",
        organization.agent("billing")
    );
    eventually("it can be read", PATIENCE, async || {
        (client.get(&history).await.status == 200).then_some(())
    })
    .await;
    let id = id_of(&admin, &organization, "s").await;
    delete(&admin, &organization, &id).await;
    client
        .get(&history)
        .await
        .assert_problem(404, Some("CONVERSATION_NOT_FOUND"));
    client
        .team_chat(organization.team("front"), "s", "again")
        .await
        .complete();
    let anew = client
        .settled_history(organization.agent("billing"), "s", 2)
        .await;
    assert_eq!(anew["messages"][0]["content"], "again");
}

#[tokio::test]
async fn deletion_is_audited_and_limited_to_the_organization() {
    let organization = shop_saying("ok").await;
    let service = organization.service();
    let other = OrganizationDocument::new().apply(service).await;
    let admin = service.admin();
    organization.chat("s", "canary question").await.complete();
    let id = id_of(&admin, &organization, "s").await;
    admin
        .delete(&other.admin_path(&format!("/conversations/{id}")))
        .await
        .assert_problem(404, Some("NOT_FOUND"));
    delete(&admin, &organization, &id).await;
    let log = admin
        .get(&organization.admin_path("/audit?kind=conversation"))
        .await;
    let entry = &log.json()["items"][0];
    assert_eq!(
        (&entry["action"], &entry["subject"]),
        (&json!("delete"), &json!(id))
    );
    assert!(!log.text.contains("canary"));
}
