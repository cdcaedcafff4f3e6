//! Tests of secrets and of the rotation of API keys.

use serde_json::{Value, json};

use super::{admin, made, of};
use crate::testing::{ADMIN_TOKEN, World};

#[tokio::test]
async fn stored_secrets_are_never_shown_again() {
    let world = World::new().await;
    let provider = made(
        &world,
        "providers",
        json!({ "slug": "main", "apiKey": "sk-canary" }),
    )
    .await;
    assert_eq!(
        (provider.get("apiKey"), &provider["hasApiKey"]),
        (None, &json!(true))
    );
    let key = made(&world, "keys", json!({ "name": "k" })).await;
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

#[tokio::test]
async fn rotated_key_and_successor_work_until_the_overlap_ends() {
    let world = World::new().await;
    let limits =
        json!({ "chatPerMinute": 7, "configPerMinute": null, "conversationsPerMinute": null });
    let old = made(
        &world,
        "keys",
        json!({ "name": "k", "scopes": ["config"], "limits": limits }),
    )
    .await;
    let path = of(&format!("/keys/{}", old["id"].as_str().unwrap()));
    let rotated = admin(
        &world,
        "POST",
        &format!("{path}/rotate"),
        json!({ "overlapSeconds": 3600 }),
    )
    .await;
    assert_eq!(rotated.status, 201, "{}", rotated.text);
    let rotated = rotated.json();
    assert_ne!(rotated["id"], old["id"]);
    assert_eq!(
        (&rotated["name"], &rotated["scopes"], &rotated["limits"]),
        (&json!("k"), &json!(["config"]), &limits)
    );
    assert_eq!(
        (&rotated["expiresAt"], &rotated["replaces"]["id"]),
        (&Value::Null, &old["id"])
    );
    let read = async |key: &Value| {
        let key = key["value"].as_str().unwrap();
        world
            .send_with("GET", &World::agent_path(""), &[("x-api-key", key)], "")
            .await
            .problem()
    };
    assert_eq!((read(&old).await.0, read(&rotated).await.0), (200, 200));
    let document = json!({ "organizations": [{ "slug": "acme", "name": "Acme", "keys": [{ "name": "k", "scopes": [] }] }] });
    let bearer = format!("Bearer {ADMIN_TOKEN}");
    let applied = world
        .send_with(
            "POST",
            "/api/admin/apply",
            &[("authorization", &bearer)],
            document.to_string(),
        )
        .await;
    assert_eq!(
        applied.json()["organizations"][0]["keys"][0]["id"],
        rotated["id"],
        "a document means the successor"
    );
    assert_eq!(
        admin(&world, "GET", &path, Value::Null).await.json()["scopes"],
        json!(["config"])
    );

    let path = of(&format!("/keys/{}", rotated["id"].as_str().unwrap()));
    let last = admin(
        &world,
        "POST",
        &format!("{path}/rotate"),
        json!({ "overlapSeconds": 0 }),
    )
    .await
    .json();
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(5);
    while read(&rotated).await.1 != "EXPIRED_API_KEY" {
        assert!(
            tokio::time::Instant::now() < deadline,
            "without overlap the old key ends at once"
        );
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(read(&last).await.0, 200);
    for body in [
        json!({ "overlapSeconds": -1 }),
        json!({ "overlap": 1 }),
        json!({ "expiresAt": "soon" }),
    ] {
        assert_eq!(
            admin(&world, "POST", &format!("{path}/rotate"), body)
                .await
                .status,
            400
        );
    }
}
