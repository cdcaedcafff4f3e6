//! Uploads of products over embedded backends: what is taken, what is refused, and that a refused
//! upload changes nothing.

mod replacement;

use std::io;

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use serde_json::{Value, json};
use switchboard_backends::products::{
    FeedRefresh, FeedRefreshStore, config::ProductsConfig, replacement::ReplacementConsent,
};
use switchboard_schemas::time::Timestamp;

use crate::{
    IngressConfig,
    testing::{ADMIN_TOKEN, Answer, World, agent_id, org_id, org_path},
};

const CSV: &str = "title,price\nTea,5\nCup,7\n";

fn path() -> String {
    org_path(&format!("/agents/{}/products", agent_id()))
}

async fn send(
    world: &World,
    method: &str,
    path: &str,
    media_type: &str,
    body: impl Into<Body>,
) -> Answer {
    let bearer = format!("Bearer {ADMIN_TOKEN}");
    world
        .send_with(
            method,
            path,
            &[("authorization", &bearer), ("content-type", media_type)],
            body,
        )
        .await
}

async fn upload(world: &World, body: impl Into<Body>) -> Answer {
    send(world, "PUT", &path(), "text/csv", body).await
}

async fn kept_products(world: &World) -> Value {
    let answer = send(world, "GET", &path(), "", "").await;
    answer.expect(200)["kept"].clone()
}

fn pieces(pieces: Vec<io::Result<&'static str>>) -> Body {
    Body::from_stream(stream::iter(
        pieces.into_iter().map(|piece| piece.map(Bytes::from)),
    ))
}

async fn world_with(products: ProductsConfig) -> World {
    World::with(IngressConfig {
        products,
        ..IngressConfig::default()
    })
    .await
}

#[tokio::test]
async fn audit_log_records_product_changes_as_agent_changes() {
    let world = World::new().await;
    assert_eq!(upload(&world, CSV).await.status, 200);
    assert_eq!(
        upload(&world, "title\n\"open").await.status,
        400,
        "and what is refused changes nothing"
    );
    assert_eq!(send(&world, "DELETE", &path(), "", "").await.status, 204);
    let feed = json!({ "url": "https://shop.example/feed.csv" });
    world
        .edit_agent(|agent| {
            agent.settings.ecommerce.feed = Some(serde_json::from_value(feed).unwrap())
        })
        .await;
    assert_eq!(
        send(&world, "POST", &format!("{}/refresh", path()), "", "")
            .await
            .status,
        202
    );
    let log = format!(
        "/api/admin/organizations/{}/audit?kind=agent&id={}&action=update",
        org_id(),
        agent_id()
    );
    let log = send(&world, "GET", &log, "", "").await.json();
    let fields: Vec<Vec<(&str, bool, bool)>> = log["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            let fields = entry["fields"].as_array().unwrap().iter();
            let has = |field: &Value, side: &str| field.get(side).is_some();
            fields
                .map(|field| {
                    (
                        field["field"].as_str().unwrap(),
                        has(field, "before"),
                        has(field, "after"),
                    )
                })
                .collect()
        })
        .collect();
    let expected: [&[_]; 3] = [
        &[("products.refreshAskedAt", false, true)],
        &[
            ("products.count", true, true),
            ("products.version", true, false),
        ],
        &[
            ("products.count", true, true),
            ("products.version", false, true),
        ],
    ];
    assert_eq!(fields, expected);
    let count = &log["items"][2]["fields"][0];
    assert_eq!((&count["before"], &count["after"]), (&json!(0), &json!(2)));
}

#[tokio::test]
async fn upload_may_be_split_anywhere() {
    let world = World::new().await;
    let body = pieces(CSV.split_inclusive(|_: char| true).map(Ok).collect());
    assert_eq!(upload(&world, body).await.json()["count"], 2);
}

