//! Tests of rate limits, origins and response headers over embedded backends.

use http::header;
use serde_json::json;
use switchboard_schemas::{conversation::ReplyStatus, reply_event::FrameBody};

use crate::testing::{Answer, World, reply_frames};

/// Maximum size of all headers of the service together.
const HEADERS_BYTES_MAX: usize = 3 << 10;
async fn agent_with(world: &World, key: &str) -> Answer {
    world
        .send_with("GET", &World::agent_path(""), &[("x-api-key", key)], "")
        .await
}

#[tokio::test]
async fn mistyped_key_is_refused_without_a_lookup() {
    let world = World::new().await;
    world.catalog.faults.set_down(true);
    let mistyped = world.key.replace("svc_live_", "svc_test_");
    assert_eq!(
        agent_with(&world, &mistyped).await.problem(),
        (401, "INVALID_API_KEY".to_owned())
    );
    assert_eq!(
        agent_with(&world, &world.key).await.problem(),
        (503, "UNAVAILABLE".to_owned())
    );
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
