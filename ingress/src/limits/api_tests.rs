//! Tests of rate limits, origins and response headers over embedded backends.

use http::header;
use serde_json::json;
use switchboard_schemas::{api_key::ApiKeyText, conversation::ReplyStatus, reply_event::FrameBody};

use crate::{
    IngressConfig,
    testing::{Answer, World, org_id, reply_frames},
};

/// Maximum size of all headers of the service together.
const HEADERS_BYTES_MAX: usize = 3 << 10;
const ORIGIN: (&str, &str) = ("origin", "https://page.example");

async fn agent_with(world: &World, key: &str) -> Answer {
    world
        .send_with("GET", &World::agent_path(""), &[("x-api-key", key)], "")
        .await
}

fn limited() -> (u16, String) {
    (429, "RATE_LIMITED".to_owned())
}

#[tokio::test]
async fn request_above_the_key_limit_is_429_with_retry_after() {
    let world = World::new().await;
    let key = world
        .new_key(
            "acme",
            json!({ "name": "slow", "limits": { "configPerMinute": 2 } }),
        )
        .await;
    for left in ["1", "0"] {
        let answer = agent_with(&world, &key).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.headers["ratelimit-policy"], "\"config\";q=2;w=60");
        let state = answer.headers["ratelimit"].to_str().unwrap();
        assert!(
            state.starts_with(&format!("\"config\";r={left};t=")),
            "{state}"
        );
    }
    let refused = agent_with(&world, &key).await;
    assert_eq!(refused.problem(), limited());
    let seconds: u64 = refused.headers[header::RETRY_AFTER]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((59..=60).contains(&seconds), "{seconds}");
    assert_eq!(
        refused.headers["ratelimit"],
        format!("\"config\";r=0;t={seconds}")
    );
    assert_eq!(
        refused.json()["details"],
        json!({ "bucket": "config", "limit": 2 })
    );
    assert_eq!(world.counter("switchboard_rate_limited_total"), 1);
}

#[tokio::test]
async fn missing_scope_is_counted_and_an_expired_key_is_not() {
    let world = World::new().await;
    let key = json!({ "name": "narrow", "scopes": ["chat"], "limits": { "configPerMinute": 1 } });
    let key = world.new_key("acme", key).await;
    let refused = agent_with(&world, &key).await;
    assert_eq!(refused.problem(), (403, "INSUFFICIENT_SCOPE".to_owned()));
    assert!(refused.headers.contains_key("ratelimit"));
    assert_eq!(agent_with(&world, &key).await.problem(), limited());
    let key = world
        .new_key(
            "acme",
            json!({ "name": "old", "expiresAt": "2020-01-01T00:00:00Z" }),
        )
        .await;
    for _ in 0..2 {
        let expired = agent_with(&world, &key).await;
        assert_eq!(expired.problem(), (401, "EXPIRED_API_KEY".to_owned()));
        assert_eq!(expired.headers["ratelimit-policy"], "\"config\";q=120;w=60");
        assert!(!expired.headers.contains_key("ratelimit"));
    }
}

#[tokio::test]
async fn response_without_a_credential_has_no_limit_headers() {
    let world = World::new().await;
    for headers in [&[][..], &[("x-api-key", "wrong")]] {
        let answer = world
            .send_with("GET", &World::agent_path(""), headers, "")
            .await;
        assert!(
            !answer.headers.contains_key("ratelimit-policy")
                && !answer.headers.contains_key("ratelimit")
        );
        assert_eq!(answer.headers[header::WWW_AUTHENTICATE], "Bearer");
    }
}

#[tokio::test]
async fn limiter_outage_grants_the_full_limit_and_is_counted() {
    let world = World::new().await;
    let key = world
        .new_key(
            "acme",
            json!({ "name": "slow", "limits": { "configPerMinute": 2 } }),
        )
        .await;
    world.limiter.faults.set_down(true);
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(agent_with(&world, &key).await.status.as_u16());
    }
    assert_eq!(statuses, [200, 200, 429]);
    assert_eq!(world.counter("switchboard_limiter_fallbacks_total"), 3);
}

