//! Section "Authentication", rule by rule. `browser::dashboard::keys` tests keys in the dashboard.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;

use crate::support::{
    Answer, Client, Endpoint, Endpoints, FOREIGN_ORIGIN, Organization, OrganizationDocument,
    PATIENCE, PROMISED, eventually, report, send, shop_saying, shop_with_settings,
};

#[tokio::test]
async fn keys_start_with_svc_live_and_svc_test_is_unavailable() {
    let organization = shop_saying("ok").await;
    let service = organization.service();
    let path = organization.path("");
    let live = organization.key_text("all");
    assert!(live.starts_with("svc_live_"));
    let test = live.replacen("svc_live_", "svc_test_", 1);
    assert_eq!(service.client().with_key(live).get(&path).await.status, 200);
    service
        .client()
        .with_key(&test)
        .get(&path)
        .await
        .assert_problem(401, Some("INVALID_API_KEY"));
}

#[tokio::test]
async fn scope_chat_sends_and_receives_messages() {
    assert_opens(
        "chat",
        &[
            Endpoint::AgentChat,
            Endpoint::TeamChat,
            Endpoint::WidgetConfiguration,
        ],
    )
    .await;
}

#[tokio::test]
async fn scope_config_reads_agent_and_widget_configuration() {
    assert_opens(
        "config",
        &[Endpoint::AgentConfiguration, Endpoint::WidgetConfiguration],
    )
    .await;
}

#[tokio::test]
async fn scope_conversations_reads_and_updates_history() {
    assert_opens(
        "conversations",
        &[Endpoint::ConversationRead, Endpoint::ConversationUpdate],
    )
    .await;
}

/// Asserts that a key of this scope can use exactly these endpoints.
async fn assert_opens(scope: &str, opened: &[Endpoint]) {
    let endpoints = Endpoints::prepare().await;
    let client = endpoints.ours.client_with(scope);
    for endpoint in Endpoint::ALL {
        let owner = if endpoint == Endpoint::TeamChat {
            endpoints.ours.team("front")
        } else {
            endpoints.ours.shop()
        };
        let request = client.request(endpoint.method(), &endpoint.path(owner, "s"));
        let answer = send(request.json(&json!({"message": "hi", "sessionId": "s"}))).await;
        if opened.contains(&endpoint) {
            assert_eq!(
                answer.status, 200,
                "{scope} on {endpoint:?}: {}",
                answer.text
            );
        } else {
            assert_eq!(
                answer.status, 403,
                "{scope} on {endpoint:?}: {}",
                answer.text
            );
            answer.assert_problem(403, Some("INSUFFICIENT_SCOPE"));
        }
    }
}

#[tokio::test]
async fn deleted_key_gets_401_invalid_api_key_within_two_seconds() {
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .key("old", &[])
        .apply_to_shared()
        .await;
    let path = organization.path("");
    let clients = at_every_ingress(&organization, "old");
    for client in &clients {
        assert_eq!(client.get(&path).await.status, 200);
    }
    delete(&organization, "old").await;
    let deleted = Instant::now();
    for (number, client) in clients.iter().enumerate().rev() {
        let refused = refused_in_time(client, &path, deleted).await;
        report(&format!(
            "a deleted key was refused on ingress {} after {:?}",
            number + 1,
            deleted.elapsed()
        ));
        refused.assert_problem(401, Some("INVALID_API_KEY"));
    }
}

#[tokio::test]
async fn expired_key_gets_401_expired_api_key() {
    let with_key_until = async |expires_at: String| {
        OrganizationDocument::new()
            .shop(json!({}))
            .key_with("soon", json!({"expiresAt": expires_at}))
            .apply_to_shared()
            .await
    };
    let began = Instant::now();
    let organization = with_key_until("2020-01-01T00:00:00Z".to_owned()).await;
    organization
        .client_with("soon")
        .get(&organization.path(""))
        .await
        .assert_problem(401, Some("EXPIRED_API_KEY"));
    // The next key is still valid when it is used for the first time, however slow the machine is.
    let validity = Duration::from_secs(2) + 4 * began.elapsed();
    let organization = with_key_until((chrono::Utc::now() + validity).to_rfc3339()).await;
    let path = organization.path("");
    let client = organization.client_with("soon");
    assert_eq!(client.get(&path).await.status, 200);
    let refused = eventually("the key expires", PATIENCE, async || {
        let answer = client.get(&path).await;
        (answer.status != 200).then_some(answer)
    })
    .await;
    refused.assert_problem(401, Some("EXPIRED_API_KEY"));
}

