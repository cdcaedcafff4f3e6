//! Permissions of each role, and isolation between organizations.

use reqwest::Method;
use serde_json::{Value, json};

use super::Person;
use crate::support::{
    Organization, OrganizationDocument, SharedService, shop_with_settings, unique,
};

/// Roles in ascending order of their permissions.
const ROLES: [&str; 4] = ["viewer", "operator", "editor", "owner"];

/// A request and the index in [`ROLES`] of the least role that may send it; no role may send a
/// request with an index beyond the last.
type RoleRequest = (usize, Method, String, Option<Value>);

/// Returns one request of each permission as the given person with this role.
fn role_requests(organization: &Organization, person: &Person, role: &str) -> Vec<RoleRequest> {
    let path = |rest: &str| organization.admin_path(rest);
    let agent = path(&format!("/agents/{}", organization.shop()));
    let user = path(&format!("/users/{}", person.id));
    let products = format!("{agent}/products");
    let (organizations, apply) = ("/api/admin/organizations", "/api/admin/apply");
    let slug = format!("by-{role}");
    let named = json!({"slug": slug, "name": role});
    let renamed = json!({"name": role});
    let invited = json!({"email": format!("{}@people.example", unique("new-")), "role": "owner"});
    let get = |least, rest: &str| (least, Method::GET, path(rest), None);
    let post = |least, path: String, body: Value| (least, Method::POST, path, Some(body));
    let patch = |least, path: String, body: Value| (least, Method::PATCH, path, Some(body));
    let put = |path: &str, body: Value| (2, Method::PUT, path.to_owned(), Some(body));
    vec![
        (0, Method::GET, organizations.to_owned(), None),
        (0, Method::GET, products.clone(), None),
        (0, Method::GET, format!("{products}/items"), None),
        get(0, ""),
        get(0, "/agents"),
        get(0, "/keys"),
        get(0, "/conversations"),
        get(0, "/analytics"),
        get(0, "/erasures"),
        get(1, "/conversations/export"),
        post(1, path("/erasures"), json!({"visitorId": role})),
        put(&products, json!([{"title": "Tea"}])),
        (2, Method::DELETE, products, None),
        patch(2, agent.clone(), renamed.clone()),
        put(&agent, json!({"slug": "shop", "name": role})),
        patch(2, path(""), renamed),
        post(2, path("/agents"), named.clone()),
        post(2, path("/providers"), json!({"slug": slug})),
        post(2, path("/teams"), named.clone()),
        get(2, "/audit"),
        post(3, path("/keys"), json!({"name": slug})),
        get(3, "/users"),
        (3, Method::GET, user.clone(), None),
        patch(3, user.clone(), json!({"name": "Me"})),
        post(3, format!("{user}/link"), json!({})),
        post(3, path("/users"), invited),
        post(4, organizations.to_owned(), named),
        post(4, apply.to_owned(), json!({"organizations": []})),
        (4, Method::DELETE, path(""), None),
    ]
}

#[tokio::test]
async fn each_role_has_exactly_its_permissions() {
    let organization = shop_with_settings(json!({})).await;
    for (number, role) in ROLES.into_iter().enumerate() {
        let person = Person::new(organization.service(), &organization, role).await;
        for (least, method, path, body) in role_requests(&organization, &person, role) {
            let answer = person
                .browser
                .send(method.clone(), &path, body.as_ref())
                .await;
            if number < least {
                answer.assert_problem(403, Some("INSUFFICIENT_SCOPE"));
            } else {
                assert!(
                    answer.status < 300,
                    "{role} {method} {path}: {}",
                    answer.text
                );
            }
        }
    }
}

#[tokio::test]
async fn revoked_role_is_gone_with_the_next_request() {
    let organization = OrganizationDocument::new().apply_to_shared().await;
    let service = organization.service();
    let person = Person::new(service, &organization, "editor").await;
    let rename = json!({"name": "Renamed"});
    assert_eq!(
        person
            .browser
            .send(Method::PATCH, &organization.admin_path(""), Some(&rename))
            .await
            .status,
        200
    );
    let path = organization.admin_path(&format!("/users/{}", person.id));
    assert_eq!(
        service
            .admin()
            .patch(&path, &json!({"role": "viewer"}))
            .await
            .status,
        200
    );
    for url in service.public_urls() {
        let browser = person.browser.moved_to(&url);
        let answer = browser
            .send(Method::PATCH, &organization.admin_path(""), Some(&rename))
            .await;
        answer.assert_problem(403, Some("INSUFFICIENT_SCOPE"));
    }
}

