//! Cross-site requests of another page in a signed-in browser.

use reqwest::Method;
use serde_json::json;

use super::{PASS, PASSWORD, Person, SESSION, of};
use crate::support::{Client, OrganizationDocument, SharedService, send};

#[tokio::test]
async fn cross_site_requests_change_nothing() {
    let service = SharedService::get().await;
    let organization = OrganizationDocument::new()
        .agent("shop", json!({}))
        .apply(&service)
        .await;
    let person = Person::new(&service, &organization, "owner").await;
    let agent = of(&organization, &format!("/agents/{}", organization.shop()));
    let before = person.browser.get(&agent).await.json();
    let host = service.public_urls()[0].clone();
    let evil_port = format!("{host}1");
    for page in [
        &[("sec-fetch-site", "cross-site")][..],
        &[("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "cross-site"), ("origin", host.as_str())],
        &[("origin", "https://evil.example")],
        &[("origin", "null")],
        &[("origin", evil_port.as_str())],
        &[],
    ] {
        for (method, path, body) in [
            (
                Method::POST,
                of(&organization, "/agents"),
                Some(json!({"slug": "evil", "name": "Evil"})),
            ),
            (Method::PATCH, agent.clone(), Some(json!({"name": "Evil"}))),
            (
                Method::PUT,
                agent.clone(),
                Some(json!({"slug": "shop", "name": "Evil"})),
            ),
            (Method::DELETE, agent.clone(), None),
            (
                Method::POST,
                of(&organization, "/users"),
                Some(json!({"email": "e@evil.example", "role": "owner"})),
            ),
            (
                Method::POST,
                PASSWORD.to_owned(),
                Some(json!({"currentPassword": PASS, "newPassword": "evil evil evil"})),
            ),
            (
                Method::POST,
                SESSION.to_owned(),
                Some(json!({"email": person.email, "password": PASS})),
            ),
            (Method::DELETE, SESSION.to_owned(), None),
        ] {
            let answer = person
                .browser
                .send_from(page, method.clone(), &path, body.as_ref())
                .await;
            answer.assert_problem(403, Some("DOMAIN_NOT_ALLOWED"));
        }
    }
    for form in ["text/plain", "application/x-www-form-urlencoded"] {
        let request = Client::new(&host).request(Method::POST, &of(&organization, "/agents"));
        let request = request
            .header("cookie", &person.browser.cookie)
            .header("sec-fetch-site", "same-origin");
        let answer = send(
            request
                .header("content-type", form)
                .body(r#"{"slug":"evil","name":"Evil"}"#),
        )
        .await;
        answer.assert_problem(415, Some("UNSUPPORTED_MEDIA_TYPE"));
    }
    assert_eq!(person.browser.get(&agent).await.json(), before);
    assert!(person.browser.is_signed_in().await);
    let ours = [("origin", host.as_str())];
    let answer = person
        .browser
        .send_from(&ours, Method::PATCH, &agent, Some(&json!({"name": "Ours"})))
        .await;
    assert_eq!(
        answer.status, 200,
        "a browser without Sec-Fetch-Site is known by its origin: {}",
        answer.text
    );
}
