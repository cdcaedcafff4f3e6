//! The order of request checks: each request has two neighboring errors, and the response names the
//! earlier one.

use reqwest::Method;
use serde_json::json;

use crate::support::{
    Answer, Client, FOREIGN_ORIGIN, Organization, OrganizationDocument, SharedService, send,
    shop_with_settings,
};

const BAD_JSON: &str = "{";
const EXPIRED: &str = "2020-01-01T00:00:00Z";

async fn organization() -> Organization {
    OrganizationDocument::new()
        .shop(json!({"allowedDomains": ["https://shop.example"]}))
        .agent("off", json!({"status": "inactive"}))
        .agent("off-hidden", json!({"status": "inactive", "public": false}))
        .agent(
            "hidden",
            json!({"public": false, "allowedDomains": ["https://shop.example"]}),
        )
        .key("config", &["config"])
        .key_with(
            "expired",
            json!({"expiresAt": EXPIRED, "scopes": ["config"], "limits": {"chatPerMinute": 1}}),
        )
        .key_with(
            "slow-config",
            json!({"scopes": ["config"], "limits": {"chatPerMinute": 1}}),
        )
        .apply_to_shared()
        .await
}

async fn chat(client: &Client, agent: &str, origin: Option<&str>, body: &'static str) -> Answer {
    let mut request = client
        .request(Method::POST, &format!("/api/public/agents/{agent}/chat"))
        .body(body);
    if let Some(origin) = origin {
        request = request.header("origin", origin);
    }
    Answer::read(
        request
            .header("content-type", "application/json")
            .send()
            .await
            .unwrap(),
    )
    .await
    .unwrap()
}

#[tokio::test]
async fn missing_key_is_reported_before_everything_else() {
    let service = SharedService::get().await;
    let answer = chat(&service.client(), "", None, BAD_JSON).await;
    answer.assert_problem(401, Some("MISSING_API_KEY"));
    assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    assert_eq!(answer.header("ratelimit-policy"), None);
}

#[tokio::test]
async fn unknown_key_is_reported_before_expiry() {
    let organization = organization().await;
    let mistyped = format!("{}!", organization.key_text("expired"));
    let answer = chat(
        &organization.service().client().with_key(&mistyped),
        organization.shop(),
        None,
        BAD_JSON,
    )
    .await;
    answer.assert_problem(401, Some("INVALID_API_KEY"));
}

#[tokio::test]
async fn expired_key_is_reported_before_rate_limit_and_scope() {
    let organization = organization().await;
    for _ in 0..3 {
        let answer = chat(
            &organization.client_with("expired"),
            organization.shop(),
            None,
            BAD_JSON,
        )
        .await;
        answer.assert_problem(401, Some("EXPIRED_API_KEY"));
        assert_eq!(answer.header("ratelimit"), None, "it is not counted");
    }
}

#[tokio::test]
async fn rate_limit_is_checked_before_the_scope() {
    let organization = organization().await;
    let client = organization.client_with("slow-config");
    let first = chat(&client, organization.shop(), None, BAD_JSON).await;
    first.assert_problem(403, Some("INSUFFICIENT_SCOPE"));
    chat(&client, organization.shop(), None, BAD_JSON)
        .await
        .assert_problem(429, Some("RATE_LIMITED"));
}

#[tokio::test]
async fn fields_are_checked_before_the_visitor_limit() {
    let settings = json!({"limits": {"maxMessageLength": 10, "rateLimitPerMinute": 1}});
    let organization = shop_with_settings(settings).await;
    let client = organization.client();
    let refused = [
        r#"{"message":"hi"}"#,
        r#"{"message":"longer than ten","sessionId":"s"}"#,
    ];
    for body in refused {
        chat(&client, organization.shop(), None, body)
            .await
            .assert_problem(400, Some("INVALID_REQUEST_DATA"));
    }
    organization.chat("s", "hi").await.complete();
    for body in refused {
        chat(&client, organization.shop(), None, body)
            .await
            .assert_problem(400, Some("INVALID_REQUEST_DATA"));
    }
    let third = chat(
        &client,
        organization.shop(),
        None,
        r#"{"message":"hi","sessionId":"s"}"#,
    )
    .await;
    third.assert_problem(429, Some("RATE_LIMITED"));
}

#[tokio::test]
async fn scope_is_checked_before_an_empty_id() {
    let organization = organization().await;
    let answer = chat(&organization.client_with("config"), "%20", None, BAD_JSON).await;
    answer.assert_problem(403, Some("INSUFFICIENT_SCOPE"));
}

#[tokio::test]
async fn empty_agent_id_is_reported_before_the_agent_lookup() {
    let organization = organization().await;
    chat(&organization.client(), "%20", None, BAD_JSON)
        .await
        .assert_problem(400, Some("INVALID_AGENT_ID"));
}

#[tokio::test]
async fn empty_session_id_is_reported_before_the_agent_lookup() {
    let organization = organization().await;
    let answer = organization
        .client()
        .get("/api/public/agents/agt_unknown/conversations/%20")
        .await;
    answer.assert_problem(400, Some("INVALID_SESSION_ID"));
}

#[tokio::test]
async fn unknown_agent_is_reported_before_the_body() {
    let organization = organization().await;
    chat(&organization.client(), "agt_unknown", None, BAD_JSON)
        .await
        .assert_problem(404, Some("AGENT_NOT_FOUND"));
}

