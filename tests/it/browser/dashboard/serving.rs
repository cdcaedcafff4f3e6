//! Delivery of the dashboard files and their content security policy.

use serde_json::Value;

use super::Person;
use crate::support::{Client, SharedService, TestService, shop_saying};

/// Returns the path of the first script of a page.
fn script_of(page: &str) -> String {
    page.split("src=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn every_dashboard_url_serves_the_page_except_file_names() {
    let service = SharedService::get().await;
    for url in service.admin_urls() {
        let client = Client::new(&url);
        for path in [
            "/dashboard",
            "/dashboard/agents/agt_x?tab=general",
            "/dashboard/link",
        ] {
            let page = client.get(path).await;
            assert_eq!(page.status, 200, "{path}");
            assert_eq!(
                page.header("content-type"),
                Some("text/html; charset=utf-8")
            );
            assert_eq!(page.header("cache-control"), Some("no-store"));
        }
        client
            .get("/dashboard/assets/nothing.js")
            .await
            .assert_problem(404, Some("NOT_FOUND"));
        client
            .get("/dashboards")
            .await
            .assert_problem(404, Some("NOT_FOUND"));
        client
            .post("/dashboard", &Value::Null)
            .await
            .assert_problem(405, Some("METHOD_NOT_ALLOWED"));
    }
}

#[tokio::test]
async fn assets_are_immutable_and_compressed_on_request() {
    let service = SharedService::get().await;
    let client = Client::new(&service.admin_urls()[0]);
    let path = script_of(&client.get("/dashboard").await.text);
    let plain = client.get(&path).await;
    assert_eq!(
        (plain.status, plain.header("content-encoding")),
        (200, None)
    );
    assert_eq!(
        plain.header("content-type"),
        Some("text/javascript; charset=utf-8")
    );
    assert_eq!(
        plain.header("cache-control"),
        Some("public, max-age=31536000, immutable")
    );
    let request = client
        .request(reqwest::Method::GET, &path)
        .header("accept-encoding", "gzip");
    let answer = request.send().await.unwrap();
    assert_eq!(answer.headers()["content-encoding"], "gzip");
    assert_eq!(answer.headers()["vary"], "accept-encoding");
    let compressed = answer.bytes().await.unwrap();
    assert!(
        compressed[..2] == [0x1f, 0x8b] && compressed.len() < plain.text.len() / 2,
        "{}",
        compressed.len()
    );
}

#[tokio::test]
async fn csp_forbids_inline_code_and_never_repeats_a_nonce() {
    let service = SharedService::get().await;
    let client = Client::new(&service.admin_urls()[0]);
    let (first, second) = (
        client.get("/dashboard").await,
        client.get("/dashboard").await,
    );
    let policy = first.header("content-security-policy").unwrap();
    assert!(
        policy.contains("default-src 'none'; script-src 'self'; style-src 'self' 'nonce-"),
        "{policy}"
    );
    assert!(
        policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
    assert_ne!(policy, second.header("content-security-policy").unwrap());
    let nonce = policy
        .split("'nonce-")
        .nth(1)
        .unwrap()
        .split('\'')
        .next()
        .unwrap();
    assert!(nonce.len() == 32 && first.text.contains(nonce), "{nonce}");
    assert!(
        !first.text.contains("<style") && !first.text.contains("style="),
        "{}",
        first.text
    );
}

#[tokio::test]
async fn dashboard_on_the_admin_port_reaches_the_public_api() {
    let service = TestService::start_with_admin_port().await;
    for url in service.public_urls() {
        Client::new(&url)
            .get("/dashboard")
            .await
            .assert_problem(404, Some("NOT_FOUND"));
    }
    let page = Client::new(&service.admin_urls()[0])
        .get("/dashboard")
        .await;
    let policy = page.header("content-security-policy").unwrap();
    let public = page
        .text
        .split("name=\"public-api\" content=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    assert!(
        public.starts_with("http://") && policy.contains(&format!("connect-src 'self' {public};")),
        "{policy}"
    );
}

#[tokio::test]
async fn preview_page_has_an_opaque_origin_and_no_network_access() {
    let service = SharedService::get().await;
    let page = Client::new(&service.admin_urls()[0])
        .get("/dashboard/preview")
        .await;
    assert_eq!(
        (page.status, page.header("content-type")),
        (200, Some("text/html; charset=utf-8"))
    );
    let policy = page.header("content-security-policy").unwrap();
    let parts: Vec<_> = policy.split(';').map(str::trim).collect();
    assert!(
        parts.contains(&"default-src 'none'") && parts.contains(&"sandbox allow-scripts"),
        "{policy}"
    );
    assert!(
        parts.contains(&"frame-ancestors 'self'") && !policy.contains("connect-src"),
        "{policy}"
    );
}

#[tokio::test]
async fn page_works_without_csp_violations() {
    let organization = shop_saying("ok").await;
    let person = Person::owner_at(&organization, "/agents").await;
    // A dialog is the hard case: it locks scrolling with its own style element.
    person
        .does("await press('New agent'); await field('Name'); await press('Cancel');")
        .await;
    person
        .goes_to(&format!("/agents/{}?tab=appearance", organization.shop()))
        .await;
    person.does("await field('Corner radius');").await;
    let blocked = person
        .does("return [...document.querySelectorAll('style')].filter(style => style.textContent && !style.sheet?.cssRules.length).length;")
        .await;
    assert_eq!(blocked, 0);
    let complaints = person.browser.console().await;
    let complaints: Vec<_> = complaints
        .iter()
        .filter(|line| line.contains("Content Security Policy"))
        .collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
}