#[tokio::test]
async fn agent_limit_counts_valid_messages_by_visitor_or_session() {
    let world = World::new().await;
    world
        .edit_agent(|agent| agent.settings.limits.rate_limit_per_minute = 1)
        .await;
    world.bus.faults.set_down(true);
    let send = async |visitor: &str, session: &str| {
        let body =
            json!({ "message": "hi", "sessionId": session, "visitorId": visitor }).to_string();
        world.send("POST", &World::agent_path("/chat"), body).await
    };
    let invalid = world
        .send(
            "POST",
            &World::agent_path("/chat"),
            r#"{"visitorId":"ada"}"#,
        )
        .await;
    assert_eq!(invalid.problem().0, 400);
    assert_eq!(send("ada", "s1").await.problem().0, 503);
    let refused = send("ada", "s2").await;
    assert_eq!(refused.problem(), limited());
    assert_eq!(
        refused.headers["ratelimit-policy"],
        "\"chat\";q=60;w=60, \"visitor\";q=1;w=60"
    );
    assert_eq!(send("bob", "s1").await.problem().0, 503);
    // A session is counted separately, even if it is named like a visitor.
    let by_session = world
        .send(
            "POST",
            &World::agent_path("/chat"),
            r#"{"message":"hi","sessionId":"ada"}"#,
        )
        .await;
    assert_eq!(by_session.problem().0, 503);
}

#[tokio::test]
async fn key_guessing_is_rejected_without_a_read() {
    let config = IngressConfig {
        failed_authentications_per_minute: 2,
        ..IngressConfig::default()
    };
    let world = World::with(config).await;
    let (in_use, unused) = (
        world.key.clone(),
        world.new_key("acme", json!({ "name": "unused" })).await,
    );
    assert_eq!(agent_with(&world, &in_use).await.status, 200);
    for guess in ["svc_live_x", ApiKeyText::generate().expose()] {
        assert_eq!(
            agent_with(&world, guess).await.problem(),
            (401, "INVALID_API_KEY".to_owned())
        );
    }
    for guess in ["svc_live_x", ApiKeyText::generate().expose(), &unused] {
        let refused = agent_with(&world, guess).await;
        assert_eq!(
            refused.problem(),
            limited(),
            "valid and invalid keys get different responses"
        );
        assert!(!refused.headers.contains_key("ratelimit"));
    }
    assert_eq!(agent_with(&world, &in_use).await.status, 200);
    let missing = world
        .send_with("GET", &World::agent_path(""), &[], "")
        .await;
    assert_eq!(missing.problem(), (401, "MISSING_API_KEY".to_owned()));
}

#[tokio::test]
async fn admin_token_guessing_is_rejected_even_when_right() {
    let config = IngressConfig {
        failed_authentications_per_minute: 1,
        ..IngressConfig::default()
    };
    let world = World::with(config).await;
    for (token, status) in [("wrong", 401), (crate::testing::ADMIN_TOKEN, 429)] {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str())];
        let answer = world
            .send_with(
                "POST",
                "/api/admin/apply",
                &headers,
                r#"{"organizations":[]}"#,
            )
            .await;
        assert_eq!(answer.status, status);
    }
}

#[tokio::test]
async fn session_guessing_is_rejected_even_when_right() {
    let config = IngressConfig {
        unknown_sessions_per_minute: 2,
        ..IngressConfig::default()
    };
    let world = World::with(config).await;
    world.put_conversation(org_id()).await;
    let read = async |session: &str| {
        world
            .send(
                "GET",
                &World::agent_path(&format!("/conversations/{session}")),
                "",
            )
            .await
            .problem()
    };
    assert_eq!(read("s").await.0, 200);
    for session in ["guess", "another"] {
        assert_eq!(
            read(session).await,
            (404, "CONVERSATION_NOT_FOUND".to_owned())
        );
    }
    for session in ["third", "s"] {
        assert_eq!(read(session).await, limited());
    }
    let patch = world
        .send("PATCH", &World::agent_path("/conversations/s"), "{}")
        .await;
    assert_eq!(patch.problem(), limited());
}

