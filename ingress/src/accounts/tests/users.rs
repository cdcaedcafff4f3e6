//! Management of users, and what a role decides beyond its permissions.

use std::sync::Arc;

use http::header;
use serde_json::{Value, json};
use switchboard_backends::catalog::CatalogEntry;

use super::{Browser, admin, invited, of, person, unthrottled};
use crate::{
    IngressConfig,
    ceilings::MemberCeilings,
    testing::{World, agent_id},
};

#[tokio::test]
async fn playground_needs_edit_permission_and_is_limited_by_person() {
    let world = World::with(IngressConfig {
        trials_per_minute: 1,
        ..unthrottled()
    })
    .await;
    for path in [
        of(&format!("/agents/{}/try", agent_id())),
        of("/teams/new/try"),
    ] {
        for (role, status) in [
            ("viewer", 403),
            ("operator", 403),
            ("editor", 400),
            ("owner", 400),
        ] {
            let email = format!("{role}-{}@example.org", path.len());
            let (browser, _) = person(&world, &email, role).await;
            // The body has no message, so permitted users get a validation error.
            assert_eq!(
                browser.send("POST", &path, json!({})).await.status.as_u16(),
                status,
                "{role} {path}"
            );
            let again = browser.send("POST", &path, json!({})).await;
            let expected = if status == 400 {
                (429, "RATE_LIMITED")
            } else {
                (403, "INSUFFICIENT_SCOPE")
            };
            assert_eq!(
                again.problem(),
                (expected.0, expected.1.to_owned()),
                "{role} {path}"
            );
        }
    }
}

#[tokio::test]
async fn admin_requests_are_limited_by_person() {
    let config = IngressConfig {
        // The invitation's answer is not counted, because it creates the session.
        admin_requests_per_minute: 2,
        ..unthrottled()
    };
    let world = World::with(config).await;
    let (ada, _) = person(&world, "ada@example.org", "viewer").await;
    let (bob, _) = person(&world, "bob@example.org", "viewer").await;
    let read = async |browser: &Browser<'_>| browser.send("GET", &of("/agents"), Value::Null).await;
    assert_eq!(read(&ada).await.status, 200);
    assert!(ada.is_signed_in().await, "the session counts as well");
    let refused = read(&ada).await;
    assert_eq!(refused.problem(), (429, "RATE_LIMITED".into()));
    let details = json!({ "bucket": "admin", "limit": 2 });
    assert_eq!(refused.json()["details"], details);
    let headers = &refused.headers;
    let wait: u64 = headers[header::RETRY_AFTER]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert_eq!(headers["ratelimit-policy"], "\"admin\";q=2;w=60");
    // The limit comes before the permission.
    let forbidden = ada.send("GET", &of("/users"), Value::Null).await;
    assert_eq!(forbidden.status, 429);
    assert_eq!(read(&bob).await.status, 200, "another person");
    for _ in 0..3 {
        let answer = admin(&world, "GET", "/agents", Value::Null).await;
        assert_eq!(answer.status, 200, "the admin token");
    }
    let out = ada.send("DELETE", super::SESSION, Value::Null).await;
    assert_eq!(out.status, 204, "signing out is never limited");
    assert_eq!(read(&ada).await.status, 401);
}

#[tokio::test]
async fn invalid_user_is_refused_with_the_wrong_field() {
    let world = World::with(unthrottled()).await;
    let user = |email: &str, role: &str| json!({ "email": email, "role": role });
    let with = |field: &str, value: &str| {
        let mut user = user("b@example.org", "viewer");
        user[field] = value.into();
        user
    };
    for (body, param) in [
        (json!({ "role": "viewer" }), "email"),
        (json!({ "email": "b@example.org" }), "role"),
        (user("nobody", "viewer"), "email"),
        (user("b@example.org", "god"), "role"),
        (with("password", "x"), "password"),
        (with("name", "\u{7}"), "name"),
    ] {
        let answer = admin(&world, "POST", "/users", body).await;
        assert_eq!(
            (answer.problem().0, &answer.json()["param"]),
            (400, &json!(param)),
            "{}",
            answer.text
        );
    }
}

