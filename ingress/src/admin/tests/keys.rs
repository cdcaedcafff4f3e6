//! Tests of secrets and of the rotation of API keys.

use std::{
    fmt::Debug,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use switchboard_backends::testing::Fault;
use tracing::{
    Event, Metadata, Subscriber,
    field::Field,
    span::{Attributes, Id, Record},
};

use super::{admin, create, of};
use crate::testing::{Answer, World};

#[tokio::test]
async fn stored_secrets_are_never_shown_again() {
    let world = World::new().await;
    let provider = create(
        &world,
        "providers",
        json!({ "slug": "main", "apiKey": "sk-canary" }),
    )
    .await;
    assert_eq!(
        (provider.get("apiKey"), &provider["hasApiKey"]),
        (None, &json!(true))
    );
    let key = create(&world, "keys", json!({ "name": "k" })).await;
    let value = key["value"].as_str().unwrap();
    assert_eq!(key["lastFour"].as_str().unwrap(), &value[value.len() - 4..]);
    let provider = of(&format!("/providers/{}", provider["id"].as_str().unwrap()));
    let key = of(&format!("/keys/{}", key["id"].as_str().unwrap()));
    let mut seen = String::new();
    for path in [
        &provider,
        &key,
        &of("/providers"),
        &of("/keys"),
        &of(""),
        &String::new(),
    ] {
        seen.push_str(&admin(&world, "GET", path, Value::Null).await.text);
    }
    seen.push_str(
        &admin(&world, "PATCH", &provider, json!({ "model": "m" }))
            .await
            .text,
    );
    seen.push_str(
        &admin(
            &world,
            "PATCH",
            &provider,
            json!({ "apiKey": ["sk-canary"] }),
        )
        .await
        .text,
    );
    seen.push_str(
        &admin(&world, "PATCH", &key, json!({ "scopes": ["chat"] }))
            .await
            .text,
    );
    assert!(
        !seen.contains("sk-canary") && !seen.contains(value) && !seen.contains("hash"),
        "{seen}"
    );
    assert_eq!(
        admin(&world, "GET", &provider, Value::Null).await.json()["hasApiKey"],
        true,
        "a patch keeps it"
    );
    let cleared = admin(&world, "PATCH", &provider, json!({ "apiKey": null }))
        .await
        .json();
    assert_eq!(cleared["hasApiKey"], false);
}

/// Rotates a key of an earlier response.
async fn rotate(world: &World, key: &Value, body: Value) -> Answer {
    let path = of(&format!("/keys/{}/rotate", key["id"].as_str().unwrap()));
    admin(world, "POST", &path, body).await
}

/// Returns status and error code of a public request with a key.
async fn read_with(world: &World, key: &Value) -> (u16, String) {
    let value = key["value"].as_str().unwrap();
    world
        .send_with("GET", &World::agent_path(""), &[("x-api-key", value)], "")
        .await
        .problem()
}

#[tokio::test]
async fn applied_document_changes_the_successor_of_a_rotated_key() {
    let world = World::new().await;
    let key = json!({ "name": "k", "scopes": ["config"] });
    let old = create(&world, "keys", key).await;
    let rotated = rotate(&world, &old, json!({ "overlapSeconds": 3600 })).await;
    let rotated = rotated.json();
    let keys = json!([{ "name": "k", "scopes": [] }]);
    let document = json!({ "organizations": [{ "slug": "acme", "name": "Acme", "keys": keys }] });
    let applied = world.admin("POST", "/api/admin/apply", &[], document).await;
    let applied = &applied.json()["organizations"][0]["keys"][0];
    assert_eq!(applied["id"], rotated["id"]);
    let path = of(&format!("/keys/{}", old["id"].as_str().unwrap()));
    let kept = admin(&world, "GET", &path, Value::Null).await.json();
    assert_eq!(kept["scopes"], json!(["config"]));
}

#[tokio::test]
async fn key_rotated_without_overlap_expires_at_once() {
    let world = World::new().await;
    let first = create(&world, "keys", json!({ "name": "k", "scopes": ["config"] })).await;
    let old = rotate(&world, &first, json!({ "overlapSeconds": 3600 })).await;
    let old = old.json();
    assert_eq!(read_with(&world, &old).await.0, 200);
    let rotated = rotate(&world, &old, json!({ "overlapSeconds": 0 })).await;
    let rotated = rotated.json();
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(5);
    while read_with(&world, &old).await.1 != "EXPIRED_API_KEY" {
        assert!(
            tokio::time::Instant::now() < deadline,
            "the old key still works"
        );
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(read_with(&world, &rotated).await.0, 200);
}

/// Records the fields of all events of the thread.
#[derive(Clone, Default)]
struct EventRecorder(Arc<Mutex<Vec<String>>>);

impl Subscriber for EventRecorder {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = String::new();
        event.record(&mut |field: &Field, value: &dyn Debug| {
            fields.push_str(&format!("{field}={value:?} "));
        });
        self.0.lock().unwrap().push(fields);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Rotates a key while the store refuses to change the old one, and returns the stored keys.
async fn fail_to_rotate(world: &World) -> Vec<Value> {
    let key = create(world, "keys", json!({ "name": "k" })).await;
    let faults = &world.catalog.faults;
    faults.inject_after("put", Fault::Refuse, 1);
    let answer = rotate(world, &key, json!({ "overlapSeconds": 0 })).await;
    assert_eq!(answer.problem(), (503, "UNAVAILABLE".into()));
    faults.clear("put");
    let keys = admin(world, "GET", &of("/keys"), Value::Null).await.json();
    let mut keys = keys["items"].as_array().unwrap().clone();
    keys.retain(|key| key["name"] == "k");
    keys
}

#[tokio::test]
async fn failed_rotation_leaves_the_old_key_as_it_was() {
    let keys = fail_to_rotate(&World::new().await).await;
    assert_eq!(keys.len(), 1, "{keys:?}");
    assert_eq!(keys[0]["expiresAt"], Value::Null);
}

#[tokio::test]
async fn failed_rollback_of_a_rotation_is_logged() {
    let (world, recorder) = (World::new().await, EventRecorder::default());
    let _recording = tracing::subscriber::set_default(recorder.clone());
    world.catalog.faults.inject("remove", Fault::Refuse);
    let keys = fail_to_rotate(&world).await;
    assert_eq!(keys.len(), 2, "{keys:?}");
    let events = recorder.0.lock().unwrap().clone();
    let logged = |event: &String| {
        let names_successor = |key: &Value| event.contains(key["id"].as_str().unwrap());
        event.contains("key successor not rolled back") && keys.iter().any(names_successor)
    };
    assert!(events.iter().any(logged), "{events:?}");
}

#[tokio::test]
async fn invalid_rotation_is_rejected() {
    let world = World::new().await;
    let key = create(&world, "keys", json!({ "name": "k" })).await;
    for body in [
        json!({ "overlapSeconds": -1 }),
        json!({ "overlap": 1 }),
        json!({ "expiresAt": "soon" }),
    ] {
        let answer = rotate(&world, &key, body.clone()).await;
        assert_eq!(answer.status, 400, "{body}");
    }
}
