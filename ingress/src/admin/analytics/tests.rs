//! Ranges and filters of a report.

use serde_json::Value;
use switchboard_schemas::time::Timestamp;

use crate::testing::{Answer, World, org_path};

async fn get(world: &World, query: &str) -> Answer {
    let path = org_path(&format!("/analytics{query}"));
    world.admin("GET", &path, &[], Value::Null).await
}

#[tokio::test]
async fn default_range_is_the_last_thirty_days() {
    let world = World::new().await;
    let report = get(&world, "").await.json();
    assert_eq!(report["days"].as_array().unwrap().len(), 30);
    assert_eq!(
        report["days"][29]["day"],
        Timestamp::now().to_string()[..10]
    );
}

#[tokio::test]
async fn invalid_range_or_filter_names_its_parameter() {
    let world = World::new().await;
    for (query, param) in [
        ("from=yesterday", "from"),
        ("to=2026-02-30", "to"),
        ("from=2026-03-02&to=2026-03-01", "to"),
        ("from=2025-01-01&to=2026-02-05", "from"),
        ("agent=shop", "agent"),
        ("team=agt_0", "team"),
        ("format=xml", "format"),
    ] {
        let answer = get(&world, &format!("?{query}")).await;
        assert_eq!(
            answer.problem(),
            (400, "INVALID_REQUEST_DATA".into()),
            "{query}"
        );
        assert_eq!(answer.json()["param"], param, "{query}");
    }
    assert_eq!(
        get(&world, "?from=2025-01-01&to=2026-02-04").await.status,
        200,
        "400 days are taken"
    );
}