#[tokio::test]
async fn user_is_created_once_changed_by_version_and_removed() {
    let world = World::with(unthrottled()).await;
    person(&world, "keeper@example.org", "owner").await;
    let user = invited(&world, "ada@example.org", "viewer").await;
    let path = format!("/users/{}", user["id"].as_str().unwrap());
    let same_email = json!({ "email": "ADA@example.org", "role": "owner" });
    let again = admin(&world, "POST", "/users", same_email).await;
    assert_eq!(again.problem(), (409, "CONFLICT".into()));
    let read = admin(&world, "GET", &path, Value::Null).await.json();
    assert_eq!(
        (read.get("link"), &read["hasPassword"]),
        (None, &json!(false)),
        "a link is shown once"
    );
    let stale = json!({ "name": "Ada", "version": "0" });
    assert_eq!(
        admin(&world, "PATCH", &path, stale).await.problem(),
        (409, "CONFLICT".into())
    );
    let activated = admin(&world, "PATCH", &path, json!({ "state": "active" })).await;
    assert_eq!(activated.status, 400, "only the link does that");
    let rename = json!({ "name": "Ada", "version": read["version"] });
    let changed = admin(&world, "PATCH", &path, rename).await.json();
    assert_eq!(
        (&changed["name"], &changed["role"]),
        (&json!("Ada"), &json!("viewer"))
    );
    let listed = admin(&world, "GET", "/users", Value::Null).await.json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 2);
    for (method, status) in [("DELETE", 204), ("GET", 404), ("DELETE", 404)] {
        let answer = admin(&world, method, &path, Value::Null).await;
        assert_eq!(answer.status, status, "{method}");
    }
}

#[tokio::test]
async fn provider_address_is_the_operators_if_the_operator_chose_it() {
    let world = World::with(unthrottled()).await;
    let (editor, _) = person(&world, "editor@example.org", "editor").await;
    let local = json!({ "slug": "local", "baseUrl": "http://127.0.0.1:9/v1", "model": "m" });
    let created = admin(&world, "POST", "/providers", local).await.expect(201);
    let path = format!("/providers/{}", created["id"].as_str().unwrap());
    let is_operators = async || {
        let entries = world.catalog_entries().await;
        entries.iter().any(|entry| match entry {
            CatalogEntry::Provider { provider, .. } => provider.chosen_by_operator,
            _ => false,
        })
    };
    assert!(is_operators().await);
    for (change, expected) in [
        (json!({ "model": "other" }), true),
        (json!({ "baseUrl": "http://127.0.0.1:9/v2" }), false),
        (json!({ "baseUrl": "http://127.0.0.1:9/v1" }), false),
    ] {
        let answer = editor.send("PATCH", &of(&path), change.clone()).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(is_operators().await, expected, "{change}");
    }
    // Another change by the operator does not adopt the member's address.
    for (change, expected) in [
        (json!({ "model": "third" }), false),
        (json!({ "baseUrl": "http://127.0.0.1:9/v3" }), true),
    ] {
        admin(&world, "PATCH", &path, change.clone())
            .await
            .expect(200);
        assert_eq!(is_operators().await, expected, "{change}");
    }
}

#[tokio::test]
async fn private_provider_address_of_a_member_is_refused() {
    let world = World::with(unthrottled()).await;
    let (editor, _) = person(&world, "editor@example.org", "editor").await;
    world.check_addresses(Arc::new(|_, url| {
        let reason = url.contains("127.0.0.1").then(|| "is private".to_owned());
        Box::pin(async move { reason })
    }));
    let provider =
        |slug: &str, host: &str| json!({ "slug": slug, "baseUrl": format!("http://{host}/v1") });
    let created = editor
        .send(
            "POST",
            &of("/providers"),
            provider("own", "127.0.0.1:11434"),
        )
        .await
        .expect(400);
    assert_eq!(
        (&created["param"], &created["detail"]),
        (&json!("baseUrl"), &json!("is private"))
    );
    // The operator may choose any address, and members may change the rest of that provider.
    let local = provider("local", "127.0.0.1:11434");
    let local = admin(&world, "POST", "/providers", local).await.expect(201);
    let path = of(&format!("/providers/{}", local["id"].as_str().unwrap()));
    for (change, status) in [
        (json!({ "model": "other" }), 200),
        (json!({ "baseUrl": "http://127.0.0.1:11435/v1" }), 400),
        (json!({ "baseUrl": "https://models.example/v1" }), 200),
    ] {
        let answer = editor.send("PATCH", &path, change.clone()).await;
        assert_eq!(answer.status, status, "{change}");
    }
}

#[tokio::test]
async fn session_tells_that_no_model_is_configured() {
    let config = IngressConfig {
        is_demo: true,
        ..unthrottled()
    };
    let world = World::with(config).await;
    let (editor, _) = person(&world, "editor@example.org", "editor").await;
    let has_model = async || {
        let session = editor.send("GET", super::SESSION, Value::Null).await;
        session.expect(200)["organization"]["hasModel"].clone()
    };
    assert_eq!(has_model().await, false);
    let provider = json!({ "slug": "own" });
    let created = editor.send("POST", &of("/providers"), provider).await;
    created.expect(201);
    assert_eq!(has_model().await, true);
}

