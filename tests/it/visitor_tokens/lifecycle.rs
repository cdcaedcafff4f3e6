//! A visitor from the first visit to the end of its token: chats, renewal, limits and revocation.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use super::{PAGE, TOKEN_ROUTE, Visitor, ask};
use crate::support::{
    Client, Organization, OrganizationDocument, PATIENCE, PROMISED, Reply, Script, TestService,
    eventually, send, shop_saying, shop_with, shop_with_settings,
};

#[tokio::test]
async fn page_receives_a_15_minute_token_and_the_widget_settings() {
    let organization = shop_saying("ok").await;
    let before = chrono::Utc::now();
    let client = organization.service().client();
    let answer = ask(&client, organization.shop(), Some(PAGE), json!({})).await;
    answer.assert_status(200);
    assert_eq!(answer.header("access-control-allow-origin"), Some(PAGE));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let state = answer.header("ratelimit").unwrap();
    assert!(state.starts_with("\"visitor_tokens\";r="), "{state}");
    let issued = answer.json();
    let expires_at = issued["expiresAt"].as_str().unwrap();
    let expires_at = chrono::DateTime::parse_from_rfc3339(expires_at).unwrap();
    let lifetime = (expires_at.to_utc() - before).num_seconds();
    assert!((899..960).contains(&lifetime), "{lifetime}");
    assert_eq!(issued["agentId"], organization.shop());
    assert!(issued["visitorId"].as_str().unwrap().starts_with("vis_"));
    let read = async |rest: &str| {
        let path = organization.path(rest);
        organization.client().get(&path).await.json()
    };
    assert_eq!(issued["configuration"], read("/widget").await);
    assert_eq!(issued["theme"], read("").await["theme"], "all ten fields");
    assert_eq!(issued["offline"], Value::Null);
}

#[tokio::test]
async fn visitor_chats_reads_and_rates_for_the_organization() {
    let organization = shop_saying("welcome").await;
    let visitor = Visitor::comes_to(&organization.service().client(), &organization).await;
    let reply = visitor.chat("visit", "hi").await;
    let message = reply.required_header("x-message-id");
    assert_eq!(reply.complete(), "welcome");
    let history = visitor
        .get(&visitor.path("/conversations/visit"))
        .await
        .json();
    assert_eq!(
        (&history["totalMessages"], &history["sessionId"]),
        (&json!(2), &json!("visit"))
    );
    assert_eq!(
        visitor
            .get(&format!("/api/public/messages/{message}"))
            .await
            .json()["status"],
        "completed"
    );
    assert_eq!(
        visitor
            .get(&format!("/api/public/messages/{message}/stream?after=3"))
            .await
            .text,
        "come"
    );
    let rating = visitor
        .as_page(Method::PATCH, &visitor.path("/conversations/visit"))
        .json(&json!({"rating": 4}));
    assert_eq!(send(rating).await.json()["success"], true);

    let seen = organization.history("visit").await;
    assert_eq!(seen["id"], history["id"]);
    let metadata = &seen["metadata"];
    assert_eq!(
        (&metadata["source"], &metadata["rating"]),
        (&json!("widget"), &json!(4))
    );
    assert_eq!(metadata["visitorId"], visitor.issued["visitorId"]);
    let mut named = json!({"message": "hi", "sessionId": "visit", "visitorId": "vis_other"});
    let chat = |body: &Value| {
        visitor
            .as_page(Method::POST, &visitor.path("/chat"))
            .json(body)
    };
    let refused = send(chat(&named)).await;
    let refused = refused.assert_problem(400, Some("INVALID_REQUEST_DATA"));
    assert_eq!(refused["param"], "visitorId");
    named["visitorId"] = visitor.issued["visitorId"].clone();
    send(chat(&named)).await.assert_status(200);
}

#[tokio::test]
async fn visitor_cancels_its_own_reply() {
    let organization = shop_with(Script::counts(100, Duration::from_millis(100))).await;
    let service = organization.service();
    let visitor = Visitor::comes_to(&service.client(), &organization).await;
    let body = json!({"message": "count", "sessionId": "s"});
    let request = visitor
        .as_page(Method::POST, &visitor.path("/chat"))
        .json(&body);
    let mut response = request.send().await.unwrap();
    let mut reply = Reply::begin(&response);
    reply.read_at_least(&mut response, 4).await;
    let cancel = format!(
        "/api/public/messages/{}/cancel",
        reply.required_header("x-message-id")
    );
    let other = Visitor::comes_to(&service.client(), &organization).await;
    send(other.as_page(Method::POST, &cancel))
        .await
        .assert_problem(404, Some("MESSAGE_NOT_FOUND"));
    assert_eq!(
        send(visitor.as_page(Method::POST, &cancel)).await.json()["status"],
        "cancelled"
    );
}

