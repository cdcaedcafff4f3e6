//! Requests that a visitor token allows, and everything it does not.

use reqwest::Method;
use serde_json::json;

use super::{PAGE, TOKEN_ROUTE, Visitor, ask};
use crate::support::{
    Client, Events, Organization, OrganizationDocument, send, shop_saying, shop_with_settings,
};

#[tokio::test]
async fn each_route_is_open_or_out_of_scope() {
    let members = json!([{"agent": "shop", "specialization": "all"}]);
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .agent("other", json!({}))
        .team("front", json!({"routing": "random", "members": members}))
        .key("chat", &["chat"])
        .apply_to_shared()
        .await;
    let page = Visitor::comes_to(&organization.service().client(), &organization).await;
    let keyed = Visitor::comes_to(&organization.client_with("chat"), &organization).await;
    let (other, team) = (organization.agent("other"), organization.team("front"));
    for visitor in [page, keyed] {
        let message = visitor
            .chat("s", "hi")
            .await
            .required_header("x-message-id");
        let open = [
            (Method::POST, visitor.path("/chat")),
            (Method::GET, visitor.path("/conversations/s")),
            (Method::PATCH, visitor.path("/conversations/s")),
            (Method::GET, format!("/api/public/messages/{message}")),
            (
                Method::GET,
                format!("/api/public/messages/{message}/stream"),
            ),
            (
                Method::POST,
                format!("/api/public/messages/{message}/cancel"),
            ),
        ];
        let shut = [
            (Method::GET, visitor.path("")),
            (Method::GET, visitor.path("/widget")),
            (Method::POST, format!("/api/public/teams/{team}/chat")),
            (Method::POST, "/api/public/teams/unknown/chat".to_owned()),
            (Method::POST, TOKEN_ROUTE.to_owned()),
            (Method::POST, format!("/api/public/agents/{other}/chat")),
            (
                Method::GET,
                format!("/api/public/agents/{other}/conversations/s"),
            ),
            (
                Method::PATCH,
                format!("/api/public/agents/{other}/conversations/s"),
            ),
            (Method::POST, "/api/public/agents/unknown/chat".to_owned()),
        ];
        let body = json!({"message": "hi", "sessionId": "s", "agentId": visitor.agent});
        for (method, path) in open {
            let answer = send(visitor.as_page(method.clone(), &path).json(&body)).await;
            assert_eq!(answer.status, 200, "{method} {path}: {}", answer.text);
        }
        for (method, path) in shut {
            let answer = send(visitor.as_page(method, &path).json(&body)).await;
            answer.assert_problem(403, Some("INSUFFICIENT_SCOPE"));
        }
        let apply = send(
            visitor
                .as_page(Method::POST, "/api/admin/apply")
                .json(&json!({"organizations": []})),
        )
        .await;
        apply.assert_status(401);
    }
}

/// Creates an organization whose agent answers with private text, and two of its visitors.
async fn two_visitors() -> (Organization, Visitor, Visitor) {
    let organization = shop_saying("canary-private").await;
    let client = organization.service().client();
    let ada = Visitor::comes_to(&client, &organization).await;
    let bob = Visitor::comes_to(&client, &organization).await;
    (organization, ada, bob)
}

#[tokio::test]
async fn messages_of_others_are_not_found() {
    let (organization, ada, bob) = two_visitors().await;
    let of_ada = ada.chat("ada", "hi").await.required_header("x-message-id");
    let by_key = organization
        .chat("by-key", "hi")
        .await
        .required_header("x-message-id");
    let events = ada
        .as_page(Method::POST, &ada.path("/chat"))
        .header("accept", "text/event-stream");
    let events = events
        .json(&json!({"message": "again", "sessionId": "ada"}))
        .send()
        .await
        .unwrap();
    let as_events = Events::read(events).await.only("start")["messageId"]
        .as_str()
        .unwrap()
        .to_owned();
    for message in [&of_ada, &by_key, &as_events] {
        for (method, rest) in [
            (Method::GET, ""),
            (Method::GET, "/stream"),
            (Method::POST, "/cancel"),
        ] {
            let path = format!("/api/public/messages/{message}{rest}");
            let answer = send(bob.as_page(method, &path)).await;
            answer.assert_problem(404, Some("MESSAGE_NOT_FOUND"));
            assert!(!answer.text.contains("canary"));
        }
    }
}

