//! The audit log over embedded backends: every route that changes something leaves an entry, and no
//! entry holds a secret.

use std::{collections::BTreeSet, time::Duration};

use http::header;
use serde_json::{Value, json};
use switchboard_schemas::{erasure::Erasure, ids::OrgId};

use super::api_document::admin_document;
use crate::{
    IngressConfig,
    testing::{
        ADMIN_TOKEN, Answer, World, agent_id, org_id, org_path as of, put_conversation, secret,
    },
};

/// The source of the routes that the API document does not have.
const DASHBOARD_ROUTES: &str = include_str!("../accounts/sign_in.rs");
const PASS: &str = "correct horse battery";
/// The longest wait for something that must happen.
const DEADLINE: Duration = Duration::from_secs(10);

async fn admin(world: &World, method: &str, path: &str, body: Value) -> Answer {
    world.admin(method, path, &[], body).await
}

async fn log(world: &World, query: &str) -> Vec<Value> {
    let answer = admin(world, "GET", &of(&format!("/audit{query}")), Value::Null).await;
    answer.expect(200)["items"].as_array().unwrap().clone()
}

/// Ends of paths that change nothing: playground runs, tests of providers, plans of documents,
/// previews of files.
const HARMLESS: [&str; 5] = ["/try", "/test", "/plan", "/preview", "/files"];

/// Returns every route that changes something.
async fn changing_routes(world: &World) -> BTreeSet<(String, String)> {
    let document = admin_document();
    let paths = document["paths"].as_object().unwrap().iter();
    let operations = paths.flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().keys();
        methods.map(move |method| (method.to_uppercase(), path.clone()))
    });
    let mut found: BTreeSet<_> = operations
        .filter(|(method, path)| method != "GET" && !HARMLESS.iter().any(|end| path.ends_with(end)))
        .collect();
    for path in DASHBOARD_ROUTES
        .split('"')
        .filter(|text| text.starts_with("/api/"))
    {
        let answer = admin(world, "PROPFIND", path, Value::Null).await;
        assert_eq!(answer.status, 405, "{path}");
        for method in answer.headers[header::ALLOW].to_str().unwrap().split(',') {
            if !["GET", "HEAD"].contains(&method) {
                found.insert((method.to_owned(), path.to_owned()));
            }
        }
    }
    assert!(found.len() > 20, "{found:?}");
    found
}

/// Creates a resource of this list and returns it.
async fn create(world: &World, list: &str, body: Value) -> Value {
    let answer = admin(world, "POST", &of(&format!("/{list}")), body).await;
    answer.expect(201)
}

fn thing(list: &str, slug: &str) -> Value {
    match list {
        "keys" => json!({ "name": slug }),
        "users" => json!({ "email": format!("{slug}@example.org"), "role": "editor" }),
        "providers" => json!({ "slug": slug, "apiKey": "sk-canary" }),
        _ => json!({ "slug": slug, "name": slug }),
    }
}

/// Changes something through this route and returns the response; `None` for a route that this
/// test does not know.
async fn change_by(world: &World, method: &str, path: &str, round: usize) -> Option<Answer> {
    let slug = format!("thing-{round}");
    if path.starts_with("/api/dashboard") {
        return dashboard_change(world, method, path, &slug).await;
    }
    let rest = path.strip_prefix("/api/admin/").unwrap();
    if rest == "apply" {
        let organization = json!({ "slug": "acme", "name": slug, "keys": [{ "name": slug }] });
        return Some(
            admin(
                world,
                method,
                path,
                json!({ "organizations": [organization] }),
            )
            .await,
        );
    }
    if ["organizations", "organizations/{org}"].contains(&rest) {
        return Some(organization_change(world, method, rest, &slug).await);
    }
    let rest = rest.strip_prefix("organizations/{org}/")?;
    let list = rest.split('/').next()?;
    if ["conversations", "erasures"].contains(&list) {
        return Some(conversation_change(world, method, rest, round).await);
    }
    if !["agents", "teams", "providers", "keys", "users"].contains(&list) {
        return None;
    }
    if method == "POST" && rest == list {
        return Some(admin(world, method, &of(&format!("/{list}")), thing(list, &slug)).await);
    }
    Some(listed_change(world, method, rest, &slug).await)
}

