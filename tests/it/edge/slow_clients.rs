//! Slow clients: they are served within limits, block nobody and cost little memory.

use std::time::Duration;

use futures::future::join_all;
use serde_json::json;

use super::{
    chat_head, config_request,
    http2_frames::{
        ACK, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, Http2, NO_ERROR, PING,
        SETTING_INITIAL_WINDOW_SIZE, config_block, frame,
    },
};
use crate::support::{
    Organization, PATIENCE, RawConnection, Script, TestService, eventually, report, shop_with,
};

/// Number of connections with unfinished heads.
const SILENT_CLIENTS: usize = 500;
/// Number of clients that request much and read nothing.
const STALLED_CLIENTS: usize = 40;
/// Largest memory growth caused by the stalled clients; they requested a hundred times as much.
const STALLED_MEMORY_BYTES_MAX: u64 = 64 << 20;

/// Starts a service with short timeouts for slow clients.
async fn impatient_service() -> TestService {
    TestService::start_with(&[
        ("SWITCHBOARD__INGRESS__HEADER_TIMEOUT_MS", "1500"),
        ("SWITCHBOARD__INGRESS__BODY_TIMEOUT_MS", "1500"),
        ("SWITCHBOARD__INGRESS__IDLE_TIMEOUT_MS", "1500"),
        ("SWITCHBOARD__INGRESS__QUEUE_TIMEOUT_MS", "10000"),
        ("SWITCHBOARD__INGRESS__ANSWER_TIMEOUT_MS", "15000"),
        ("SWITCHBOARD__INGRESS__STALLED_CLIENT_TIMEOUT_MS", "5000"),
    ])
    .await
}

async fn open_connections(service: &TestService) -> f64 {
    service
        .metric("switchboard_connections_open")
        .await
        .iter()
        .map(|(_, count)| count)
        .sum()
}

async fn answers(service: &TestService, organization: &Organization, session: &str) {
    let client = organization.client_at(&service.public_urls()[0]);
    client
        .chat(organization.shop(), session, "hi")
        .await
        .complete();
}

#[tokio::test]
async fn unfinished_heads_are_closed_while_others_are_served() {
    let service = impatient_service().await;
    let organization = Organization::with_agent(&service, Script::says("ok")).await;
    let url = service.public_urls().remove(0);
    let beginnings = [
        "",
        "GET / HT",
        "GET / HTTP/1.1\r\nhost: x\r\nx-slow: ",
        "PRI * HTTP/2.0\r\n",
    ];
    let mut flood = vec![];
    for number in 0..SILENT_CLIENTS {
        let mut connection = RawConnection::open(&url).await;
        connection
            .write(beginnings[number % beginnings.len()])
            .await;
        flood.push(connection);
    }
    answers(&service, &organization, "meanwhile").await;
    let ends = join_all(flood.iter_mut().map(RawConnection::read_to_end)).await;
    assert!(
        ends.iter().all(|end| !end.starts_with(b"HTTP/1.1 200")),
        "nobody was answered"
    );
    answers(&service, &organization, "afterwards").await;
}

#[tokio::test]
async fn head_sent_byte_by_byte_gains_no_time() {
    let service = impatient_service().await;
    let mut connection = RawConnection::open(&service.public_urls()[0]).await;
    let drip = async {
        connection.write("GET / HTTP/1.1\r\nx: ").await;
        while connection.write("y").await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, drip)
        .await
        .expect("the server hangs up");
}

#[tokio::test]
async fn missing_body_times_out_and_closes_the_connection() {
    let service = impatient_service().await;
    let organization = Organization::with_agent(&service, Script::says("ok")).await;
    for (framing, part) in [
        ("content-length: 100\r\n", ""),
        ("content-length: 100\r\n", "{\"message\""),
        ("transfer-encoding: chunked\r\n", "5\r\n{\"mes\r\n"),
        ("transfer-encoding: chunked\r\n", ""),
    ] {
        let mut connection = RawConnection::open(&service.public_urls()[0]).await;
        connection
            .write(format!(
                "{}{framing}\r\n{part}",
                chat_head(&organization, "")
            ))
            .await;
        let answer = connection.read_answer().await.expect("an answer");
        assert_eq!(answer.status, 408, "{framing}{part}: {}", answer.text());
        assert!(answer.text().contains("requestId"), "{}", answer.text());
        assert!(connection.read_to_end().await.is_empty());
    }
}

#[tokio::test]
async fn idle_connection_is_closed() {
    let service = impatient_service().await;
    let organization = Organization::with_agent(&service, Script::says("ok")).await;
    let mut connection = RawConnection::open(&service.public_urls()[0]).await;
    connection.write(config_request(&organization, "")).await;
    assert_eq!(
        connection.read_answer().await.expect("an answer").status,
        200
    );
    connection.read_to_end().await;
}