#[tokio::test]
async fn organization_mismatch_is_reported_before_the_agent_state() {
    let ours = organization().await;
    let theirs = organization().await;
    for agent in ["off", "hidden", "off-hidden"] {
        let answer = chat(&ours.client(), theirs.agent(agent), None, BAD_JSON).await;
        answer.assert_problem(403, Some("ORG_MISMATCH"));
    }
}

#[tokio::test]
async fn inactive_agent_is_reported_before_a_non_public_one() {
    let organization = organization().await;
    let answer = chat(
        &organization.client(),
        organization.agent("off-hidden"),
        None,
        BAD_JSON,
    )
    .await;
    answer.assert_problem(403, Some("AGENT_INACTIVE"));
    let agent = organization.agent("off-hidden");
    let path = format!("/api/public/agents/{agent}/conversations/s");
    let read = organization.client().get(&path).await;
    read.assert_problem(403, Some("AGENT_NOT_PUBLIC"));
}

#[tokio::test]
async fn non_public_agent_is_reported_before_the_origin() {
    let organization = organization().await;
    let agent = organization.agent("hidden");
    let answer = chat(
        &organization.client(),
        agent,
        Some("https://evil.example"),
        BAD_JSON,
    )
    .await;
    answer.assert_problem(403, Some("AGENT_NOT_PUBLIC"));
}

#[tokio::test]
async fn origin_is_checked_before_the_body() {
    let organization = organization().await;
    let answer = chat(
        &organization.client(),
        organization.shop(),
        Some("https://evil.example"),
        BAD_JSON,
    )
    .await;
    answer.assert_problem(403, Some("DOMAIN_NOT_ALLOWED"));
}

#[tokio::test]
async fn inactive_agent_returns_its_offline_message() {
    let organization = organization().await;
    let answer = chat(
        &organization.client(),
        organization.agent("off"),
        None,
        BAD_JSON,
    )
    .await;
    let problem = answer.assert_problem(403, Some("AGENT_INACTIVE"));
    assert_eq!(problem["details"]["name"], "Agent off");
    assert!(
        problem["details"]["offlineMessage"]
            .as_str()
            .is_some_and(|text| !text.is_empty()),
        "{problem}"
    );
}

#[tokio::test]
async fn empty_agent_id_is_reported_before_an_empty_session_id() {
    let organization = organization().await;
    let answer = organization
        .client()
        .get("/api/public/agents/%20/conversations/%20")
        .await;
    answer.assert_problem(400, Some("INVALID_AGENT_ID"));
}

#[tokio::test]
async fn malformed_json_is_reported_before_the_fields() {
    let organization = organization().await;
    let missing_fields_and_broken = r#"{"sessionId": "s""#;
    let answer = chat(
        &organization.client(),
        organization.shop(),
        None,
        missing_fields_and_broken,
    )
    .await;
    answer.assert_problem(400, Some("INVALID_JSON"));
}

#[tokio::test]
async fn fields_are_checked_before_the_conversation() {
    let organization = organization().await;
    let path = organization.path("/conversations/unknown");
    let answer = organization
        .client()
        .patch(&path, &json!({"rating": 9}))
        .await;
    answer.assert_problem(400, Some("INVALID_RATING"));
}

#[tokio::test]
async fn size_and_media_type_are_part_of_the_json_check() {
    let organization = organization().await;
    let path = organization.path("/chat");
    let post = |origin: &'static str| {
        organization
            .client()
            .request(Method::POST, &path)
            .header("origin", origin)
    };
    let (huge, text) = ("x".repeat(300_000), "not json");
    let media = |request: reqwest::RequestBuilder| request.header("content-type", "text/plain");
    send(post(FOREIGN_ORIGIN).body(huge.clone()))
        .await
        .assert_problem(403, Some("DOMAIN_NOT_ALLOWED"));
    send(media(post(FOREIGN_ORIGIN)).body(text))
        .await
        .assert_problem(403, Some("DOMAIN_NOT_ALLOWED"));
    let ours = "https://shop.example";
    send(post(ours).body(huge))
        .await
        .assert_problem(413, Some("PAYLOAD_TOO_LARGE"));
    send(media(post(ours)).body(text))
        .await
        .assert_problem(415, Some("UNSUPPORTED_MEDIA_TYPE"));
}

#[tokio::test]
async fn fields_are_checked_before_the_idempotency_key() {
    let organization = organization().await;
    let path = organization.path("/chat");
    for (body, param) in [
        (json!({"sessionId": "s"}), "message"),
        (
            json!({"message": "hi", "sessionId": "s", "stream": "no"}),
            "stream",
        ),
        (
            json!({"message": "hi", "sessionId": "s"}),
            "Idempotency-Key",
        ),
    ] {
        let request = organization
            .client()
            .request(Method::POST, &path)
            .header("idempotency-key", "")
            .json(&body);
        let problem = send(request)
            .await
            .assert_problem(400, Some("INVALID_REQUEST_DATA"));
        assert_eq!(problem["param"], param, "{body}");
    }
}

#[tokio::test]
async fn only_the_status_active_is_active() {
    let organization = OrganizationDocument::new()
        .agent("draft", json!({"status": "draft"}))
        .agent("inactive", json!({"status": "inactive"}))
        .agent("active", json!({"status": "active"}))
        .apply_to_shared()
        .await;
    for (agent, status) in [("draft", 403), ("inactive", 403), ("active", 200)] {
        let path = format!("/api/public/agents/{}", organization.agent(agent));
        assert_eq!(
            organization.client().get(&path).await.status,
            status,
            "{agent}"
        );
    }
}
