//! Tests of single resources over embedded backends: responses, errors and concurrent editors.

mod keys;
mod removals;
mod saved_addresses;

use http::header;
use serde_json::{Value, json};

use crate::testing::{Answer, World, agent_id, org_id};

async fn admin(world: &World, method: &str, path: &str, body: Value) -> Answer {
    admin_with(world, method, path, &[], body).await
}

async fn admin_with(
    world: &World,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Value,
) -> Answer {
    let path = format!("/api/admin/organizations{path}");
    world.admin(method, &path, headers, body).await
}

/// Returns the path of a resource of the world's organization.
fn of(path: &str) -> String {
    format!("/{}{path}", org_id())
}

fn shop() -> String {
    of(&format!("/agents/{}", agent_id()))
}

async fn create(world: &World, list: &str, thing: Value) -> Value {
    let answer = admin(world, "POST", &of(&format!("/{list}")), thing).await;
    let shown = answer.expect(201);
    let path = format!(
        "/api/admin/organizations{}",
        of(&format!("/{list}/{}", shown["id"].as_str().unwrap()))
    );
    assert_eq!(answer.headers[header::LOCATION], path.as_str());
    shown
}

#[tokio::test]
async fn resource_sent_back_as_read_changes_nothing() {
    let world = World::new().await;
    create(
        &world,
        "providers",
        json!({ "slug": "main", "apiKey": "sk-canary" }),
    )
    .await;
    let agent =
        json!({ "slug": "a", "name": "A", "provider": "main", "allowedDomains": ["shop.example"] });
    let agent = create(&world, "agents", agent).await;
    let team =
        json!({ "slug": "t", "name": "T", "defaultAgent": "a", "members": [{ "agent": "shop" }] });
    let team = create(&world, "teams", team).await;
    assert_eq!(
        (&agent["provider"], &team["defaultAgent"]),
        (&json!("main"), &json!("a"))
    );
    let entries = world.catalog_entries().await;
    for (list, thing) in [("agents", agent), ("teams", team)] {
        let path = of(&format!("/{list}/{}", thing["id"].as_str().unwrap()));
        let read = admin(&world, "GET", &path, Value::Null).await.json();
        for method in ["PUT", "PATCH"] {
            let answer = admin(&world, method, &path, read.clone()).await;
            assert_eq!(
                (answer.status.as_u16(), answer.json()),
                (200, read.clone()),
                "{method} {path}"
            );
        }
    }
    assert_eq!(world.catalog_entries().await, entries);
}

#[tokio::test]
async fn patch_keeps_unnamed_fields_and_put_resets_them() {
    let world = World::new().await;
    let theme =
        json!({ "theme": { "primaryColor": "red" }, "welcomeMessage": "Hi", "temperature": 1.0 });
    assert_eq!(admin(&world, "PATCH", &shop(), theme).await.status, 200);
    let patched = admin(
        &world,
        "PATCH",
        &shop(),
        json!({ "theme": { "textColor": "blue" }, "temperature": null }),
    )
    .await;
    let patched = patched.json();
    assert_eq!(
        (
            &patched["theme"]["primaryColor"],
            &patched["theme"]["textColor"]
        ),
        (&json!("red"), &json!("blue"))
    );
    assert_eq!(
        (&patched["welcomeMessage"], &patched["temperature"]),
        (&json!("Hi"), &Value::Null)
    );
    let put = admin(
        &world,
        "PUT",
        &shop(),
        json!({ "slug": "shop", "name": "Shop" }),
    )
    .await
    .json();
    assert_ne!(put["theme"]["primaryColor"], "red");
    assert_ne!(put["welcomeMessage"], "Hi");
}

/// Asserts that each request, given as method, path, body and wrong field, is refused with its
/// field and writes nothing.
async fn assert_invalid(world: &World, requests: &[(&str, String, Value, &str)]) {
    let entries = world.catalog_entries().await;
    for (method, path, body, param) in requests {
        let answer = admin(world, method, path, body.clone()).await;
        assert_eq!(
            answer.problem(),
            (400, "INVALID_REQUEST_DATA".into()),
            "{method} {path} {body} {}",
            answer.text
        );
        assert_eq!(answer.json()["param"], *param, "{body}");
    }
    assert_eq!(world.catalog_entries().await, entries);
}