#[tokio::test]
async fn users_of_one_organization_see_nothing_of_another() {
    let service = SharedService::get().await;
    let document = || OrganizationDocument::new().shop(json!({"instructions": "canary"}));
    let (ours, other) = (
        document().apply_to_shared().await,
        document().apply_to_shared().await,
    );
    let (owner, foreign) = (
        Person::new(&service, &ours, "owner").await,
        Person::new(&service, &other, "viewer").await,
    );
    let agent = format!("/agents/{}", other.shop());
    let user = format!("/users/{}", foreign.id);
    for (method, rest, body) in [
        (Method::GET, String::new(), None),
        (Method::PATCH, String::new(), Some(json!({"name": "Taken"}))),
        (Method::GET, "/analytics".to_owned(), None),
        (Method::GET, "/agents".to_owned(), None),
        (
            Method::POST,
            "/agents".to_owned(),
            Some(json!({"slug": "a", "name": "A"})),
        ),
        (Method::GET, agent.clone(), None),
        (Method::PATCH, agent.clone(), Some(json!({"name": "Taken"}))),
        (Method::DELETE, agent.clone(), None),
        (Method::GET, "/keys".to_owned(), None),
        (Method::POST, "/keys".to_owned(), Some(json!({"name": "k"}))),
        (Method::GET, "/users".to_owned(), None),
        (
            Method::POST,
            "/users".to_owned(),
            Some(json!({"email": "spy@people.example", "role": "owner"})),
        ),
        (Method::PATCH, user.clone(), Some(json!({"role": "owner"}))),
        (Method::POST, format!("{user}/link"), Some(json!({}))),
        (Method::GET, "/audit".to_owned(), None),
        (Method::GET, "/conversations".to_owned(), None),
        (Method::GET, "/conversations/export".to_owned(), None),
        (
            Method::POST,
            "/erasures".to_owned(),
            Some(json!({"visitorId": "ada"})),
        ),
    ] {
        let answer = owner
            .browser
            .send(method, &other.admin_path(&rest), body.as_ref())
            .await;
        answer.assert_problem(404, Some("NOT_FOUND"));
        assert!(!answer.text.contains("canary"));
    }
    // Ids of the other organization are unknown under their own organization.
    for rest in [agent, user] {
        owner
            .browser
            .get(&ours.admin_path(&rest))
            .await
            .assert_problem(404, Some("NOT_FOUND"));
    }
    let listed = owner.browser.get("/api/admin/organizations").await.json();
    assert_eq!(
        (&listed["total"], &listed["items"][0]["id"]),
        (&json!(1), &Value::from(ours.id.as_str()))
    );
}

#[tokio::test]
async fn last_owner_cannot_be_removed() {
    let organization = OrganizationDocument::new().apply_to_shared().await;
    let service = organization.service();
    let owner = Person::new(service, &organization, "owner").await;
    let path = organization.admin_path(&format!("/users/{}", owner.id));
    for (method, body) in [
        (Method::PATCH, Some(json!({"role": "viewer"}))),
        (Method::PATCH, Some(json!({"state": "disabled"}))),
        (Method::DELETE, None),
    ] {
        owner
            .browser
            .send(method, &path, body.as_ref())
            .await
            .assert_problem(409, Some("CONFLICT"));
    }
    Person::new(service, &organization, "owner").await;
    assert_eq!(
        owner.browser.send(Method::DELETE, &path, None).await.status,
        204
    );
    assert!(!owner.browser.is_signed_in().await);
}

#[tokio::test]
async fn last_owner_stays_under_concurrent_demotions() {
    let organization = OrganizationDocument::new().apply_to_shared().await;
    let service = organization.service();
    let path = |id: &str| organization.admin_path(&format!("/users/{id}"));
    let demoted = json!({"role": "viewer"});
    let mut owner = Person::new(service, &organization, "owner").await.id;
    for _ in 0..5 {
        let other = Person::new(service, &organization, "owner").await.id;
        // Each client talks to another ingress.
        let (one, two) = (service.admin(), service.admin());
        let (left, right) = (path(&owner), path(&other));
        let (left, right) = tokio::join!(one.patch(&left, &demoted), two.patch(&right, &demoted));
        let mut statuses = [left.status, right.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409], "{} {}", left.text, right.text);
        if left.status == 200 {
            owner = other;
        }
    }
}

#[tokio::test]
async fn editor_meets_the_ceilings_of_the_operator() {
    let organization = shop_with_settings(json!({})).await;
    let person = Person::new(organization.service(), &organization, "editor").await;
    let path = organization.admin_path(&format!("/agents/{}", organization.shop()));
    for (change, param) in [
        (json!({"maxOutputTokens": 32_769}), "maxOutputTokens"),
        (
            json!({"limits": {"rateLimitPerMinute": 6001}}),
            "limits.rateLimitPerMinute",
        ),
    ] {
        let refused = person.browser.send(Method::PATCH, &path, Some(&change));
        let problem = refused
            .await
            .assert_problem(400, Some("INVALID_REQUEST_DATA"));
        assert_eq!(problem["param"], param);
        let admin = organization.service().admin();
        assert_eq!(
            admin.patch(&path, &change).await.status,
            200,
            "the operator"
        );
    }
    // The operator's values stay.
    let rename = json!({"name": "Renamed"});
    let renamed = person.browser.send(Method::PATCH, &path, Some(&rename));
    assert_eq!(renamed.await.status, 200);
}
