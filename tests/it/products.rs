//! Products of an agent: uploads and feeds, the same on every ingress.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    ADMIN_TOKEN, Client, Organization, OrganizationDocument, PATIENCE, Script, TestService,
    eventually, report, shop_with_settings,
};

/// Time after which a new chat shows a change of the products.
const LIVE: Duration = Duration::from_secs(2);
/// Number of conversations checked then, spread over all workers.
const CONVERSATIONS: usize = 8;

const CSV: &str = "title;price;image_link;colour\n\"Tea; green\";5,00 €;https://cdn.example/tea.jpg;green\n\
    Cup;7,50 €;;white\n;9;;\n";

/// Returns the products path of this organization's shop.
fn products_of(organization: &Organization) -> String {
    organization.admin_path(&format!("/agents/{}/products", organization.shop()))
}

async fn upload(admin: &Client, path: &str, media_type: &str, body: &str) -> (u16, Value) {
    let request = admin
        .request(Method::PUT, path)
        .header("content-type", media_type)
        .body(body.to_owned());
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

async fn shop() -> Organization {
    shop_with_settings(json!({"ecommerce": {"enabled": true}})).await
}

/// Returns the titles shown in a new conversation to a visitor who asks for a lamp.
async fn lamps(organization: &Organization, session: &str) -> Vec<String> {
    let marker = format!("lamps-{session}");
    organization.script_for(
        &marker,
        Script::in_turn(vec![Script::searches("lamp"), Script::says("Look.")]),
    );
    let reply = organization
        .chat(session, &format!("a lamp? [[{marker}]]"))
        .await;
    assert_eq!(reply.complete(), "Look.");
    let spec: Value = reply
        .header("x-ui-spec")
        .map(|text| serde_json::from_str(text).unwrap())
        .unwrap_or_default();
    let cards = spec["data"].as_array().into_iter().flatten();
    let mut titles: Vec<_> = cards
        .map(|card| card["title"].as_str().unwrap().to_owned())
        .collect();
    titles.sort();
    titles
}

/// Asks for lamps repeatedly and accepts only these titles from [`LIVE`] after the change.
async fn expect_live(organization: &Organization, changed: Instant, what: &str, expected: &[&str]) {
    let (mut first_right, mut late) = (None, 0);
    for number in 0.. {
        let begun = changed.elapsed();
        let shown = lamps(organization, &format!("{what}-{number}")).await;
        if shown == expected {
            first_right.get_or_insert(begun);
        }
        if begun > LIVE {
            assert_eq!(
                shown, expected,
                "{what}: a chat that began {begun:?} after the change"
            );
            late += 1;
        }
        if late == CONVERSATIONS {
            break;
        }
    }
    report(&format!(
        "products {what}: shown by a chat that began {} ms after",
        first_right.unwrap().as_millis()
    ));
}

#[tokio::test]
async fn upload_is_reported_row_by_row_and_visible_everywhere() {
    let organization = shop().await;
    let service = organization.service();
    let path = products_of(&organization);
    let (status, stored) = upload(&service.admin(), &path, "text/csv", CSV).await;
    assert_eq!(
        (status, &stored["count"], &stored["rejected"]["count"]),
        (200, &json!(2), &json!(1)),
        "{stored}"
    );
    assert_eq!(
        stored["rejected"]["first"][0],
        json!({"row": 4, "reason": "it has no title"})
    );
    for url in service.admin_urls() {
        let shown = Client::new(&url)
            .with_key(ADMIN_TOKEN)
            .get(&path)
            .await
            .json();
        assert_eq!(shown["kept"], stored);
    }
}

#[tokio::test]
async fn uploaded_products_are_listed_and_searched_everywhere() {
    let organization = shop().await;
    let service = organization.service();
    let path = products_of(&organization);
    let (_, kept) = upload(&service.admin(), &path, "text/csv", CSV).await;
    for url in service.admin_urls() {
        let list = async |query: &str| {
            Client::new(&url)
                .with_key(ADMIN_TOKEN)
                .get(&format!("{path}/items{query}"))
                .await
                .json()
        };
        let all = list("").await;
        assert_eq!(
            (&all["total"], &all["version"]),
            (&json!(2), &kept["version"]),
            "{all}"
        );
        assert_eq!(
            (&all["items"][0]["title"], &all["items"][1]["title"]),
            (&json!("Tea; green"), &json!("Cup"))
        );
        let white = list("?search=WHITE%20cup").await;
        assert_eq!(
            (&white["total"], &white["items"][0]),
            (&json!(1), &all["items"][1]),
            "{white}"
        );
    }
}

#[tokio::test]
async fn upload_replaces_the_previous_one_atomically() {
    let organization = shop().await;
    let (admin, path) = (organization.service().admin(), products_of(&organization));
    let many: String = (0..20_000)
        .map(|number| format!("Product {number},{number}.95 EUR\n"))
        .collect();
    let (status, first) = upload(&admin, &path, "text/csv", &format!("name,price\n{many}")).await;
    assert_eq!((status, &first["count"]), (200, &json!(20_000)), "{first}");
    for (media_type, body, status) in [
        ("text/csv", "title\n\"broken", 400),
        ("application/json", "[{\"title\":\"broken\"}", 400),
        ("text/csv", "", 400),
        ("text/csv", "<rss/>", 400),
        ("application/pdf", "%PDF-1.7", 415),
    ] {
        let (actual, problem) = upload(&admin, &path, media_type, body).await;
        assert_eq!(actual, status, "{problem}");
        assert_eq!(admin.get(&path).await.json()["kept"], first);
    }
    let json = "application/json";
    let one = r#"[{"title":"Tea","price":5}]"#;
    assert_eq!(upload(&admin, &path, json, one).await.0, 409);
    assert_eq!(admin.get(&path).await.json()["kept"], first);
    let (status, second) = upload(&admin, &format!("{path}?confirm=true"), json, one).await;
    assert_eq!((status, &second["count"]), (200, &json!(1)));
    assert_eq!(admin.get(&path).await.json()["kept"], second);
    assert_eq!(admin.delete(&path).await.status, 204);
    assert_eq!(admin.get(&path).await.json()["kept"], Value::Null);
}

#[tokio::test]
async fn products_are_deleted_with_their_agent_and_not_shared() {
    let ours = shop().await;
    let theirs = shop().await;
    let (admin, path) = (ours.service().admin(), products_of(&ours));
    upload(&admin, &path, "text/csv", "title\ncanary-product\n").await;
    let across = path.replace(&ours.id, &theirs.id);
    admin
        .get(&across)
        .await
        .assert_problem(404, Some("NOT_FOUND"));
    assert_eq!(upload(&admin, &across, "text/csv", CSV).await.0, 404);
    admin
        .delete(&across)
        .await
        .assert_problem(404, Some("NOT_FOUND"));
    assert_eq!(
        admin.get(&products_of(&theirs)).await.json()["kept"],
        Value::Null
    );
    assert_eq!(admin.get(&path).await.json()["kept"]["count"], 1);
    ours.client()
        .get(&path)
        .await
        .assert_problem(401, Some("INVALID_API_KEY"));
    assert_eq!(
        admin
            .delete(path.strip_suffix("/products").unwrap())
            .await
            .status,
        204
    );
    let again = admin.post("/api/admin/apply", &ours.document).await;
    again.assert_status(200);
    assert_eq!(admin.get(&path).await.json()["kept"], Value::Null);
}

#[tokio::test]
async fn uploads_and_removals_are_live_within_two_seconds() {
    let organization = shop().await;
    let service = organization.service();
    let (admin, path) = (service.admin(), products_of(&organization));
    assert_eq!(
        upload(
            &admin,
            &path,
            "text/csv",
            "title,price\nDesk lamp,39 EUR\nSofa,500 EUR\n"
        )
        .await
        .0,
        200
    );
    expect_live(
        &organization,
        Instant::now(),
        "first upload",
        &["Desk lamp"],
    )
    .await;
    assert_eq!(
        upload(
            &admin,
            &path,
            "application/json",
            r#"[{"title":"Floor lamp"}]"#
        )
        .await
        .0,
        200
    );
    expect_live(
        &organization,
        Instant::now(),
        "another upload",
        &["Floor lamp"],
    )
    .await;
    let named = json!({"enabled": true, "products": [{"title": "Oil lamp", "price": "5"}]});
    let document = organization.changed_agent("shop", json!({ "ecommerce": named }));
    assert_eq!(admin.post("/api/admin/apply", &document).await.status, 200);
    assert_eq!(admin.delete(&path).await.status, 204);
    expect_live(
        &organization,
        Instant::now(),
        "a document and a removal",
        &["Oil lamp"],
    )
    .await;
}

/// A server of one feed with configurable responses.
struct FeedServer {
    port: u16,
    asked: Arc<AtomicUsize>,
    unchanged: Arc<AtomicUsize>,
    answer: Arc<Mutex<(u16, String)>>,
}

impl FeedServer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self {
            port: listener.local_addr().unwrap().port(),
            asked: Arc::default(),
            unchanged: Arc::default(),
            answer: Arc::new(Mutex::new((200, "title,price\nTea,5 EUR\n".into()))),
        };
        let (asked, unchanged, answer) = (
            Arc::clone(&server.asked),
            Arc::clone(&server.unchanged),
            Arc::clone(&server.answer),
        );
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                asked.fetch_add(1, Ordering::SeqCst);
                let (status, body) = answer.lock().unwrap().clone();
                let etag = format!("\"{}\"", body.len());
                let mut lines = BufReader::new(&connection).lines().map_while(Result::ok);
                let head: Vec<String> =
                    lines.by_ref().take_while(|line| !line.is_empty()).collect();
                let knows = head
                    .iter()
                    .any(|line| line.to_ascii_lowercase() == format!("if-none-match: {etag}"));
                unchanged.fetch_add(usize::from(knows), Ordering::SeqCst);
                let (status, body) = if knows && status == 200 {
                    (304, String::new())
                } else {
                    (status, body)
                };
                let length = body.len();
                let _ = (&connection).write_all(
                    format!(
                        "HTTP/1.1 {status} X\r\netag: {etag}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
                    )
                    .as_bytes(),
                );
            }
        });
        server
    }

    fn says(&self, status: u16, body: &str) {
        *self.answer.lock().unwrap() = (status, body.to_owned());
    }

    fn request_count(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

async fn with_feed(service: &TestService, url: &str, every_minutes: u32) -> Organization {
    let feed = json!({"enabled": true, "feed": {"url": url, "everyMinutes": every_minutes}});
    OrganizationDocument::new()
        .shop(json!({"ecommerce": feed}))
        .apply(service)
        .await
}

#[tokio::test]
async fn changed_feed_is_fetched_and_failed_feed_keeps_products() {
    let service = TestService::start_with(&[
        ("SWITCHBOARD__PRODUCTS__FEED_SCAN_MS", "200"),
        ("SWITCHBOARD__PRODUCTS__FEED_PRIVATE_NETWORKS", "127.0.0.1"),
    ])
    .await;
    let server = FeedServer::start();
    let organization = with_feed(
        &service,
        &format!("http://127.0.0.1:{}/feed.csv", server.port),
        60,
    )
    .await;
    let (admin, path) = (service.admin(), products_of(&organization));
    let status = async |what: &str, expected: &dyn Fn(&Value) -> bool| {
        eventually(what, PATIENCE, async || {
            Some(admin.get(&path).await.json()).filter(expected)
        })
        .await
    };
    let first = status("the feed is fetched", &|shown| shown["kept"]["count"] == 1).await;
    assert_eq!(first["kept"]["source"]["kind"], "feed");
    assert_eq!(first["feed"]["error"], Value::Null);
    assert_eq!(upload(&admin, &path, "text/csv", CSV).await.0, 409);

    let refresh = async || {
        let asked = server.request_count();
        assert_eq!(
            admin
                .post(&format!("{path}/refresh"), &json!({}))
                .await
                .status,
            202
        );
        eventually("the feed is fetched again", PATIENCE, async || {
            (server.request_count() > asked).then_some(())
        })
        .await;
    };
    refresh().await;
    eventually("an unchanged feed is not sent", PATIENCE, async || {
        (server.unchanged.load(Ordering::SeqCst) == 1).then_some(())
    })
    .await;
    server.says(500, "");
    refresh().await;
    let failed = status("the failure is shown", &|shown| {
        shown["feed"]["error"] != Value::Null
    })
    .await;
    assert!(
        failed["feed"]["error"].as_str().unwrap().contains("500"),
        "{failed}"
    );
    assert_eq!(failed["kept"], first["kept"]);
    server.says(200, "title,price\nTea,5 EUR\nCup,7 EUR\n");
    refresh().await;
    // The products are visible shortly before the record of their fetch.
    let is_noted = |shown: &Value| shown["kept"]["count"] == 2 && shown["feed"]["error"].is_null();
    let third = status("the new products are there", &is_noted).await;
    assert_ne!(third["kept"]["version"], first["kept"]["version"]);
}

#[tokio::test]
async fn scheduled_feed_is_fetched_and_live_within_two_seconds() {
    let service = TestService::start_with(&[
        ("SWITCHBOARD__PRODUCTS__FEED_SCAN_MS", "200"),
        ("SWITCHBOARD__PRODUCTS__FEED_PRIVATE_NETWORKS", "127.0.0.1"),
    ])
    .await;
    let server = FeedServer::start();
    server.says(200, "title\nDesk lamp\n");
    let organization = with_feed(
        &service,
        &format!("http://127.0.0.1:{}/feed.csv", server.port),
        1,
    )
    .await;
    let (admin, path) = (service.admin(), products_of(&organization));
    let stored = async |count: u32| {
        // A minute between two fetches, and slack for a busy machine.
        eventually("the feed is fetched", PATIENCE * 4, async || {
            (admin.get(&path).await.json()["kept"]["count"] == count).then(Instant::now)
        })
        .await
    };
    expect_live(
        &organization,
        stored(1).await,
        "first fetch",
        &["Desk lamp"],
    )
    .await;
    server.says(200, "title\nFloor lamp\nReading lamp\n");
    expect_live(
        &organization,
        stored(2).await,
        "fetch on schedule",
        &["Floor lamp", "Reading lamp"],
    )
    .await;
    assert_eq!(server.request_count(), 2);
}

#[tokio::test]
async fn feed_cannot_reach_internal_addresses() {
    let service = TestService::start_with(&[("SWITCHBOARD__PRODUCTS__FEED_SCAN_MS", "200")]).await;
    let server = FeedServer::start();
    let port = server.port;
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .apply(&service)
        .await;
    let path = organization.admin_path(&format!("/agents/{}", organization.shop()));
    for (url, reason) in [
        (format!("http://127.0.0.1:{port}/feed.csv"), "not public"),
        (
            format!("http://localhost:{port}/feed.csv"),
            "begin with https",
        ),
        (format!("https://2130706433:{port}/feed.csv"), "not public"),
        ("https://localhost/feed.csv".to_owned(), "not public"),
        (
            "https://169.254.169.254/latest/meta-data".to_owned(),
            "not public",
        ),
        (
            "https://[::ffff:127.0.0.1]/feed.csv".to_owned(),
            "not public",
        ),
    ] {
        let feed = json!({"ecommerce": {"feed": {"url": url}}});
        let answer = service.admin().patch(&path, &feed).await;
        let problem = answer.assert_problem(400, Some("INVALID_REQUEST_DATA"));
        assert_eq!(problem["param"], "ecommerce.feed.url", "{url}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(
            detail.contains(reason) && detail.contains("products.feed_private_networks"),
            "{url}: {detail}"
        );
    }
    assert_eq!(server.request_count(), 0);
}
