//! Section "States and transitions".

use serde_json::json;

use crate::support::{Endpoint, Endpoints, OrganizationDocument, shop_saying};

#[tokio::test]
async fn inactive_agent_is_refused_with_agent_inactive() {
    let endpoints = Endpoints::prepare().await;
    for endpoint in [
        Endpoint::AgentChat,
        Endpoint::AgentConfiguration,
        Endpoint::WidgetConfiguration,
    ] {
        let answer = endpoints.provoke(endpoint, "AGENT_INACTIVE").await;
        answer.assert_problem(403, Some("AGENT_INACTIVE"));
    }
}

#[tokio::test]
async fn non_public_agent_is_refused_with_agent_not_public() {
    let endpoints = Endpoints::prepare().await;
    for endpoint in Endpoint::OF_AGENTS {
        endpoints
            .provoke(endpoint, "AGENT_NOT_PUBLIC")
            .await
            .assert_problem(403, Some("AGENT_NOT_PUBLIC"));
    }
}

#[tokio::test]
async fn non_public_or_inactive_team_is_404() {
    let member = json!([{"agent": "shop", "specialization": "all"}]);
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .team("hidden", json!({"public": false, "members": member}))
        .team("off", json!({"status": "inactive", "members": member}))
        .team("draft", json!({"status": "draft", "members": member}))
        .apply_to_shared()
        .await;
    for team in ["hidden", "off", "draft"] {
        let reply = organization
            .client()
            .team_chat(organization.team(team), "s", "hi")
            .await;
        reply.into_answer().assert_problem(404, None);
    }
}

#[tokio::test]
async fn first_chat_message_of_a_session_creates_the_conversation() {
    let organization = shop_saying("ok").await;
    let path = organization.path("/conversations/s");
    organization
        .client()
        .get(&path)
        .await
        .assert_problem(404, Some("CONVERSATION_NOT_FOUND"));
    organization
        .client()
        .patch(&path, &json!({"rating": 5}))
        .await
        .assert_problem(404, Some("CONVERSATION_NOT_FOUND"));
    organization.chat("s", "hi").await.complete();
    assert_eq!(organization.client().get(&path).await.status, 200);
}
