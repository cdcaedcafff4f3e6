//! Access of visitor tokens, and their rejection.

use std::time::{Duration, Instant};

use serde_json::json;
use switchboard_backends::{
    catalog::{CatalogEntry, CatalogEntryStore, EntryKind},
    testing::SLACK,
};
use switchboard_schemas::{
    api_key::KeyScope,
    secret::InstallationSecret,
    time::Timestamp,
    visitor_token::{CredentialKind, VisitorClaims},
};

use super::{CHAT, ORIGIN, claims, problem, text, token_of};
use crate::{
    IngressConfig,
    testing::{World, org_id, secret},
};

/// All routes, each with true if a token opens it.
const ROUTES: [(&str, &str, bool); 9] = [
    ("POST", "/api/public/agents/{agent}/chat", true),
    ("GET", "/api/public/agents/{agent}/conversations/s", true),
    ("PATCH", "/api/public/agents/{agent}/conversations/s", true),
    ("GET", "/api/public/messages/{message}", true),
    ("GET", "/api/public/messages/{message}/stream", true),
    ("POST", "/api/public/messages/{message}/cancel", true),
    ("GET", "/api/public/agents/{agent}", false),
    ("GET", "/api/public/agents/{agent}/widget", false),
    (
        "POST",
        "/api/public/teams/team_00000000000000000000000000/chat",
        false,
    ),
];

fn path(route: &str) -> String {
    let agent = World::agent_path("");
    route
        .replace("/api/public/agents/{agent}", &agent)
        .replace("{message}", crate::testing::message_id().as_str())
}

async fn code(world: &World, token: &str, (method, route, _): (&str, &str, bool)) -> (u16, String) {
    world
        .send_as(token, method, &path(route), "no json")
        .await
        .problem()
}

#[tokio::test]
async fn expired_token_precedes_scope_and_is_not_counted() {
    let world = World::new().await;
    let token = token_of(&VisitorClaims {
        expires_at: Timestamp::now(),
        ..claims()
    });
    for route in ROUTES {
        assert_eq!(
            code(&world, &token, route).await,
            problem(401, "EXPIRED_API_KEY"),
            "{route:?}"
        );
    }
    let answer = world
        .send_as(&token, "POST", &World::agent_path("/chat"), CHAT)
        .await;
    assert_eq!(answer.headers["ratelimit-policy"], "\"chat\";q=60;w=60");
    assert!(!answer.headers.contains_key("ratelimit"));
}

#[tokio::test]
async fn damaged_token_is_invalid_and_counts_as_a_guess() {
    let config = IngressConfig {
        failed_authentications_per_minute: 3,
        ..IngressConfig::default()
    };
    let world = World::with(config).await;
    let (good, chat) = (token_of(&claims()), World::agent_path("/conversations/s"));
    let mut damaged = good.clone();
    let last = if damaged.pop() == Some('0') { '1' } else { '0' };
    damaged.push(last);
    let foreign = claims().sign(
        CredentialKind::Token,
        &InstallationSecret::from_bytes([9; 32]),
    );
    let kind = claims().sign(CredentialKind::Secret, &secret());
    for bad in [damaged.as_str(), foreign.expose(), kind.expose()] {
        assert_eq!(
            world.send_as(bad, "GET", &chat, "").await.problem(),
            problem(401, "INVALID_API_KEY")
        );
    }
    assert_eq!(
        world.send_as(&damaged, "GET", &chat, "").await.problem(),
        problem(429, "RATE_LIMITED")
    );
    let answer = world.send_as(&good, "GET", &chat, "").await;
    assert_eq!(
        answer.problem(),
        problem(404, "CONVERSATION_NOT_FOUND"),
        "guesses of a neighbor blocked a valid token"
    );
}

#[tokio::test]
async fn agent_restrictions_apply_to_tokens_like_to_keys() {
    let world = World::new().await;
    let token = token_of(&claims());
    world
        .edit_agent(|agent| agent.settings.allowed_domains = vec!["https://other.example".into()])
        .await;
    let answer = world
        .send_as(&token, "POST", &World::agent_path("/chat"), CHAT)
        .await;
    assert_eq!(
        answer.problem(),
        problem(403, "DOMAIN_NOT_ALLOWED"),
        "the page went off the list"
    );
    let world = World::new().await;
    world
        .edit_agent(|agent| agent.settings.public = false)
        .await;
    for (method, rest) in [("POST", "/chat"), ("GET", "/conversations/s")] {
        let answer = world
            .send_as(&token, method, &World::agent_path(rest), CHAT)
            .await;
        assert_eq!(answer.problem(), problem(403, "AGENT_NOT_PUBLIC"));
    }
}

/// Issues a visitor token by a key.
async fn token_by_key(world: &World, key: &str) -> String {
    let headers = [("x-api-key", key), ("origin", ORIGIN)];
    let answer = world.ask_for_token(&headers, json!({})).await.json();
    text(&answer, "token").to_owned()
}

/// Returns the stored API key of this name.
async fn key_entry(world: &World, name: &str) -> CatalogEntry {
    let org = org_id();
    let keys = world.catalog.list(EntryKind::Key, Some(&org)).await;
    keys.unwrap()
        .into_iter()
        .find(|entry| matches!(entry, CatalogEntry::Key { key, .. } if key.name == name))
        .unwrap()
}

/// Returns status and error code of a visitor's request for a conversation that does not exist.
async fn read_with(world: &World, token: &str) -> (u16, String) {
    world
        .send_as(token, "GET", &World::agent_path("/conversations/s"), "")
        .await
        .problem()
}

/// Promised time until a changed key takes effect.
const KEY_CHANGE_MAX: Duration = Duration::from_secs(2);

/// Waits until a changed key takes effect on a token.
async fn wait_for_refusal(world: &World, token: &str, expected: (u16, String)) {
    let changed = Instant::now();
    while read_with(world, token).await != expected {
        assert!(
            changed.elapsed() < KEY_CHANGE_MAX + SLACK,
            "not {expected:?} in time"
        );
        // Faster requests would exceed the rate limit of the visitor.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn token_loses_the_scopes_of_its_key_and_ends_with_it() {
    let world = World::new().await;
    let key = world
        .new_key("acme", json!({ "name": "page", "scopes": ["chat"] }))
        .await;
    let token = token_by_key(&world, &key).await;
    assert_eq!(
        read_with(&world, &token).await,
        problem(404, "CONVERSATION_NOT_FOUND")
    );
    let mut entry = key_entry(&world, "page").await;
    if let CatalogEntry::Key { key, .. } = &mut entry {
        key.scopes = vec![KeyScope::Config];
    }
    world.catalog.put(&entry).await.unwrap();
    wait_for_refusal(&world, &token, problem(403, "INSUFFICIENT_SCOPE")).await;
    world
        .catalog
        .remove(EntryKind::Key, &org_id(), entry.id())
        .await
        .unwrap();
    wait_for_refusal(&world, &token, problem(401, "INVALID_API_KEY")).await;
}

#[tokio::test]
async fn token_expires_with_its_key() {
    let world = World::new().await;
    let key = world
        .new_key("acme", json!({ "name": "soon", "scopes": ["chat"] }))
        .await;
    let token = token_by_key(&world, &key).await;
    let mut entry = key_entry(&world, "soon").await;
    if let CatalogEntry::Key { key, .. } = &mut entry {
        key.expires_at = Some(Timestamp::now());
    }
    world.catalog.put(&entry).await.unwrap();
    assert_eq!(
        read_with(&world, &token).await,
        problem(401, "EXPIRED_API_KEY"),
        "a token that was not used before is refused at once"
    );
}
