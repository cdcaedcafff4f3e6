//! API key rules of the contract beyond the specification.

use reqwest::Method;
use serde_json::json;

use crate::support::{
    ADMIN_TOKEN, Answer, Client, Organization, OrganizationDocument, Script, TestService, send,
    shop_saying,
};

async fn read(client: &Client, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = client.request(Method::GET, path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    send(request).await
}

#[tokio::test]
async fn authorization_scheme_is_case_insensitive() {
    let organization = shop_saying("ok").await;
    let path = organization.path("");
    for scheme in ["Bearer", "bearer", "BEARER", "bEaReR"] {
        let authorization = format!("{scheme} {}", organization.key_text("all"));
        let answer = read(
            &organization.service().client(),
            &path,
            &[("authorization", &authorization)],
        )
        .await;
        assert_eq!(answer.status, 200, "{scheme}");
    }
}

#[tokio::test]
async fn both_headers_must_carry_the_same_key() {
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .key("second", &[])
        .apply_to_shared()
        .await;
    let path = organization.path("");
    let authorization = format!("Bearer {}", organization.key_text("all"));
    let both = async |key: &str| {
        let headers = [
            ("x-api-key", organization.key_text(key)),
            ("authorization", authorization.as_str()),
        ];
        read(&organization.service().client(), &path, &headers).await
    };
    assert_eq!(both("all").await.status, 200);
    both("second")
        .await
        .assert_problem(401, Some("INVALID_API_KEY"));
}

#[tokio::test]
async fn checksum_is_necessary_and_not_sufficient() {
    let organization = shop_saying("ok").await;
    let path = organization.path("");
    let key = organization.key_text("all");
    // Two swapped characters, and a key of zeros with a valid checksum that was never issued.
    let exchanged: String = key
        .chars()
        .take(39)
        .chain(key.chars().skip(39).collect::<Vec<_>>().into_iter().rev())
        .collect();
    for wrong in [
        exchanged.as_str(),
        "svc_live_000000000000000000000000002AYiR0",
        "x",
        "svc_live_",
        &key.to_lowercase(),
        &key.replacen("svc_live_", "", 1),
    ] {
        if wrong != key {
            let client = organization.service().client().with_key(wrong);
            let answer = client.get(&path).await;
            answer.assert_problem(401, Some("INVALID_API_KEY"));
            assert!(
                wrong.len() < 12 || !answer.text.contains(wrong),
                "a key is never echoed"
            );
        }
    }
}

#[tokio::test]
async fn message_routes_need_the_chat_scope() {
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .key("chat", &["chat"])
        .key("config", &["config"])
        .key("conversations", &["conversations"])
        .apply_to_shared()
        .await;
    let reply = organization.chat("s", "hi").await;
    let message = format!(
        "/api/public/messages/{}",
        reply.required_header("x-message-id")
    );
    let routes = [
        (Method::GET, message.clone()),
        (Method::GET, format!("{message}/stream")),
        (Method::POST, format!("{message}/cancel")),
    ];
    for (method, path) in routes {
        let ask = async |client: Client| send(client.request(method.clone(), &path)).await;
        ask(organization.service().client())
            .await
            .assert_problem(401, Some("MISSING_API_KEY"));
        assert_eq!(
            ask(organization.client_with("chat")).await.status,
            200,
            "{path}"
        );
        for scope in ["config", "conversations"] {
            ask(organization.client_with(scope))
                .await
                .assert_problem(403, Some("INSUFFICIENT_SCOPE"));
        }
    }
}

#[tokio::test]
async fn deleted_key_can_be_recreated_with_another_value() {
    let organization = shop_saying("ok").await;
    let service = organization.service();
    let id = organization.answer["organizations"][0]["keys"][0]["id"]
        .as_str()
        .unwrap();
    let path = organization.admin_path(&format!("/keys/{id}"));
    let delete =
        async |client: Client, path: &str| send(client.request(Method::DELETE, path)).await;
    assert_eq!(
        delete(organization.client(), &path).await.status,
        401,
        "a key does not administer"
    );
    let foreign = format!("/api/admin/organizations/org_{}/keys/{id}", "0".repeat(26));
    delete(service.admin(), &foreign)
        .await
        .assert_problem(404, Some("NOT_FOUND"));
    assert_eq!(delete(service.admin(), &path).await.status, 204);
    delete(service.admin(), &path)
        .await
        .assert_problem(404, Some("NOT_FOUND"));
    let again = service
        .admin()
        .post("/api/admin/apply", &organization.document)
        .await
        .json();
    let value = again["organizations"][0]["keys"][0]["value"]
        .as_str()
        .expect("a new key shows its value");
    assert_ne!(value, organization.key_text("all"));
    let agent = organization.path("");
    assert_eq!(
        service.client().with_key(value).get(&agent).await.status,
        200
    );
}

#[tokio::test]
async fn admin_api_needs_the_admin_token_and_accepts_no_api_key() {
    let organization = shop_saying("ok").await;
    let service = organization.service();
    let public_key = format!("Bearer {}", organization.key_text("all"));
    let token = format!("Bearer {ADMIN_TOKEN}x");
    let agent = organization.admin_path(&format!("/agents/{}", organization.shop()));
    for (method, path) in [
        (Method::POST, "/api/admin/apply".to_owned()),
        (Method::GET, "/api/admin/organizations".to_owned()),
        (Method::POST, "/api/admin/organizations".to_owned()),
        (Method::GET, organization.admin_path("")),
        (Method::DELETE, organization.admin_path("")),
        (Method::GET, organization.admin_path("/agents")),
        (Method::POST, organization.admin_path("/keys")),
        (Method::PATCH, agent.clone()),
        (Method::PUT, agent.clone()),
        (Method::DELETE, agent.clone()),
        (Method::PUT, format!("{agent}/products")),
        (Method::GET, format!("{agent}/products/items")),
    ] {
        for (header, code) in [
            ("", "MISSING_API_KEY"),
            ("Bearer", "MISSING_API_KEY"),
            (&format!("Basic {ADMIN_TOKEN}"), "MISSING_API_KEY"),
            ("Bearer wrong", "INVALID_API_KEY"),
            (&token, "INVALID_API_KEY"),
            (&public_key, "INVALID_API_KEY"),
        ] {
            let request = service.client().request(method.clone(), &path);
            let request = request.header("authorization", header).json(&json!({}));
            let answer = send(request).await;
            answer.assert_problem(401, Some(code));
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        }
    }
}

#[tokio::test]
async fn data_directory_contains_no_plaintext_key() {
    // A separate service, because files of the shared one change while they are read.
    let service = TestService::start_as(crate::support::Profile::Embedded, &[]).await;
    let organization =
        Organization::with_agent(&service, Script::says("a reply to be found")).await;
    organization.chat("s", "hi").await.complete();
    let mut all = vec![];
    for entry in std::fs::read_dir(service.data_directory())
        .unwrap()
        .flatten()
        .filter(|entry| entry.path().is_file())
    {
        all.extend(std::fs::read(entry.path()).unwrap());
    }
    let holds = |text: &str| {
        all.windows(text.len())
            .any(|window| window == text.as_bytes())
    };
    assert!(holds("a reply to be found"), "what was read is the data");
    let random = organization
        .key_text("all")
        .strip_prefix("svc_live_")
        .unwrap();
    assert!(!holds(random) && !holds("sk-test"));
}
