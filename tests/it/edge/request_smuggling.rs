//! Request smuggling: a request whose end is ambiguous to a proxy must never be answered as two
//! requests.

use super::{chat_head, config_request, connect, url};
use crate::support::{RawConnection, SharedService, shop_saying};

const BODY: &str = r#"{"message":"hi","sessionId":"s"}"#;

#[tokio::test]
async fn request_with_two_lengths_is_the_last_of_its_connection() {
    let organization = shop_saying("ok").await;
    let (chunked, hidden) = (
        format!("{:x}\r\n{BODY}\r\n0\r\n\r\n", BODY.len()),
        config_request(&organization, ""),
    );
    let whole = chunked.len() + hidden.len();
    for headers in [
        format!("content-length: {whole}\r\ntransfer-encoding: chunked\r\n"),
        format!("transfer-encoding: chunked\r\ncontent-length: {whole}\r\n"),
        format!("transfer-encoding: Chunked\r\nCONTENT-LENGTH: {whole}\r\n"),
        format!(
            "content-length: {whole}\r\ncontent-length: {whole}\r\ntransfer-encoding: chunked\r\n"
        ),
    ] {
        let mut connection = connect(&organization).await;
        connection
            .write(format!(
                "{}{headers}\r\n{chunked}{hidden}",
                chat_head(&organization, "")
            ))
            .await;
        let response = String::from_utf8(connection.read_to_end().await).unwrap();
        assert_eq!(
            response.matches("HTTP/1.1 ").count(),
            1,
            "{headers}{response}"
        );
    }
}

#[tokio::test]
async fn ambiguous_length_is_refused_and_closes_the_connection() {
    let organization = shop_saying("ok").await;
    let (length, hidden) = (BODY.len(), config_request(&organization, ""));
    let longer = length + hidden.len();
    let tables = [
        format!("content-length: {length}\r\ncontent-length: {longer}\r\n"),
        format!("content-length: {longer}\r\ncontent-length: {length}\r\n"),
        format!("content-length: {length}, {longer}\r\n"),
        format!("content-length: +{length}\r\n"),
        "content-length: -1\r\n".to_owned(),
        format!("content-length: 0x{length:x}\r\n"),
        format!("content-length: {length} {longer}\r\n"),
        "content-length: 99999999999999999999999999\r\n".to_owned(),
        "content-length: \r\n".to_owned(),
        "transfer-encoding: identity\r\n".to_owned(),
        format!("transfer-encoding: xchunked\r\ncontent-length: {length}\r\n"),
        format!("transfer-encoding: chunked, identity\r\ncontent-length: {length}\r\n"),
        format!(
            "transfer-encoding: chunked\r\ntransfer-encoding: identity\r\ncontent-length: {length}\r\n"
        ),
        format!("content-length : {length}\r\n"),
        format!("x: y\r\n content-length: {longer}\r\ncontent-length: {length}\r\n"),
        format!("content-length: {length}\rtransfer-encoding: chunked\r\n"),
        format!("x: a\0b\r\ncontent-length: {length}\r\n"),
    ];
    for headers in tables {
        let mut connection = connect(&organization).await;
        connection
            .write(format!(
                "{}{headers}\r\n{BODY}{hidden}",
                chat_head(&organization, "")
            ))
            .await;
        assert_one_bad_request(&mut connection, &format!("{headers:?}")).await;
    }
}

/// Asserts that the connection ends after a single response with status 400.
async fn assert_one_bad_request(connection: &mut RawConnection, request: &str) {
    let response = String::from_utf8(connection.read_to_end().await).unwrap();
    assert!(
        response.starts_with("HTTP/1.1 400 "),
        "{request}: {response}"
    );
    assert_eq!(
        response.matches("HTTP/1.1 ").count(),
        1,
        "{request}: {response}"
    );
}

#[tokio::test]
async fn malformed_chunks_end_the_request_and_the_connection() {
    let organization = shop_saying("ok").await;
    let (hidden, size) = (config_request(&organization, ""), BODY.len());
    for body in [
        format!("{size:x}\n{BODY}\r\n0\r\n\r\n"),
        format!("+{size:x}\r\n{BODY}\r\n0\r\n\r\n"),
        format!("-1\r\n{BODY}\r\n0\r\n\r\n"),
        format!("0x{size:x}\r\n{BODY}\r\n0\r\n\r\n"),
        format!("fffffffffffffffff\r\n{BODY}\r\n0\r\n\r\n"),
        format!("{:x}\r\n{BODY}\r\n0\r\n\r\n", size - 1),
        format!("\r\n{BODY}\r\n0\r\n\r\n"),
        format!("{size:x};{}\r\n{BODY}\r\n0\r\n\r\n", "x".repeat(100_000)),
    ] {
        let mut connection = connect(&organization).await;
        let head = format!(
            "{}transfer-encoding: chunked\r\n\r\n",
            chat_head(&organization, "")
        );
        connection.write(format!("{head}{body}{hidden}")).await;
        assert_one_bad_request(&mut connection, &format!("{body:.40}")).await;
    }
}

#[tokio::test]
async fn non_http_bytes_are_refused_and_close_the_connection() {
    let service = SharedService::get().await;
    for request in [
        "GET /\r\n\r\n",
        "GET  / HTTP/1.1\r\nhost: x\r\n\r\n",
        "GET / HTTP/9.9\r\nhost: x\r\n\r\n",
        "GET / http/1.1\r\nhost: x\r\n\r\n",
        "GET /a b HTTP/1.1\r\nhost: x\r\n\r\n",
        "G@T / HTTP/1.1\r\nhost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nno colon\r\n\r\n",
        "GET / HTTP/1.1\r\n: empty\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: x\r\r\n\r\n",
        "GET / HTTP/1.1\rhost: x\r\r",
        "\x16\x03\x01\x02\x00\x01\x00\x01\u{fc}\x03\x03\r\n\r\n",
        "\0\0\0\0\r\n\r\n",
    ] {
        let mut connection = RawConnection::open(&url(&service)).await;
        connection.write(request).await;
        let response = String::from_utf8(connection.read_to_end().await).unwrap();
        assert!(
            response.is_empty() || response.starts_with("HTTP/1.1 400 "),
            "{request:?}: {response}"
        );
        assert!(
            response.matches("HTTP/1.1 ").count() <= 1,
            "{request:?}: {response}"
        );
    }
}
