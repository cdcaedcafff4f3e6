//! Previews, replacements that need a confirmation, and the restoration of the previous products.

use switchboard_backends::products::ProductReader;

use super::*;

/// A file of `count` products.
fn csv(count: usize) -> String {
    let rows: String = (0..count)
        .map(|number| format!("Tea {number},5\n"))
        .collect();
    format!("title,price\n{rows}")
}

async fn post(world: &World, operation: &str, body: impl Into<Body>) -> Answer {
    send(
        world,
        "POST",
        &format!("{}/{operation}", path()),
        "text/csv",
        body,
    )
    .await
}

#[tokio::test]
async fn preview_reports_a_file_and_changes_nothing() {
    let world = World::new().await;
    assert_eq!(upload(&world, csv(30)).await.status, 200);
    let before = kept_products(&world).await;
    let file = "title,price,link\nTea,5,/tea\n,7,\nCup,7,https://shop.example/cup\n";
    let preview = post(&world, "preview", file).await.json();
    assert_eq!(
        (&preview["count"], &preview["currentCount"]),
        (&json!(2), &json!(30))
    );
    assert_eq!(preview["first"][1]["url"], "https://shop.example/cup");
    assert_eq!(
        preview["rejected"]["first"][0],
        json!({"row": 3, "reason": "it has no title"})
    );
    assert_eq!(preview["warnings"]["first"][0]["row"], 2);
    assert!(
        preview["risk"]
            .as_str()
            .unwrap()
            .contains("would replace 30"),
        "{preview}"
    );
    let fine = post(&world, "preview", csv(25)).await.json();
    assert_eq!(
        (&fine["risk"], fine["first"].as_array().unwrap().len()),
        (&Value::Null, 10)
    );
    assert_eq!(post(&world, "preview", "a,b\n1,2\n").await.problem().0, 400);
    assert_eq!(kept_products(&world).await, before);
}

#[tokio::test]
async fn risky_upload_needs_a_confirmation() {
    let world = World::new().await;
    assert_eq!(upload(&world, csv(30)).await.status, 200);
    let before = kept_products(&world).await;
    let rejected = format!("{}{}", csv(30), ",5\n".repeat(10));
    for (file, detail) in [
        (csv(3), "3 products and would replace 30"),
        (rejected, "10 of its 40 rows"),
    ] {
        let refused = upload(&world, file.clone()).await;
        assert_eq!(refused.problem(), (409, "CONFLICT".to_owned()));
        assert!(refused.text.contains(detail), "{}", refused.text);
        assert_eq!(kept_products(&world).await, before);
    }
    let confirmed = format!("{}?confirm=true", path());
    let confirmed = send(&world, "PUT", &confirmed, "text/csv", csv(3)).await;
    assert_eq!(confirmed.json()["count"], 3);
}

#[tokio::test]
async fn previous_products_are_restored_with_an_audit_entry() {
    let world = World::new().await;
    assert_eq!(post(&world, "restore", "").await.problem().0, 409);
    assert_eq!(upload(&world, csv(4)).await.status, 200);
    assert_eq!(post(&world, "restore", "").await.problem().0, 409);
    let bad = upload(&world, csv(2)).await.json();
    assert_eq!(bad["previous"]["count"], 4);
    let restored = post(&world, "restore", "").await.json();
    assert_eq!(
        (&restored["count"], &restored["previous"]["count"]),
        (&json!(4), &json!(2))
    );
    assert_eq!(kept_products(&world).await, restored);
    let items = send(&world, "GET", &format!("{}/items", path()), "", "")
        .await
        .json();
    assert_eq!(items["total"], 4);
    let log = format!(
        "/api/admin/organizations/{}/audit?kind=agent&id={}&action=update",
        org_id(),
        agent_id()
    );
    let log = send(&world, "GET", &log, "", "").await.json();
    let count = &log["items"][0]["fields"][0];
    assert_eq!((&count["before"], &count["after"]), (&json!(2), &json!(4)));
}

#[tokio::test]
async fn upload_that_would_lose_prices_asks_and_names_the_column() {
    let world = World::new().await;
    assert_eq!(upload(&world, csv(30)).await.status, 200);
    let before = kept_products(&world).await;
    let misspelled = csv(30).replace("price", "pirce");
    let preview = post(&world, "preview", misspelled.clone()).await.json();
    assert_eq!(
        preview["attributeColumns"],
        json!([{"name": "pirce", "meant": "price"}])
    );
    let risk = "30 of its 30 products have no price, and 30 of the current 30 have one";
    assert_eq!(preview["risk"], risk);
    let refused = upload(&world, misspelled).await;
    assert_eq!(refused.problem(), (409, "CONFLICT".to_owned()));
    assert!(refused.text.contains(risk), "{}", refused.text);
    assert_eq!(kept_products(&world).await, before);
}

#[tokio::test]
async fn older_products_are_restored_by_their_version() {
    let world = World::new().await;
    for count in [9, 8, 7] {
        assert_eq!(upload(&world, csv(count)).await.status, 200);
    }
    let restorable = kept_products(&world).await["restorable"].clone();
    assert_eq!(
        (&restorable[0]["count"], &restorable[1]["count"]),
        (&json!(8), &json!(9))
    );
    let oldest = restorable[1]["version"].as_str().unwrap();
    let restored = post(&world, &format!("restore?version={oldest}"), "").await;
    assert_eq!(restored.json()["count"], 9);
    let unknown = post(&world, "restore?version=none", "").await.json();
    assert_eq!(
        (&unknown["status"], &unknown["param"]),
        (&json!(409), &json!("version"))
    );
}

#[tokio::test]
async fn refresh_confirms_only_what_a_fetch_asked_for() {
    let world = World::new().await;
    let feed = json!({ "url": "https://shop.example/feed.csv" });
    world
        .edit_agent(|agent| {
            agent.settings.ecommerce.feed = Some(serde_json::from_value(feed).unwrap())
        })
        .await;
    let (org, agent) = (org_id(), agent_id());
    for (consent, query, expected) in [
        (ReplacementConsent::Needed, "", ReplacementConsent::Needed),
        (
            ReplacementConsent::Unneeded,
            "?confirm=true",
            ReplacementConsent::Unneeded,
        ),
        (
            ReplacementConsent::Needed,
            "?confirm=true",
            ReplacementConsent::Given,
        ),
    ] {
        let refresh = FeedRefresh {
            url: "https://shop.example/feed.csv".into(),
            attempted_at: Timestamp::now(),
            ended_at: None,
            succeeded_at: None,
            error: None,
            etag: None,
            last_modified: None,
            consent,
        };
        world
            .products
            .record_refresh(&org, &agent, &refresh)
            .await
            .unwrap();
        let state = send(&world, "GET", &path(), "", "").await.json();
        let is_needed = consent == ReplacementConsent::Needed;
        assert_eq!(state["feed"]["needsConfirmation"], is_needed);
        assert_eq!(
            post(&world, &format!("refresh{query}"), "").await.status,
            202
        );
        let status = world.products.read_status(&org, &agent).await.unwrap();
        assert_eq!(status.refresh.unwrap().consent, expected, "{query}");
    }
}

#[tokio::test]
async fn confirmation_that_is_not_a_boolean_is_named() {
    let world = World::new().await;
    let target = format!("{}?confirm=1", path());
    let answer = send(&world, "PUT", &target, "text/csv", csv(1)).await;
    assert_eq!(answer.problem().0, 400);
    let answer = answer.json();
    assert_eq!(
        (&answer["param"], &answer["detail"]),
        (&json!("confirm"), &json!("confirm must be true or false"))
    );
}