#[tokio::test]
async fn http_2_connection_that_only_answers_pings_is_closed() {
    let service = impatient_service().await;
    let organization = Organization::with_agent(&service, Script::says("ok")).await;
    let mut connection = Http2::open(&service.public_urls()[0], &[]).await;
    connection
        .raw
        .write(frame(
            HEADERS,
            END_HEADERS | END_STREAM,
            1,
            &config_block(&organization),
        ))
        .await;
    assert!(connection.read_kind(HEADERS).await.unwrap().is_ok());
    assert_eq!(
        connection
            .read_kind(GOAWAY)
            .await
            .expect("a farewell")
            .error(),
        NO_ERROR
    );
    answer_pings_until_closed(&mut connection).await;
}

#[tokio::test]
async fn unread_streams_do_not_keep_their_connection_open() {
    let service = impatient_service().await;
    let organization = Organization::with_agent(&service, Script::says("ok")).await;
    let mut connection = Http2::open(
        &service.public_urls()[0],
        &[(SETTING_INITIAL_WINDOW_SIZE, 0)],
    )
    .await;
    for stream in [1, 3, 5] {
        connection
            .raw
            .write(frame(
                HEADERS,
                END_HEADERS | END_STREAM,
                stream,
                &config_block(&organization),
            ))
            .await;
        assert!(connection.read_kind(HEADERS).await.unwrap().is_ok());
    }
    answer_pings_until_closed(&mut connection).await;
}

/// Sends and answers pings only, like a client that just keeps its connection.
async fn answer_pings_until_closed(connection: &mut Http2) {
    let answering = async {
        while let Some(received) = connection.read().await {
            assert_ne!(
                (received.kind, received.stream),
                (DATA, 1),
                "no window was given"
            );
            if received.kind == PING && received.flags & ACK == 0 {
                connection
                    .raw
                    .write(frame(PING, ACK, 0, &received.payload))
                    .await;
            }
        }
    };
    tokio::time::timeout(PATIENCE, answering)
        .await
        .expect("the connection is closed");
}

#[tokio::test]
async fn pausing_client_gets_the_rest_of_its_reply() {
    let text = "0123456789abcde ".repeat(3_000);
    let organization = shop_with(Script::says(&text).chunk_chars(100)).await;
    let mut connection =
        RawConnection::open_with_small_window(&organization.service().public_urls()[0]).await;
    connection
        .write(super::chat_request(&organization, "s", ""))
        .await;
    let head = connection.read_head().await.expect("the reply begins");
    assert_eq!(head.status, 200);
    // The reply is complete before the client resumes reading, so only buffered bytes can reach it.
    organization.settled_history("s", 2).await;
    let mut received = vec![];
    loop {
        match connection.read_chunk().await.expect("the transfer goes on") {
            end if end.is_empty() => break,
            chunk => received.extend(chunk),
        }
    }
    assert_eq!(String::from_utf8(received).unwrap(), text);
}

#[tokio::test]
async fn clients_that_never_read_cost_little_and_are_dropped() {
    let service = impatient_service().await;
    let organization =
        Organization::with_agent(&service, Script::says(&"words ".repeat(5_000))).await;
    let client = organization.client_at(&service.public_urls()[0]);
    client.chat_json(organization.shop(), "large", "hi").await;
    let ingress = service.ops_urls().remove(0).0;
    let memory = || service.with_process(&ingress, |process| process.resident_bytes());
    let before = (memory(), open_connections(&service).await);
    let path = organization.path("/conversations/large");
    let key = organization.key_text("all");
    // 30 KB each, 30 MB for each client.
    let requests =
        format!("GET {path} HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\n\r\n").repeat(1_000);
    let mut stalled = vec![];
    for _ in 0..STALLED_CLIENTS {
        let mut connection = RawConnection::open_with_small_window(&service.public_urls()[0]).await;
        connection
            .write_until_stalled(&requests, Duration::from_millis(300))
            .await;
        stalled.push(connection);
    }
    answers(&service, &organization, "meanwhile").await;
    let grown = memory().saturating_sub(before.0);
    report(&format!(
        "{STALLED_CLIENTS} clients that read nothing: {} KiB more",
        grown >> 10
    ));
    assert!(grown < STALLED_MEMORY_BYTES_MAX, "{grown} bytes");
    eventually(
        "the stalled connections are given up",
        PATIENCE,
        async || (open_connections(&service).await <= before.1 + 1.0).then_some(()),
    )
    .await;
    answers(&service, &organization, &json!(stalled.len()).to_string()).await;
}
