//! Keys: how they are sent, what they open, and how they are refused.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use crate::support::{Answer, Client, Organization, OrganizationDocument, PATIENCE, Script, SharedService, eventually};

async fn send(client: &Client, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = client.request(Method::GET, path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Answer::read(request.send().await.unwrap()).await.unwrap()
}

#[tokio::test]
async fn both_headers_carry_a_key_and_the_scheme_is_in_any_case() {
    let service = SharedService::get().await;
    let organization = Organization::with_agent(&service, Script::says("ok")).await;
    let (path, client) = (format!("/api/public/agents/{}", organization.shop()), service.client());
    let key = organization.key_text("all").to_owned();
    let bearer = |scheme: &str| format!("{scheme} {key}");
    for scheme in ["Bearer", "bearer", "BEARER", "bEaReR"] {
        assert_eq!(send(&client, &path, &[("authorization", &bearer(scheme))]).await.status, 200, "{scheme}");
    }
    assert_eq!(send(&client, &path, &[("x-api-key", &key)]).await.status, 200);
    let both = [("x-api-key", key.as_str()), ("authorization", &bearer("Bearer"))];
    assert_eq!(send(&client, &path, &both).await.status, 200, "the same key twice is one key");
}

#[tokio::test]
async fn no_key_is_missing_and_a_wrong_one_is_invalid() {
    let service = SharedService::get().await;
    let organization = OrganizationDocument::new().agent("shop", json!({})).key("second", &[]).apply(&service).await;
    let (path, client) = (format!("/api/public/agents/{}", organization.shop()), service.client());
    let key = organization.key_text("all");
    send(&client, &path, &[]).await.assert_problem(401, Some("MISSING_API_KEY"));
    let mut mistyped = key.to_owned();
    let last = if mistyped.pop() == Some('a') { 'b' } else { 'a' };
    mistyped.push(last);
    let unknown = format!("svc_live_{}", "A".repeat(32));
    let test_key = key.replace("svc_live_", "svc_test_");
    for wrong in [mistyped.as_str(), &unknown, &test_key, "x", "svc_live_", &key.to_lowercase()] {
        let answer = send(&client, &path, &[("x-api-key", wrong)]).await;
        answer.assert_problem(401, Some("INVALID_API_KEY"));
        assert!(wrong.len() < 12 || !answer.text.contains(wrong), "a key is never echoed");
    }
    let second = organization.key_text("second");
    let authorization = format!("Bearer {second}");
    let different = [("x-api-key", key), ("authorization", authorization.as_str())];
    send(&client, &path, &different).await.assert_problem(401, Some("INVALID_API_KEY"));
}

#[tokio::test]
async fn every_public_route_wants_a_key() {
    let service = SharedService::get().await;
    let organization = Organization::with_agent(&service, Script::says("ok")).await;
    let (client, agent) = (service.client(), organization.shop());
    let routes = [
        (Method::POST, format!("/api/public/agents/{agent}/chat")),
        (Method::GET, format!("/api/public/agents/{agent}")),
        (Method::GET, format!("/api/public/agents/{agent}/widget")),
        (Method::GET, format!("/api/public/agents/{agent}/conversations/s")),
        (Method::PATCH, format!("/api/public/agents/{agent}/conversations/s")),
        (Method::POST, "/api/public/teams/team_x/chat".to_owned()),
        (Method::GET, "/api/public/messages/msg_x".to_owned()),
        (Method::GET, "/api/public/messages/msg_x/stream".to_owned()),
        (Method::POST, "/api/public/messages/msg_x/cancel".to_owned()),
    ];
    for (method, path) in routes {
        let response = client.request(method, &path).send().await.unwrap();
        Answer::read(response).await.unwrap().assert_problem(401, Some("MISSING_API_KEY"));
    }
}

#[tokio::test]
async fn a_key_generated_by_the_service_has_the_format_of_the_specification() {
    let service = SharedService::get().await;
    let organization = Organization::with_agent(&service, Script::says("ok")).await;
    let random = organization.key_text("all").strip_prefix("svc_live_").unwrap();
    assert_eq!(random.len(), 32);
    assert!(random.bytes().all(|byte| byte.is_ascii_alphanumeric()));
}

#[tokio::test]
async fn an_expired_key_is_refused_and_one_that_expires_later_is_not() {
    let service = SharedService::get().await;
    let soon = (chrono::Utc::now() + Duration::from_secs(4)).to_rfc3339();
    let organization = OrganizationDocument::new()
        .agent("shop", json!({}))
        .key_with("old", json!({"expiresAt": "2020-01-01T00:00:00Z"}))
        .key_with("soon", json!({"expiresAt": soon}))
        .apply(&service)
        .await;
    let path = format!("/api/public/agents/{}", organization.shop());
    organization.client_with("old").get(&path).await.assert_problem(401, Some("EXPIRED_API_KEY"));
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
async fn each_scope_opens_its_routes_and_no_others() {
    let service = SharedService::get().await;
    let scopes = ["chat", "config", "conversations"];
    let mut document = OrganizationDocument::new()
        .agent("shop", json!({}))
        .team("front", json!({"routing": "random", "members": [{"agent": "shop", "specialization": "all"}]}));
    for scope in scopes {
        document = document.key(scope, &[scope]);
    }
    let organization = document.apply(&service).await;
    let (agent, team) = (organization.shop(), organization.team("front"));
    let first = organization.client().chat(agent, "s", "hi").await;
    let message = first.required_header("x-message-id");
    let body = json!({"message": "hi", "sessionId": "s"});
    let table = [
        (Method::POST, format!("/api/public/agents/{agent}/chat"), vec!["chat"]),
        (Method::POST, format!("/api/public/teams/{team}/chat"), vec!["chat"]),
        (Method::GET, format!("/api/public/messages/{message}"), vec!["chat"]),
        (Method::GET, format!("/api/public/messages/{message}/stream"), vec!["chat"]),
        (Method::POST, format!("/api/public/messages/{message}/cancel"), vec!["chat"]),
        (Method::GET, format!("/api/public/agents/{agent}"), vec!["config"]),
        (Method::GET, format!("/api/public/agents/{agent}/widget"), vec!["config", "chat"]),
        (Method::GET, format!("/api/public/agents/{agent}/conversations/s"), vec!["conversations"]),
        (Method::PATCH, format!("/api/public/agents/{agent}/conversations/s"), vec!["conversations"]),
    ];
    for (method, path, allowed) in table {
        for scope in scopes {
            let request = organization.client_with(scope).request(method.clone(), &path).json(&body);
            let answer = Answer::read(request.send().await.unwrap()).await.unwrap();
            if allowed.contains(&scope) {
                assert_eq!(answer.status, 200, "{scope} on {method} {path}: {}", answer.text);
            } else {
                answer.assert_problem(403, Some("INSUFFICIENT_SCOPE"));
            }
        }
    }
}

#[tokio::test]
async fn a_key_reaches_nothing_of_another_organization() {
    let service = SharedService::get().await;
    let ours = OrganizationDocument::new().agent("shop", json!({})).apply(&service).await;
    let theirs = OrganizationDocument::new()
        .agent("shop", json!({}))
        .team("front", json!({"routing": "random", "members": [{"agent": "shop", "specialization": "all"}]}))
        .apply(&service)
        .await;
    let reply = theirs.client().chat(theirs.shop(), "s", "private").await;
    let message = reply.required_header("x-message-id");
    let (client, agent) = (ours.client(), theirs.shop());
    let body = json!({"message": "hi", "sessionId": "s"});
    let table = [
        (Method::POST, format!("/api/public/agents/{agent}/chat"), 403, Some("ORG_MISMATCH")),
        (Method::GET, format!("/api/public/agents/{agent}"), 403, Some("ORG_MISMATCH")),
        (Method::GET, format!("/api/public/agents/{agent}/widget"), 403, Some("ORG_MISMATCH")),
        (Method::GET, format!("/api/public/agents/{agent}/conversations/s"), 403, Some("ORG_MISMATCH")),
        (Method::PATCH, format!("/api/public/agents/{agent}/conversations/s"), 403, Some("ORG_MISMATCH")),
        (Method::POST, format!("/api/public/teams/{}/chat", theirs.team("front")), 404, None),
        (Method::GET, format!("/api/public/messages/{message}"), 404, Some("MESSAGE_NOT_FOUND")),
        (Method::GET, format!("/api/public/messages/{message}/stream"), 404, Some("MESSAGE_NOT_FOUND")),
        (Method::POST, format!("/api/public/messages/{message}/cancel"), 404, Some("MESSAGE_NOT_FOUND")),
    ];
    for (method, path, status, code) in table {
        let response = client.request(method, &path).json(&body).send().await.unwrap();
        let answer = Answer::read(response).await.unwrap();
        answer.assert_problem(status, code);
        assert!(!answer.text.contains("private"));
    }
}

#[tokio::test]
async fn the_admin_api_wants_the_admin_token_and_no_key_opens_it() {
    let service = SharedService::get().await;
    let organization = Organization::with_agent(&service, Script::says("ok")).await;
    let document = json!({"organizations": []});
    for client in [service.client(), organization.client(), service.client().with_key("wrong")] {
        let answer = client.post("/api/admin/apply", &document).await;
        assert_eq!(answer.status, 401, "{}", answer.text);
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    }
}
