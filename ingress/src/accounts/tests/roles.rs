//! Permissions of roles, isolation between organizations, and management of users.

use serde_json::{Value, json};
use switchboard_backends::catalog::CatalogEntry;
use switchboard_schemas::{
    ids::OrgId,
    user::{UserRole, UserState},
};

use super::{admin, invited, of, person, unthrottled};
use crate::{
    IngressConfig,
    testing::{World, agent_id, secret},
};

/// Roles in ascending order of their permissions.
const ROLES: [&str; 4] = ["viewer", "operator", "editor", "owner"];

/// A request and the index in [`ROLES`] of the least role that may send it; no role may send a
/// request with an index beyond the last.
type RoleRequest = (usize, &'static str, String, Value);

/// Returns requests of each permission for a person with this role and another user.
fn role_requests(role: &str, user: &str) -> Vec<RoleRequest> {
    let slug = format!("made-by-{role}");
    let agent = of(&format!("/agents/{}", agent_id()));
    let products = format!("{agent}/products");
    let user = of(&format!("/users/{user}"));
    let named = |slug: &str| json!({ "slug": slug, "name": role });
    let renamed = json!({ "name": role });
    let invited = json!({ "email": format!("new-{role}@example.org"), "role": "owner" });
    let get = |least, path: &str| (least, "GET", path.to_owned(), Value::Null);
    let post = |least, path: &str, body| (least, "POST", path.to_owned(), body);
    let patch = |least, path: &str, body| (least, "PATCH", path.to_owned(), body);
    vec![
        get(0, "/api/admin/organizations"),
        get(0, &of("")),
        get(0, &of("/agents")),
        get(0, &of("/keys")),
        get(0, &of("/conversations")),
        get(0, &of("/analytics")),
        get(0, &products),
        get(0, &format!("{products}/items")),
        (2, "PUT", products.clone(), json!([{ "title": "Tea" }])),
        (2, "DELETE", products, Value::Null),
        post(2, &of("/agents"), named(&slug)),
        patch(2, &agent, renamed.clone()),
        (2, "PUT", agent, named("shop")),
        post(2, &of("/providers"), json!({ "slug": slug })),
        post(2, &of("/teams"), named(&slug)),
        patch(2, &of(""), renamed.clone()),
        get(2, &of("/audit")),
        post(3, &of("/keys"), json!({ "name": slug })),
        get(3, &of("/users")),
        get(3, &user),
        patch(3, &user, renamed),
        post(3, &format!("{user}/link"), json!({})),
        post(3, &of("/users"), invited),
        post(4, "/api/admin/organizations", named(&slug)),
        post(4, "/api/admin/apply", json!({ "organizations": [] })),
        (4, "DELETE", of(""), Value::Null),
    ]
}

#[tokio::test]
async fn each_role_has_exactly_its_permissions() {
    let world = World::with(unthrottled()).await;
    let (_, keeper) = person(&world, "keeper@example.org", "owner").await;
    for (number, role) in ROLES.into_iter().enumerate() {
        let (browser, _) = person(&world, &format!("{role}@example.org"), role).await;
        for (least, method, path, body) in role_requests(role, &keeper) {
            let answer = browser.send(method, &path, body).await;
            if number < least {
                assert_eq!(
                    answer.problem(),
                    (403, "INSUFFICIENT_SCOPE".into()),
                    "{role} {method} {path}"
                );
            } else {
                assert!(
                    answer.status.is_success(),
                    "{role} {method} {path} {}",
                    answer.text
                );
            }
        }
    }
}

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
async fn other_organizations_are_invisible_to_every_role() {
    let world = World::with(unthrottled()).await;
    let other = json!({ "slug": "other", "name": "Canary" });
    let created = world
        .admin("POST", "/api/admin/organizations", &[], other)
        .await;
    assert_eq!(created.status, 201);
    let other = OrgId::derive(&secret(), "other");
    let (browser, _) = person(&world, "ada@example.org", "owner").await;
    let unknown = OrgId::derive(&secret(), "unknown");
    for (method, rest, body) in [
        ("GET", "", Value::Null),
        ("PATCH", "", json!({ "name": "Taken" })),
        ("DELETE", "", Value::Null),
        ("GET", "/agents", Value::Null),
        ("POST", "/agents", json!({ "slug": "a", "name": "A" })),
        ("POST", "/keys", json!({ "name": "k" })),
        ("GET", "/users", Value::Null),
        (
            "POST",
            "/users",
            json!({ "email": "eve@example.org", "role": "owner" }),
        ),
        ("GET", "/audit", Value::Null),
        ("GET", "/conversations", Value::Null),
        ("GET", "/analytics", Value::Null),
    ] {
        let answers = [other.as_str(), unknown.as_str()].map(|org| {
            let (browser, path, body) = (
                browser.clone(),
                format!("/api/admin/organizations/{org}{rest}"),
                body.clone(),
            );
            async move { browser.send(method, &path, body).await }
        });
        let [foreign, absent] = answers;
        let (foreign, absent) = (foreign.await, absent.await);
        let expected = if (method, rest) == ("DELETE", "") {
            (403, "INSUFFICIENT_SCOPE")
        } else {
            (404, "NOT_FOUND")
        };
        for answer in [&foreign, &absent] {
            assert_eq!(
                answer.problem(),
                (expected.0, expected.1.to_owned()),
                "{method} {rest}"
            );
        }
        assert!(!foreign.text.contains("Canary"));
    }
    let listed = browser
        .send("GET", "/api/admin/organizations", Value::Null)
        .await
        .json();
    assert_eq!(
        (&listed["total"], &listed["items"][0]["slug"]),
        (&json!(1), &json!("acme"))
    );
}

#[tokio::test]
async fn last_owner_stays_under_concurrent_demotions() {
    let world = World::with(unthrottled()).await;
    let second = world.second_ingress().await;
    let (_, ada) = person(&world, "ada@example.org", "owner").await;
    invited(&world, "never-came@example.org", "owner").await;
    let path = |id: &str| format!("/users/{id}");
    for change in [json!({ "role": "editor" }), json!({ "state": "disabled" })] {
        assert_eq!(
            admin(&world, "PATCH", &path(&ada), change).await.problem(),
            (409, "CONFLICT".into())
        );
    }
    assert_eq!(
        admin(&world, "DELETE", &path(&ada), Value::Null)
            .await
            .problem(),
        (409, "CONFLICT".into())
    );
    for round in 0..5 {
        let (_, bob) = person(&world, &format!("bob{round}@example.org"), "owner").await;
        let owners: Vec<String> = world
            .catalog_entries()
            .await
            .iter()
            .filter_map(|entry| match entry {
                CatalogEntry::User(account)
                    if account.user.role == UserRole::Owner
                        && account.user.state == UserState::Active =>
                {
                    Some(account.user.id.as_str().to_owned())
                }
                _ => None,
            })
            .collect();
        assert_eq!(owners.len(), 2, "with {bob}");
        let demote = json!({ "role": "viewer" });
        let (one, two) = (path(&owners[0]), path(&owners[1]));
        let (left, right) = tokio::join!(
            admin(&world, "PATCH", &one, demote.clone()),
            admin(&second, "PATCH", &two, demote.clone())
        );
        let mut statuses = [left.status.as_u16(), right.status.as_u16()];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409]);
    }
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
