//! Invalid requests and their error codes.

use reqwest::Method;
use serde_json::json;

use crate::support::{Answer, Client, Organization, shop_saying, shop_with_settings};

async fn post_raw(
    client: &Client,
    path: &str,
    content_type: Option<&str>,
    body: impl Into<reqwest::Body>,
) -> Answer {
    let mut request = client.request(Method::POST, path).body(body);
    if let Some(content_type) = content_type {
        request = request.header("content-type", content_type);
    }
    Answer::read(request.send().await.unwrap()).await.unwrap()
}

async fn shop() -> (Organization, Client, String) {
    let organization = shop_saying("ok").await;
    let path = organization.path("/chat");
    let client = organization.client();
    (organization, client, path)
}

#[tokio::test]
async fn empty_ids_have_their_own_error_codes() {
    let (organization, client, _) = shop().await;
    let agent = organization.shop();
    let table = [
        (
            Method::POST,
            "/api/public/agents//chat".to_owned(),
            "INVALID_AGENT_ID",
        ),
        (
            Method::POST,
            "/api/public/agents/%20/chat".to_owned(),
            "INVALID_AGENT_ID",
        ),
        (
            Method::GET,
            "/api/public/agents/".to_owned(),
            "INVALID_AGENT_ID",
        ),
        (
            Method::GET,
            "/api/public/agents/%20".to_owned(),
            "INVALID_AGENT_ID",
        ),
        (
            Method::GET,
            "/api/public/agents//widget".to_owned(),
            "INVALID_AGENT_ID",
        ),
        (
            Method::GET,
            "/api/public/agents//conversations/s".to_owned(),
            "INVALID_AGENT_ID",
        ),
        (
            Method::GET,
            format!("/api/public/agents/{agent}/conversations/"),
            "INVALID_SESSION_ID",
        ),
        (
            Method::GET,
            format!("/api/public/agents/{agent}/conversations/%20"),
            "INVALID_SESSION_ID",
        ),
        (
            Method::PATCH,
            format!("/api/public/agents/{agent}/conversations/"),
            "INVALID_SESSION_ID",
        ),
    ];
    for (method, path, code) in table {
        let response = client
            .request(method, &path)
            .json(&json!({}))
            .send()
            .await
            .unwrap();
        Answer::read(response)
            .await
            .unwrap()
            .assert_problem(400, Some(code));
    }
}

#[tokio::test]
async fn unknown_agent_ids_of_any_form_are_not_found() {
    let (_, client, _) = shop().await;
    let well_formed = format!("agt_{}", "0".repeat(26));
    let long = "x".repeat(2_000);
    for id in [
        well_formed.as_str(),
        "nope",
        "agt_",
        "..%2F..",
        "%00",
        "%C3%A9",
        &long,
    ] {
        let answer = client.get(&format!("/api/public/agents/{id}")).await;
        answer.assert_problem(404, Some("AGENT_NOT_FOUND"));
    }
}

#[tokio::test]
async fn unknown_routes_and_methods_are_rejected_before_the_key_check() {
    let (organization, ..) = shop().await;
    let client = organization.service().client();
    for path in [
        "/nothing",
        "/api",
        "/api/public",
        "/api/public/agents",
        "/api/public/unknown/x",
    ] {
        client
            .get(path)
            .await
            .assert_problem(404, Some("NOT_FOUND"));
    }
    let path = organization.path("");
    let answer = client.post(&path, &json!({})).await;
    answer.assert_problem(405, Some("METHOD_NOT_ALLOWED"));
    assert!(
        answer
            .header("allow")
            .is_some_and(|methods| methods.contains("GET")),
        "{:?}",
        answer.headers
    );
    let answer = client.get(&format!("{path}/chat")).await;
    answer.assert_problem(405, Some("METHOD_NOT_ALLOWED"));
    assert!(
        answer
            .header("allow")
            .is_some_and(|methods| methods.contains("POST")),
        "{:?}",
        answer.headers
    );
}

#[tokio::test]
async fn malformed_body_is_invalid_json() {
    let (_, client, path) = shop().await;
    let bodies: [&[u8]; 8] = [
        b"",
        b"{",
        b"not json",
        b"{\"message\": \"a\", }",
        b"{\"message\":\"\xff\xfe\",\"sessionId\":\"s\"}",
        br#"{"message":"\ud800","sessionId":"s"}"#,
        br#"{"message":"a","sessionId":"s"} trailing"#,
        b"{'message': 'a'}",
    ];
    for body in bodies {
        let answer = post_raw(&client, &path, Some("application/json"), body).await;
        answer.assert_problem(400, Some("INVALID_JSON"));
    }
}