async fn world_with(ceilings: MemberCeilings) -> World {
    World::with(IngressConfig {
        ceilings,
        ..unthrottled()
    })
    .await
}

#[tokio::test]
async fn member_obeys_ceilings_but_keeps_the_operators_values() {
    let world = world_with(MemberCeilings {
        output_tokens_max: 100,
        requests_per_minute_max: 10,
        installation_models: vec!["small".into()],
        ..MemberCeilings::default()
    })
    .await;
    let (owner, _) = person(&world, "owner@example.org", "owner").await;
    let own = |fields: Value| {
        let mut agent = json!({ "slug": "own", "name": "Own", "maxOutputTokens": 100,
            "limits": { "rateLimitPerMinute": 10 } });
        agent
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        agent
    };
    let key = json!({ "name": "k", "limits": { "chatPerMinute": 11 } });
    for (list, body, param) in [
        (
            "/agents",
            own(json!({ "maxOutputTokens": 101 })),
            "maxOutputTokens",
        ),
        (
            "/agents",
            own(json!({ "limits": { "rateLimitPerMinute": 11 } })),
            "limits.rateLimitPerMinute",
        ),
        ("/agents", own(json!({ "model": "large" })), "model"),
        ("/keys", key.clone(), "limits.chatPerMinute"),
    ] {
        let refused = owner.send("POST", &of(list), body).await;
        let refused = refused.expect(400);
        assert_eq!(refused["param"], param, "{refused}");
        assert!(
            refused["detail"].as_str().unwrap().contains("operator"),
            "{refused}"
        );
    }
    let created = owner
        .send("POST", &of("/agents"), own(json!({ "model": "small" })))
        .await;
    created.expect(201);
    // What the operator set stays, and only a change of it is refused.
    let large =
        json!({ "slug": "large", "name": "Large", "maxOutputTokens": 500, "model": "large" });
    let large = admin(&world, "POST", "/agents", large).await.expect(201);
    let path = of(&format!("/agents/{}", large["id"].as_str().unwrap()));
    for (change, status) in [
        (json!({ "name": "Larger" }), 200),
        (json!({ "maxOutputTokens": 499 }), 400),
        (json!({ "maxOutputTokens": 100 }), 200),
        (json!({ "model": "larger" }), 400),
    ] {
        let answer = owner.send("PATCH", &path, change.clone()).await;
        assert_eq!(answer.status, status, "{change} {}", answer.text);
    }
    let key = admin(&world, "POST", "/keys", key).await.expect(201);
    let path = of(&format!("/keys/{}", key["id"].as_str().unwrap()));
    for (change, status) in [
        (json!({ "name": "other" }), 200),
        (json!({ "limits": { "chatPerMinute": 12 } }), 400),
    ] {
        let answer = owner.send("PATCH", &path, change.clone()).await;
        assert_eq!(answer.status, status, "{change} {}", answer.text);
    }
}

#[tokio::test]
async fn organization_has_at_most_its_agents_and_keys() {
    let world = world_with(MemberCeilings {
        agents_max: 2,
        keys_max: 2,
        ..MemberCeilings::default()
    })
    .await;
    let (owner, _) = person(&world, "owner@example.org", "owner").await;
    let agent = |slug: &str| json!({ "slug": slug, "name": slug });
    let key = |name: &str| json!({ "name": name });
    // The world has an agent and a key.
    owner
        .send("POST", &of("/agents"), agent("second"))
        .await
        .expect(201);
    let second = owner
        .send("POST", &of("/keys"), key("second"))
        .await
        .expect(201);
    let rotate = format!("/keys/{}/rotate", second["id"].as_str().unwrap());
    for (path, body) in [
        ("/agents", agent("third")),
        ("/keys", key("third")),
        (rotate.as_str(), json!({})),
    ] {
        let refused = owner.send("POST", &of(path), body.clone()).await;
        assert_eq!(
            refused.problem(),
            (409, "CONFLICT".into()),
            "{}",
            refused.text
        );
        assert_eq!(refused.json()["details"], json!({ "max": 2 }));
        let allowed = admin(&world, "POST", path, body).await;
        assert_eq!(allowed.status, 201, "the operator: {}", allowed.text);
    }
    owner
        .send("POST", &of("/teams"), agent("team"))
        .await
        .expect(201);
}
