//! The service behind nginx with its default buffers: chunks arrive one by one, and the largest
//! response heads fit.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use super::url;
use crate::support::{
    Client, Events, Organization, OrganizationDocument, Program, RawConnection, Reply, Script,
    SharedService, TestService, free_port, report, shop_saying, shop_with, start_nginx,
};

/// The contract's limit of all headers together.
const HEADERS_BYTES_MAX: usize = 3 << 10;
const CHUNKS: usize = 20;
const CHUNK_CHARS: usize = 6;

/// Base URLs of two nginx servers in front of the service.
struct Nginx {
    /// Default proxying: HTTP/1.0 to the service and a connection for each request.
    plain: String,
    /// HTTP/1.1 to the service with persistent connections.
    keeping: String,
    _program: Program,
}

impl Nginx {
    async fn before(service: &TestService) -> Self {
        let (plain, keeping) = (
            format!("127.0.0.1:{}", free_port()),
            format!("127.0.0.1:{}", free_port()),
        );
        let servers = servers(url(service).trim_start_matches("http://"), &plain, &keeping);
        let (plain, keeping) = (format!("http://{plain}"), format!("http://{keeping}"));
        let program = start_nginx(&servers, &plain).await;
        Self {
            plain,
            keeping,
            _program: program,
        }
    }
}