#[tokio::test]
async fn wrongly_typed_json_is_invalid_request_data() {
    let (organization, client, path) = shop().await;
    let many: serde_json::Map<_, _> = (0..51)
        .map(|number| (format!("k{number}"), json!(1)))
        .collect();
    let bodies = [
        (json!([]), None),
        (json!("text"), None),
        (json!(null), None),
        (json!({}), Some("message")),
        (json!({"sessionId": "s"}), Some("message")),
        (json!({"message": "hi"}), Some("sessionId")),
    ];
    let values = [
        ("message", json!("")),
        ("message", json!(" \t")),
        ("message", json!(5)),
        ("message", json!(null)),
        ("sessionId", json!("")),
        ("sessionId", json!("  ")),
        ("sessionId", json!(7)),
        ("sessionId", json!(null)),
        ("sessionId", json!("a\nb")),
        ("sessionId", json!("s".repeat(257))),
        ("visitorId", json!("a\u{0}")),
        ("visitorEmail", json!("none")),
        ("visitorName", json!(5)),
        ("metadata", json!("text")),
        ("metadata", json!(many)),
        ("metadata", json!({"k": "x".repeat(17_000)})),
    ];
    let valid_but_for = |(field, value)| {
        let mut body = json!({"message": "hi", "sessionId": "s"});
        body[field] = value;
        (body, Some(field))
    };
    for (body, param) in bodies.into_iter().chain(values.map(valid_but_for)) {
        let problem = client
            .post(&path, &body)
            .await
            .assert_problem(400, Some("INVALID_REQUEST_DATA"));
        if param.is_some() {
            assert_eq!(problem["param"].as_str(), param, "{body} {problem}");
        }
    }
    assert!(organization.requests().is_empty(), "no model was asked");
}

#[tokio::test]
async fn unknown_fields_and_missing_content_type_are_accepted() {
    let (_, client, path) = shop().await;
    let body = json!({"message": "hi", "sessionId": "s", "future": {"field": 1}}).to_string();
    let answer = post_raw(&client, &path, None, body).await;
    assert_eq!((answer.status, answer.text.as_str()), (200, "ok"));
}

#[tokio::test]
async fn other_media_types_and_huge_bodies_are_refused() {
    let (_, client, path) = shop().await;
    let body = json!({"message": "hi", "sessionId": "s"}).to_string();
    for content_type in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/xml",
    ] {
        let answer = post_raw(&client, &path, Some(content_type), body.clone()).await;
        answer.assert_problem(415, Some("UNSUPPORTED_MEDIA_TYPE"));
    }
    let answer = post_raw(
        &client,
        &path,
        Some("application/json; charset=utf-8"),
        body,
    )
    .await;
    assert_eq!(answer.status, 200);
    let huge = json!({"message": "x".repeat(256 * 1024), "sessionId": "s"}).to_string();
    let answer = post_raw(&client, &path, Some("application/json"), huge).await;
    answer.assert_problem(413, Some("PAYLOAD_TOO_LARGE"));
}

#[tokio::test]
async fn overlong_message_in_characters_is_refused_and_not_stored() {
    let settings = json!({"limits": {"maxMessageLength": 10, "rateLimitPerMinute": 1000}});
    let organization = shop_with_settings(settings).await;
    let client = organization.client();
    let (fits, too_long) = ("é😀".repeat(5), format!("{}x", "é😀".repeat(5)));
    let problem = organization.chat("long", &too_long).await.into_answer();
    let problem = problem.assert_problem(400, Some("INVALID_REQUEST_DATA"));
    assert_eq!(problem["param"], "message");
    assert_eq!(problem["details"], json!({"max": 10, "actual": 11}));
    let path = organization.path("/conversations/long");
    client
        .get(&path)
        .await
        .assert_problem(404, Some("CONVERSATION_NOT_FOUND"));
    organization.chat("long", &fits).await.complete();
}

#[tokio::test]
async fn errors_never_quote_the_message() {
    let (organization, client, path) = shop().await;
    let secret = "canary-4711-of-the-visitor";
    let answers = [
        client
            .post(&path, &json!({"message": {"x": secret}, "sessionId": "s"}))
            .await,
        post_raw(
            &client,
            &path,
            Some("application/json"),
            format!("{{\"message\": \"{secret}\""),
        )
        .await,
        client
            .post(
                &path,
                &json!({"message": "m", "sessionId": "s", "visitorEmail": secret}),
            )
            .await,
    ];
    for answer in answers {
        assert_eq!(answer.status, 400);
        assert!(!answer.text.contains(secret), "{}", answer.text);
    }
    assert!(!organization.service().logs().contains(secret));
}

#[tokio::test]
async fn client_texts_are_256_bytes_and_metadata_50_keys_at_most() {
    let (_, client, path) = shop().await;
    let keys: serde_json::Map<_, _> = (0..50)
        .map(|number| (format!("k{number}"), json!(1)))
        .collect();
    // 128 characters of two bytes.
    let longest = "é".repeat(128);
    let body =
        json!({"message": "hi", "sessionId": longest, "visitorId": longest, "metadata": keys});
    assert_eq!(client.post(&path, &body).await.status, 200);
    for field in ["sessionId", "visitorId"] {
        let mut body = json!({"message": "hi", "sessionId": "s"});
        body[field] = format!("{longest}x").into();
        let problem = client
            .post(&path, &body)
            .await
            .assert_problem(400, Some("INVALID_REQUEST_DATA"));
        assert_eq!(problem["param"], field);
    }
}

#[tokio::test]
async fn body_of_256_kib_is_accepted_and_one_byte_more_refused() {
    let (_, client, path) = shop().await;
    let body = json!({"message": "hi", "sessionId": "s"}).to_string();
    for (bytes, status) in [(256 * 1024, 200), (256 * 1024 + 1, 413)] {
        let padded = format!("{body}{}", " ".repeat(bytes - body.len()));
        assert_eq!(
            post_raw(&client, &path, Some("application/json"), padded)
                .await
                .status,
            status,
            "{bytes}"
        );
    }
}
