//! Issuing visitor tokens, and recognizing returning visitors.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_schemas::{
    agent::ActivationStatus,
    time::Timestamp,
    visitor_token::{CredentialKind, VisitorClaims},
};

use super::{ORIGIN, TOKEN_ROUTE, claims, problem, text, token_of};
use crate::testing::{Answer, World, agent_id, secret};

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
async fn page_receives_a_15_minute_token_and_the_widget_settings() {
    let world = World::new().await;
    let before = Timestamp::now();
    let answer = world.ask_for_token(&PAGE, json!({})).await;
    assert_eq!(answer.headers["access-control-allow-origin"], ORIGIN);
    assert_eq!(answer.headers["cache-control"], "no-store");
    assert!(
        answer.headers["ratelimit"]
            .to_str()
            .unwrap()
            .starts_with("\"visitor_tokens\";r=299")
    );
    let answer = answer.json();
    let expires_at: Timestamp = serde_json::from_value(answer["expiresAt"].clone()).unwrap();
    let lifetime = expires_at.millis_since(before);
    assert!((900_000..905_000).contains(&lifetime), "{lifetime}");
    assert_eq!(answer["agentId"], agent_id().as_str());
    assert!(text(&answer, "visitorId").starts_with("vis_"));
    let widget = world
        .send("GET", &World::agent_path("/widget"), "")
        .await
        .json();
    assert_eq!(answer["configuration"], widget);
    let agent = world.send("GET", &World::agent_path(""), "").await.json();
    assert_eq!(answer["theme"], agent["theme"], "all ten fields");
    assert_eq!(answer["offline"], Value::Null);
}

#[tokio::test]
async fn inactive_agent_issues_tokens_without_configuration() {
    let world = World::new().await;
    world
        .edit_agent(|agent| {
            agent.settings.status = ActivationStatus::Inactive;
            agent.settings.widget.offline_message = "gone fishing".into();
        })
        .await;
    let answer = world.new_visitor().await;
    let offline = json!({
        "name": "Shop", "offlineMessage": "gone fishing", "position": "bottom-right", "size": "medium",
        "triggerText": "Chat with us",
    });
    assert_eq!(answer["offline"], offline);
    assert_eq!(answer["configuration"], Value::Null);
    let token = text(&answer, "token");
    let refused = world
        .send_as(token, "POST", &World::agent_path("/chat"), super::CHAT)
        .await;
    assert_eq!(refused.problem(), problem(403, "AGENT_INACTIVE"));
    let read = world
        .send_as(token, "GET", &World::agent_path("/conversations/s"), "")
        .await;
    assert_eq!(
        read.problem(),
        problem(404, "CONVERSATION_NOT_FOUND"),
        "its conversations are readable"
    );
}

#[tokio::test]
async fn preflight_of_the_token_route_needs_no_key() {
    let world = World::new().await;
    let answer = world.send_with("OPTIONS", TOKEN_ROUTE, &PAGE, "").await;
    assert_eq!(
        (
            answer.status.as_u16(),
            &answer.headers["access-control-allow-origin"]
        ),
        (204, &ORIGIN.parse().unwrap())
    );
    let answer = world.send_with("GET", TOKEN_ROUTE, &PAGE, "").await;
    assert_eq!(answer.problem(), problem(405, "METHOD_NOT_ALLOWED"));
}

#[tokio::test]
async fn request_without_origin_and_key_is_rejected() {
    let world = World::new().await;
    assert_eq!(
        world.ask_for_token(&[], json!({})).await.problem(),
        problem(401, "MISSING_API_KEY")
    );
    let two = [("origin", ORIGIN), ("origin", "https://evil.example")];
    assert_eq!(
        world.ask_for_token(&two, json!({})).await.problem(),
        problem(403, "DOMAIN_NOT_ALLOWED")
    );
    assert_eq!(
        world
            .ask_for_token(&[("origin", "null")], json!({}))
            .await
            .status,
        200,
        "the agent has no list"
    );
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
async fn visitor_secret_identifies_a_returning_visitor() {
    let world = World::new().await;
    let first = world.new_visitor().await;
    let fields = json!({ "visitorSecret": first["visitorSecret"] });
    let second = world.ask_for_token(&PAGE, fields).await.json();
    assert_eq!(second["visitorId"], first["visitorId"]);
    assert_ne!(second["token"], first["token"]);
    let fields =
        json!({ "visitorSecret": second["visitorSecret"], "visitorId": first["visitorId"] });
    assert_eq!(
        world.ask_for_token(&PAGE, fields).await.json()["visitorId"],
        first["visitorId"]
    );
    assert_ne!(world.new_visitor().await["visitorId"], first["visitorId"]);
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

#[tokio::test]
async fn token_lifetimes_follow_the_configuration() {
    let config = crate::IngressConfig {
        visitor_token_lifetime_ms: 40,
        ..crate::IngressConfig::default()
    };
    let world = World::with(config).await;
    let token = world.new_visitor().await;
    let read = async || {
        world
            .send_as(
                text(&token, "token"),
                "GET",
                &World::agent_path("/conversations/s"),
                "",
            )
            .await
    };
    tokio::time::timeout(Duration::from_secs(5), async {
        while read().await.problem() != problem(401, "EXPIRED_API_KEY") {}
    })
    .await
    .expect("the token expires");
}
