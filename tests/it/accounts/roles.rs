//! Permissions of each role, and isolation between organizations.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Person, of};
use crate::support::{OrganizationDocument, SharedService};

#[tokio::test]
async fn each_role_has_exactly_its_permissions() {
    let service = SharedService::get().await;
    let organization = OrganizationDocument::new()
        .agent("shop", json!({}))
        .apply(&service)
        .await;
    let agent = of(&organization, &format!("/agents/{}", organization.shop()));
    for (number, role) in ["viewer", "operator", "editor", "owner"]
        .into_iter()
        .enumerate()
    {
        let person = Person::new(&service, &organization, role).await;
        let slug = format!("by-{role}");
        for (least, method, path, body) in [
            (0, Method::GET, of(&organization, "/agents"), None),
            (0, Method::GET, of(&organization, "/conversations"), None),
            (0, Method::GET, of(&organization, "/erasures"), None),
            (
                1,
                Method::GET,
                of(&organization, "/conversations/export"),
                None,
            ),
            (
                1,
                Method::POST,
                of(&organization, "/erasures"),
                Some(json!({"visitorId": role})),
            ),
            (2, Method::PATCH, agent.clone(), Some(json!({"name": role}))),
            (
                2,
                Method::POST,
                of(&organization, "/agents"),
                Some(json!({"slug": slug, "name": role})),
            ),
            (2, Method::GET, of(&organization, "/audit"), None),
            (
                3,
                Method::POST,
                of(&organization, "/keys"),
                Some(json!({"name": slug})),
            ),
            (3, Method::GET, of(&organization, "/users"), None),
            (
                3,
                Method::PATCH,
                of(&organization, &format!("/users/{}", person.id)),
                Some(json!({"name": "Me"})),
            ),
            (
                4,
                Method::POST,
                "/api/admin/organizations".to_owned(),
                Some(json!({"slug": slug, "name": role})),
            ),
            (
                4,
                Method::POST,
                "/api/admin/apply".to_owned(),
                Some(json!({"organizations": []})),
            ),
        ] {
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
    let service = SharedService::get().await;
    let organization = OrganizationDocument::new().apply(&service).await;
    let person = Person::new(&service, &organization, "editor").await;
    let rename = json!({"name": "Renamed"});
    assert_eq!(
        person
            .browser
            .send(Method::PATCH, &of(&organization, ""), Some(&rename))
            .await
            .status,
        200
    );
    let path = of(&organization, &format!("/users/{}", person.id));
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
            .send(Method::PATCH, &of(&organization, ""), Some(&rename))
            .await;
        answer.assert_problem(403, Some("INSUFFICIENT_SCOPE"));
    }
}

#[tokio::test]
async fn users_of_one_organization_see_nothing_of_another() {
    let service = SharedService::get().await;
    let document = || OrganizationDocument::new().agent("shop", json!({"instructions": "canary"}));
    let (ours, other) = (
        document().apply(&service).await,
        document().apply(&service).await,
    );
    let (owner, foreign) = (
        Person::new(&service, &ours, "owner").await,
        Person::new(&service, &other, "viewer").await,
    );
    let agent = format!("/agents/{}", other.shop());
    let user = format!("/users/{}", foreign.id);
    for (method, rest, body) in [
        (Method::GET, String::new(), None),
        (Method::GET, "/agents".to_owned(), None),
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
            .send(method, &of(&other, &rest), body.as_ref())
            .await;
        answer.assert_problem(404, Some("NOT_FOUND"));
        assert!(!answer.text.contains("canary"));
    }
    // Ids of the other organization are unknown under their own organization.
    for rest in [agent, user] {
        owner
            .browser
            .get(&of(&ours, &rest))
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
    let service = SharedService::get().await;
    let organization = OrganizationDocument::new().apply(&service).await;
    let owner = Person::new(&service, &organization, "owner").await;
    let path = of(&organization, &format!("/users/{}", owner.id));
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
    Person::new(&service, &organization, "owner").await;
    assert_eq!(
        owner.browser.send(Method::DELETE, &path, None).await.status,
        204
    );
    assert!(!owner.browser.is_signed_in().await);
}
