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

#[tokio::test]
async fn all_mistakes_of_a_document_are_reported_at_once() {
    let world = World::new().await;
    let organization = json!({
        "slug": "acme",
        "name": " ",
        "providers": [{ "slug": "main", "baseUrl": "ftp://x", "temprature": 1 }],
        "agents": [
            { "slug": "a", "name": "A", "temperature": 9, "allowedDomains": ["*", "shop.example", "b c"] },
            { "slug": "b", "limits": { "maxMessageLength": 0 }, "provider": "none", "status": "sk-secret" },
            { "slug": "a", "name": 5, "ecommerce": 7, "maxOutputTokens": "9" },
        ],
        "teams": [{ "slug": "t", "name": "T", "members": [{ "agent": "a" }, { "agent": "x" }, { "agent": "y" }] }],
        "keys": [{ "name": "k", "scopes": ["chat", "sk-secret"] }],
    });
    let answer = apply(&world, &organization).await;
    let problem = answer.expect(400);
    let errors = problem["details"]["errors"].as_array().unwrap();
    let mut params: Vec<_> = errors
        .iter()
        .map(|error| error["param"].as_str().unwrap())
        .collect();
    params.sort_unstable();
    let expected = [
        "agents[0].allowedDomains[0]",
        "agents[0].allowedDomains[2]",
        "agents[0].temperature",
        "agents[1].limits.maxMessageLength",
        "agents[1].name",
        "agents[1].provider",
        "agents[1].status",
        "agents[2].ecommerce",
        "agents[2].maxOutputTokens",
        "agents[2].name",
        "agents[2].slug",
        "keys[0].scopes[1]",
        "name",
        "providers[0].baseUrl",
        "providers[0].temprature",
        "teams[0].members[1].agent",
        "teams[0].members[2].agent",
    ];
    assert_eq!(
        params,
        expected.map(|path| format!("organizations[0].{path}")),
        "{errors:#?}"
    );
    for words in ["sk-secret", "struct", "u32"] {
        assert!(!answer.text.contains(words), "{words} in {}", answer.text);
    }
    assert_eq!(problem["param"], errors[0]["param"]);
}

#[tokio::test]
async fn plan_of_a_document_shows_changes_without_secrets() {
    let world = World::new().await;
    let plan = async |organization: &Value| {
        let document = json!({ "organizations": [organization] });
        let answer = world
            .admin("POST", "/api/admin/apply/plan", &[], document)
            .await;
        assert!(!answer.text.contains("sk-"), "{}", answer.text);
        answer.expect(200)
    };
    let mut organization = acme(Some("sk-first"));
    let first = plan(&organization).await;
    let names = |plan: &Value| {
        let changes = plan["changes"].as_array().unwrap().clone();
        let name =
            |change: Value| format!("{} {}", change["action"], change["name"]).replace('"', "");
        changes.into_iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(
        names(&first),
        [
            "update acme",
            "create main",
            "update shop",
            "create front",
            "create site"
        ]
    );
    assert_eq!(world.catalog_entries().await.len(), 3, "nothing is written");
    apply(&world, &organization).await;
    assert_eq!(
        plan(&organization).await,
        json!({ "changes": [], "unchanged": 5 })
    );
    organization["providers"][0]["apiKey"] = "sk-second".into();
    organization["agents"][0]["instructions"] = "Be brief.".into();
    organization["teams"][0]["defaultAgent"] = Value::Null;
    organization["keys"][0]["scopes"] = json!([]);
    let changes = plan(&organization).await["changes"].clone();
    let fields: Vec<_> = changes
        .as_array()
        .unwrap()
        .iter()
        .map(|change| &change["fields"])
        .collect();
    assert_eq!(
        json!(fields),
        json!([
            [{ "field": "apiKey" }],
            [{ "field": "instructions", "before": "You are a helpful assistant.", "after": "Be brief." }],
            [{ "field": "defaultAgent", "before": "shop" }],
            [{ "field": "scopes", "before": ["chat"], "after": [] }],
        ])
    );
}
