//! The administrative API over embedded backends: who may apply a document, and what applying it
//! does.

use secrecy::ExposeSecret;
use serde_json::{Value, json};
use switchboard_backends::{catalog::CatalogEntry, vault::SecretVault};
use switchboard_schemas::topics::Topic;

use crate::testing::{Answer, World, agent_id, org_id, secret};

const PATH: &str = "/api/admin/apply";

async fn apply(world: &World, organization: &Value) -> Answer {
    let document = json!({ "organizations": [organization] });
    world.admin("POST", PATH, &[], document).await
}

fn acme(provider_key: Option<&str>) -> Value {
    json!({
        "slug": "acme", "name": "Acme",
        "providers": [{ "slug": "main", "baseUrl": "http://127.0.0.1:9/v1/", "apiKey": provider_key, "model": "m" }],
        "agents": [{ "slug": "shop", "name": "New name", "provider": "main", "status": "inactive" }],
        "teams": [{ "slug": "front", "name": "Front", "defaultAgent": "shop", "members": [{ "agent": "shop" }] }],
        "keys": [{ "name": "site", "scopes": ["chat"] }],
    })
}

async fn provider(world: &World) -> (String, Vec<u8>) {
    let entries = world.catalog_entries().await;
    let found = entries.iter().find_map(|entry| match entry {
        CatalogEntry::Provider {
            provider,
            sealed_key,
        } => Some((provider.base_url.clone(), sealed_key.clone())),
        _ => None,
    });
    found.unwrap()
}

#[tokio::test]
async fn apply_accepts_only_the_admin_token() {
    let world = World::new().await;
    let public_key = format!("Bearer {}", world.key);
    for (header, code) in [
        ("", "MISSING_API_KEY"),
        ("Bearer", "MISSING_API_KEY"),
        ("Basic administrator", "MISSING_API_KEY"),
        ("Bearer wrong", "INVALID_API_KEY"),
        ("Bearer administratorx", "INVALID_API_KEY"),
        (&public_key, "INVALID_API_KEY"),
    ] {
        let answer = world
            .send_with("POST", PATH, &[("authorization", header)], "{}")
            .await;
        assert_eq!(answer.problem(), (401, code.to_owned()), "{header}");
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
    }
}

#[tokio::test]
async fn response_has_the_ids_and_working_new_keys() {
    let world = World::new().await;
    let answer = apply(&world, &acme(None)).await;
    let organization = &answer.json()["organizations"][0];
    assert_eq!(organization["id"], org_id().as_str());
    assert_eq!(
        organization["agents"][0],
        json!({ "slug": "shop", "id": agent_id() })
    );
    assert_eq!(organization["teams"][0]["slug"], "front");
    let key = organization["keys"][0]["value"].as_str().unwrap();
    let answer = world
        .send_with(
            "GET",
            &World::agent_path("/widget"),
            &[("x-api-key", key)],
            "",
        )
        .await;
    assert_eq!(
        answer.problem().1,
        "AGENT_INACTIVE",
        "the key is known and the agent has its new status"
    );
}

#[tokio::test]
async fn repeated_document_changes_nothing_and_returns_no_key() {
    let world = World::new().await;
    let first = apply(&world, &acme(Some("sk-secret"))).await.json();
    let entries = world.catalog_entries().await;
    world.forget_published();
    let second = apply(&world, &acme(Some("sk-secret"))).await.json();
    assert_eq!(world.catalog_entries().await, entries);
    assert!(
        world.published_records().is_empty(),
        "no change is announced"
    );
    let key = |answer: &Value| answer["organizations"][0]["keys"][0].clone();
    assert_eq!(key(&first)["id"], key(&second)["id"]);
    assert!(key(&second).get("value").is_none());
}

