//! Section "Limits".

use futures::future::join_all;
use serde_json::{Value, json};

use crate::support::{
    Answer, Client, Organization, OrganizationDocument, Script, send, shop_with_settings,
};

/// Creates an organization whose key has the default limits.
async fn usual() -> (Organization, Client) {
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .key_with("usual", json!({"limits": null}))
        .apply_to_shared()
        .await;
    let client = organization.client_with("usual");
    (organization, client)
}

/// Returns the statuses of a number of concurrent requests.
async fn statuses(count: usize, request: impl AsyncFn() -> Answer) -> Vec<u16> {
    join_all((0..count).map(|_| request()))
        .await
        .into_iter()
        .map(|answer| answer.status)
        .collect()
}

#[tokio::test]
async fn chat_endpoints_allow_60_requests_per_minute_per_key() {
    let (_, client) = usual().await;
    // Requests for an unknown agent count and need no model call.
    let path = format!("/api/public/agents/agt_{}/chat", "0".repeat(26));
    let answers = statuses(64, async || client.post(&path, &json!({})).await).await;
    assert_eq!(
        answers.iter().filter(|status| **status == 404).count(),
        60,
        "{answers:?}"
    );
    assert_eq!(
        answers.iter().filter(|status| **status == 429).count(),
        4,
        "{answers:?}"
    );
}

#[tokio::test]
async fn config_endpoints_allow_120_requests_per_minute_per_key() {
    let (organization, client) = usual().await;
    let path = organization.path("");
    let answers = statuses(124, async || client.get(&path).await).await;
    assert_eq!(
        answers.iter().filter(|status| **status == 200).count(),
        120,
        "{answers:?}"
    );
    assert_eq!(
        answers.iter().filter(|status| **status == 429).count(),
        4,
        "{answers:?}"
    );
    assert_eq!(
        organization.client().get(&path).await.status,
        200,
        "another key of the organization"
    );
}

#[tokio::test]
async fn agent_limits_are_reported_in_both_configurations() {
    let settings = json!({"limits": {"maxMessageLength": 77, "rateLimitPerMinute": 5}});
    let organization = shop_with_settings(settings).await;
    let path = organization.path("");
    let agent = organization.client().get(&path).await.json();
    let widget = organization
        .client()
        .get(&format!("{path}/widget"))
        .await
        .json();
    for limits in [&agent["limits"], &widget["widget"]] {
        assert_eq!(
            (&limits["maxMessageLength"], &limits["rateLimitPerMinute"]),
            (&json!(77), &json!(5))
        );
    }
}

#[tokio::test]
async fn exceeded_limit_returns_429_rate_limited_with_retry_after() {
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .key_with("one", json!({"limits": {"chatPerMinute": 1, "configPerMinute": 1, "conversationsPerMinute": 1}}))
        .apply_to_shared().await;
    organization.script(Script::says("ok"));
    let agent = organization.path("");
    let client = organization.client_with("one");
    client.chat(organization.shop(), "s", "hi").await.complete();
    let requests = [
        (reqwest::Method::POST, format!("{agent}/chat"), 1),
        (reqwest::Method::GET, format!("{agent}/widget"), 2),
        (reqwest::Method::GET, format!("{agent}/conversations/s"), 2),
    ];
    for (method, path, times) in requests {
        let mut last = None;
        for _ in 0..times {
            last = Some(send(client.request(method.clone(), &path).json(&Value::Null)).await);
        }
        let refused = last.unwrap();
        refused.assert_problem(429, Some("RATE_LIMITED"));
        let seconds: u64 = refused
            .header("retry-after")
            .expect("Retry-After")
            .parse()
            .expect("whole seconds");
        assert!((1..=60).contains(&seconds), "{seconds}");
    }
}
