//! HTTP/2 without TLS (prior knowledge): the same behavior as HTTP/1.1, and attacks that only
//! HTTP/2 has.

use futures::future::join_all;
use serde_json::json;

use super::{
    http2_frames::{
        CANCEL, CONTINUATION, DATA, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, GOAWAY, HEADERS,
        Http2, REFUSED_STREAM, RST_STREAM, SETTING_INITIAL_WINDOW_SIZE,
        SETTING_MAX_CONCURRENT_STREAMS, SETTING_MAX_HEADER_LIST_SIZE, SETTINGS, WINDOW_UPDATE,
        block, chat_block, config_block, frame, reset,
    },
    url,
};
use crate::support::{
    Answer, End, Organization, Reply, Script, TestService, shop_saying, shop_with,
};

/// Concurrent streams that the server allows on one connection.
const STREAMS_MAX: u32 = 100;

fn http2() -> reqwest::Client {
    crate::support::background();
    reqwest::Client::builder()
        .no_proxy()
        .http2_prior_knowledge()
        .build()
        .unwrap()
}

async fn chat(
    http: &reqwest::Client,
    service: &TestService,
    organization: &Organization,
    session: &str,
) -> Reply {
    let request = chat_builder(
        http,
        service,
        organization,
        json!({"message": "hi", "sessionId": session}),
    );
    Reply::read(request.send().await.unwrap()).await
}

fn chat_builder(
    http: &reqwest::Client,
    service: &TestService,
    organization: &Organization,
    body: serde_json::Value,
) -> reqwest::RequestBuilder {
    let path = format!(
        "{}/api/public/agents/{}/chat",
        url(service),
        organization.shop()
    );
    http.post(path)
        .bearer_auth(organization.key_text("all"))
        .json(&body)
}

async fn still_serves(organization: &Organization) {
    assert_eq!(
        chat(&http2(), organization.service(), organization, "after")
            .await
            .complete(),
        "ok"
    );
}

#[tokio::test]
async fn reply_arrives_chunk_by_chunk() {
    let (script, gate) = Script::says("one   two   three ").chunk_chars(6).gated();
    let organization = shop_with(script).await;
    gate.open(1);
    let request = chat_builder(
        &http2(),
        organization.service(),
        &organization,
        json!({"message": "hi", "sessionId": "s"}),
    );
    let mut response = request.send().await.unwrap();
    assert_eq!(response.version(), reqwest::Version::HTTP_2);
    let mut reply = Reply::begin(&response);
    for bytes in [6, 12, 18] {
        // Each chunk is read before the model sends the next one.
        reply.read_at_least(&mut response, bytes).await;
        assert_eq!(reply.bytes().len(), bytes);
        gate.open(1);
    }
    assert_eq!(
        reply.continue_reading(response).await.complete(),
        "one   two   three "
    );
}

#[tokio::test]
async fn interrupted_reply_resets_the_stream() {
    let organization = shop_with(Script::says("half").ends(End::Cut)).await;
    let service = organization.service();
    let http = http2();
    let reply = chat(&http, service, &organization, "s").await;
    assert_eq!(
        (reply.status, reply.ended_cleanly, reply.text().as_str()),
        (200, false, "half")
    );
    organization.script(Script::says("whole"));
    assert_eq!(
        chat(&http, service, &organization, "t").await.complete(),
        "whole"
    );
}

#[tokio::test]
async fn errors_are_the_same_as_over_http_1_1() {
    let organization = shop_saying("ok").await;
    let http = http2();
    let huge = json!({"message": "x".repeat(300_000), "sessionId": "s"});
    for (body, status, code) in [
        (json!({"message": "hi"}), 400, "INVALID_REQUEST_DATA"),
        (huge, 413, "PAYLOAD_TOO_LARGE"),
    ] {
        let request = chat_builder(&http, organization.service(), &organization, body);
        let answer = Answer::read(request.send().await.unwrap()).await.unwrap();
        answer.assert_problem(status, Some(code));
    }
}

