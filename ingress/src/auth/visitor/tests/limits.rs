//! Rate limits of visitors, addresses and sites.

use serde_json::json;
use switchboard_schemas::visitor_token::VisitorClaims;

use super::{CHAT, ORIGIN, claims, problem, text, token_of};
use crate::{
    IngressConfig,
    testing::{Answer, World},
};

/// The bus is unavailable, so that a message that passed every limit is answered at once.
async fn world(config: IngressConfig) -> World {
    let world = World::with(config).await;
    world.bus.faults.set_down(true);
    world
}

async fn chat(world: &World, visitor: &VisitorClaims) -> Answer {
    world
        .send_as(
            &token_of(visitor),
            "POST",
            &World::agent_path("/chat"),
            CHAT,
        )
        .await
}

fn refused_by(answer: &Answer) -> Option<String> {
    (answer.problem() == problem(429, "RATE_LIMITED"))
        .then(|| answer.json()["details"]["bucket"].as_str().unwrap().into())
}

#[tokio::test]
async fn visitor_has_quotas_apart_from_those_of_the_key() {
    let world = world(IngressConfig::default()).await;
    let limits = json!({ "name": "page", "limits": { "conversationsPerMinute": 2 } });
    let key = world.new_key("acme", limits).await;
    let headers = [("x-api-key", key.as_str()), ("origin", ORIGIN)];
    let read = async |token: &str| {
        world
            .send_as(token, "GET", &World::agent_path("/conversations/s"), "")
            .await
    };
    for _ in 0..2 {
        let answer = world.ask_for_token(&headers, json!({})).await.json();
        let token = text(&answer, "token");
        for left in ["1", "0"] {
            let answer = read(token).await;
            assert_eq!(
                answer.headers["ratelimit-policy"],
                "\"conversations\";q=2;w=60"
            );
            let state = answer.headers["ratelimit"].to_str().unwrap();
            assert!(
                state.starts_with(&format!("\"conversations\";r={left};t=")),
                "{state}"
            );
        }
        assert_eq!(
            refused_by(&read(token).await).as_deref(),
            Some("conversations")
        );
    }
    let by_key = world
        .send_with("GET", &World::agent_path("/conversations/s"), &headers, "")
        .await;
    assert_eq!(by_key.problem(), problem(404, "CONVERSATION_NOT_FOUND"));
    assert!(
        by_key.headers["ratelimit"]
            .to_str()
            .unwrap()
            .starts_with("\"conversations\";r=1")
    );
    let usual = chat(&world, &claims()).await;
    assert_eq!(usual.headers["ratelimit-policy"], "\"chat\";q=60;w=60");
}

#[tokio::test]
async fn request_to_a_closed_route_counts_too() {
    let world = world(IngressConfig::default()).await;
    let answer = world
        .send_as(
            &token_of(&claims()),
            "GET",
            &World::agent_path("/widget"),
            "",
        )
        .await;
    assert!(
        answer.headers["ratelimit"]
            .to_str()
            .unwrap()
            .starts_with("\"config\";r=119")
    );
}

#[tokio::test]
async fn rejected_requests_do_not_count_for_the_site() {
    let config = IngressConfig {
        visitor_chats_per_address_per_minute: 3,
        visitor_chats_per_site_per_minute: 4,
        trusted_proxies: vec!["198.51.100.0/24".parse().unwrap()],
        ..IngressConfig::default()
    };
    let world = world(config).await;
    world
        .edit_agent(|agent| agent.settings.limits.rate_limit_per_minute = 2)
        .await;
    let from = async |address: &str, visitor: &VisitorClaims| {
        let token = token_of(visitor);
        let headers = [
            ("x-api-key", token.as_str()),
            ("origin", ORIGIN),
            ("x-forwarded-for", address),
        ];
        refused_by(
            &world
                .send_with("POST", &World::agent_path("/chat"), &headers, CHAT)
                .await,
        )
    };
    let ada = claims();
    let outcomes = [
        from("203.0.113.1", &ada).await,
        from("203.0.113.1", &ada).await,
        from("203.0.113.1", &ada).await,
    ];
    assert_eq!(outcomes, [None, None, Some("visitor".into())]);
    assert_eq!(
        from("203.0.113.1", &claims()).await,
        None,
        "the rejected message was counted"
    );
    assert_eq!(
        from("203.0.113.1", &claims()).await.as_deref(),
        Some("address_chats")
    );
    assert_eq!(
        from("203.0.113.2", &claims()).await,
        None,
        "the request of the address was counted"
    );
    assert_eq!(
        from("203.0.113.2", &claims()).await.as_deref(),
        Some("site_chats")
    );
}

#[tokio::test]
async fn site_limit_rejects_new_visitors_but_not_known_ones() {
    let config = IngressConfig {
        new_visitors_per_site_per_minute: 1,
        ..IngressConfig::default()
    };
    let world = world(config).await;
    let known = world.new_visitor().await;
    let page = [("origin", ORIGIN)];
    let refused = world.ask_for_token(&page, json!({})).await;
    assert_eq!(refused_by(&refused).as_deref(), Some("new_visitors"));
    let renewed = world
        .ask_for_token(&page, json!({ "visitorSecret": known["visitorSecret"] }))
        .await;
    assert_eq!(renewed.json()["visitorId"], known["visitorId"]);
}

#[tokio::test]
async fn lookup_of_an_unstarted_session_is_no_guess() {
    let world = World::with(IngressConfig {
        unknown_sessions_per_minute: 1,
        ..IngressConfig::default()
    })
    .await;
    let path = World::agent_path("/conversations/s");
    for _ in 0..3 {
        let answer = world.send_as(&token_of(&claims()), "GET", &path, "").await;
        assert_eq!(answer.problem(), problem(404, "CONVERSATION_NOT_FOUND"));
    }
}

#[tokio::test]
async fn limit_of_zero_is_unlimited() {
    let config = IngressConfig {
        visitor_tokens_per_address_per_minute: 0,
        new_visitors_per_site_per_minute: 0,
        visitor_chats_per_address_per_minute: 0,
        visitor_chats_per_site_per_minute: 0,
        ..IngressConfig::default()
    };
    let world = world(config).await;
    let answer = world.ask_for_token(&[("origin", ORIGIN)], json!({})).await;
    assert_eq!(answer.status, 200);
    assert!(!answer.headers.contains_key("ratelimit"));
    assert_eq!(chat(&world, &claims()).await.problem().0, 503);
}
