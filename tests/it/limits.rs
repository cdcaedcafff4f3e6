//! Rate limits of keys, visitors and addresses.

use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::json;

use crate::support::{
    ADMIN_TOKEN, Answer, Client, Organization, OrganizationDocument, PATIENCE, TestService,
    eventually, shop_with_settings,
};

async fn with_limits(limits: serde_json::Value) -> Organization {
    OrganizationDocument::new()
        .shop(json!({}))
        .team(
            "front",
            json!({"routing": "random", "members": [{"agent": "shop", "specialization": "all"}]}),
        )
        .key_with("limited", json!({"limits": limits}))
        .key_with("usual", json!({"limits": null}))
        .apply_to_shared()
        .await
}

fn retry_after(answer: &Answer) -> u64 {
    answer
        .header("retry-after")
        .expect("Retry-After")
        .parse()
        .expect("whole seconds")
}

#[tokio::test]
async fn agent_and_team_chat_share_one_bucket() {
    let limits = json!({"chatPerMinute": 3, "configPerMinute": 3, "conversationsPerMinute": 3});
    let organization = with_limits(limits).await;
    let client = organization.client_with("limited");
    client.chat(organization.shop(), "a", "1").await.complete();
    client
        .team_chat(organization.team("front"), "b", "2")
        .await
        .complete();
    client.chat(organization.shop(), "a", "3").await.complete();
    for refused in [
        client
            .chat(organization.shop(), "a", "4")
            .await
            .into_answer(),
        client
            .team_chat(organization.team("front"), "b", "5")
            .await
            .into_answer(),
    ] {
        let problem = refused.assert_problem(429, Some("RATE_LIMITED"));
        assert_eq!(problem["details"], json!({"bucket": "chat", "limit": 3}));
        assert!(
            (1..=60).contains(&retry_after(&refused)),
            "{:?}",
            refused.headers
        );
        assert_eq!(
            refused.header("ratelimit-policy"),
            Some("\"chat\";q=3;w=60")
        );
        assert!(
            refused
                .header("ratelimit")
                .is_some_and(|state| state.contains("r=0")),
            "{:?}",
            refused.headers
        );
    }
    let path = organization.path("");
    assert_eq!(
        client.get(&path).await.status,
        200,
        "the other buckets are untouched"
    );
}

#[tokio::test]
async fn configuration_and_conversation_routes_have_own_buckets() {
    let limits = json!({"configPerMinute": 2, "conversationsPerMinute": 2});
    let organization = with_limits(limits).await;
    let client = organization.client_with("limited");
    client.chat(organization.shop(), "s", "hi").await.complete();
    let agent = organization.path("");
    let conversation = format!("{agent}/conversations/s");
    assert_eq!(client.get(&agent).await.status, 200);
    assert_eq!(client.get(&format!("{agent}/widget")).await.status, 200);
    client
        .get(&agent)
        .await
        .assert_problem(429, Some("RATE_LIMITED"));
    assert_eq!(client.get(&conversation).await.status, 200);
    assert_eq!(client.patch(&conversation, &json!({})).await.status, 200);
    client
        .get(&conversation)
        .await
        .assert_problem(429, Some("RATE_LIMITED"));
}

#[tokio::test]
async fn limit_headers_are_on_every_response_to_a_known_key() {
    let organization = with_limits(json!({})).await;
    let client = organization.client_with("usual");
    let agent = organization.path("");
    let answers = [
        (client.get(&agent).await, "120"),
        (client.get("/api/public/agents/agt_unknown").await, "120"),
        (
            client.get(&format!("{agent}/conversations/none")).await,
            "120",
        ),
        (
            client
                .chat(organization.shop(), "s", "hi")
                .await
                .into_answer(),
            "60",
        ),
    ];
    for (answer, quota) in answers {
        let policy = answer.header("ratelimit-policy").expect("RateLimit-Policy");
        assert!(policy.contains(quota) && policy.contains("60"), "{policy}");
        assert!(answer.header("ratelimit").is_some(), "{:?}", answer.headers);
    }
}

#[tokio::test]
async fn limit_is_exact_for_concurrent_requests_on_all_ingresses() {
    let organization = with_limits(json!({"configPerMinute": 20})).await;
    let service = organization.service();
    let path = organization.path("");
    let urls = service.public_urls();
    let key = organization.key_text("limited");
    let requests = (0..60).map(|number| {
        let client = Client::new(&urls[number % urls.len()]).with_key(key);
        let path = path.clone();
        async move { client.get(&path).await.status }
    });
    let statuses = join_all(requests).await;
    assert_eq!(
        statuses.iter().filter(|status| **status == 200).count(),
        20,
        "{statuses:?}"
    );
    assert_eq!(
        statuses.iter().filter(|status| **status == 429).count(),
        40,
        "{statuses:?}"
    );
}