#[tokio::test]
async fn refreshed_page_finds_its_session_after_a_restart() {
    let service = TestService::start().await;
    let organization = Organization::with_agent(&service, Script::says("remembered")).await;
    let visitor = Visitor::comes_to(&service.client(), &organization).await;
    visitor.chat("s", "before").await.complete();
    for (name, _) in service.ops_urls() {
        service.restart(&name).await;
    }
    for url in service.public_urls() {
        let here = visitor.at(&url);
        assert_eq!(
            here.get(&here.path("/conversations/s")).await.json()["messages"][0]["content"],
            "before",
            "{url}"
        );
        let fields = json!({"visitorSecret": visitor.issued["visitorSecret"]});
        let back = Visitor::asks(&Client::new(&url), organization.shop(), fields).await;
        assert_eq!(back.issued["visitorId"], visitor.issued["visitorId"]);
        assert_eq!(
            back.get(&back.path("/conversations/s")).await.json()["messages"][1]["content"],
            "remembered"
        );
    }
}

#[tokio::test]
async fn expired_token_is_refused_and_renewed() {
    let service =
        TestService::start_with(&[("SWITCHBOARD__INGRESS__VISITOR_TOKEN_LIFETIME_MS", "2000")])
            .await;
    let organization = Organization::with_agent(&service, Script::says("ok")).await;
    let visitor = Visitor::comes_to(&service.client(), &organization).await;
    visitor.chat("s", "hi").await.complete();
    let expired = eventually("the token expires", PATIENCE, async || {
        let answer = visitor.get(&visitor.path("/conversations/s")).await;
        (answer.status != 200).then_some(answer)
    })
    .await;
    expired.assert_problem(401, Some("EXPIRED_API_KEY"));
    let fields = json!({"visitorSecret": visitor.issued["visitorSecret"]});
    let renewed = Visitor::asks(&service.client(), organization.shop(), fields).await;
    assert_eq!(
        renewed.get(&renewed.path("/conversations/s")).await.status,
        200
    );
}

/// Issues a token to an address, chats with it and returns the rate limit that refused the chat.
async fn exceeded_chat_limit(
    service: &TestService,
    organization: &Organization,
    address: &str,
) -> Option<String> {
    let client = service.client();
    let agent = organization.shop();
    let request = client
        .request(Method::POST, TOKEN_ROUTE)
        .header("x-forwarded-for", address)
        .header("origin", PAGE)
        .json(&json!({"agentId": agent}));
    let issued = send(request).await.json();
    let request = client
        .with_key(issued["token"].as_str().unwrap())
        .request(Method::POST, &format!("/api/public/agents/{agent}/chat"))
        .header("x-forwarded-for", address)
        .header("origin", PAGE)
        .json(&json!({"message": "hi", "sessionId": "s"}));
    let answer = send(request).await;
    (answer.status != 200).then(|| {
        let bucket = answer.json()["details"]["bucket"].clone();
        bucket.as_str().unwrap().to_owned()
    })
}

#[tokio::test]
async fn token_and_chat_limits_of_a_page_hold_everywhere() {
    let limit = |name: &str| format!("SWITCHBOARD__INGRESS__VISITOR_{name}_PER_MINUTE");
    let service = TestService::start_with(&[
        ("SWITCHBOARD__INGRESS__TRUSTED_PROXIES", "127.0.0.1"),
        (limit("TOKENS_PER_ADDRESS").as_str(), "4"),
        (limit("CHATS_PER_ADDRESS").as_str(), "3"),
        (limit("CHATS_PER_SITE").as_str(), "4"),
    ])
    .await;
    let organization = Organization::with_agent(&service, Script::says("ok")).await;
    let (client, agent) = (service.client(), organization.shop());
    let visitor = Visitor::comes_to(&client, &organization).await;
    visitor.chat("s", "hi").await.complete();
    // A renewal counts as a token.
    let fields = json!({"visitorSecret": visitor.issued["visitorSecret"]});
    Visitor::asks(&client, agent, fields).await;
    for _ in 0..2 {
        Visitor::comes_to(&client, &organization).await;
    }
    let refused = ask(&client, agent, Some(PAGE), json!({})).await;
    assert_eq!(
        refused.assert_problem(429, Some("RATE_LIMITED"))["details"]["bucket"],
        "visitor_tokens"
    );
    assert!(
        refused.header("retry-after").is_some() && refused.header("ratelimit-policy").is_some()
    );

    // One message was sent by the first visitor from another address.
    let (first, second) = ("203.0.113.1", "203.0.113.2");
    let mut refusals = Vec::new();
    for address in [first, first, first, first, second] {
        refusals.push(exceeded_chat_limit(&service, &organization, address).await);
    }
    let refusals: Vec<_> = refusals.iter().map(Option::as_deref).collect();
    assert_eq!(
        refusals,
        [None, None, None, Some("address_chats"), Some("site_chats")]
    );
}

