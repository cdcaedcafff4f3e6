//! Allowed origins of an agent, and CORS.

use reqwest::Method;
use serde_json::json;

use crate::support::{
    Answer, FOREIGN_ORIGIN, Organization, send, shop_saying, shop_with_settings, unique,
};

async fn status(organization: &Organization, agent: &str, origin: Option<&str>) -> (u16, Answer) {
    let body = json!({"message": "hi", "sessionId": unique("s")});
    let path = format!("/api/public/agents/{}/chat", organization.agent(agent));
    let mut request = organization
        .client()
        .request(Method::POST, &path)
        .json(&body);
    if let Some(origin) = origin {
        request = request.header("origin", origin);
    }
    let answer = Answer::read(request.send().await.unwrap()).await.unwrap();
    (answer.status, answer)
}

#[tokio::test]
async fn entries_are_compared_as_parsed_hosts() {
    let domains = json!([
        "https://full.example",
        "https://port.example:8443",
        "bare.example",
        "bareport.example:8443",
        "*.wild.example",
        "localhost",
        "localhost:3000"
    ]);
    let organization = shop_with_settings(json!({"allowedDomains": domains})).await;
    let table = [
        (None, true),
        (Some("https://full.example"), true),
        (Some("https://FULL.example"), true),
        (Some("https://full.example:443"), true),
        (Some("http://full.example"), false),
        (Some("https://full.example:8443"), false),
        (Some("https://sub.full.example"), false),
        (Some("https://full.example.evil.example"), false),
        (Some("https://evilfull.example"), false),
        (Some("https://port.example:8443"), true),
        (Some("https://port.example"), false),
        (Some("https://bare.example"), true),
        (Some("http://bare.example"), false),
        (Some("https://bareport.example:8443"), true),
        (Some("https://bareport.example"), false),
        (Some("https://a.wild.example"), true),
        (Some("https://a.b.wild.example"), true),
        (Some("https://wild.example"), false),
        (Some("https://awild.example"), false),
        (Some("http://localhost"), true),
        (Some("http://localhost:3000"), true),
        (Some("http://localhost:4000"), false),
        (Some("null"), false),
        (Some("https://"), false),
        (Some("full.example"), false),
    ];
    for (origin, allowed) in table {
        let (status, answer) = status(&organization, "shop", origin).await;
        if allowed {
            assert_eq!(status, 200, "{origin:?}: {}", answer.text);
        } else {
            assert_eq!(status, 403, "{origin:?}");
            answer.assert_problem(403, Some("DOMAIN_NOT_ALLOWED"));
        }
    }
}

#[tokio::test]
async fn empty_list_allows_any_origin() {
    let organization = shop_saying("ok").await;
    for origin in ["https://any.example", "http://insecure.example:81", "null"] {
        assert_eq!(
            status(&organization, "shop", Some(origin)).await.0,
            200,
            "{origin}"
        );
    }
}

#[tokio::test]
async fn origins_are_not_checked_on_reads() {
    let domains = json!({"allowedDomains": ["https://shop.example"]});
    let organization = shop_with_settings(domains).await;
    for route in ["", "/widget"] {
        let path = organization.path(route);
        let request = organization
            .client()
            .request(Method::GET, &path)
            .header("origin", "https://evil.example");
        assert_eq!(request.send().await.unwrap().status(), 200, "{path}");
    }
}