#[tokio::test]
async fn sessions_of_others_are_not_found() {
    let (organization, ada, bob) = two_visitors().await;
    let (client, agent) = (organization.client(), organization.shop());
    ada.chat("ada", "hi").await.complete();
    client.chat(agent, "by-key", "hi").await.complete();
    let conversation = client.settled_history(agent, "ada", 2).await["id"].clone();
    let named = format!(
        "/conversations/ada?conversationId={}",
        conversation.as_str().unwrap()
    );
    for rest in [
        "/conversations/ada",
        "/conversations/by-key",
        "/conversations/nobody",
        &named,
    ] {
        let path = bob.path(rest);
        bob.get(&path)
            .await
            .assert_problem(404, Some("CONVERSATION_NOT_FOUND"));
        let rating = bob
            .as_page(Method::PATCH, &path)
            .json(&json!({"rating": 1}));
        send(rating)
            .await
            .assert_problem(404, Some("CONVERSATION_NOT_FOUND"));
    }
}

#[tokio::test]
async fn same_session_id_of_two_visitors_is_two_conversations() {
    let (organization, ada, bob) = two_visitors().await;
    for message in ["hi", "again"] {
        ada.chat("ada", message).await.complete();
    }
    assert_eq!(bob.chat("ada", "mine").await.complete(), "canary-private");
    for (visitor, messages) in [(&bob, 2), (&ada, 4)] {
        let history = visitor
            .get(&visitor.path("/conversations/ada"))
            .await
            .json();
        assert_eq!(history["totalMessages"], messages, "{history}");
    }
    organization.chat("ada", "by key").await.complete();
    let own = organization.history("ada").await;
    assert_eq!(own["totalMessages"], 2, "the key's own comes first: {own}");
}

#[tokio::test]
async fn idempotency_key_is_scoped_to_the_visitor() {
    let (organization, ada, bob) = two_visitors().await;
    let send_once = async |visitor: &Visitor, message: &str| {
        let request = visitor
            .as_page(Method::POST, &visitor.path("/chat"))
            .header("accept", "application/json")
            .header("idempotency-key", "k")
            .json(&json!({"message": message, "sessionId": "s"}));
        let answer = send(request).await;
        answer.assert_status(200);
        answer.json()["messageId"].as_str().unwrap().to_owned()
    };
    let first = send_once(&ada, "hi").await;
    assert_ne!(send_once(&bob, "something else").await, first);
    let fields = json!({"visitorSecret": ada.issued["visitorSecret"]});
    let client = organization.service().client();
    let renewed = Visitor::asks(&client, organization.shop(), fields).await;
    assert_eq!(send_once(&renewed, "hi").await, first);
}

#[tokio::test]
async fn token_is_bound_to_its_page_and_needs_no_origin_elsewhere() {
    let organization =
        shop_with_settings(json!({"allowedDomains": ["shop.example", "other.example"]})).await;
    let service = organization.service();
    let visitor = Visitor::comes_to(&service.client(), &organization).await;
    let body = json!({"message": "hi", "sessionId": "s"});
    let message = visitor.chat("s", "hi").await;
    let message = message.required_header("x-message-id");
    let message = format!("/api/public/messages/{message}");
    for (method, path) in [
        (Method::POST, visitor.path("/chat")),
        (Method::GET, visitor.path("/conversations/s")),
        (Method::PATCH, visitor.path("/conversations/s")),
        (Method::GET, message.clone()),
        (Method::GET, format!("{message}/stream")),
        (Method::POST, format!("{message}/cancel")),
    ] {
        let request = || visitor.client.request(method.clone(), &path).json(&body);
        for origins in [
            &["https://other.example"][..],
            &["http://shop.example"],
            &["null"],
            &[PAGE, PAGE],
        ] {
            let request = origins.iter().fold(request(), |request, origin| {
                request.header("origin", *origin)
            });
            let answer = send(request).await;
            answer.assert_problem(403, Some("DOMAIN_NOT_ALLOWED"));
        }
        send(request()).await.assert_status(200);
        let with_port = request().header("origin", "https://shop.example:443");
        send(with_port).await.assert_status(200);
    }
    for origin in ["https://evil.example", "null"] {
        let refused = ask(
            &service.client(),
            organization.shop(),
            Some(origin),
            json!({}),
        )
        .await;
        refused.assert_problem(403, Some("DOMAIN_NOT_ALLOWED"));
        assert!(
            refused.header("access-control-allow-origin").is_some(),
            "the page can tell its visitor why"
        );
    }
}