#[tokio::test]
async fn token_is_revoked_with_its_key_within_two_seconds() {
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .key("page", &["chat"])
        .apply_to_shared()
        .await;
    let service = organization.service();
    let visitor = Visitor::comes_to(&organization.client_with("page"), &organization).await;
    let path = visitor.path("/conversations/s");
    let here: Vec<_> = service
        .public_urls()
        .iter()
        .map(|url| visitor.at(url))
        .collect();
    for visitor in &here {
        visitor
            .get(&path)
            .await
            .assert_problem(404, Some("CONVERSATION_NOT_FOUND"));
    }
    let keys = organization.answer["organizations"][0]["keys"]
        .as_array()
        .unwrap();
    let page = keys.iter().find(|key| key["name"] == "page").unwrap();
    let key = format!(
        "/api/admin/organizations/{}/keys/{}",
        organization.id,
        page["id"].as_str().unwrap()
    );
    assert_eq!(
        send(service.admin().request(Method::DELETE, &key))
            .await
            .status,
        204
    );
    let deleted = Instant::now();
    for visitor in &here {
        let left = PROMISED.saturating_sub(deleted.elapsed());
        let refused = eventually("the token is refused", left, async || {
            let answer = visitor.get(&path).await;
            (answer.status != 404).then_some(answer)
        });
        refused.await.assert_problem(401, Some("INVALID_API_KEY"));
    }
    let again = ask(
        &organization.client_with("page"),
        organization.shop(),
        Some(PAGE),
        json!({}),
    )
    .await;
    again.assert_problem(401, Some("INVALID_API_KEY"));
    let fields = json!({"visitorSecret": visitor.issued["visitorSecret"]});
    let back = Visitor::asks(&service.client(), organization.shop(), fields).await;
    assert_eq!(
        back.issued["visitorId"], visitor.issued["visitorId"],
        "the visitor outlives the key"
    );
}

#[tokio::test]
async fn agent_limit_holds_for_each_visitor_of_its_pages() {
    let limits = json!({"maxMessageLength": 4000, "rateLimitPerMinute": 2});
    let organization = shop_with_settings(json!({"limits": limits})).await;
    let service = organization.service();
    let (ada, bob) = (
        Visitor::comes_to(&service.client(), &organization).await,
        Visitor::comes_to(&service.client(), &organization).await,
    );
    for session in ["one", "two"] {
        let reply = ada.chat(session, "hi").await;
        assert!(
            reply
                .required_header("ratelimit-policy")
                .contains("\"chat\";q=60;w=60")
        );
        reply.complete();
    }
    let refused = ada.chat("three", "hi").await.into_answer();
    assert_eq!(
        refused.assert_problem(429, Some("RATE_LIMITED"))["details"]["bucket"],
        "visitor"
    );
    bob.chat("one", "hi").await.complete();
}

#[tokio::test]
async fn page_that_asked_for_a_token_is_listed_for_its_owner() {
    let organization = shop_saying("ok").await;
    let service = organization.service();
    let path = organization.admin_path(&format!("/agents/{}/pages", organization.shop()));
    assert_eq!(service.admin().get(&path).await.json()["items"], json!([]));
    Visitor::comes_to(&service.client(), &organization).await;
    let listed = eventually("the page is listed", PATIENCE, async || {
        let pages = service.admin().get(&path).await.json();
        pages["items"].get(0).cloned()
    })
    .await;
    assert_eq!(listed["origin"], PAGE);
    assert!(listed["lastSeenAt"].is_string(), "{listed}");
}
