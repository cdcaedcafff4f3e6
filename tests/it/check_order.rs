//! The order of checks: each request here is wrong in two neighbouring ways, and the answer names the earlier one.

use reqwest::Method;
use serde_json::json;

use crate::support::{Answer, Client, Organization, OrganizationDocument, SharedService};

const BAD_JSON: &str = "{";
const EXPIRED: &str = "2020-01-01T00:00:00Z";

async fn organization(service: &SharedService) -> Organization {
    OrganizationDocument::new()
        .agent("shop", json!({"allowedDomains": ["https://shop.example"]}))
        .agent("off", json!({"status": "inactive"}))
        .agent("off-hidden", json!({"status": "inactive", "public": false}))
        .agent("hidden", json!({"public": false, "allowedDomains": ["https://shop.example"]}))
        .key("config", &["config"])
        .key_with("expired", json!({"expiresAt": EXPIRED, "scopes": ["config"], "limits": {"chatPerMinute": 1}}))
        .key_with("slow-config", json!({"scopes": ["config"], "limits": {"chatPerMinute": 1}}))
        .apply(service)
        .await
}

async fn chat(client: &Client, agent: &str, origin: Option<&str>, body: &'static str) -> Answer {
    let mut request = client.request(Method::POST, &format!("/api/public/agents/{agent}/chat")).body(body);
    if let Some(origin) = origin {
        request = request.header("origin", origin);
    }
    Answer::read(request.header("content-type", "application/json").send().await.unwrap()).await.unwrap()
}

#[tokio::test]
async fn a_missing_key_comes_before_everything_about_the_request() {
    let service = SharedService::get().await;
    chat(&service.client(), "", None, BAD_JSON).await.assert_problem(401, Some("MISSING_API_KEY"));
}

#[tokio::test]
async fn an_unknown_key_comes_before_its_expiry() {
    let service = SharedService::get().await;
    let organization = organization(&service).await;
    let mistyped = format!("{}!", organization.key_text("expired"));
    let answer = chat(&service.client().with_key(&mistyped), organization.shop(), None, BAD_JSON).await;
    answer.assert_problem(401, Some("INVALID_API_KEY"));
}

#[tokio::test]
async fn an_expired_key_comes_before_its_rate_limit_and_scope() {
    let service = SharedService::get().await;
    let organization = organization(&service).await;
    for _ in 0..3 {
        let answer = chat(&organization.client_with("expired"), organization.shop(), None, BAD_JSON).await;
        answer.assert_problem(401, Some("EXPIRED_API_KEY"));
    }
}

#[tokio::test]
async fn the_rate_limit_comes_before_the_scope() {
    let service = SharedService::get().await;
    let organization = organization(&service).await;
    let client = organization.client_with("slow-config");
    let first = chat(&client, organization.shop(), None, BAD_JSON).await;
    first.assert_problem(403, Some("INSUFFICIENT_SCOPE"));
    chat(&client, organization.shop(), None, BAD_JSON).await.assert_problem(429, Some("RATE_LIMITED"));
}