async fn organization_change(world: &World, method: &str, rest: &str, slug: &str) -> Answer {
    let organizations = "/api/admin/organizations";
    let empty = json!({ "slug": "empty", "name": slug });
    if rest == "organizations" {
        return admin(world, method, organizations, empty).await;
    }
    if method == "DELETE" {
        admin(world, "POST", organizations, empty).await;
        let id = OrgId::derive(&secret(), "empty");
        return admin(world, method, &format!("{organizations}/{id}"), Value::Null).await;
    }
    let renamed = json!({ "slug": "acme", "name": slug });
    admin(world, method, &of(""), renamed).await
}

/// Creates a resource and changes it by a route below its list.
async fn listed_change(world: &World, method: &str, rest: &str, slug: &str) -> Answer {
    let list = rest.split('/').next().unwrap();
    let last = rest.rsplit('/').next().unwrap();
    let mut made_of = thing(list, slug);
    if rest.ends_with("/refresh") {
        made_of["ecommerce"] = json!({ "feed": { "url": "https://shop.example/feed.csv" } });
    }
    let id = create(world, list, made_of).await["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let concrete = of(&format!("/{}", rest.replace("{id}", &id)));
    if let Some(products) = concrete.strip_suffix("/restore") {
        for title in ["Tea", "Cup"] {
            admin(world, "PUT", products, json!([{ "title": title }])).await;
        }
    }
    let changed = match (list, last) {
        (_, "rotate" | "link" | "refresh" | "restore") => json!({}),
        (_, "products") => json!([{ "title": "Tea" }]),
        ("keys", _) => json!({ "name": slug, "scopes": ["chat"] }),
        ("providers", _) => json!({ "slug": slug, "apiKey": "sk-canary-2" }),
        ("users", _) => json!({ "name": "Another" }),
        _ => json!({ "slug": slug, "name": "Another" }),
    };
    let body = if method == "DELETE" {
        Value::Null
    } else {
        changed
    };
    admin(world, method, &concrete, body).await
}

/// No worker runs, so that a deletion is only accepted.
async fn conversation_change(world: &World, method: &str, rest: &str, round: usize) -> Answer {
    let visitor = json!({ "visitorId": "canary" });
    if rest == "erasures" {
        return admin(world, method, &of("/erasures"), visitor).await;
    }
    let id = put_conversation(
        world,
        &org_id(),
        &agent_id(),
        i64::try_from(round).unwrap(),
        json!({}),
    )
    .await;
    if rest.starts_with("conversations") {
        return admin(
            world,
            method,
            &of(&format!("/conversations/{id}")),
            Value::Null,
        )
        .await;
    }
    let begun = admin(world, "POST", &of("/erasures"), visitor.clone())
        .await
        .json();
    // The state after a crash during the erasure.
    world
        .store
        .faults
        .alter("erasure", |erasure: Option<Erasure>| {
            erasure.map(|erasure| Erasure {
                finished_at: None,
                ..erasure
            })
        });
    let resumed = admin(
        world,
        method,
        &of(&format!("/erasures/{}", begun["id"].as_str().unwrap())),
        visitor,
    )
    .await;
    world.store.faults.clear("erasure");
    resumed
}

async fn dashboard_change(world: &World, method: &str, path: &str, slug: &str) -> Option<Answer> {
    let user = create(world, "users", thing("users", slug)).await;
    let link = user["link"]["url"].as_str()?.split_once('#')?.1.to_owned();
    let headers = [
        ("sec-fetch-site", "same-origin"),
        ("content-type", "application/json"),
    ];
    let by_link = json!({ "link": link, "password": PASS }).to_string();
    let welcome = world
        .send_with("POST", "/api/dashboard/link", &headers, by_link)
        .await;
    let cookie = welcome
        .headers
        .get(header::SET_COOKIE)?
        .to_str()
        .ok()?
        .split(';')
        .next()?
        .to_owned();
    let body = match (method, path) {
        ("POST", "/api/dashboard/link") => return Some(welcome),
        ("POST", "/api/dashboard/session") => {
            json!({ "email": format!("{slug}@example.org"), "password": PASS, "organization": "acme" })
        }
        ("POST", "/api/dashboard/password") => {
            json!({ "currentPassword": PASS, "newPassword": "another password" })
        }
        ("DELETE", "/api/dashboard/session") => Value::Null,
        _ => return None,
    };
    let headers = [&headers[..], &[("cookie", cookie.as_str())]].concat();
    Some(
        world
            .send_with(
                method,
                path,
                &headers,
                if body.is_null() {
                    String::new()
                } else {
                    body.to_string()
                },
            )
            .await,
    )
}

#[tokio::test]
async fn every_changing_route_records_an_audit_entry() {
    let config = IngressConfig {
        sign_ins_per_account: 0,
        sign_ins_per_address: 0,
        patch_timeout_ms: 50,
        ..IngressConfig::default()
    };
    let world = World::with(config).await;
    for (round, (method, path)) in changing_routes(&world).await.into_iter().enumerate() {
        let answer = change_by(&world, &method, &path, round).await;
        let answer = answer.unwrap_or_else(|| {
            panic!("{method} {path} changes something: say here how, and audit it")
        });
        assert!(
            answer.status.is_success(),
            "{method} {path}: {} {}",
            answer.status,
            answer.text
        );
        let request = answer.headers["x-request-id"].to_str().unwrap();
        let entries = world.audit_entries();
        let own = entries.iter().filter(|entry| {
            entry
                .request_id
                .as_ref()
                .is_some_and(|id| id.as_str() == request)
        });
        assert!(own.count() >= 1, "{method} {path} leaves no entry");
    }
    let entries = serde_json::to_string(&world.audit_entries()).unwrap();
    for secret in ["sk-canary", "svc_live_", "argon2", PASS, ADMIN_TOKEN] {
        assert!(!entries.contains(secret), "{secret}");
    }
}

#[tokio::test]
async fn log_remains_readable_after_its_organization() {
    let world = World::new().await;
    let organization = json!({ "slug": "gone", "name": "Gone" });
    admin(&world, "POST", "/api/admin/organizations", organization).await;
    let path = format!(
        "/api/admin/organizations/{}",
        OrgId::derive(&secret(), "gone")
    );
    let user = json!({ "email": "ada@example.org", "role": "owner" });
    assert_eq!(
        admin(&world, "POST", &format!("{path}/users"), user.clone())
            .await
            .status,
        201
    );
    assert_eq!(
        admin(&world, "DELETE", &path, Value::Null).await.status,
        204
    );
    let log = admin(&world, "GET", &format!("{path}/audit"), Value::Null)
        .await
        .json();
    let entries: Vec<_> = log["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (&it["kind"], &it["action"]))
        .collect();
    let expected = [
        ("organization", "delete"),
        ("user", "delete"),
        ("user", "create"),
        ("organization", "create"),
    ];
    let expected = expected.map(|(kind, action)| (json!(kind), json!(action)));
    assert_eq!(
        entries,
        expected
            .iter()
            .map(|(kind, action)| (kind, action))
            .collect::<Vec<_>>()
    );
    assert_eq!(
        admin(&world, "POST", &of("/users"), user).await.status,
        201,
        "the address is free again"
    );
    let unknown = format!(
        "/api/admin/organizations/{}/audit",
        OrgId::derive(&secret(), "unknown")
    );
    assert_eq!(
        admin(&world, "GET", &unknown, Value::Null).await.status,
        404
    );
}

#[tokio::test]
async fn audit_entry_is_written_later_without_delaying_the_change() {
    let world = World::new().await;
    world.accounts.faults.set_down(true);
    create(&world, "agents", thing("agents", "a")).await;
    assert!(world.audit_entries().is_empty());
    world.accounts.faults.set_down(false);
    let began = tokio::time::Instant::now();
    while log(&world, "").await.is_empty() {
        assert!(began.elapsed() < DEADLINE, "the entry is written");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
