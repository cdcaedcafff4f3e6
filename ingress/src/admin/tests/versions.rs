//! Tests of concurrent and outdated changes.

use futures::future::join_all;
use http::header;
use serde_json::{Value, json};

use super::{admin, admin_with, shop};
use crate::testing::World;

#[tokio::test]
async fn change_of_an_outdated_version_is_refused() {
    let world = World::new().await;
    let read = admin(&world, "GET", &shop(), Value::Null).await;
    let (etag, version) = (
        read.headers[header::ETAG].to_str().unwrap(),
        read.json()["version"].clone(),
    );
    let changed = admin_with(
        &world,
        "PATCH",
        &shop(),
        &[("if-match", etag)],
        json!({ "name": "One" }),
    )
    .await;
    assert_eq!(changed.status, 200);
    assert_ne!(changed.json()["version"], version);
    for (headers, body) in [
        (vec![("if-match", etag)], json!({ "name": "Two" })),
        (vec![], json!({ "name": "Two", "version": version })),
    ] {
        let refused = admin_with(&world, "PATCH", &shop(), &headers, body).await;
        assert_eq!(refused.problem(), (409, "CONFLICT".into()));
        assert_eq!(
            refused.json()["details"]["version"],
            changed.json()["version"]
        );
    }
    assert_eq!(
        admin_with(
            &world,
            "DELETE",
            &shop(),
            &[("if-match", etag)],
            Value::Null
        )
        .await
        .status,
        409
    );
    assert_eq!(
        admin(&world, "GET", &shop(), Value::Null).await.json()["name"],
        "One"
    );
    let current = changed.headers[header::ETAG].to_str().unwrap();
    assert_eq!(
        admin_with(
            &world,
            "DELETE",
            &shop(),
            &[("if-match", current)],
            Value::Null
        )
        .await
        .status,
        204
    );
}

/// Two processes share only catalog and relay.
#[tokio::test]
async fn concurrent_changes_of_one_version_are_detected() {
    let world = World::new().await;
    let second = world.second_ingress().await;
    for round in 0..10 {
        let etag = admin(&world, "GET", &shop(), Value::Null).await.headers[header::ETAG]
            .to_str()
            .unwrap()
            .to_owned();
        let condition = [("if-match", etag.as_str())];
        let (one, two) = (
            json!({ "name": format!("A{round}") }),
            json!({ "name": format!("B{round}") }),
        );
        let path = shop();
        let (one, two) = tokio::join!(
            admin_with(&world, "PATCH", &path, &condition, one),
            admin_with(&second, "PATCH", &path, &condition, two),
        );
        let mut statuses = [one.status.as_u16(), two.status.as_u16()];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409]);
    }
    let fields = [
        "welcomeMessage",
        "placeholderText",
        "description",
        "instructions",
    ];
    let path = shop();
    let patches = fields.iter().enumerate().map(|(number, field)| {
        let world = if number % 2 == 0 { &world } else { &second };
        admin(world, "PATCH", &path, json!({ *field: "changed" }))
    });
    assert!(
        join_all(patches)
            .await
            .iter()
            .all(|answer| answer.status == 200)
    );
    let agent = admin(&world, "GET", &shop(), Value::Null).await.json();
    assert!(
        fields.iter().all(|field| agent[*field] == "changed"),
        "{agent}"
    );
}