#[tokio::test]
async fn more_requests_than_streams_are_all_answered() {
    let organization = shop_saying("ok").await;
    let http = http2();
    let sessions: Vec<_> = (0..150).map(|number| format!("s{number}")).collect();
    let replies = join_all(
        sessions
            .iter()
            .map(|session| chat(&http, organization.service(), &organization, session)),
    )
    .await;
    for reply in replies {
        assert_eq!(reply.complete(), "ok");
    }
}

#[tokio::test]
async fn stream_beyond_the_announced_limit_is_refused_alone() {
    let organization = shop_saying("ok").await;
    let mut connection = Http2::open(&url(organization.service()), &[]).await;
    let settings = connection.read_kind(SETTINGS).await.unwrap().settings();
    assert!(
        settings.contains(&(SETTING_MAX_CONCURRENT_STREAMS, STREAMS_MAX)),
        "{settings:?}"
    );
    assert!(
        settings.contains(&(SETTING_MAX_HEADER_LIST_SIZE, 16 << 10)),
        "{settings:?}"
    );
    let ids = (0..=STREAMS_MAX).map(|number| 2 * number + 1);
    let headers = chat_block(&organization);
    connection
        .raw
        .write(
            ids.flat_map(|id| frame(HEADERS, END_HEADERS, id, &headers))
                .collect::<Vec<_>>(),
        )
        .await;
    let refused = connection
        .read_kind(RST_STREAM)
        .await
        .expect("one stream is refused");
    assert_eq!(
        (refused.stream, refused.error()),
        (2 * STREAMS_MAX + 1, REFUSED_STREAM)
    );
    let body = json!({"message": "hi", "sessionId": "s"}).to_string();
    connection
        .raw
        .write(frame(DATA, END_STREAM, 1, body.as_bytes()))
        .await;
    assert!(
        connection.read_kind(HEADERS).await.unwrap().is_ok(),
        "the others go on"
    );
    assert_eq!(
        connection.read_text(1, usize::MAX).await,
        ("ok".to_owned(), true)
    );
}

#[tokio::test]
async fn rapid_reset_client_is_disconnected() {
    let organization = shop_saying("ok").await;
    let headers = chat_block(&organization);
    let mut connection = Http2::open(&url(organization.service()), &[]).await;
    let flood = (0..2_000).flat_map(|number| {
        let id = 2 * number + 1;
        [frame(HEADERS, END_HEADERS, id, &headers), reset(id, CANCEL)].concat()
    });
    connection.raw.write(flood.collect::<Vec<_>>()).await;
    let farewell = connection
        .read_kind(GOAWAY)
        .await
        .expect("the connection is given up");
    assert_eq!(farewell.error(), ENHANCE_YOUR_CALM);
    assert!(connection.raw.read_to_end().await.is_empty(), "and closed");
    still_serves(&organization).await;
}

#[tokio::test]
async fn endless_headers_time_out() {
    let organization = shop_saying("ok").await;
    let mut connection = Http2::open(&url(organization.service()), &[]).await;
    connection
        .raw
        .write(frame(HEADERS, END_STREAM, 1, &config_block(&organization)))
        .await;
    let piece = frame(
        CONTINUATION,
        0,
        1,
        &block(&[("x-more", &"x".repeat(8 << 10))]),
    );
    for _ in 0..1_000 {
        if !connection.raw.write(&piece).await {
            break;
        }
    }
    let mut answered = false;
    while let Some(frame) = connection.read().await {
        answered |= frame.is_ok();
    }
    assert!(!answered, "and the connection is closed");
    still_serves(&organization).await;
}

#[tokio::test]
async fn oversized_header_list_is_refused_without_a_disconnect() {
    let organization = shop_saying("ok").await;
    let service = organization.service();
    let http = http2();
    let body = json!({"message": "hi", "sessionId": "s"});
    let request =
        chat_builder(&http, service, &organization, body).header("x-wide", "x".repeat(20 << 10));
    let status = request
        .send()
        .await
        .map(|response| response.status().as_u16());
    assert!(
        status.is_err() || status.as_ref().is_ok_and(|status| *status == 431),
        "{status:?}"
    );
    assert_eq!(
        chat(&http, service, &organization, "s").await.complete(),
        "ok"
    );
}