#[tokio::test]
async fn rejected_upload_keeps_the_previous_products() {
    let bounds = ProductsConfig {
        bytes_max: 60,
        products_max: 3,
        ..ProductsConfig::default()
    };
    let world = world_with(bounds).await;
    assert_eq!(upload(&world, CSV).await.status, 200);
    let before = kept_products(&world).await;
    let too_many = "title\nA\nB\nC\nD\n";
    let too_long = "title\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n";
    for (body, status, code) in [
        (Body::from(""), 400, "INVALID_REQUEST_DATA"),
        (Body::from("title\n"), 400, "INVALID_REQUEST_DATA"),
        (Body::from("price\n5\n"), 400, "INVALID_REQUEST_DATA"),
        (Body::from("title\n\"A"), 400, "INVALID_REQUEST_DATA"),
        (Body::from("title,b\n,1\n"), 400, "INVALID_REQUEST_DATA"),
        (
            pieces(vec![Ok("title\nA\n"), Err(io::Error::other("gone"))]),
            400,
            "INVALID_REQUEST_DATA",
        ),
        (Body::from(too_many), 413, "PAYLOAD_TOO_LARGE"),
        (Body::from(too_long), 413, "PAYLOAD_TOO_LARGE"),
        (pieces(vec![Ok(too_long)]), 413, "PAYLOAD_TOO_LARGE"),
    ] {
        assert_eq!(
            upload(&world, body).await.problem(),
            (status, code.to_owned())
        );
        assert_eq!(kept_products(&world).await, before);
    }
}

#[tokio::test]
async fn format_of_an_upload_is_recognized_from_its_content() {
    let world = World::new().await;
    let send = async |media_type: &str, body: &'static [u8]| {
        send(&world, "PUT", &path(), media_type, body).await
    };
    let xml = b"<rss><item><title>Tea</title></item></rss>";
    for media_type in [
        "text/csv",
        "application/vnd.ms-excel",
        "application/rss+xml",
        "text/x-any",
    ] {
        assert_eq!(
            send(media_type, xml).await.json()["count"],
            1,
            "{media_type}"
        );
    }
    assert_eq!(
        send("application/json", b"title\nTea\n").await.json()["count"],
        1
    );
    let picture = send("image/png", b"\x89PNG\r\n\x1a\n").await;
    assert_eq!(
        picture.problem(),
        (415, "UNSUPPORTED_MEDIA_TYPE".to_owned())
    );
    assert!(picture.text.contains("PNG picture"), "{}", picture.text);
    let form = send("multipart/form-data; boundary=x", b"--x").await;
    assert_eq!(form.problem().0, 415);
}

#[tokio::test]
async fn listed_products_have_the_price_of_now() {
    let world = World::new().await;
    let csv = "title,price,sale_price,sale_price_effective_date\nTea,20,15,2020-01-01/2098-01-01\n\
        Cup,20,15,2019-01-01/2019-02-01\n";
    assert_eq!(upload(&world, csv).await.status, 200);
    let items = send(&world, "GET", &format!("{}/items", path()), "", "")
        .await
        .json();
    let prices = |item: usize| items["items"][item]["price"].clone();
    assert_eq!((prices(0), prices(1)), (json!("15"), json!("20")));
}

#[tokio::test]
async fn upload_that_never_ends_times_out() {
    let world = world_with(ProductsConfig {
        upload_timeout_ms: 50,
        ..ProductsConfig::default()
    })
    .await;
    let endless = Body::from_stream(stream::pending::<io::Result<Bytes>>());
    assert_eq!(upload(&world, endless).await.status, 408);
    assert_eq!(kept_products(&world).await, Value::Null);
}

#[tokio::test]
async fn products_of_a_feed_are_changed_only_by_the_feed() {
    let world = World::new().await;
    assert_eq!(upload(&world, CSV).await.status, 200);
    let refresh = format!("{}/refresh", path());
    assert_eq!(
        send(&world, "POST", &refresh, "", "").await.problem().0,
        409
    );
    let feed = json!({ "url": "https://shop.example/feed.csv" });
    world
        .edit_agent(|agent| {
            agent.settings.ecommerce.feed = Some(serde_json::from_value(feed).unwrap())
        })
        .await;
    for method in ["PUT", "DELETE"] {
        assert_eq!(
            send(&world, method, &path(), "text/csv", CSV)
                .await
                .problem(),
            (409, "CONFLICT".to_owned())
        );
    }
    let asked = send(&world, "POST", &refresh, "", "").await;
    assert_eq!(asked.status, 202, "{}", asked.text);
    assert_eq!(asked.json()["feed"]["url"], "https://shop.example/feed.csv");
    assert_eq!(asked.json()["feed"]["everyMinutes"], 60);
    assert_eq!(kept_products(&world).await["count"], 2);
}