#[tokio::test]
async fn request_succeeds_after_retry_after_and_not_much_earlier() {
    let organization = with_limits(json!({"configPerMinute": 1})).await;
    let client = organization.client_with("limited");
    let path = organization.path("");
    assert_eq!(client.get(&path).await.status, 200);
    let refused = client.get(&path).await;
    refused.assert_problem(429, Some("RATE_LIMITED"));
    let waiting_time = Duration::from_secs(retry_after(&refused));
    let began = Instant::now();
    assert!(
        waiting_time >= Duration::from_secs(55) && waiting_time <= Duration::from_secs(60),
        "{waiting_time:?}"
    );
    tokio::time::sleep(waiting_time.saturating_sub(Duration::from_secs(3))).await;
    assert_eq!(
        client.get(&path).await.status,
        429,
        "refused requests and early ones do not open the window"
    );
    tokio::time::sleep(waiting_time.saturating_sub(began.elapsed())).await;
    assert_eq!(client.get(&path).await.status, 200);
}

#[tokio::test]
async fn agent_limit_counts_each_visitor() {
    let settings = json!({"limits": {"maxMessageLength": 100, "rateLimitPerMinute": 2}});
    let organization = shop_with_settings(settings).await;
    let send = async |session: &str, visitor: Option<&str>| {
        let mut body = json!({"message": "hi", "sessionId": session});
        if let Some(visitor) = visitor {
            body["visitorId"] = visitor.into();
        }
        Answer::read(organization.open_chat(&body).await)
            .await
            .unwrap()
    };
    for session in ["s1", "s2"] {
        assert_eq!(send(session, Some("ada")).await.status, 200);
    }
    let refused = send("s3", Some("ada")).await;
    refused.assert_problem(429, Some("RATE_LIMITED"));
    assert!(retry_after(&refused) >= 1);
    let policy = refused.header("ratelimit-policy").unwrap();
    assert!(policy.ends_with(", \"visitor\";q=2;w=60"), "{policy}");
    let named_alike = send("ada", None).await;
    assert_eq!(named_alike.status, 200, "a session named like a visitor");
    assert_eq!(send("s4", Some("bob")).await.status, 200, "another visitor");
    assert_eq!(
        send("s5", None).await.status,
        200,
        "another session without a visitor"
    );
}

/// Starts a service that rejects an address after three failures. Tests act as the proxy that sets
/// the addresses.
async fn strict_service() -> TestService {
    TestService::start_with(&[
        ("SWITCHBOARD__INGRESS__TRUSTED_PROXIES", "127.0.0.1"),
        (
            "SWITCHBOARD__INGRESS__FAILED_AUTHENTICATIONS_PER_MINUTE",
            "3",
        ),
        ("SWITCHBOARD__INGRESS__UNKNOWN_SESSIONS_PER_MINUTE", "3"),
    ])
    .await
}

async fn get_from(address: &str, client: &Client, path: &str) -> Answer {
    let request = client
        .request(reqwest::Method::GET, path)
        .header("x-forwarded-for", address);
    Answer::read(request.send().await.unwrap()).await.unwrap()
}