#[tokio::test]
async fn reply_is_finished_after_its_stream_is_reset() {
    let (script, gate) = Script::says("one   two   ").chunk_chars(6).gated();
    let organization = shop_with(script).await;
    let mut connection = Http2::open(&url(organization.service()), &[]).await;
    let body = json!({"message": "hi", "sessionId": "s"}).to_string();
    connection
        .raw
        .write(frame(HEADERS, END_HEADERS, 1, &chat_block(&organization)))
        .await;
    connection
        .raw
        .write(frame(DATA, END_STREAM, 1, body.as_bytes()))
        .await;
    gate.open(1);
    assert_eq!(
        connection.read_text(1, 6).await,
        ("one   ".to_owned(), false)
    );
    connection.raw.write(reset(1, CANCEL)).await;
    connection
        .raw
        .write(frame(
            HEADERS,
            END_HEADERS | END_STREAM,
            3,
            &config_block(&organization),
        ))
        .await;
    let answer = connection.read_kind(HEADERS).await.unwrap();
    assert!(
        answer.is_ok() && answer.stream == 3,
        "the connection goes on: {answer:?}"
    );
    gate.open(1);
    let history = organization.settled_history("s", 2).await;
    assert_eq!(history["messages"][1]["content"], "one   two   ");
}

#[tokio::test]
async fn unread_stream_does_not_block_the_others() {
    let text = "0123456789".repeat(10);
    let organization = shop_saying(&text).await;
    let mut connection = Http2::open(
        &url(organization.service()),
        &[(SETTING_INITIAL_WINDOW_SIZE, 10)],
    )
    .await;
    let body = json!({"message": "hi", "sessionId": "s"}).to_string();
    connection
        .raw
        .write(frame(HEADERS, END_HEADERS, 1, &chat_block(&organization)))
        .await;
    connection
        .raw
        .write(frame(DATA, END_STREAM, 1, body.as_bytes()))
        .await;
    let (mut received, ended) = connection.read_text(1, 10).await;
    assert_eq!((received.as_str(), ended), ("0123456789", false));
    connection
        .raw
        .write(frame(
            HEADERS,
            END_HEADERS | END_STREAM,
            3,
            &config_block(&organization),
        ))
        .await;
    connection
        .raw
        .write(frame(WINDOW_UPDATE, 0, 3, &60_000_u32.to_be_bytes()))
        .await;
    let (other, ended) = connection.read_text(3, usize::MAX).await;
    assert!(ended && other.contains("\"welcomeMessage\""), "{other}");
    connection
        .raw
        .write(frame(WINDOW_UPDATE, 0, 1, &60_000_u32.to_be_bytes()))
        .await;
    let (rest, ended) = connection.read_text(1, usize::MAX).await;
    received.push_str(&rest);
    assert_eq!((received, ended), (text, true));
}

#[tokio::test]
async fn requests_ambiguous_in_http_1_1_are_reset() {
    let organization = shop_saying("ok").await;
    let body = json!({"message": "hi", "sessionId": "s"}).to_string();
    let longer = (body.len() + 1).to_string();
    for further in [
        &[("transfer-encoding", "chunked")][..],
        &[("connection", "keep-alive")],
        &[("content-length", longer.as_str())],
        &[("Upper", "case")],
        &[("x-break", "a\r\nx-smuggled: b")],
        &[(":path", "/second")],
    ] {
        let mut connection = Http2::open(&url(organization.service()), &[]).await;
        let headers = [chat_block(&organization), block(further)].concat();
        connection
            .raw
            .write(frame(HEADERS, END_HEADERS, 1, &headers))
            .await;
        connection
            .raw
            .write(frame(DATA, END_STREAM, 1, body.as_bytes()))
            .await;
        let refused = loop {
            let frame = connection.read().await.expect("an answer");
            assert!(!frame.is_ok(), "{further:?} was served");
            if [HEADERS, RST_STREAM, GOAWAY].contains(&frame.kind) {
                break frame;
            }
        };
        assert!(
            refused.kind != HEADERS || refused.stream == 1,
            "{further:?}: {refused:?}"
        );
    }
}
