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
    testing::{ADMIN_TOKEN, World, agent_id, secret},
};

#[tokio::test]
async fn each_role_may_over_http_what_the_matrix_says() {
    let world = World::with(unthrottled()).await;
    let (_, keeper) = person(&world, "keeper@example.org", "owner").await;
    let agent = of(&format!("/agents/{}", agent_id()));
    for (number, role) in ["viewer", "operator", "editor", "owner"]
        .into_iter()
        .enumerate()
    {
        let (browser, _) = person(&world, &format!("{role}@example.org"), role).await;
        let slug = format!("made-by-{role}");
        for (least, method, path, body) in [
            (0, "GET", "/api/admin/organizations".to_owned(), Value::Null),
            (0, "GET", of(""), Value::Null),
            (0, "GET", of("/agents"), Value::Null),
            (0, "GET", of("/keys"), Value::Null),
            (0, "GET", of("/conversations"), Value::Null),
            (0, "GET", of("/analytics"), Value::Null),
            (0, "GET", format!("{agent}/products"), Value::Null),
            (0, "GET", format!("{agent}/products/items"), Value::Null),
            (
                2,
                "PUT",
                format!("{agent}/products"),
                json!([{ "title": "Tea" }]),
            ),
            (2, "DELETE", format!("{agent}/products"), Value::Null),
            (
                2,
                "POST",
                of("/agents"),
                json!({ "slug": slug, "name": role }),
            ),
            (2, "PATCH", agent.clone(), json!({ "name": role })),
            (
                2,
                "PUT",
                agent.clone(),
                json!({ "slug": "shop", "name": role }),
            ),
            (2, "POST", of("/providers"), json!({ "slug": slug })),
            (
                2,
                "POST",
                of("/teams"),
                json!({ "slug": slug, "name": role }),
            ),
            (2, "PATCH", of(""), json!({ "name": role })),
            (2, "GET", of("/audit"), Value::Null),
            (3, "POST", of("/keys"), json!({ "name": slug })),
            (3, "GET", of("/users"), Value::Null),
            (3, "GET", of(&format!("/users/{keeper}")), Value::Null),
            (
                3,
                "PATCH",
                of(&format!("/users/{keeper}")),
                json!({ "name": role }),
            ),
            (3, "POST", of(&format!("/users/{keeper}/link")), json!({})),
            (
                3,
                "POST",
                of("/users"),
                json!({ "email": format!("new-{role}@example.org"), "role": "owner" }),
            ),
            (
                4,
                "POST",
                "/api/admin/organizations".to_owned(),
                json!({ "slug": slug, "name": role }),
            ),
            (
                4,
                "POST",
                "/api/admin/apply".to_owned(),
                json!({ "organizations": [] }),
            ),
            (4, "DELETE", of(""), Value::Null),
        ] {
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
            // Without a message: whoever is let in is told so.
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
async fn another_organization_is_not_there_for_anybody_of_this_one() {
    let world = World::with(unthrottled()).await;
    let bearer = format!("Bearer {ADMIN_TOKEN}");
    let headers = [("authorization", bearer.as_str())];
    let other = json!({ "slug": "other", "name": "Canary" }).to_string();
    assert_eq!(
        world
            .send_with("POST", "/api/admin/organizations", &headers, other)
            .await
            .status,
        201
    );
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
async fn last_owner_stays_even_if_two_demote_each_other_at_once() {
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
async fn users_are_made_read_changed_and_removed_with_the_usual_care() {
    let world = World::with(unthrottled()).await;
    person(&world, "keeper@example.org", "owner").await;
    let user = invited(&world, "ada@example.org", "viewer").await;
    let path = format!("/users/{}", user["id"].as_str().unwrap());
    for (body, param) in [
        (json!({ "role": "viewer" }), "email"),
        (json!({ "email": "b@example.org" }), "role"),
        (json!({ "email": "nobody", "role": "viewer" }), "email"),
        (json!({ "email": "b@example.org", "role": "god" }), "role"),
        (
            json!({ "email": "b@example.org", "role": "viewer", "password": "x" }),
            "password",
        ),
        (
            json!({ "email": "b@example.org", "role": "viewer", "name": "\u{7}" }),
            "name",
        ),
    ] {
        let answer = admin(&world, "POST", "/users", body).await;
        assert_eq!(
            (answer.problem().0, &answer.json()["param"]),
            (400, &json!(param)),
            "{}",
            answer.text
        );
    }
    let again = admin(
        &world,
        "POST",
        "/users",
        json!({ "email": "ADA@example.org", "role": "owner" }),
    )
    .await;
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
    assert_eq!(
        admin(&world, "PATCH", &path, json!({ "state": "active" }))
            .await
            .status,
        400,
        "only the link does that"
    );
    let changed = admin(
        &world,
        "PATCH",
        &path,
        json!({ "name": "Ada", "version": read["version"] }),
    )
    .await
    .json();
    assert_eq!(
        (&changed["name"], &changed["role"]),
        (&json!("Ada"), &json!("viewer"))
    );
    let listed = admin(&world, "GET", "/users", Value::Null).await.json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 2);
    assert_eq!(
        admin(&world, "DELETE", &path, Value::Null).await.status,
        204
    );
    assert_eq!(admin(&world, "GET", &path, Value::Null).await.status, 404);
    assert_eq!(
        admin(&world, "DELETE", &path, Value::Null).await.status,
        404
    );
}
