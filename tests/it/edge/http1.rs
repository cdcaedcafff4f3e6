//! Rare uses of HTTP/1.1 and 1.0: pipelining, half-closed connections, expectations and HEAD.

use serde_json::{Value, json};

use super::{chat_head, chat_request, config_request, connect};
use crate::support::{
    End, Organization, Process, RawConnection, Script, TestService, shop_saying, shop_with,
};

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let organization = shop_saying("ok").await;
    let mut connection = connect(&organization).await;
    let unknown = "GET /nothing HTTP/1.1\r\nhost: x\r\n\r\n";
    let requests = [
        config_request(&organization, ""),
        chat_request(&organization, "s", ""),
        unknown.to_owned(),
        config_request(&organization, ""),
    ];
    connection.write(requests.concat()).await;
    let mut answers = vec![];
    for _ in 0..requests.len() {
        let answer = connection.read_answer().await.expect("an answer to each");
        answers.push((answer.status, answer.text()));
    }
    assert_eq!(
        answers
            .iter()
            .map(|(status, _)| *status)
            .collect::<Vec<_>>(),
        [200, 200, 404, 200]
    );
    assert_eq!(answers[1].1, "ok");
    assert_eq!(answers[0].1, answers[3].1);
}

#[tokio::test]
async fn connection_stays_open_after_an_error() {
    let organization = shop_saying("ok").await;
    let mut connection = connect(&organization).await;
    for (request, status) in [
        ("GET /nothing HTTP/1.1\r\nhost: x\r\n\r\n".to_owned(), 404),
        (
            "DELETE /api/public/agents/x HTTP/1.1\r\nhost: x\r\n\r\n".to_owned(),
            405,
        ),
        (
            "GET /api/public/agents/x HTTP/1.1\r\nhost: x\r\n\r\n".to_owned(),
            401,
        ),
        (config_request(&organization, ""), 200),
    ] {
        connection.write(request).await;
        assert_eq!(
            connection
                .read_answer()
                .await
                .expect("the same connection")
                .status,
            status
        );
    }
}

#[tokio::test]
async fn half_closed_connection_ends_while_its_reply_is_finished() {
    let (script, gate) = Script::says("one   two   ").chunk_chars(6).gated();
    let organization = shop_with(script).await;
    let mut connection = connect(&organization).await;
    connection.write(chat_request(&organization, "s", "")).await;
    gate.open(1);
    assert_eq!(
        connection
            .read_head()
            .await
            .expect("the reply begins")
            .status,
        200
    );
    connection.finish_writing().await;
    let rest = connection.read_to_end().await;
    assert!(
        !rest.ends_with(b"0\r\n\r\n"),
        "never a clean end: {}",
        String::from_utf8_lossy(&rest)
    );
    gate.open(1);
    let history = organization.settled_history("s", 2).await;
    assert_eq!(history["messages"][1]["content"], "one   two   ");
}

#[tokio::test]
async fn expect_continue_is_answered_only_for_accepted_requests() {
    let organization = shop_saying("ok").await;
    let body = json!({"message": "hi", "sessionId": "s"}).to_string();
    let expecting =
        |length: usize| format!("expect: 100-continue\r\ncontent-length: {length}\r\n\r\n");
    let mut connection = connect(&organization).await;
    connection
        .write(format!(
            "{}{}",
            chat_head(&organization, ""),
            expecting(body.len())
        ))
        .await;
    assert_eq!(connection.read_head().await.expect("go on").status, 100);
    connection.write(&body).await;
    assert_eq!(
        connection.read_answer().await.expect("the reply").text(),
        "ok"
    );
    let keyless = "POST /api/public/agents/x/chat HTTP/1.1\r\nhost: x\r\n".to_owned();
    for (head, length, status) in [
        (keyless, body.len(), 401),
        (chat_head(&organization, ""), 300_000, 413),
    ] {
        let mut connection = connect(&organization).await;
        connection
            .write(format!("{head}{}", expecting(length)))
            .await;
        assert_eq!(
            connection
                .read_answer()
                .await
                .expect("refused at once")
                .status,
            status
        );
    }
}