#[tokio::test]
async fn later_document_restricts_and_expires_a_key() {
    let world = World::new().await;
    let document = |key: Value| json!({ "slug": "acme", "name": "Acme", "keys": [key] });
    let first = apply(&world, &document(json!({ "name": "site" })))
        .await
        .json();
    let value = first["organizations"][0]["keys"][0]["value"]
        .as_str()
        .unwrap();
    let read = async || {
        world
            .send_with("GET", &World::agent_path(""), &[("x-api-key", value)], "")
            .await
    };
    assert_eq!(read().await.status, 200);
    apply(
        &world,
        &document(json!({ "name": "site", "expiresAt": "2020-01-01T00:00:00Z" })),
    )
    .await;
    // The cache serves what it read for 1.5 s.
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(5);
    while read().await.status == 200 {
        assert!(
            tokio::time::Instant::now() < deadline,
            "the change is live within 2 s"
        );
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(read().await.problem().1, "EXPIRED_API_KEY");
}

#[tokio::test]
async fn resources_missing_from_a_document_stay_unchanged() {
    let world = World::new().await;
    apply(&world, &acme(None)).await;
    let before = world.catalog_entries().await.len();
    apply(
        &world,
        &json!({ "slug": "acme", "name": "Acme", "agents": [{ "slug": "help", "name": "Help" }] }),
    )
    .await;
    assert_eq!(world.catalog_entries().await.len(), before + 1);
}

#[tokio::test]
async fn provider_key_is_sealed_and_kept_when_omitted() {
    let world = World::new().await;
    apply(&world, &acme(Some("sk-secret"))).await;
    let (base_url, sealed) = provider(&world).await;
    assert_eq!(base_url, "http://127.0.0.1:9/v1");
    assert_eq!(
        SecretVault::new(&secret())
            .open(&org_id(), &sealed)
            .unwrap()
            .expose_secret(),
        "sk-secret"
    );
    apply(&world, &acme(None)).await;
    assert_eq!(provider(&world).await.1, sealed);
    apply(&world, &acme(Some("sk-other"))).await;
    assert_ne!(provider(&world).await.1, sealed);
}

#[tokio::test]
async fn provider_key_is_removed_when_its_server_changes() {
    let world = World::new().await;
    let with_address = |key: Option<&str>, address: &str| {
        let mut organization = acme(key);
        organization["providers"][0]["baseUrl"] = address.into();
        organization
    };
    let first = "https://models.example/v1";
    for (address, is_kept) in [
        ("https://models.example:443/other", true),
        ("https://MODELS.example/v1", true),
        ("http://models.example/v1", false),
        ("https://models.example:8443/v1", false),
        ("https://models.example.attacker.example/v1", false),
    ] {
        apply(&world, &with_address(Some("sk-secret"), first)).await;
        apply(&world, &with_address(None, address)).await;
        assert_eq!(!provider(&world).await.1.is_empty(), is_kept, "{address}");
    }
    apply(
        &world,
        &with_address(Some("sk-other"), "https://other.example/v1"),
    )
    .await;
    assert!(!provider(&world).await.1.is_empty());
}

#[tokio::test]
async fn base_url_with_query_fragment_or_credentials_is_refused() {
    let world = World::new().await;
    for base_url in [
        "https://models.example/v1?x=",
        "https://models.example/v1#",
        "https://user:password@models.example/v1",
    ] {
        let mut organization = acme(None);
        organization["providers"][0]["baseUrl"] = base_url.into();
        let answer = apply(&world, &organization).await;
        assert_eq!(answer.status, 400, "{base_url}");
        let param = &answer.json()["param"];
        assert_eq!(param, "organizations[0].providers[0].baseUrl", "{base_url}");
    }
}

#[tokio::test]
async fn invalid_document_names_the_path_and_writes_nothing() {
    let world = World::new().await;
    let entries = world.catalog_entries().await;
    let with = |field: &str, value: Value| {
        let mut organization = acme(None);
        organization[field] = value;
        organization
    };
    let agents =
        json!([{ "slug": "a", "name": "A" }, { "slug": "b", "name": "B", "provider": "gone" }]);
    let team = json!([{ "slug": "t", "name": "T", "members": [{ "agent": "gone" }] }]);
    let domains = json!([{ "slug": "a", "name": "A", "allowedDomains": ["*.com"] }]);
    for (organization, path) in [
        (
            with("agents", agents),
            "organizations[0].agents[1].provider",
        ),
        (
            with("teams", team),
            "organizations[0].teams[0].members[0].agent",
        ),
        (
            with("agents", domains),
            "organizations[0].agents[0].allowedDomains[0]",
        ),
        (with("agent", json!([])), "organizations[0].agent"),
    ] {
        let answer = apply(&world, &organization).await;
        assert_eq!(answer.problem(), (400, "INVALID_REQUEST_DATA".to_owned()));
        assert_eq!(answer.json()["param"], path);
        assert_eq!(world.catalog_entries().await, entries);
    }
}

#[tokio::test]
async fn changed_resources_are_announced_by_id() {
    let world = World::new().await;
    apply(&world, &acme(None)).await;
    let records = world.published_records();
    assert!(records.iter().all(|record| record.topic == Topic::Control));
    let agent = records
        .iter()
        .find(|record| record.key == agent_id().as_str())
        .unwrap();
    let change: Value = serde_json::from_slice(&agent.payload).unwrap();
    assert_eq!(
        (&change["kind"], &change["id"]),
        (&json!("agent"), &json!(agent_id()))
    );
}

#[tokio::test]
async fn document_may_exceed_the_public_body_limit() {
    let world = World::new().await;
    let products: Vec<Value> = (0..900)
        .map(|number| json!({ "title": format!("{number} {}", "x".repeat(400)) }))
        .collect();
    let agent = json!({ "slug": "big", "name": "Big", "ecommerce": { "enabled": true, "products": products } });
    let answer = apply(
        &world,
        &json!({ "slug": "acme", "name": "Acme", "agents": [agent] }),
    )
    .await;
    assert_eq!(answer.status, 200);
}
