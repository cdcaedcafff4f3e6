//! Visitor tokens: what a page holds instead of a key, from the first visit to the last refusal.

use std::time::{Duration, Instant};

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::support::{
    Answer, Client, Events, Organization, OrganizationDocument, PATIENCE, Reply, Script,
    SharedService, TestService, eventually, send,
};

const TOKEN_ROUTE: &str = "/api/widget/token";
const PAGE: &str = "https://shop.example";

/// A visitor of a page, at one ingress.
struct Visitor {
    client: Client,
    issued: Value,
    agent: String,
}

impl Visitor {
    /// Comes for the first time, to the agent named `shop`.
    async fn comes_to(client: &Client, organization: &Organization) -> Self {
        Self::asks(client, organization.shop(), json!({})).await
    }

    async fn asks(client: &Client, agent: &str, fields: Value) -> Self {
        let answer = ask(client, agent, Some(PAGE), fields).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let issued = answer.json();
        let client = client.with_key(issued["token"].as_str().unwrap());
        Self {
            client,
            issued,
            agent: agent.to_owned(),
        }
    }

    /// The same visitor at another ingress.
    fn at(&self, url: &str) -> Self {
        let client = Client::new(url).with_key(self.issued["token"].as_str().unwrap());
        Self {
            client,
            issued: self.issued.clone(),
            agent: self.agent.clone(),
        }
    }

    fn path(&self, rest: &str) -> String {
        format!("/api/public/agents/{}{rest}", self.agent)
    }

    async fn chat(&self, session: &str, message: &str) -> Reply {
        let body = json!({"message": message, "sessionId": session});
        Reply::read(
            self.as_page(Method::POST, &self.path("/chat"))
                .json(&body)
                .send()
                .await
                .unwrap(),
        )
        .await
    }

    async fn get(&self, path: &str) -> Answer {
        send(self.as_page(Method::GET, path)).await
    }

    fn as_page(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, path).header("origin", PAGE)
    }
}

async fn ask(client: &Client, agent: &str, origin: Option<&str>, fields: Value) -> Answer {
    let mut body = json!({"agentId": agent});
    body.as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    let request = client.request(Method::POST, TOKEN_ROUTE).json(&body);
    send(
        origin
            .into_iter()
            .fold(request, |request, origin| request.header("origin", origin)),
    )
    .await
}

#[tokio::test]
async fn a_visitor_chats_follows_reads_and_rates_and_the_organization_sees_it() {
    let service = SharedService::get().await;
    let organization = Organization::with_agent(&service, Script::says("welcome")).await;
    let visitor = Visitor::comes_to(&service.client(), &organization).await;
    let widget = organization
        .client()
        .get(&visitor.path("/widget"))
        .await
        .json();
    assert_eq!(
        visitor.issued["configuration"], widget,
        "what the widget starts with comes in the same answer"
    );

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

    let seen = organization
        .client()
        .history(organization.shop(), "visit")
        .await;
    assert_eq!(seen["id"], history["id"]);
    let metadata = &seen["metadata"];
    assert_eq!(
        (&metadata["source"], &metadata["rating"]),
        (&json!("widget"), &json!(4))
    );
    assert_eq!(metadata["visitorId"], visitor.issued["visitorId"]);
}

#[tokio::test]
async fn a_visitor_stops_its_own_reply() {
    let service = SharedService::get().await;
    let organization =
        Organization::with_agent(&service, Script::counts(100, Duration::from_millis(100))).await;
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
async fn each_route_is_open_or_out_of_scope() {
    let service = SharedService::get().await;
    let members = json!([{"agent": "shop", "specialization": "all"}]);
    let organization = OrganizationDocument::new()
        .agent("shop", json!({}))
        .agent("other", json!({}))
        .team("front", json!({"routing": "random", "members": members}))
        .key("chat", &["chat"])
        .apply(&service)
        .await;
    let page = Visitor::comes_to(&service.client(), &organization).await;
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
        assert_eq!(apply.status, 401, "{}", apply.text);
    }
}

#[tokio::test]
async fn sessions_of_others_are_not_there_whoever_began_them() {
    let service = SharedService::get().await;
    let organization = Organization::with_agent(&service, Script::says("canary-private")).await;
    let (ada, bob) = (
        Visitor::comes_to(&service.client(), &organization).await,
        Visitor::comes_to(&service.client(), &organization).await,
    );
    let of_ada = ada.chat("ada", "hi").await.required_header("x-message-id");
    let by_key = organization
        .client()
        .chat(organization.shop(), "by-key", "hi")
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
    let conversation = organization
        .client()
        .history(organization.shop(), "ada")
        .await["id"]
        .clone();
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
        let change = send(
            bob.as_page(Method::PATCH, &path)
                .json(&json!({"rating": 1})),
        )
        .await;
        change.assert_problem(404, Some("CONVERSATION_NOT_FOUND"));
    }
    assert_eq!(bob.chat("ada", "mine").await.complete(), "canary-private");
    let history = bob.get(&bob.path("/conversations/ada")).await.json();
    assert_eq!(
        history["totalMessages"], 2,
        "the same session id is another conversation: {history}"
    );
    assert_eq!(
        ada.get(&ada.path("/conversations/ada")).await.json()["totalMessages"],
        4
    );
}