#[tokio::test]
async fn invalid_new_resource_is_refused_with_its_field() {
    let world = World::new().await;
    let named = |slug: &str| json!({ "slug": slug, "name": "B" });
    let with = |mut body: Value, field: &str, value: Value| {
        body[field] = value;
        body
    };
    let key = || json!({ "name": "k" });
    let requests = [
        ("/agents", json!({ "slug": "b" }), "name"),
        ("/agents", with(named("b"), "statos", json!(1)), "statos"),
        (
            "/agents",
            with(named("b"), "provider", json!("gone")),
            "provider",
        ),
        ("/agents", named("B b"), "slug"),
        (
            "/teams",
            with(named("t"), "members", json!([{ "agent": "gone" }])),
            "members[0].agent",
        ),
        (
            "/providers",
            json!({ "slug": "p", "baseUrl": "file:///x" }),
            "baseUrl",
        ),
        ("/keys", json!({ "name": "x".repeat(201) }), "name"),
        ("/keys", with(key(), "scopes", json!(["all"])), "scopes[0]"),
        ("/keys", with(key(), "value", json!("svc_live_x")), "value"),
    ];
    let requests = requests.map(|(path, body, param)| ("POST", of(path), body, param));
    assert_invalid(&world, &requests).await;
    let organization = |body, param| ("POST", String::new(), body, param);
    let with_agents = with(named("new"), "agents", json!([]));
    let requests = [
        organization(with_agents, "agents"),
        organization(json!({ "slug": "new" }), "name"),
    ];
    assert_invalid(&world, &requests).await;
}

#[tokio::test]
async fn invalid_change_is_refused_with_its_field() {
    let world = World::new().await;
    let patch = |path: String, body: Value, param| ("PATCH", path, body, param);
    let no_length = json!({ "limits": { "maxMessageLength": 0 } });
    let bad_color = json!({ "theme": { "textColor": "red;" } });
    let other_slug = json!({ "slug": "other", "name": "Shop" });
    let requests = [
        patch(shop(), no_length, "limits.maxMessageLength"),
        patch(shop(), bad_color, "theme.textColor"),
        patch(shop(), json!({ "slug": "other" }), "slug"),
        patch(shop(), json!({ "id": "agt_other" }), "id"),
        ("PUT", shop(), other_slug, "slug"),
        patch(of(""), json!({ "name": " " }), "name"),
        patch(of(""), json!({ "slug": "other" }), "slug"),
    ];
    assert_invalid(&world, &requests).await;
}

#[tokio::test]
async fn array_is_refused_where_an_object_is_expected() {
    let world = World::new().await;
    let agent = json!({ "slug": "b", "name": "B", "features": [true, false] });
    let team = json!({ "slug": "t", "name": "T", "members": [["shop", "all"]] });
    let organization = json!({ "organizations": [["new", "New"]] });
    let run = json!({ "message": "m", "draft": { "limits": [7, 9] } });
    let limits = || json!({ "limits": [7, 9] });
    let replaced = json!({ "slug": "shop", "name": "Shop", "limits": [7, 9] });
    let requests = [
        ("PATCH", shop(), limits(), "limits"),
        ("PUT", shop(), replaced, "limits"),
        ("POST", of("/agents"), agent, "features"),
        ("POST", of("/teams"), team, "members[0]"),
        ("POST", format!("{}/try", shop()), run, "limits"),
    ];
    assert_invalid(&world, &requests).await;
    let answer = world.admin("POST", "/api/admin/apply", &[], organization);
    let answer = answer.await;
    assert_eq!(answer.problem(), (400, "INVALID_REQUEST_DATA".into()));
    assert_eq!(answer.json()["param"], "organizations[0]");
}