#[tokio::test]
async fn unused_key_is_accepted_after_wrong_ones() {
    let service = strict_service().await;
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .key("unused", &[])
        .apply(&service)
        .await;
    let path = organization.path("");
    let url = &service.public_urls()[0];
    let wrong = Client::new(url).with_key("svc_live_guess");
    for _ in 0..3 {
        get_from("203.0.113.1", &wrong, &path)
            .await
            .assert_problem(401, Some("INVALID_API_KEY"));
    }
    let refused = get_from("203.0.113.1", &wrong, &path).await;
    refused.assert_problem(429, Some("RATE_LIMITED"));
    assert!((1..=60).contains(&retry_after(&refused)));
    assert_eq!(refused.header("ratelimit"), None);
    let unused = Client::new(url).with_key(organization.key_text("unused"));
    for _ in 0..2 {
        let answer = get_from("203.0.113.1", &unused, &path).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    get_from("203.0.113.1", &wrong, &path)
        .await
        .assert_problem(429, Some("RATE_LIMITED"));
    get_from("203.0.113.2", &wrong, &path)
        .await
        .assert_problem(401, Some("INVALID_API_KEY"));
}

#[tokio::test]
async fn right_admin_token_is_accepted_after_wrong_ones() {
    let service = strict_service().await;
    let attempts = [
        ("a", 401),
        ("b", 401),
        ("c", 401),
        ("d", 429),
        (ADMIN_TOKEN, 200),
        ("e", 429),
        (ADMIN_TOKEN, 200),
    ];
    for (token, status) in attempts {
        let client = Client::new(&service.admin_urls()[0]).with_key(token);
        let answer = get_from("203.0.113.5", &client, "/api/admin/organizations").await;
        assert_eq!(answer.status, status, "{token}: {}", answer.text);
    }
}

#[tokio::test]
async fn ignored_forwarded_address_is_reported_once() {
    let limit = (
        "SWITCHBOARD__INGRESS__FAILED_AUTHENTICATIONS_PER_MINUTE",
        "3",
    );
    let untrusting = TestService::start_with(&[limit]).await;
    let trusting = strict_service().await;
    for service in [&untrusting, &trusting] {
        let wrong = Client::new(&service.public_urls()[0]).with_key("svc_live_guess");
        let mut statuses = vec![];
        for host in 1..=4 {
            let address = format!("203.0.113.{host}");
            let answer = get_from(&address, &wrong, "/api/public/agents/a").await;
            statuses.push(answer.status);
        }
        let count = || service.logs().matches("TRUSTED_PROXIES").count();
        if std::ptr::eq(service, &untrusting) {
            eventually("a warning", PATIENCE, async || (count() > 0).then_some(())).await;
            assert_eq!(
                statuses,
                [401, 401, 401, 429],
                "a forged address is counted"
            );
            assert_eq!(count(), 1, "{}", service.logs());
        } else {
            assert_eq!((statuses, count()), (vec![401; 4], 0));
        }
    }
}

#[tokio::test]
async fn address_that_guesses_sessions_is_refused() {
    let service = strict_service().await;
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .apply(&service)
        .await;
    let client = organization.client_at(&service.public_urls()[0]);
    organization.chat("known", "hi").await.complete();
    let unknown = organization.path("/conversations/guess");
    for _ in 0..3 {
        get_from("203.0.113.3", &client, &unknown)
            .await
            .assert_problem(404, Some("CONVERSATION_NOT_FOUND"));
    }
    for session in ["guess", "known"] {
        let path = organization.path(&format!("/conversations/{session}"));
        get_from("203.0.113.3", &client, &path)
            .await
            .assert_problem(429, Some("RATE_LIMITED"));
    }
    get_from("203.0.113.4", &client, &unknown)
        .await
        .assert_problem(404, Some("CONVERSATION_NOT_FOUND"));
}

#[tokio::test]
async fn no_rolling_minute_exceeds_the_limit() {
    const LIMIT: usize = 6;
    let organization = with_limits(json!({"configPerMinute": LIMIT})).await;
    let service = organization.service();
    let path = organization.path("");
    let urls = service.public_urls();
    // Sends concurrent requests to all ingresses and counts the admitted ones.
    let burst = async |count: usize| {
        let requests = (0..count).map(|number| {
            let client =
                Client::new(&urls[number % urls.len()]).with_key(organization.key_text("limited"));
            let path = path.clone();
            async move { client.get(&path).await.status }
        });
        join_all(requests)
            .await
            .into_iter()
            .filter(|status| *status == 200)
            .count()
    };
    let began = Instant::now();
    let at = async |seconds: u64| {
        tokio::time::sleep(Duration::from_secs(seconds).saturating_sub(began.elapsed())).await
    };
    assert_eq!(burst(2).await, 2);
    at(20).await;
    assert_eq!(
        burst(10).await,
        LIMIT - 2,
        "the two of the first second still count"
    );
    at(50).await;
    assert_eq!(
        burst(10).await,
        0,
        "a window that began anew on the minute would admit some"
    );
    at(63).await;
    assert_eq!(
        burst(10).await,
        2,
        "only the two of the first second are forgotten"
    );
}

#[tokio::test]
async fn message_routes_count_in_the_conversation_bucket() {
    let organization = with_limits(json!({"conversationsPerMinute": 3})).await;
    let client = organization.client_with("limited");
    let reply = client.chat(organization.shop(), "s", "hi").await;
    let message = format!(
        "/api/public/messages/{}",
        reply.required_header("x-message-id")
    );
    assert_eq!(client.get(&message).await.status, 200);
    assert_eq!(client.get(&format!("{message}/stream")).await.status, 200);
    assert_eq!(
        client
            .post(&format!("{message}/cancel"), &json!({}))
            .await
            .status,
        200
    );
    client
        .get(&message)
        .await
        .assert_problem(429, Some("RATE_LIMITED"));
    let conversation = organization.path("/conversations/s");
    client
        .get(&conversation)
        .await
        .assert_problem(429, Some("RATE_LIMITED"));
}