#[tokio::test]
async fn a_token_opens_nothing_on_another_page_and_needs_no_origin_in_a_program() {
    let service = SharedService::get().await;
    let organization = OrganizationDocument::new()
        .agent(
            "shop",
            json!({"allowedDomains": ["shop.example", "other.example"]}),
        )
        .apply(&service)
        .await;
    let visitor = Visitor::comes_to(&service.client(), &organization).await;
    let body = json!({"message": "hi", "sessionId": "s"});
    for path in ["/chat", "/conversations/s"] {
        let method = if path == "/chat" {
            Method::POST
        } else {
            Method::GET
        };
        for origin in ["https://other.example", "http://shop.example", "null"] {
            let request = visitor
                .client
                .request(method.clone(), &visitor.path(path))
                .header("origin", origin);
            send(request.json(&body))
                .await
                .assert_problem(403, Some("DOMAIN_NOT_ALLOWED"));
        }
        let answer = send(
            visitor
                .client
                .request(method, &visitor.path(path))
                .json(&body),
        )
        .await;
        assert_eq!(answer.status, 200, "{}", answer.text);
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
async fn who_has_neither_a_page_nor_a_chat_key_gets_no_token() {
    let service = SharedService::get().await;
    let organization = OrganizationDocument::new()
        .agent("shop", json!({}))
        .agent("hidden", json!({"public": false}))
        .agent(
            "draft",
            json!({"status": "draft", "widget": {"offlineMessage": "not yet"}}),
        )
        .key("config", &["config"])
        .apply(&service)
        .await;
    let other = OrganizationDocument::new()
        .agent("shop", json!({}))
        .apply(&service)
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
    let draft = ask(&nobody, organization.agent("draft"), Some(PAGE), json!({})).await;
    assert_eq!(
        draft.json()["offline"]["offlineMessage"],
        "not yet",
        "{}",
        draft.text
    );
    assert!(
        ask(&organization.client(), shop, None, json!({}))
            .await
            .status
            == 200,
        "a key needs no page"
    );
}

#[tokio::test]
async fn a_forged_token_is_no_key() {
    let service = SharedService::get().await;
    let organization = Organization::with_agent(&service, Script::says("ok")).await;
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
async fn tokens_are_in_no_log_and_no_metric() {
    let service = SharedService::get().await;
    let organization = Organization::with_agent(&service, Script::says("ok")).await;
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

#[tokio::test]
async fn a_refreshed_page_finds_its_session_on_every_ingress_and_after_a_restart() {
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
async fn a_token_expires_and_is_renewed_and_the_limits_of_pages_hold_on_all_ingresses() {
    let service = TestService::start_with(&[
        ("SWITCHBOARD__INGRESS__VISITOR_TOKEN_LIFETIME_MS", "2000"),
        ("SWITCHBOARD__INGRESS__TRUSTED_PROXIES", "127.0.0.1"),
        (
            "SWITCHBOARD__INGRESS__VISITOR_TOKENS_PER_ADDRESS_PER_MINUTE",
            "4",
        ),
        (
            "SWITCHBOARD__INGRESS__VISITOR_CHATS_PER_ADDRESS_PER_MINUTE",
            "3",
        ),
        (
            "SWITCHBOARD__INGRESS__VISITOR_CHATS_PER_SITE_PER_MINUTE",
            "4",
        ),
    ])
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

    for _ in 0..2 {
        Visitor::comes_to(&service.client(), &organization).await;
    }
    let refused = ask(
        &service.client(),
        organization.shop(),
        Some(PAGE),
        json!({}),
    )
    .await;
    assert_eq!(
        refused.assert_problem(429, Some("RATE_LIMITED"))["details"]["bucket"],
        "visitor_tokens"
    );
    assert!(
        refused.header("retry-after").is_some() && refused.header("ratelimit-policy").is_some()
    );

    let from = async |address: &str| {
        let body = json!({"agentId": organization.shop()});
        let request = service
            .client()
            .request(Method::POST, TOKEN_ROUTE)
            .header("x-forwarded-for", address);
        let issued = send(request.header("origin", PAGE).json(&body))
            .await
            .json();
        let client = service.client().with_key(issued["token"].as_str().unwrap());
        let path = format!("/api/public/agents/{}/chat", organization.shop());
        let request = client
            .request(Method::POST, &path)
            .header("x-forwarded-for", address)
            .header("origin", PAGE);
        let answer = send(request.json(&json!({"message": "hi", "sessionId": "s"}))).await;
        if answer.status == 200 {
            None
        } else {
            Some(
                answer.json()["details"]["bucket"]
                    .as_str()
                    .unwrap()
                    .to_owned(),
            )
        }
    };
    // One message was the first visitor's, from another address.
    let (first, second) = ("203.0.113.1", "203.0.113.2");
    let outcomes = [
        from(first).await,
        from(first).await,
        from(first).await,
        from(first).await,
        from(second).await,
    ];
    let refusals = outcomes.each_ref().map(Option::as_deref);
    assert_eq!(
        refusals,
        [None, None, None, Some("address_chats"), Some("site_chats")]
    );
}

#[tokio::test]
async fn a_token_dies_with_its_key_on_every_ingress_within_two_seconds() {
    let service = SharedService::get().await;
    let organization = OrganizationDocument::new()
        .agent("shop", json!({}))
        .key("page", &["chat"])
        .apply(&service)
        .await;
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
        let left = Duration::from_secs(2).saturating_sub(deleted.elapsed());
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
async fn the_agents_limit_holds_for_each_visitor_of_its_pages() {
    let service = SharedService::get().await;
    let limits = json!({"maxMessageLength": 4000, "rateLimitPerMinute": 2});
    let organization = OrganizationDocument::new()
        .agent("shop", json!({"limits": limits}))
        .apply(&service)
        .await;
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