#[tokio::test]
async fn lists_are_pages_by_slug() {
    let world = World::new().await;
    for slug in ["c", "a", "b"] {
        create(&world, "agents", json!({ "slug": slug, "name": slug })).await;
    }
    let page = async |query: &str| {
        admin(&world, "GET", &of(&format!("/agents{query}")), Value::Null)
            .await
            .json()
    };
    let slugs = |page: &Value| {
        let items = page["items"].as_array().unwrap();
        items
            .iter()
            .map(|item| item["slug"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let (first, second) = (page("?limit=2").await, page("?limit=2&offset=2").await);
    assert_eq!(
        (slugs(&first), &first["hasMore"], &first["total"]),
        (vec!["a".into(), "b".into()], &json!(true), &json!(4))
    );
    assert_eq!(
        (slugs(&second), &second["hasMore"]),
        (vec!["c".into(), "shop".into()], &json!(false))
    );
    let organizations = admin(&world, "GET", "", Value::Null).await.json();
    assert_eq!(
        organizations["items"],
        json!([{ "id": org_id(), "slug": "acme", "name": "acme" }])
    );
}

#[tokio::test]
async fn list_item_has_no_instructions_and_no_products() {
    let world = World::new().await;
    let products = json!([{ "title": "Tea", "price": "3 EUR" }]);
    let agent = json!({
        "slug": "large", "name": "Large", "instructions": "x".repeat(100_000), "temperature": 0.5,
        "allowedDomains": ["a.example", "b.example", "c.example", "d.example"],
        "ecommerce": { "enabled": true, "products": products },
        "leadForm": {
            "consent": { "text": "I agree." }, "trigger": "tool",
            "fields": [{ "name": "mail", "label": "Mail", "type": "email" }],
        },
    });
    let agent = create(&world, "agents", agent).await;
    let members = json!([{ "agent": "shop", "specialization": "tea" }]);
    let team = json!({ "slug": "t", "name": "T", "defaultAgent": "large", "members": members });
    let team = create(&world, "teams", team).await;
    let list = async |kind: &str| {
        let list = admin(&world, "GET", &of(kind), Value::Null).await.json();
        list["items"][0].clone()
    };
    let item = list("/agents").await;
    for field in ["instructions", "ecommerce", "widget", "leadForm"] {
        assert_eq!(
            (item.get(field), agent[field].is_null()),
            (None, false),
            "{field}"
        );
    }
    for field in [
        "id",
        "slug",
        "name",
        "status",
        "theme",
        "limits",
        "temperature",
    ] {
        assert_eq!(item[field], agent[field], "{field}");
    }
    let domains = json!(["a.example", "b.example", "c.example"]);
    assert_eq!(item["allowedDomains"], domains);
    let fields = json!([{ "name": "mail", "label": "Mail" }]);
    assert_eq!(item["leadFields"], fields);
    let item = list("/teams").await;
    assert_eq!(item["members"], json!([{ "agent": "shop" }]));
    for field in [
        "id",
        "slug",
        "defaultAgent",
        "routing",
        "status",
        "answerable",
    ] {
        assert_eq!(item[field], team[field], "{field}");
    }
    let path = of(&format!("/teams/{}", team["id"].as_str().unwrap()));
    let read = admin(&world, "GET", &path, Value::Null).await.json();
    assert_eq!(read["members"], members);
}

#[tokio::test]
async fn changes_are_announced_and_store_outages_reported() {
    let world = World::new().await;
    admin(&world, "PATCH", &shop(), json!({ "name": "New" })).await;
    let announced = world
        .published_records()
        .iter()
        .map(|record| record.key.clone())
        .collect::<Vec<_>>();
    assert_eq!(announced, [agent_id().as_str()]);
    world.catalog.faults.set_down(true);
    for (method, path) in [
        ("GET", shop()),
        ("PATCH", shop()),
        ("DELETE", shop()),
        ("POST", of("/agents")),
    ] {
        let answer = admin(&world, method, &path, json!({})).await;
        assert_eq!(answer.problem(), (503, "UNAVAILABLE".into()), "{method}");
    }
}

#[tokio::test]
async fn change_of_an_outdated_version_is_refused() {
    let world = World::new().await;
    let read = admin(&world, "GET", &shop(), Value::Null).await;
    let (etag, version) = (
        read.headers[header::ETAG].to_str().unwrap(),
        read.json()["version"].clone(),
    );
    let changed = admin_with(
        &world,
        "PATCH",
        &shop(),
        &[("if-match", etag)],
        json!({ "name": "One" }),
    )
    .await;
    assert_eq!(changed.status, 200);
    assert_ne!(changed.json()["version"], version);
    for (headers, body) in [
        (vec![("if-match", etag)], json!({ "name": "Two" })),
        (vec![], json!({ "name": "Two", "version": version })),
    ] {
        let refused = admin_with(&world, "PATCH", &shop(), &headers, body).await;
        assert_eq!(refused.problem(), (409, "CONFLICT".into()));
        assert_eq!(
            refused.json()["details"]["version"],
            changed.json()["version"]
        );
    }
    assert_eq!(
        admin_with(
            &world,
            "DELETE",
            &shop(),
            &[("if-match", etag)],
            Value::Null
        )
        .await
        .status,
        409
    );
    assert_eq!(
        admin(&world, "GET", &shop(), Value::Null).await.json()["name"],
        "One"
    );
    let current = changed.headers[header::ETAG].to_str().unwrap();
    assert_eq!(
        admin_with(
            &world,
            "DELETE",
            &shop(),
            &[("if-match", current)],
            Value::Null
        )
        .await
        .status,
        204
    );
}