#[tokio::test]
async fn token_needs_an_allowed_page_or_a_chat_key() {
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .agent("hidden", json!({"public": false}))
        .agent(
            "draft",
            json!({"status": "draft", "widget": {"offlineMessage": "not yet"}}),
        )
        .key("config", &["config"])
        .apply_to_shared()
        .await;
    let service = organization.service();
    let other = OrganizationDocument::new()
        .shop(json!({}))
        .apply(service)
        .await;
    let (shop, nobody) = (organization.shop(), service.client());
    ask(&nobody, shop, None, json!({}))
        .await
        .assert_problem(401, Some("MISSING_API_KEY"));
    ask(&nobody.with_key("svt_1"), shop, Some(PAGE), json!({}))
        .await
        .assert_problem(401, Some("INVALID_API_KEY"));
    let narrow = organization.client_with("config");
    ask(&narrow, shop, Some(PAGE), json!({}))
        .await
        .assert_problem(403, Some("INSUFFICIENT_SCOPE"));
    ask(&other.client(), shop, None, json!({}))
        .await
        .assert_problem(403, Some("ORG_MISMATCH"));
    ask(&nobody, organization.agent("hidden"), Some(PAGE), json!({}))
        .await
        .assert_problem(403, Some("AGENT_NOT_PUBLIC"));
    ask(&nobody, "agt_unknown", Some(PAGE), json!({}))
        .await
        .assert_problem(404, Some("AGENT_NOT_FOUND"));
    ask(&nobody, " ", Some(PAGE), json!({}))
        .await
        .assert_problem(400, Some("INVALID_AGENT_ID"));
    let claimed = ask(
        &nobody,
        shop,
        Some(PAGE),
        json!({"visitorId": "vis_somebody"}),
    )
    .await;
    assert_eq!(
        claimed.assert_problem(400, Some("INVALID_REQUEST_DATA"))["param"],
        "visitorId"
    );
    let draft = organization.agent("draft");
    let draft = Visitor::asks(&nobody, draft, json!({})).await;
    let offline = json!({
        "name": "Agent draft", "offlineMessage": "not yet", "position": "bottom-right",
        "size": "medium", "triggerText": "Chat with us"
    });
    assert_eq!(draft.issued["offline"], offline);
    assert_eq!(draft.issued["configuration"], serde_json::Value::Null);
    let refused = draft.chat("s", "hi").await.into_answer();
    refused.assert_problem(403, Some("AGENT_INACTIVE"));
    let history = draft.get(&draft.path("/conversations/s")).await;
    history.assert_problem(404, Some("CONVERSATION_NOT_FOUND"));
    let opaque = ask(&nobody, shop, Some("null"), json!({})).await;
    opaque.assert_status(200);
    assert!(
        ask(&organization.client(), shop, None, json!({}))
            .await
            .status
            == 200,
        "a key needs no page"
    );
}

#[tokio::test]
async fn forged_token_is_refused() {
    let organization = shop_saying("ok").await;
    let service = organization.service();
    let visitor = Visitor::comes_to(&service.client(), &organization).await;
    let token = visitor.issued["token"].as_str().unwrap();
    assert!(
        token.starts_with("svt_") && token.len() <= 512,
        "{} characters",
        token.len()
    );
    let with = |position: usize| {
        let mut text = token.as_bytes().to_vec();
        text[position] = if text[position] == b'0' { b'1' } else { b'0' };
        String::from_utf8(text).unwrap()
    };
    let forged = [
        with(10),
        with(100),
        with(token.len() - 1),
        token[..token.len() - 1].to_owned(),
        format!("{token}0"),
    ];
    let secret = visitor.issued["visitorSecret"].as_str().unwrap().to_owned();
    for wrong in forged.into_iter().chain([token.to_uppercase(), secret]) {
        let answer = service
            .client()
            .with_key(&wrong)
            .get(&visitor.path("/conversations/s"))
            .await;
        answer.assert_problem(401, Some("INVALID_API_KEY"));
    }
}

#[tokio::test]
async fn logs_and_metrics_contain_no_tokens() {
    let organization = shop_saying("ok").await;
    let service = organization.service();
    let visitor = Visitor::comes_to(&service.client(), &organization).await;
    visitor.chat("canary-of-a-session", "hi").await.complete();
    let mut damaged = visitor.issued["token"].as_str().unwrap().to_owned();
    damaged.pop();
    service
        .client()
        .with_key(&damaged)
        .get(&visitor.path("/conversations/s"))
        .await;
    let mut text = service.logs();
    for (_, url) in service.ops_urls() {
        text.push_str(&Client::new(&url).get("/metrics").await.text);
    }
    for secret in [
        &damaged[60..],
        visitor.issued["visitorSecret"].as_str().unwrap(),
        "canary-of-a-session",
    ] {
        assert!(!text.contains(secret));
    }
}