#[tokio::test]
async fn the_fields_come_before_the_limit_of_a_visitor() {
    let service = SharedService::get().await;
    let settings = json!({"limits": {"maxMessageLength": 10, "rateLimitPerMinute": 1}});
    let organization = OrganizationDocument::new().agent("shop", settings).apply(&service).await;
    let client = organization.client();
    let refused = [r#"{"message":"hi"}"#, r#"{"message":"longer than ten","sessionId":"s"}"#];
    for body in refused {
        chat(&client, organization.shop(), None, body).await.assert_problem(400, Some("INVALID_REQUEST_DATA"));
    }
    client.chat(organization.shop(), "s", "hi").await.complete();
    for body in refused {
        chat(&client, organization.shop(), None, body).await.assert_problem(400, Some("INVALID_REQUEST_DATA"));
    }
    let third = chat(&client, organization.shop(), None, r#"{"message":"hi","sessionId":"s"}"#).await;
    third.assert_problem(429, Some("RATE_LIMITED"));
}

#[tokio::test]
async fn the_scope_comes_before_an_empty_id() {
    let service = SharedService::get().await;
    let organization = organization(&service).await;
    let answer = chat(&organization.client_with("config"), "%20", None, BAD_JSON).await;
    answer.assert_problem(403, Some("INSUFFICIENT_SCOPE"));
}

#[tokio::test]
async fn an_empty_id_comes_before_the_search_for_the_agent() {
    let service = SharedService::get().await;
    let organization = organization(&service).await;
    chat(&organization.client(), "%20", None, BAD_JSON).await.assert_problem(400, Some("INVALID_AGENT_ID"));
}

#[tokio::test]
async fn an_empty_session_id_comes_before_the_search_for_the_agent() {
    let service = SharedService::get().await;
    let organization = organization(&service).await;
    let answer = organization.client().get("/api/public/agents/agt_unknown/conversations/%20").await;
    answer.assert_problem(400, Some("INVALID_SESSION_ID"));
}

#[tokio::test]
async fn an_unknown_agent_comes_before_the_body() {
    let service = SharedService::get().await;
    let organization = organization(&service).await;
    chat(&organization.client(), "agt_unknown", None, BAD_JSON).await.assert_problem(404, Some("AGENT_NOT_FOUND"));
}

#[tokio::test]
async fn another_organization_comes_before_the_state_of_the_agent() {
    let service = SharedService::get().await;
    let (ours, theirs) = (organization(&service).await, organization(&service).await);
    for agent in ["off", "hidden", "off-hidden"] {
        let answer = chat(&ours.client(), theirs.agent(agent), None, BAD_JSON).await;
        answer.assert_problem(403, Some("ORG_MISMATCH"));
    }
}

#[tokio::test]
async fn an_inactive_agent_comes_before_one_that_is_not_public() {
    let service = SharedService::get().await;
    let organization = organization(&service).await;
    let answer = chat(&organization.client(), organization.agent("off-hidden"), None, BAD_JSON).await;
    answer.assert_problem(403, Some("AGENT_INACTIVE"));
}

#[tokio::test]
async fn an_agent_that_is_not_public_comes_before_the_origin() {
    let service = SharedService::get().await;
    let organization = organization(&service).await;
    let agent = organization.agent("hidden");
    let answer = chat(&organization.client(), agent, Some("https://evil.example"), BAD_JSON).await;
    answer.assert_problem(403, Some("AGENT_NOT_PUBLIC"));
}

#[tokio::test]
async fn the_origin_comes_before_the_body() {
    let service = SharedService::get().await;
    let organization = organization(&service).await;
    let answer = chat(&organization.client(), organization.shop(), Some("https://evil.example"), BAD_JSON).await;
    answer.assert_problem(403, Some("DOMAIN_NOT_ALLOWED"));
}

#[tokio::test]
async fn broken_json_comes_before_its_fields_and_the_conversation() {
    let service = SharedService::get().await;
    let organization = organization(&service).await;
    chat(&organization.client(), organization.shop(), None, BAD_JSON).await.assert_problem(400, Some("INVALID_JSON"));
    let path = format!("/api/public/agents/{}/conversations/unknown", organization.shop());
    let answer = organization.client().patch(&path, &json!({"rating": 9})).await;
    answer.assert_problem(400, Some("INVALID_RATING"));
}

#[tokio::test]
async fn an_inactive_agent_tells_its_offline_message() {
    let service = SharedService::get().await;
    let organization = organization(&service).await;
    let answer = chat(&organization.client(), organization.agent("off"), None, BAD_JSON).await;
    let problem = answer.assert_problem(403, Some("AGENT_INACTIVE"));
    assert_eq!(problem["details"]["name"], "Agent off");
    assert!(problem["details"]["offlineMessage"].as_str().is_some_and(|text| !text.is_empty()), "{problem}");
}

#[tokio::test]
async fn an_agent_that_is_not_public_is_closed_on_all_five_routes() {
    let service = SharedService::get().await;
    let organization = organization(&service).await;
    let agent = format!("/api/public/agents/{}", organization.agent("hidden"));
    let routes = [
        (Method::POST, format!("{agent}/chat")),
        (Method::GET, agent.clone()),
        (Method::GET, format!("{agent}/widget")),
        (Method::GET, format!("{agent}/conversations/s")),
        (Method::PATCH, format!("{agent}/conversations/s")),
    ];
    for (method, path) in routes {
        let response = organization.client().request(method, &path).json(&json!({})).send().await.unwrap();
        Answer::read(response).await.unwrap().assert_problem(403, Some("AGENT_NOT_PUBLIC"));
    }
}