#[tokio::test]
async fn head_is_answered_like_get_without_the_body() {
    let organization = shop_saying("ok").await;
    let (base, key) = ("/api/public/agents", organization.key_text("all"));
    let known = format!("x-api-key: {key}\r\n");
    for (path, headers, status) in [
        (
            format!("{base}/{}", organization.shop()),
            known.as_str(),
            200,
        ),
        (
            format!("{base}/{}/widget", organization.shop()),
            known.as_str(),
            200,
        ),
        (format!("{base}/{}", organization.shop()), "", 401),
        (format!("{base}/unknown"), known.as_str(), 404),
        (
            format!("{base}/{}/chat", organization.shop()),
            known.as_str(),
            405,
        ),
        ("/nothing".to_owned(), "", 404),
    ] {
        let mut connection = connect(&organization).await;
        connection
            .write(format!("GET {path} HTTP/1.1\r\nhost: x\r\n{headers}\r\n"))
            .await;
        let get = connection.read_answer().await.expect("an answer to GET");
        let next = "GET /nothing HTTP/1.1\r\nhost: x\r\n\r\n";
        connection
            .write(format!(
                "HEAD {path} HTTP/1.1\r\nhost: x\r\n{headers}\r\n{next}"
            ))
            .await;
        let head = connection.read_head().await.expect("an answer to HEAD");
        assert_eq!((get.status, head.status), (status, status), "{path}");
        for header in ["content-length", "content-type"] {
            assert_eq!(
                head.header(header),
                get.header(header),
                "{header} of {path}"
            );
        }
        assert_eq!(
            connection
                .read_head()
                .await
                .expect("nothing lies between")
                .status,
            404,
            "{path}"
        );
    }
}

#[tokio::test]
async fn body_of_a_get_is_not_parsed_as_a_request() {
    let organization = shop_saying("ok").await;
    let mut connection = connect(&organization).await;
    let hidden = "GET /nothing HTTP/1.1\r\nhost: x\r\n\r\n";
    let with_body = config_request(
        &organization,
        &format!("content-length: {}\r\n", hidden.len()),
    );
    connection
        .write(format!(
            "{with_body}{hidden}{}",
            config_request(&organization, "connection: close\r\n")
        ))
        .await;
    for _ in 0..2 {
        let answer = connection.read_answer().await.expect("two answers");
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    assert!(connection.read_to_end().await.is_empty());
}

#[tokio::test]
async fn body_of_a_refused_request_is_not_parsed_as_a_request() {
    let organization = shop_saying("ok").await;
    let hidden = config_request(&organization, "");
    let huge = hidden.repeat(300_000 / hidden.len());
    let chat = chat_head(&organization, "");
    let keyless = "POST /api/public/agents/x/chat HTTP/1.1\r\nhost: x\r\n".to_owned();
    for (head, body, status) in [
        (chat.clone(), &huge, 413),
        (keyless, &hidden, 401),
        (chat, &hidden, 400),
    ] {
        let mut connection = connect(&organization).await;
        connection
            .write(format!(
                "{head}connection: close\r\ncontent-length: {}\r\n\r\n",
                body.len()
            ))
            .await;
        connection.write(body).await;
        let response = String::from_utf8(connection.read_to_end().await).unwrap();
        assert!(
            response.starts_with(&format!("HTTP/1.1 {status} ")),
            "{response}"
        );
        assert_eq!(response.matches("HTTP/1.1 ").count(), 1, "{response}");
    }
}

#[tokio::test]
async fn http_1_0_client_gets_the_whole_reply() {
    let organization = shop_saying("a whole reply").await;
    let mut connection = connect(&organization).await;
    connection
        .write(chat_request(&organization, "s", "").replace("HTTP/1.1", "HTTP/1.0"))
        .await;
    let (response, broke) = connection.read_to_break().await;
    let response = String::from_utf8(response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(!broke, "an end in order");
    assert!(
        head.contains(" 200 ") && !head.to_lowercase().contains("chunked"),
        "{head}"
    );
    assert_eq!(body, "a whole reply");
    connection = connect(&organization).await;
    connection.write("GET /nothing HTTP/1.0\r\n\r\n").await;
    let answer = connection
        .read_answer()
        .await
        .expect("an answer without a host");
    assert_eq!(
        serde_json::from_slice::<Value>(&answer.body).unwrap()["code"],
        "NOT_FOUND"
    );
}

#[tokio::test]
async fn http_1_0_client_detects_an_interrupted_reply() {
    let organization = shop_with(Script::says("half").ends(End::Cut)).await;
    let mut connection = connect(&organization).await;
    connection
        .write(chat_request(&organization, "s", "").replace("HTTP/1.1", "HTTP/1.0"))
        .await;
    let (response, broke) = connection.read_to_break().await;
    let response = String::from_utf8(response).unwrap();
    assert!(response.contains(" 200 ") && broke, "{response}");
}

#[tokio::test]
async fn http_1_0_client_detects_a_killed_process() {
    let service = TestService::start().await;
    let (script, gate) = Script::says("one   two   ").chunk_chars(6).gated();
    let organization = Organization::with_agent(&service, script).await;
    let mut connection = RawConnection::open(&service.public_urls()[0]).await;
    connection
        .write(chat_request(&organization, "s", "").replace("HTTP/1.1", "HTTP/1.0"))
        .await;
    gate.open(1);
    assert_eq!(
        connection
            .read_head()
            .await
            .expect("the reply begins")
            .status,
        200
    );
    assert_eq!(
        connection.read_exactly(6).await.as_deref(),
        Some(&b"one   "[..])
    );
    service.with_process(&service.ops_urls()[0].0, Process::kill);
    assert_eq!(connection.read_to_break().await, (vec![], true));
}