#[tokio::test]
async fn preflight_needs_no_key_on_public_routes_only() {
    let world = World::new().await;
    let headers = [
        ORIGIN,
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "x-api-key"),
    ];
    let paths = [
        World::agent_path(""),
        World::agent_path("/chat"),
        World::agent_path("/widget"),
        World::agent_path("/conversations/s"),
        "/api/public/teams/team_x/chat".to_owned(),
        "/api/public/messages/msg_x/cancel".to_owned(),
        "/api/widget/token".to_owned(),
    ];
    for path in paths {
        let answer = world.send_with("OPTIONS", &path, &headers, "").await;
        assert_eq!(
            (answer.status.as_u16(), answer.text.as_str()),
            (204, ""),
            "{path}"
        );
        assert_eq!(
            answer.headers[header::ACCESS_CONTROL_ALLOW_ORIGIN],
            ORIGIN.1
        );
        assert_eq!(answer.headers[header::ACCESS_CONTROL_MAX_AGE], "7200");
        assert!(
            !answer
                .headers
                .contains_key(header::ACCESS_CONTROL_ALLOW_CREDENTIALS)
        );
    }
    let admin = world
        .send_with("OPTIONS", "/api/admin/apply", &headers, "")
        .await;
    assert_eq!(admin.status, 405);
    assert!(
        !admin
            .headers
            .contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN)
    );
}

#[tokio::test]
async fn errors_are_readable_by_pages_of_refused_origins() {
    let world = World::new().await;
    world
        .edit_agent(|agent| agent.settings.allowed_domains = vec!["shop.example".into()])
        .await;
    for (origin, echo) in [(ORIGIN.1, ORIGIN.1), ("null", "*")] {
        let headers = [("x-api-key", world.key.as_str()), ("origin", origin)];
        let answer = world
            .send_with("POST", &World::agent_path("/chat"), &headers, "{}")
            .await;
        assert_eq!(answer.problem(), (403, "DOMAIN_NOT_ALLOWED".to_owned()));
        assert_eq!(answer.headers[header::ACCESS_CONTROL_ALLOW_ORIGIN], echo);
        assert_eq!(answer.headers[header::VARY], "Origin");
    }
    let no_origin = world.send("GET", &World::agent_path(""), "").await;
    assert_eq!(
        no_origin.headers[header::VARY],
        "Origin",
        "a cache could serve this response to a page"
    );
    assert!(
        !no_origin
            .headers
            .contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN)
    );
}

#[tokio::test]
async fn reply_headers_are_exposed_to_pages_and_small() {
    let world = World::new().await;
    let mut frames = reply_frames(&["hi"], ReplyStatus::Completed);
    let FrameBody::Head(head) = &mut frames[0].body else {
        panic!("a reply begins with its head")
    };
    head.ui_spec =
        Some(json!({ "type": "product_grid", "data": vec!["a product of an agent"; 300] }));
    let origin = format!("https://{}.example:65535", "a".repeat(253));
    let answer = world.chat_with(&[("origin", &origin)], frames).await;
    assert_eq!(answer.status, 200);
    let exposed = answer.headers[header::ACCESS_CONTROL_EXPOSE_HEADERS]
        .to_str()
        .unwrap()
        .to_lowercase();
    let exposed: Vec<&str> = exposed.split(", ").collect();
    let mut ours = answer
        .headers
        .keys()
        .map(|name| name.as_str())
        .filter(|name| name.starts_with("x-"));
    let for_machines = ["x-accel-buffering", "x-content-type-options"];
    assert!(
        ours.all(|name| exposed.contains(&name) || for_machines.contains(&name)),
        "{:?}",
        answer.headers
    );
    assert!(answer.headers.contains_key("x-ui-spec") && answer.headers.contains_key("ratelimit"));
    let bytes: usize = answer
        .headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum();
    assert!(bytes <= HEADERS_BYTES_MAX, "{bytes}");
}

#[tokio::test]
async fn responses_carry_the_security_headers() {
    let world = World::new().await;
    let fine = world.send("GET", &World::agent_path(""), "").await;
    let preflight = world.send("OPTIONS", &World::agent_path(""), "").await;
    let error = world.send("GET", "/nothing", "").await;
    for answer in [&fine, &preflight, &error] {
        assert_eq!(answer.headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        assert_eq!(answer.headers[header::REFERRER_POLICY], "same-origin");
    }
    assert_eq!(fine.headers[header::CACHE_CONTROL], "no-store");
    assert!(fine.headers.contains_key(header::CONTENT_SECURITY_POLICY));
    assert!(
        !error.headers.contains_key(header::CONTENT_SECURITY_POLICY),
        "pages outside of the API may be cached"
    );
}
