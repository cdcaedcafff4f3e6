//! Unsupported methods and ambiguous paths.

use reqwest::Method;

use super::{connect, url};
use crate::support::{RawConnection, SharedService, shop_saying};

#[tokio::test]
async fn unsupported_methods_are_refused_with_an_allow_header() {
    let organization = shop_saying("ok").await;
    let path = organization.path("");
    for method in ["TRACE", "PUT", "DELETE", "PROPFIND", "BREW"] {
        for (path, allowed) in [(path.clone(), "GET"), (format!("{path}/chat"), "POST")] {
            let mut connection = connect(&organization).await;
            let key = organization.key_text("all");
            let request = format!(
                "{method} {path} HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\nx-canary: c4n4ry\r\n\r\n"
            );
            connection.write(request).await;
            let answer = connection.read_answer().await.expect("an answer");
            assert_eq!(answer.status, 405, "{method} {path}");
            assert!(
                answer
                    .header("allow")
                    .is_some_and(|methods| methods.contains(allowed)),
                "{}",
                answer.head
            );
            assert!(
                !answer.text().contains("c4n4ry"),
                "nothing of the request comes back"
            );
        }
    }
}

#[tokio::test]
async fn connect_never_opens_a_tunnel() {
    let service = SharedService::get().await;
    for target in ["127.0.0.1:22", "/", "example.org:443"] {
        let mut connection = RawConnection::open(&url(&service)).await;
        connection
            .write(format!(
                "CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n\r\n"
            ))
            .await;
        let status = connection
            .read_answer()
            .await
            .map_or(400, |answer| answer.status);
        assert!((400..500).contains(&status), "{target}: {status}");
    }
}

#[tokio::test]
async fn path_has_one_spelling() {
    let organization = shop_saying("ok").await;
    let agent = organization.shop();
    for path in [
        format!("//api/public/agents/{agent}"),
        format!("/api//public/agents/{agent}"),
        format!("/api/public/agents/{agent}/"),
        format!("/API/public/agents/{agent}"),
        format!("/api/public/Agents/{agent}"),
        format!("/api/public/agents/{agent}/widget/"),
        format!("/api/public/x/%2e%2e/agents/{agent}"),
        format!("/api/public/./agents/{agent}"),
        format!("/api/public/x/../agents/{agent}"),
        format!("/api/public%2Fagents/{agent}"),
        format!("/api/public/agents/{agent}%2Fwidget/x"),
        "/api/public/agents/../../admin/apply".to_owned(),
        "/api/public/%2e%2e/admin/apply".to_owned(),
    ] {
        let mut connection = connect(&organization).await;
        let key = organization.key_text("all");
        connection
            .write(format!(
                "GET {path} HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\n\r\n"
            ))
            .await;
        let answer = connection.read_answer().await.expect("an answer");
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
    }
}

#[tokio::test]
async fn session_id_is_decoded_once_and_compared_byte_for_byte() {
    let organization = shop_saying("ok").await;
    let client = organization.client();
    // The session id in the body, and in the path.
    let sessions = [
        ("a/b", "a%2Fb"),
        ("a%2Fb", "a%252Fb"),
        ("../secret", "..%2Fsecret"),
        ("é", "%C3%A9"),
        ("e\u{301}", "e%CC%81"),
        ("\u{202e}txt", "%E2%80%AEtxt"),
        ("🦀 crab", "%F0%9F%A6%80%20crab"),
        ("Case", "Case"),
        ("case", "case"),
        ("a+b", "a+b"),
        (" edge ", "%20edge%20"),
        ("?#&=", "%3F%23%26%3D"),
    ];
    for (number, (session, _)) in sessions.iter().enumerate() {
        organization
            .chat(session, &format!("message {number}"))
            .await
            .complete();
    }
    for (number, (session, segment)) in sessions.iter().enumerate() {
        let answer = client
            .get(&organization.path(&format!("/conversations/{segment}")))
            .await;
        assert_eq!(answer.status, 200, "{session}: {}", answer.text);
        let conversation = answer.json();
        assert_eq!(conversation["sessionId"], *session);
        assert_eq!(
            conversation["totalMessages"], 2,
            "{session} has a conversation of its own"
        );
        assert_eq!(
            conversation["messages"][0]["content"],
            format!("message {number}")
        );
    }
}

#[tokio::test]
async fn path_without_a_valid_session_id_matches_no_session() {
    let organization = shop_saying("ok").await;
    let base = organization.path("/conversations");
    for segment in ["a%00b", "a%0D%0Ab", &"s".repeat(257), &"%C3%A9".repeat(200)] {
        for method in [Method::GET, Method::PATCH] {
            let request = organization
                .client()
                .request(method, &format!("{base}/{segment}"))
                .body("{}");
            let response = request.send().await.unwrap();
            let answer = crate::support::Answer::read(response).await.unwrap();
            assert!(
                [400, 404].contains(&answer.status),
                "{segment:.20}: {}",
                answer.text
            );
            let code = if answer.status == 400 {
                "INVALID_SESSION_ID"
            } else {
                "CONVERSATION_NOT_FOUND"
            };
            answer.assert_problem(answer.status, Some(code));
        }
    }
}

#[tokio::test]
async fn path_that_is_not_utf_8_is_not_found() {
    let organization = shop_saying("ok").await;
    let client = organization.client();
    for path in ["agents/%FF", "agents/x/conversations/%C3"] {
        client
            .get(&format!("/api/public/{path}"))
            .await
            .assert_problem(404, Some("NOT_FOUND"));
    }
}
