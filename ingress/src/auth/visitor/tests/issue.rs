//! Issuing visitor tokens, and recognizing returning visitors.

use serde_json::{Value, json};
use switchboard_schemas::{
    time::Timestamp,
    visitor_token::{CredentialKind, VisitorClaims},
};

use super::{ORIGIN, TOKEN_ROUTE, claims, problem, token_of};
use crate::testing::{Answer, World, secret};

const PAGE: [(&str, &str); 1] = [("origin", ORIGIN)];

async fn with_key(world: &World, key: &str, headers: &[(&str, &str)]) -> Answer {
    world
        .ask_for_token(&[&[("x-api-key", key)], headers].concat(), json!({}))
        .await
}

fn secret_of(claims: &VisitorClaims) -> String {
    claims
        .sign(CredentialKind::Secret, &secret())
        .expose()
        .to_owned()
}

#[tokio::test]
async fn key_is_checked_before_the_body() {
    let world = World::new().await;
    let key = async |key: Value| world.new_key("acme", key).await;
    let expired =
        key(json!({ "name": "old", "scopes": ["config"], "expiresAt": "2020-01-01T00:00:00Z" }))
            .await;
    let narrow = key(json!({ "name": "narrow", "scopes": ["config", "conversations"] })).await;
    let chat = key(json!({ "name": "chat", "scopes": ["chat"] })).await;
    for (key, expected) in [
        ("svc_live_guess", problem(401, "INVALID_API_KEY")),
        (expired.as_str(), problem(401, "EXPIRED_API_KEY")),
        (&narrow, problem(403, "INSUFFICIENT_SCOPE")),
        (&token_of(&claims()), problem(403, "INSUFFICIENT_SCOPE")),
        (&chat, problem(400, "INVALID_JSON")),
    ] {
        let answer = world
            .send_with("POST", TOKEN_ROUTE, &[("x-api-key", key)], "no json")
            .await;
        assert_eq!(answer.problem(), expected);
    }
    assert_eq!(
        with_key(&world, &chat, &[]).await.status,
        200,
        "programs send no origin"
    );
}

#[tokio::test]
async fn agent_is_checked_in_the_documented_order() {
    let world = World::new().await;
    let bad_field = json!({ "visitorId": "ada" });
    let mut with = bad_field.clone();
    for id in [json!(""), json!(" "), Value::Null] {
        with["agentId"] = id;
        assert_eq!(
            world.ask_for_token(&PAGE, with.clone()).await.problem(),
            problem(400, "INVALID_AGENT_ID")
        );
    }
    with["agentId"] = json!(1);
    assert_eq!(
        world.ask_for_token(&PAGE, with.clone()).await.problem(),
        problem(400, "INVALID_REQUEST_DATA")
    );
    with["agentId"] = json!("agt_00000000000000000000000000");
    assert_eq!(
        world.ask_for_token(&PAGE, with).await.problem(),
        problem(404, "AGENT_NOT_FOUND")
    );

    let evil = [("origin", "https://evil.example")];
    world
        .edit_agent(|agent| {
            agent.settings.public = false;
            agent.settings.allowed_domains = vec!["shop.example".into()];
        })
        .await;
    let foreign = world.new_key("other", json!({ "name": "foreign" })).await;
    assert_eq!(
        with_key(&world, &foreign, &evil).await.problem(),
        problem(403, "ORG_MISMATCH")
    );
    assert_eq!(
        with_key(&world, &world.key, &evil).await.problem(),
        problem(403, "AGENT_NOT_PUBLIC")
    );
    let world = World::new().await;
    world
        .edit_agent(|agent| agent.settings.allowed_domains = vec!["shop.example".into()])
        .await;
    for origin in ["https://evil.example", "null"] {
        let answer = world
            .ask_for_token(&[("origin", origin)], bad_field.clone())
            .await;
        assert_eq!(answer.problem(), problem(403, "DOMAIN_NOT_ALLOWED"));
    }
    assert_eq!(
        with_key(&world, &world.key, &evil).await.problem(),
        problem(403, "DOMAIN_NOT_ALLOWED")
    );
    assert_eq!(
        world.ask_for_token(&PAGE, bad_field).await.problem(),
        problem(400, "INVALID_REQUEST_DATA")
    );
}

#[tokio::test]
async fn visitor_id_is_rejected_without_a_valid_secret() {
    let world = World::new().await;
    let known = claims();
    let expired = VisitorClaims {
        expires_at: Timestamp::now(),
        ..known.clone()
    };
    let elsewhere = VisitorClaims {
        origin: None,
        ..known.clone()
    };
    let other_agent = VisitorClaims {
        agent_id: "agt_00000000000000000000000000".parse().unwrap(),
        ..known.clone()
    };
    let forged = known.sign(
        CredentialKind::Secret,
        &switchboard_schemas::secret::InstallationSecret::from_bytes([9; 32]),
    );
    let bad_secrets = [
        secret_of(&expired),
        secret_of(&elsewhere),
        secret_of(&other_agent),
        token_of(&known),
        forged.expose().to_owned(),
        "svs_1".to_owned(),
    ];
    for bad in bad_secrets {
        let answer = world
            .ask_for_token(&PAGE, json!({ "visitorSecret": bad }))
            .await;
        assert_eq!(answer.problem(), problem(400, "INVALID_REQUEST_DATA"));
        assert_eq!(answer.json()["param"], "visitorSecret");
    }
    for fields in [
        json!({ "visitorId": known.visitor_id }),
        json!({ "visitorId": "vis_other", "visitorSecret": secret_of(&known) }),
    ] {
        let answer = world
            .ask_for_token(&[("x-api-key", &world.key), PAGE[0]], fields)
            .await;
        assert_eq!(answer.json()["param"], "visitorId", "{}", answer.text);
    }
}
