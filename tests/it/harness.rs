//! Tests of the test tools: a helper that misses a fault would make its tests worthless.

use std::{
    io::{Read, Write},
    net::TcpListener,
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::{Client, End, PATIENCE, Reply, Script, ScriptedModel, eventually, unique};

async fn ask(model: &str, messages: Value) -> Reply {
    let base = ScriptedModel::get()
        .base_url()
        .strip_suffix("/v1")
        .unwrap()
        .to_owned();
    let body = json!({"model": model, "stream": true, "messages": messages});
    let request = Client::new(&base)
        .request(reqwest::Method::POST, "/v1/chat/completions")
        .json(&body);
    Reply::read(request.send().await.unwrap()).await
}

fn said(reply: &Reply) -> String {
    let body = String::from_utf8(reply.bytes()).unwrap();
    let events = body
        .split("\n\n")
        .filter_map(|event| event.strip_prefix("data: "))
        .filter(|data| *data != "[DONE]");
    let chunks = events.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    chunks
        .filter_map(|chunk| {
            chunk["choices"][0]["delta"]["content"]
                .as_str()
                .map(str::to_owned)
        })
        .collect()
}

#[tokio::test]
async fn interrupted_and_complete_transfers_differ() {
    for (tail, clean) in [("0\r\n\r\n", true), ("", false), ("5\r\nhal", false)] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            // Closing with unread input would reset the connection, which is a different fault.
            assert!(connection.read(&mut [0; 4096]).unwrap() > 0);
            let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n";
            connection
                .write_all(format!("{head}{tail}").as_bytes())
                .unwrap();
        });
        let client = Client::new(&format!("http://{address}"));
        let reply = Reply::read(
            client
                .request(reqwest::Method::GET, "/")
                .send()
                .await
                .unwrap(),
        )
        .await;
        assert_eq!(reply.ended_cleanly, clean, "{tail:?}");
        assert!(reply.text().starts_with("hello"));
    }
}

#[tokio::test]
async fn scripted_model_sends_its_text_and_records_the_request() {
    let (model, name) = (ScriptedModel::get(), unique("harness-"));
    model.register(&name, Script::says("Grüße, 東京!").chunk_chars(1));
    let reply = ask(&name, json!([{"role": "user", "content": "hi"}])).await;
    assert_eq!(said(&reply), "Grüße, 東京!");
    assert!(
        reply.ended_cleanly
            && String::from_utf8(reply.bytes())
                .unwrap()
                .contains("\"finish_reason\":\"stop\"")
    );
    let requests = model.requests(&name);
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].messages, [("user".to_owned(), "hi".to_owned())]);
    eventually("the request is closed", PATIENCE, async || {
        (!requests[0].is_open()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn scripted_model_continues_a_prefix_with_exactly_the_rest() {
    let (model, name) = (ScriptedModel::get(), unique("harness-"));
    let script = Script::says("one two three four").chunk_chars(4);
    let messages = json!([{"role": "user", "content": "count"}, {"role": "assistant", "content": "one two th"}]);
    model.register(&name, script.clone().continues_prefix());
    assert_eq!(said(&ask(&name, messages.clone()).await), "ree four");
    model.register(&name, script);
    assert_eq!(said(&ask(&name, messages).await), "one two three four");
}

#[tokio::test]
async fn scripts_cut_refuse_and_follow_markers() {
    let (model, name) = (ScriptedModel::get(), unique("harness-"));
    let question = |text: &str| json!([{"role": "user", "content": text}]);
    model.register(&name, Script::says("fine").refuses_times(2, 429, Some(3)));
    for _ in 0..2 {
        let refused = ask(&name, question("hi")).await;
        assert_eq!(
            (refused.status, refused.header("retry-after")),
            (429, Some("3"))
        );
    }
    assert_eq!(said(&ask(&name, question("hi")).await), "fine");
    model.register(
        &format!("{name}/special"),
        Script::says("cut here").ends(End::Cut),
    );
    let cut = ask(&name, question("do [[special]] please")).await;
    assert_eq!(
        (said(&cut).as_str(), cut.ended_cleanly),
        ("cut here", false)
    );
    let slow = Script::counts(5, Duration::from_millis(30)).ends(End::NoFinishReason);
    model.register(&format!("{name}/odd"), slow);
    let odd = ask(&name, question("[[odd]]")).await;
    assert!(odd.ended_cleanly && !String::from_utf8(odd.bytes()).unwrap().contains("\"stop\""));
    assert_eq!(said(&odd).split_whitespace().count(), 5);
}

#[tokio::test]
async fn script_depends_on_the_body_of_the_request() {
    let (model, name) = (ScriptedModel::get(), unique("harness-"));
    let error = json!({"error": {"message": "unsupported", "param": "messages"}});
    let headers = [("content-type", "application/json"), ("retry-after", "7")];
    let refused = Script::answer(400, &headers, &error);
    let is_empty = |body: &Value| body["messages"] == json!([]);
    model.register(&name, Script::says("fine").when(is_empty, refused));
    let answer = ask(&name, json!([])).await.into_answer();
    assert_eq!((answer.status, answer.json()), (400, error));
    assert_eq!(answer.header("retry-after"), Some("7"));
    let question = json!([{"role": "user", "content": "hi"}]);
    assert_eq!(said(&ask(&name, question).await), "fine");
}
