//! Section "What the service does". The sections of the endpoints test its four capabilities.

use reqwest::Method;
use serde_json::json;

use crate::support::{send, shop_saying};

#[tokio::test]
async fn public_api_does_not_manage_agents_teams_or_keys() {
    let organization = shop_saying("ok").await;
    let agent = organization.path("");
    let attempts = [
        (Method::POST, "/api/public/agents".to_owned()),
        (Method::POST, "/api/public/teams".to_owned()),
        (Method::POST, "/api/public/keys".to_owned()),
        (Method::GET, "/api/public/agents".to_owned()),
        (Method::PUT, agent.clone()),
        (Method::PATCH, agent.clone()),
        (Method::DELETE, agent.clone()),
    ];
    for (method, path) in attempts {
        let answer = send(
            organization
                .client()
                .request(method.clone(), &path)
                .json(&json!({"name": "x"})),
        )
        .await;
        assert!(
            [404, 405].contains(&answer.status),
            "{method} {path}: {} {}",
            answer.status,
            answer.text
        );
    }
    assert_eq!(
        organization.client().get(&agent).await.json()["name"],
        "Agent shop"
    );
}