#[tokio::test]
async fn fetch_is_pending_until_it_was_attempted() {
    let world = World::new().await;
    let refresh = format!("{}/refresh", path());
    let feed = json!({ "url": "https://shop.example/feed.csv" });
    world
        .edit_agent(|agent| {
            agent.settings.ecommerce.feed = Some(serde_json::from_value(feed).unwrap())
        })
        .await;
    let pending =
        async || send(&world, "GET", &path(), "", "").await.json()["feed"]["pending"].clone();
    let fetched = async |url: &str| {
        let moment = Timestamp::now();
        let (org_id, agent_id) = (org_id(), agent_id());
        let refresh = FeedRefresh {
            url: url.into(),
            attempted_at: moment,
            ended_at: Some(moment),
            succeeded_at: Some(moment),
            error: None,
            etag: None,
            last_modified: None,
            consent: ReplacementConsent::default(),
        };
        world
            .products
            .record_refresh(&org_id, &agent_id, &refresh)
            .await
            .unwrap();
    };
    assert_eq!(pending().await, true, "the first one");
    fetched("https://shop.example/feed.csv").await;
    assert_eq!(pending().await, false);
    assert_eq!(
        send(&world, "POST", &refresh, "", "").await.json()["feed"]["pending"],
        true
    );
    assert_eq!(pending().await, true, "one that was asked for");
    fetched("https://shop.example/feed.csv").await;
    assert_eq!(pending().await, false);
    fetched("https://shop.example/another.csv").await;
    assert_eq!(pending().await, true, "of this address none is known");
}

#[tokio::test]
async fn response_states_if_visitors_see_products() {
    let world = World::new().await;
    for enabled in [false, true] {
        world
            .edit_agent(|agent| agent.settings.ecommerce.enabled = enabled)
            .await;
        assert_eq!(upload(&world, CSV).await.json()["shown"], enabled);
        let response = send(&world, "GET", &path(), "", "").await.json();
        assert_eq!(
            (&response["shown"], &response["kept"]["shown"]),
            (&json!(enabled), &json!(enabled))
        );
    }
}

#[tokio::test]
async fn stored_products_are_paged_in_file_order() {
    let world = World::new().await;
    let list = async |query: &str| {
        let answer = send(&world, "GET", &format!("{}/items{query}", path()), "", "").await;
        answer.expect(200)
    };
    let nothing = list("").await;
    assert_eq!(
        (&nothing["items"], &nothing["total"], &nothing["version"]),
        (&json!([]), &json!(0), &Value::Null)
    );
    // Enough products for several chunks.
    let count = 6_000;
    let rows: String = (0..count)
        .map(|number| format!("Tea {number},{number}.5,{}\n", "long ".repeat(20)))
        .collect();
    let kept = upload(&world, format!("title,price,description\n{rows}"))
        .await
        .json();
    let mut titles = Vec::new();
    while titles.len() < count {
        let page = list(&format!("?limit=200&offset={}", titles.len())).await;
        assert_eq!(
            (&page["total"], &page["version"]),
            (&json!(count), &kept["version"])
        );
        titles.extend(
            page["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| item["title"].clone()),
        );
        assert_eq!(page["hasMore"], json!(titles.len() < count));
    }
    assert_eq!(
        titles,
        (0..count)
            .map(|number| json!(format!("Tea {number}")))
            .collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn stored_products_are_listed_with_all_fields_of_their_file() {
    let world = World::new().await;
    let csv = "title,price,colour,description,link\nDesk lamp,39,Brass,Warm light,https://shop.example/desk\n";
    assert_eq!(upload(&world, csv).await.status, 200);
    let desk = send(&world, "GET", &format!("{}/items?limit=1", path()), "", "")
        .await
        .json()["items"][0]
        .clone();
    let expected = json!({
        "title": "Desk lamp", "price": "39", "image": "", "url": "https://shop.example/desk",
        "description": "Warm light", "amount": 39.0, "attributes": {"colour": "Brass"}
    });
    assert_eq!(desk, expected);
}
