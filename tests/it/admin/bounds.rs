//! Bounds of what members can store.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Answer, PATIENCE, eventually, shop_saying};

#[tokio::test]
async fn instructions_of_8_mb_and_huge_limits_are_refused() {
    let organization = shop_saying("ok").await;
    let admin = organization.service().admin();
    let agents = organization.admin_path("/agents");
    let agent = |field: &str, value: Value| json!({"slug": "b", "name": "B", field: value});
    let huge = agent("instructions", "x".repeat(7_900_000).into());
    let refused = eventually("the refusal arrives", PATIENCE, async || {
        // The connection may end while the client still sends.
        let request = admin.request(Method::POST, &agents).json(&huge);
        Answer::read(request.send().await.ok()?).await
    });
    let refused = refused.await;
    refused.assert_problem(413, Some("PAYLOAD_TOO_LARGE"));
    let chat = json!({"name": "k", "limits": {"chatPerMinute": 4_000_000_000_u32}});
    for (path, body, param) in [
        (
            agents.clone(),
            agent("instructions", "x".repeat(200_001).into()),
            "instructions",
        ),
        (
            agents.clone(),
            agent("maxOutputTokens", 4_000_000_000_u32.into()),
            "maxOutputTokens",
        ),
        (
            agents.clone(),
            agent("limits", json!({"rateLimitPerMinute": 1_000_001})),
            "limits.rateLimitPerMinute",
        ),
        (
            organization.admin_path("/keys"),
            chat,
            "limits.chatPerMinute",
        ),
    ] {
        let refused = admin.post(&path, &body).await;
        let problem = refused.assert_problem(400, Some("INVALID_REQUEST_DATA"));
        assert_eq!(problem["param"], param);
    }
    // A character counts once, however many bytes it has.
    let longest = agent("instructions", "é".repeat(200_000).into());
    admin.post(&agents, &longest).await.assert_status(201);
    let with_both = json!({"organizations": [{
        "slug": "new", "name": "New",
        "agents": [{"slug": "a", "name": "A", "description": "x".repeat(2_001)}],
        "keys": [{"name": "k", "limits": {"chatPerMinute": 1_000_001}}],
    }]});
    let refused = admin.post("/api/admin/apply", &with_both).await;
    let problem = refused.assert_problem(400, Some("INVALID_REQUEST_DATA"));
    let errors = problem["details"]["errors"].to_string();
    for path in ["agents[0].description", "keys[0].limits.chatPerMinute"] {
        assert!(errors.contains(path), "{errors}");
    }
}
