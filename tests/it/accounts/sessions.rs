//! Ends of dashboard sessions: expiry, sign-out and account changes, on every ingress.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use super::{Browser, PASS, PASSWORD, Person, SESSION};
use crate::support::{
    OrganizationDocument, PATIENCE, PROMISED, TestService, eventually, shop_with_settings,
};

const NEW_PASS: &str = "another correct horse";

async fn refused_everywhere(service: &TestService, browser: &Browser) {
    for url in service.public_urls() {
        let browser = browser.moved_to(&url);
        eventually("the session is refused", PROMISED, async || {
            (!browser.is_signed_in().await).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn session_has_an_idle_and_an_absolute_expiry() {
    let times = [
        ("SWITCHBOARD__INGRESS__SESSION_IDLE_MS", "8000"),
        ("SWITCHBOARD__INGRESS__SESSION_LIFETIME_MS", "24000"),
    ];
    let service = TestService::start_with(&times).await;
    let organization = OrganizationDocument::new().apply(&service).await;
    let (unused, used) = (
        Person::new(&service, &organization, "owner").await,
        Person::new(&service, &organization, "viewer").await,
    );
    let began = tokio::time::Instant::now();
    assert!(unused.browser.is_signed_in().await);
    // One is used continuously and stays; the other is unused until it expires.
    while began.elapsed() < Duration::from_secs(10) {
        assert!(
            used.browser.is_signed_in().await,
            "after {:?}",
            began.elapsed()
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    refused_everywhere(&service, &unused.browser).await;
    assert!(used.browser.is_signed_in().await);
    eventually("a session in use ends too", PATIENCE, async || {
        (!used.browser.is_signed_in().await).then_some(())
    })
    .await;
    assert!(
        began.elapsed() > Duration::from_secs(18),
        "{:?}",
        began.elapsed()
    );
    refused_everywhere(&service, &used.browser).await;
}

#[tokio::test]
async fn sign_out_ends_the_session_on_every_ingress() {
    let organization = OrganizationDocument::new().apply_to_shared().await;
    let service = organization.service();
    let person = Person::new(service, &organization, "owner").await;
    let elsewhere = person
        .browser
        .moved_to(service.public_urls().last().unwrap());
    assert!(elsewhere.is_signed_in().await);
    let answer = person.browser.send(Method::DELETE, SESSION, None).await;
    answer.assert_status(204);
    let removed = answer.headers.get_all("set-cookie");
    let is_removal = |cookie: &str| cookie.starts_with("switchboard=; ");
    assert!(
        removed
            .iter()
            .any(|cookie| is_removal(cookie.to_str().unwrap())),
        "{:?}",
        answer.headers
    );
    refused_everywhere(service, &person.browser).await;
    let again = person.browser.send(Method::DELETE, SESSION, None).await;
    again.assert_status(204);
}

#[tokio::test]
async fn account_changes_end_all_sessions_on_every_ingress() {
    let organization = OrganizationDocument::new().apply_to_shared().await;
    let service = organization.service();
    let admin = service.admin();
    let last = service.public_urls().last().unwrap().clone();
    for way in ["password", "disabled", "removed"] {
        let mut person = Person::new(service, &organization, "viewer").await;
        let mut second = Browser::at(&last);
        assert_eq!(second.sign_in(&person.login, PASS).await.status, 200);
        let old = person.browser.clone();
        let path = organization.admin_path(&format!("/users/{}", person.id));
        let answer = match way {
            "password" => {
                let mut body = json!({"currentPassword": "wrong", "newPassword": NEW_PASS});
                let refused = person.browser.keep(PASSWORD, &body).await;
                assert_eq!(refused.status, 400, "{}", refused.text);
                body["currentPassword"] = json!(PASS);
                person.browser.keep(PASSWORD, &body).await
            }
            "disabled" => admin.patch(&path, &json!({"state": "disabled"})).await,
            _ => admin.delete(&path).await,
        };
        assert!(answer.status < 300, "{way}: {}", answer.text);
        refused_everywhere(service, &old).await;
        refused_everywhere(service, &second).await;
        assert_eq!(
            person.browser.is_signed_in().await,
            way == "password",
            "who set the password stays in"
        );
        assert_eq!(
            Browser::at(&last).sign_in(&person.login, PASS).await.status,
            401,
            "{way}"
        );
        match way {
            "password" => {
                let answer = second.sign_in(&person.login, NEW_PASS).await;
                assert_eq!(answer.status, 200, "{}", answer.text);
            }
            "disabled" => {
                let activated = admin.patch(&path, &json!({"state": "active"})).await;
                assert_eq!(activated.json()["state"], "active");
                assert!(!old.is_signed_in().await, "an ended session came back");
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn sessions_and_api_keys_are_not_interchangeable() {
    let organization = shop_with_settings(json!({})).await;
    let service = organization.service();
    let person = Person::new(service, &organization, "owner").await;
    let token = person.browser.cookie.split_once('=').unwrap().1;
    let config = organization.path("");
    let with_token = service.client().with_key(token);
    with_token
        .get(&config)
        .await
        .assert_problem(401, Some("INVALID_API_KEY"));
    with_token
        .get(&organization.admin_path("/agents"))
        .await
        .assert_problem(401, Some("INVALID_API_KEY"));
    with_token
        .get(SESSION)
        .await
        .assert_problem(401, Some("MISSING_API_KEY"));
    person
        .browser
        .get(&config)
        .await
        .assert_problem(401, Some("MISSING_API_KEY"));
    let key = organization.key_text("all");
    let as_cookie = Browser {
        cookie: format!("switchboard={key}; __Host-switchboard={key}"),
        ..person.browser.clone()
    };
    as_cookie.get(SESSION).await.assert_problem(401, None);
    as_cookie
        .get(&organization.admin_path("/agents"))
        .await
        .assert_problem(401, None);
    organization
        .client()
        .get(SESSION)
        .await
        .assert_problem(401, Some("MISSING_API_KEY"));
    assert!(!service.logs().contains(token), "no session is in a log");
}
