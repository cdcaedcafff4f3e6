//! Tests of the documented order of checks: each request has two neighboring errors, and the
//! response names the first.

use http::header;
use serde_json::json;
use switchboard_schemas::agent::ActivationStatus;

use crate::testing::{World, agent_id, org_id};

const GOOD_BODY: &str = r#"{"message":"hi","sessionId":"s"}"#;

async fn chat(world: &World, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
    world
        .send_with("POST", path, headers, body.to_owned())
        .await
        .problem()
}

fn problem(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[tokio::test]
async fn unknown_route_and_wrong_method_precede_the_key() {
    let world = World::new().await;
    assert_eq!(
        world
            .send_with("GET", "/api/public/nothing", &[], "")
            .await
            .problem(),
        problem(404, "NOT_FOUND")
    );
    let answer = world
        .send_with("DELETE", &World::agent_path("/chat"), &[], "")
        .await;
    assert_eq!(answer.problem(), problem(405, "METHOD_NOT_ALLOWED"));
    assert_eq!(answer.headers[header::ALLOW], "POST");
}

#[tokio::test]
async fn missing_key_precedes_an_empty_id() {
    let world = World::new().await;
    assert_eq!(
        chat(&world, "/api/public/agents//chat", &[], "").await,
        problem(401, "MISSING_API_KEY")
    );
}

#[tokio::test]
async fn unknown_key_precedes_scope_and_a_mistyped_one_is_not_read() {
    let world = World::new().await;
    let unknown = switchboard_schemas::api_key::ApiKeyText::generate();
    let path = World::agent_path("/chat");
    assert_eq!(
        chat(&world, &path, &[("x-api-key", unknown.expose())], "").await,
        problem(401, "INVALID_API_KEY")
    );
    world.catalog.faults.set_down(true);
    let test_key = world.key.replace("svc_live_", "svc_test_");
    assert_eq!(
        chat(&world, &path, &[("x-api-key", &test_key)], "").await,
        problem(401, "INVALID_API_KEY")
    );
    assert_eq!(
        chat(&world, &path, &[("x-api-key", &world.key)], "").await,
        problem(503, "UNAVAILABLE")
    );
}

#[tokio::test]
async fn expired_key_precedes_a_missing_scope() {
    let world = World::new().await;
    let key = json!({ "name": "old", "scopes": ["config"], "expiresAt": "2020-01-01T00:00:00Z" });
    let key = world.new_key("acme", key).await;
    let answer = chat(
        &world,
        &World::agent_path("/chat"),
        &[("x-api-key", &key)],
        "",
    )
    .await;
    assert_eq!(answer, problem(401, "EXPIRED_API_KEY"));
}

#[tokio::test]
async fn missing_scope_precedes_an_empty_id() {
    let world = World::new().await;
    let key = world
        .new_key("acme", json!({ "name": "narrow", "scopes": ["config"] }))
        .await;
    let answer = chat(
        &world,
        "/api/public/agents//chat",
        &[("x-api-key", &key)],
        "",
    )
    .await;
    assert_eq!(answer, problem(403, "INSUFFICIENT_SCOPE"));
}

#[tokio::test]
async fn empty_id_precedes_a_missing_agent() {
    let world = World::new().await;
    for (method, path) in [
        ("POST", "/api/public/agents//chat"),
        ("POST", "/api/public/agents/%20/chat"),
        ("GET", "/api/public/agents/"),
        ("GET", "/api/public/agents/%20"),
        ("GET", "/api/public/agents//widget"),
        ("GET", "/api/public/agents//conversations/s"),
        ("GET", "/api/public/agents//conversations/"),
    ] {
        assert_eq!(
            world.send(method, path, "").await.problem(),
            problem(400, "INVALID_AGENT_ID"),
            "{path}"
        );
    }
    for path in [
        "/api/public/agents/unknown/conversations/",
        "/api/public/agents/unknown/conversations/%20",
    ] {
        assert_eq!(
            world.send("GET", path, "").await.problem(),
            problem(400, "INVALID_SESSION_ID"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn missing_agent_precedes_the_body() {
    let world = World::new().await;
    for id in [
        "unknown",
        "agt_00000000000000000000000000",
        "..%2f..",
        "team_00000000000000000000000000",
    ] {
        let answer = world
            .send("POST", &format!("/api/public/agents/{id}/chat"), "no json")
            .await;
        assert_eq!(answer.problem(), problem(404, "AGENT_NOT_FOUND"), "{id}");
    }
}

#[tokio::test]
async fn other_organization_precedes_an_inactive_agent() {
    let world = World::new().await;
    world
        .edit_agent(|agent| agent.settings.status = ActivationStatus::Inactive)
        .await;
    let key = world.new_key("other", json!({ "name": "foreign" })).await;
    let answer = chat(
        &world,
        &World::agent_path("/chat"),
        &[("x-api-key", &key)],
        GOOD_BODY,
    )
    .await;
    assert_eq!(answer, problem(403, "ORG_MISMATCH"));
}

#[tokio::test]
async fn inactive_agent_precedes_a_non_public_one() {
    let world = World::new().await;
    world
        .edit_agent(|agent| {
            agent.settings.status = ActivationStatus::Draft;
            agent.settings.public = false;
            agent.settings.widget.offline_message = "gone fishing".into();
        })
        .await;
    for (method, rest) in [("POST", "/chat"), ("GET", ""), ("GET", "/widget")] {
        let answer = world
            .send(method, &World::agent_path(rest), GOOD_BODY)
            .await;
        assert_eq!(answer.problem(), problem(403, "AGENT_INACTIVE"));
        assert_eq!(
            answer.json()["details"],
            json!({ "offlineMessage": "gone fishing", "name": "Shop" })
        );
    }
    let answer = world
        .send("GET", &World::agent_path("/conversations/s"), "")
        .await;
    assert_eq!(answer.problem(), problem(403, "AGENT_NOT_PUBLIC"));
}

#[tokio::test]
async fn non_public_agent_precedes_the_origin() {
    let world = World::new().await;
    world
        .edit_agent(|agent| {
            agent.settings.public = false;
            agent.settings.allowed_domains = vec!["shop.example".into()];
        })
        .await;
    let headers = [
        ("x-api-key", world.key.as_str()),
        ("origin", "https://evil.example"),
    ];
    assert_eq!(
        chat(&world, &World::agent_path("/chat"), &headers, "").await,
        problem(403, "AGENT_NOT_PUBLIC")
    );
}

#[tokio::test]
async fn origin_precedes_json_and_applies_to_chat_only() {
    let world = World::new().await;
    world
        .edit_agent(|agent| agent.settings.allowed_domains = vec!["shop.example".into()])
        .await;
    let headers = [
        ("x-api-key", world.key.as_str()),
        ("origin", "https://evil.example"),
    ];
    assert_eq!(
        chat(&world, &World::agent_path("/chat"), &headers, "no json").await,
        problem(403, "DOMAIN_NOT_ALLOWED")
    );
    assert_eq!(
        world
            .send_with("GET", &World::agent_path(""), &headers, "")
            .await
            .status,
        200
    );
    assert_eq!(
        world
            .send_with("GET", &World::agent_path("/widget"), &headers, "")
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn media_type_and_size_belong_to_the_json_check() {
    let world = World::new().await;
    let headers = [
        ("x-api-key", world.key.as_str()),
        ("content-type", "text/plain"),
    ];
    let answer = chat(&world, &World::agent_path("/chat"), &headers, GOOD_BODY).await;
    assert_eq!(answer, problem(415, "UNSUPPORTED_MEDIA_TYPE"));
    let large = format!(r#"{{"message":"{}"}}"#, "x".repeat(256 << 10));
    let answer = world
        .send("POST", &World::agent_path("/chat"), large.clone())
        .await;
    assert_eq!(answer.problem(), problem(413, "PAYLOAD_TOO_LARGE"));
    let answer = world
        .send("POST", "/api/public/agents/unknown/chat", large)
        .await;
    assert_eq!(answer.problem(), problem(404, "AGENT_NOT_FOUND"));
}

#[tokio::test]
async fn json_precedes_its_fields() {
    let world = World::new().await;
    let path = World::agent_path("/chat");
    assert_eq!(
        world.send("POST", &path, r#"{"message":1"#).await.problem(),
        problem(400, "INVALID_JSON")
    );
    assert_eq!(
        world
            .send("POST", &path, r#"{"message":1}"#)
            .await
            .problem(),
        problem(400, "INVALID_REQUEST_DATA")
    );
}

#[tokio::test]
async fn fields_precede_a_missing_conversation() {
    let world = World::new().await;
    let path = World::agent_path("/conversations/s");
    let answer = world.send("PATCH", &path, r#"{"rating":6}"#).await;
    assert_eq!(answer.problem(), problem(400, "INVALID_RATING"));
    let answer = world.send("PATCH", &path, r#"{"rating":5}"#).await;
    assert_eq!(answer.problem(), problem(404, "CONVERSATION_NOT_FOUND"));
    assert!(
        world.published_records().is_empty(),
        "a rejected change was published"
    );
}

#[tokio::test]
async fn scope_opens_its_routes_and_chat_opens_the_widget_too() {
    let world = World::new().await;
    world.put_conversation(org_id()).await;
    let routes = [
        ("POST", "/chat"),
        ("GET", ""),
        ("GET", "/widget"),
        ("GET", "/conversations/s"),
    ];
    for (scope, opened) in [
        ("chat", [true, false, true, false]),
        ("config", [false, true, true, false]),
        ("conversations", [false, false, false, true]),
    ] {
        let key = world
            .new_key("acme", json!({ "name": scope, "scopes": [scope] }))
            .await;
        for ((method, rest), open) in routes.iter().zip(opened) {
            let answer = world
                .send_with(
                    method,
                    &World::agent_path(rest),
                    &[("x-api-key", &key)],
                    "no json",
                )
                .await;
            assert_eq!(
                answer.problem().1 != "INSUFFICIENT_SCOPE",
                open,
                "{scope} {method} {rest}"
            );
        }
    }
}

#[tokio::test]
async fn responses_have_a_request_id_and_errors_repeat_it() {
    let world = World::new().await;
    let fine = world.send("GET", &World::agent_path(""), "").await;
    assert!(
        fine.headers["x-request-id"]
            .to_str()
            .unwrap()
            .starts_with("req_")
    );
    for path in [
        "/nothing",
        "/api/public/agents/%ff/chat",
        &World::agent_path("/conversations/s"),
    ] {
        let answer = world.send("GET", path, "").await;
        assert_eq!(
            answer.headers["x-request-id"],
            answer.json()["requestId"].as_str().unwrap()
        );
        assert_eq!(
            answer.headers[header::CONTENT_TYPE],
            "application/problem+json"
        );
    }
    assert_eq!(fine.json()["id"], agent_id().as_str());
}