#[tokio::test]
async fn agents_restrict_origins_independently_of_the_key() {
    let organization = OrganizationDocument::new()
        .agent(
            "listed",
            json!({"allowedDomains": ["https://shop.example"]}),
        )
        .agent("open", json!({}))
        .key("chat", &["chat"])
        .apply_to_shared()
        .await;
    for key in ["all", "chat"] {
        for (agent, status) in [("listed", 403), ("open", 200)] {
            let path = format!("/api/public/agents/{}/chat", organization.agent(agent));
            let request = organization
                .client_with(key)
                .request(Method::POST, &path)
                .header("origin", FOREIGN_ORIGIN);
            let answer = send(request.json(&json!({"message": "hi", "sessionId": "s"}))).await;
            assert_eq!(answer.status, status, "{key} at {agent}: {}", answer.text);
        }
    }
}

#[tokio::test]
async fn key_is_rotated_by_creating_and_deleting() {
    let organization = shop_with_settings(json!({})).await;
    let service = organization.service();
    let path = organization.path("");
    let mut document = organization.document.clone();
    document["organizations"][0]["keys"] = json!([{"name": "new"}]);
    let answer = service.apply(&document).await.json();
    let new = answer["organizations"][0]["keys"][0]["value"]
        .as_str()
        .expect("the value of the new key")
        .to_owned();
    assert_eq!(service.client().with_key(&new).get(&path).await.status, 200);
    assert_eq!(
        organization.client().get(&path).await.status,
        200,
        "the old one still works"
    );
    delete(&organization, "all").await;
    refused_in_time(&organization.client(), &path, Instant::now())
        .await
        .assert_problem(401, Some("INVALID_API_KEY"));
    assert_eq!(service.client().with_key(&new).get(&path).await.status, 200);
}

#[tokio::test]
async fn revoked_key_is_refused_everywhere_within_two_seconds() {
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .key("old", &[])
        .apply_to_shared()
        .await;
    let path = organization.path("");
    let clients = at_every_ingress(&organization, "old");
    for client in &clients {
        assert_eq!(client.get(&path).await.status, 200);
    }
    let mut document = organization.document.clone();
    document["organizations"][0]["keys"] =
        json!([{"name": "old", "expiresAt": "2020-01-01T00:00:00Z"}]);
    organization
        .service()
        .apply(&document)
        .await
        .assert_status(200);
    let revoked = Instant::now();
    for (number, client) in clients.iter().enumerate().rev() {
        let refused = refused_in_time(client, &path, revoked).await;
        report(&format!(
            "a revoked key was refused on ingress {} after {:?}",
            number + 1,
            revoked.elapsed()
        ));
        refused.assert_problem(401, Some("EXPIRED_API_KEY"));
    }
}

fn at_every_ingress(organization: &Organization, key: &str) -> Vec<Client> {
    organization
        .service()
        .public_urls()
        .iter()
        .map(|url| Client::new(url).with_key(organization.key_text(key)))
        .collect()
}

/// Returns the first failed response, which must arrive in the promised time.
async fn refused_in_time(client: &Client, path: &str, since: Instant) -> Answer {
    let refused = eventually("the key is refused", PATIENCE, async || {
        let answer = client.get(path).await;
        (answer.status != 200).then_some(answer)
    })
    .await;
    assert!(since.elapsed() < PROMISED, "{:?}", since.elapsed());
    refused
}

async fn delete(organization: &Organization, name: &str) {
    let keys = organization.answer["organizations"][0]["keys"]
        .as_array()
        .unwrap();
    let id = keys.iter().find(|key| key["name"] == name).unwrap()["id"]
        .as_str()
        .unwrap();
    let path = organization.admin_path(&format!("/keys/{id}"));
    let answer = send(
        organization
            .service()
            .admin()
            .request(Method::DELETE, &path),
    )
    .await;
    answer.assert_status(204);
}