#[tokio::test]
async fn preflight_needs_no_key_and_lists_what_is_allowed() {
    let organization = shop_saying("ok").await;
    for (method, path) in [
        ("POST", organization.path("/chat")),
        ("GET", organization.path("/widget")),
        ("PATCH", organization.path("/conversations/s")),
        ("POST", "/api/public/teams/team_x/chat".to_owned()),
        ("POST", "/api/public/messages/msg_x/cancel".to_owned()),
        ("POST", "/api/widget/token".to_owned()),
    ] {
        let request = organization
            .service()
            .client()
            .request(Method::OPTIONS, &path)
            .header("origin", "https://page.example")
            .header("access-control-request-method", method)
            .header(
                "access-control-request-headers",
                "authorization,content-type,x-api-key,idempotency-key,range",
            );
        let answer = Answer::read(request.send().await.unwrap()).await.unwrap();
        assert_eq!(answer.status, 204, "{path}: {}", answer.text);
        assert_eq!(
            answer.header("access-control-allow-origin"),
            Some("https://page.example")
        );
        assert!(
            answer
                .header("access-control-allow-methods")
                .unwrap()
                .contains(method)
        );
        let headers = answer
            .header("access-control-allow-headers")
            .unwrap()
            .to_lowercase();
        for header in [
            "authorization",
            "content-type",
            "x-api-key",
            "idempotency-key",
            "range",
        ] {
            assert!(
                headers.contains(header) || headers == "*",
                "{header} in {headers}"
            );
        }
        assert_eq!(answer.header("access-control-allow-credentials"), None);
        assert_eq!(answer.header("access-control-max-age"), Some("7200"));
        assert!(
            answer
                .header("vary")
                .unwrap()
                .to_lowercase()
                .contains("origin")
        );
    }
    let admin = organization.service().client();
    let admin = admin.request(Method::OPTIONS, "/api/admin/apply");
    let answer = send(admin.header("origin", "https://page.example")).await;
    assert_eq!(answer.status, 405, "{}", answer.text);
    assert_eq!(answer.header("access-control-allow-origin"), None);
}

#[tokio::test]
async fn responses_and_errors_are_readable_by_pages() {
    let organization = shop_saying("ok").await;
    let (good_status, good) = status(&organization, "shop", Some("https://page.example")).await;
    let path = "/api/public/agents/agt_unknown/chat";
    let request = organization
        .client()
        .request(Method::POST, path)
        .header("origin", "https://page.example");
    let error = Answer::read(request.json(&json!({})).send().await.unwrap())
        .await
        .unwrap();
    assert_eq!((good_status, error.status), (200, 404));
    for answer in [good, error] {
        assert_eq!(
            answer.header("access-control-allow-origin"),
            Some("https://page.example")
        );
        let exposed = answer
            .header("access-control-expose-headers")
            .unwrap()
            .to_lowercase();
        for header in [
            "x-conversation-id",
            "x-message-id",
            "x-ui-spec",
            "x-request-id",
            "retry-after",
            "ratelimit",
            "content-disposition",
            "content-range",
            "accept-ranges",
        ] {
            assert!(exposed.contains(header), "{header} in {exposed}");
        }
    }
}

#[tokio::test]
async fn forbidden_page_can_read_the_reason() {
    let domains = json!({"allowedDomains": ["https://shop.example"]});
    let organization = shop_with_settings(domains).await;
    for (origin, echo) in [
        ("https://evil.example", "https://evil.example"),
        ("null", "*"),
    ] {
        let (_, answer) = status(&organization, "shop", Some(origin)).await;
        answer.assert_problem(403, Some("DOMAIN_NOT_ALLOWED"));
        assert_eq!(answer.header("access-control-allow-origin"), Some(echo));
    }
    let (_, answer) = status(&organization, "shop", Some("https://shop.example")).await;
    assert_eq!(
        answer.header("access-control-allow-origin"),
        Some("https://shop.example")
    );
    let (_, answer) = status(&organization, "shop", None).await;
    assert_eq!(
        (
            answer.header("access-control-allow-origin"),
            answer.header("vary")
        ),
        (None, Some("Origin")),
        "a cache could serve this response to a page"
    );
}

#[tokio::test]
async fn page_of_another_origin_can_neither_stream_nor_cancel() {
    let domains = json!({"allowedDomains": ["https://shop.example"]});
    let organization = shop_with_settings(domains).await;
    let reply = organization.chat("s", "hi").await;
    let message = format!(
        "/api/public/messages/{}",
        reply.required_header("x-message-id")
    );
    for (method, path) in [
        (Method::GET, format!("{message}/stream")),
        (Method::POST, format!("{message}/cancel")),
    ] {
        let from = |origin: &str| {
            organization
                .client()
                .request(method.clone(), &path)
                .header("origin", origin)
        };
        send(from(FOREIGN_ORIGIN))
            .await
            .assert_problem(403, Some("DOMAIN_NOT_ALLOWED"));
        assert_eq!(
            send(from("https://shop.example")).await.status,
            200,
            "{path}"
        );
    }
}
