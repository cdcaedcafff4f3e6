//! Section "Limits".

use futures::future::join_all;
use serde_json::json;

use crate::support::{Answer, Client, Organization, OrganizationDocument};

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