/// Returns servers without buffers, sizes or timeouts, because their defaults are under test.
fn servers(service: &str, plain: &str, keeping: &str) -> String {
    format!(
        "upstream kept {{ server {service}; keepalive 4; }}
         server {{ listen {plain}; location / {{ proxy_pass http://{service}; }} }}
         server {{
           listen {keeping};
           location / {{ proxy_pass http://kept; proxy_http_version 1.1; proxy_set_header Connection ''; }}
         }}"
    )
}

/// Returns the delay of each chunk from the model to its arrival.
fn report_gaps(way: &str, mut gaps: Vec<Duration>) {
    gaps.sort();
    let (median, slowest) = (gaps[gaps.len() / 2], gaps[gaps.len() - 1]);
    report(&format!(
        "{way}: {} chunks, from model to client median {median:.1?}, slowest {slowest:.1?}",
        gaps.len()
    ));
}

async fn send(organization: &Organization, url: &str, accept: &str) -> reqwest::Response {
    let path = organization.path("/chat");
    let session = crate::support::unique("s");
    let request = organization
        .client_at(url)
        .request(Method::POST, &path)
        .header("accept", accept);
    request
        .json(&json!({"message": "hi", "sessionId": session}))
        .send()
        .await
        .unwrap()
}

#[tokio::test]
async fn text_chunks_arrive_one_by_one() {
    let service = SharedService::get().await;
    let nginx = Nginx::before(&service).await;
    for (way, url) in [
        ("text, HTTP/1.0 to us", &nginx.plain),
        ("text, HTTP/1.1 to us", &nginx.keeping),
    ] {
        let (script, gate) = Script::counts(CHUNKS, Duration::ZERO).gated();
        let text = script.text.clone();
        let organization = shop_with(script).await;
        gate.open(1);
        let mut response = send(&organization, url, "text/plain").await;
        let (mut reply, mut gaps) = (Reply::begin(&response), vec![]);
        reply.read_at_least(&mut response, CHUNK_CHARS).await;
        for number in 2..=CHUNKS {
            let released = Instant::now();
            gate.open(1);
            // The next chunk is not sent before this one has arrived: a buffer would block the test
            // forever.
            reply
                .read_at_least(&mut response, number * CHUNK_CHARS)
                .await;
            gaps.push(released.elapsed());
            assert_eq!(reply.bytes().len(), number * CHUNK_CHARS);
        }
        assert_eq!(reply.continue_reading(response).await.complete(), text);
        report_gaps(way, gaps);
    }
}

#[tokio::test]
async fn events_arrive_one_by_one() {
    let service = SharedService::get().await;
    let nginx = Nginx::before(&service).await;
    for (way, url) in [
        ("events, HTTP/1.0 to us", &nginx.plain),
        ("events, HTTP/1.1 to us", &nginx.keeping),
    ] {
        let (script, gate) = Script::counts(CHUNKS, Duration::ZERO).gated();
        let organization = shop_with(script).await;
        // The stream starts at acceptance, before the model sends anything.
        let mut response = send(&organization, url, "text/event-stream").await;
        let (mut reply, mut gaps) = (Reply::begin(&response), vec![]);
        for number in 0..CHUNKS {
            let released = Instant::now();
            gate.open(1);
            let word = format!("w{number:04} ");
            while !String::from_utf8(reply.bytes()).unwrap().contains(&word) {
                let bytes = reply.bytes().len();
                reply.read_at_least(&mut response, bytes + 1).await;
            }
            gaps.push(released.elapsed());
        }
        let rest = reply.continue_reading(response).await;
        assert!(
            rest.ended_cleanly
                && String::from_utf8(rest.bytes())
                    .unwrap()
                    .contains("event: done")
        );
        report_gaps(way, gaps);
    }
}

#[tokio::test]
async fn interrupted_reply_is_interrupted_behind_nginx() {
    let service = SharedService::get().await;
    let nginx = Nginx::before(&service).await;
    let script = Script::says("half").ends(crate::support::End::Cut);
    let organization = shop_with(script).await;
    for url in [&nginx.plain, &nginx.keeping] {
        let reply = Reply::read(send(&organization, url, "text/plain").await).await;
        assert_eq!(
            (reply.status, reply.ended_cleanly, reply.text().as_str()),
            (200, false, "half")
        );
    }
    let events = Events::read(send(&organization, &nginx.plain, "text/event-stream").await).await;
    assert_eq!(
        events.names().last(),
        Some(&"error"),
        "events say it themselves"
    );
}

#[tokio::test]
async fn largest_heads_fit_the_proxy_buffer_and_the_contract() {
    let service = SharedService::get().await;
    let nginx = Nginx::before(&service).await;
    let long = "🦀".repeat(200);
    let model: String = format!("{}{}", crate::support::unique("model"), "é".repeat(200))
        .chars()
        .take(200)
        .collect();
    let organization = OrganizationDocument::new()
        .shop(json!({"name": long, "description": long, "model": model}))
        .team(
            "front",
            json!({"members": [{"agent": "shop", "specialization": long}], "defaultAgent": "shop"}),
        )
        .apply_to_shared()
        .await;
    let (key, body) = (
        organization.key_text("all"),
        json!({"message": long, "sessionId": "s"}).to_string(),
    );
    let origin = format!("https://{}.example", ["a".repeat(60).as_str(); 4].join("."));
    let path = organization.team_path();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\norigin: {origin}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    for url in [url(&service), nginx.plain, nginx.keeping] {
        let mut connection = RawConnection::open(&url).await;
        connection.write(&request).await;
        let answer = connection.read_answer().await.expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.head);
        assert!(
            answer.header("x-agent-name").unwrap().len() > 400,
            "{}",
            answer.head
        );
        report(&format!(
            "head of a team's reply with the longest names: {} bytes",
            answer.head.len()
        ));
        assert!(
            answer.head.len() <= HEADERS_BYTES_MAX,
            "{} bytes: {}",
            answer.head.len(),
            answer.head
        );
    }
}

#[tokio::test]
async fn refusals_pass_unchanged() {
    let service = SharedService::get().await;
    let nginx = Nginx::before(&service).await;
    let organization = shop_saying("ok").await;
    let path = organization.path("/chat");
    for url in [&nginx.plain, &nginx.keeping] {
        let client = organization.client_at(url);
        let large = json!({"message": "x".repeat(300_000), "sessionId": "s"});
        for (body, status, code) in [
            (Value::Null, 400, "INVALID_REQUEST_DATA"),
            (large, 413, "PAYLOAD_TOO_LARGE"),
        ] {
            client
                .post(&path, &body)
                .await
                .assert_problem(status, Some(code));
        }
        Client::new(url)
            .get(&path)
            .await
            .assert_problem(405, Some("METHOD_NOT_ALLOWED"));
        Client::new(url)
            .post(&path, &Value::Null)
            .await
            .assert_problem(401, Some("MISSING_API_KEY"));
    }
}
