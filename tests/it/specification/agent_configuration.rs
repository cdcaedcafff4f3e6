//! Section "3. GET /api/public/agents/{agentId}". `agent.rs` and `theme.rs` test its fields.

use crate::support::{Endpoint, Endpoints};

#[tokio::test]
async fn response_is_the_public_agent_configuration_object() {
    let endpoints = Endpoints::prepare().await;
    let answer = endpoints.succeed(Endpoint::AgentConfiguration).await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, Some("application/json"))
    );
    assert_eq!(answer.json()["id"], endpoints.ours.shop());
}

#[tokio::test]
async fn errors_are_the_five_listed_ones() {
    let endpoints = Endpoints::prepare().await;
    let listed = [
        (400, "INVALID_AGENT_ID"),
        (401, "MISSING_API_KEY"),
        (403, "AGENT_NOT_PUBLIC"),
        (403, "AGENT_INACTIVE"),
        (404, "AGENT_NOT_FOUND"),
    ];
    endpoints
        .assert_errors(Endpoint::AgentConfiguration, &listed)
        .await;
}
