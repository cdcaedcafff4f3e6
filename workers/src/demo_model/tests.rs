//! Claims about the demo model: what it understands, and that it speaks the protocol as a provider does.

use std::time::{Duration, Instant};

use futures::StreamExt;
use reqwest::{Client, StatusCode, Url};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::{
    DEMO_MODEL, DemoModel, WORD_INTERVAL,
    conversation::{Conversation, Topic},
    phrases,
    protocol::ChatRequest,
};

fn conversation(messages: &Value) -> Conversation {
    let request: ChatRequest = serde_json::from_value(json!({ "messages": messages })).unwrap();
    Conversation::read(&request)
}

fn asked(question: &str) -> Conversation {
    conversation(&json!([{ "role": "user", "content": question }]))
}

/// A conversation in which the visitor wrote all of these.
fn after(texts: &[&str]) -> Conversation {
    let pair = |text: &&str| {
        [
            json!({ "role": "user", "content": text }),
            json!({ "role": "assistant", "content": "…" }),
        ]
    };
    let mut messages: Vec<Value> = texts.iter().flat_map(pair).collect();
    messages.pop();
    conversation(&messages.into())
}

#[test]
fn every_topic_is_found_by_the_words_of_the_help_text() {
    for (question, topic) in [
        ("My name is Ada", Topic::Introduction),
        ("What's my name?", Topic::Name),
        ("what did I say?", Topic::Memory),
        ("How many messages was that?", Topic::Count),
        ("Which products do you have?", Topic::Products),
        ("Show me a table", Topic::Table),
        ("how do I configure a model?", Topic::Setup),
        ("a list", Topic::Markdown),
        ("help!", Topic::Help),
        ("Who are you?", Topic::Help),
        ("Hello! What can you do?", Topic::Help),
        ("سلام", Topic::Greeting),
        ("Hi there", Topic::Greeting),
        ("Thank you", Topic::Thanks),
        ("bye", Topic::Goodbye),
        ("The tide turns at noon", Topic::Anything),
        ("今天天气怎么样", Topic::Anything),
        ("", Topic::Anything),
    ] {
        assert_eq!(asked(question).topic(), topic, "{question}");
    }
}

#[test]
fn the_name_that_was_given_last_is_remembered() {
    let named = after(&[
        "Hi, my name is Ada Lovelace. I like tea",
        "call me Ada, please",
        "what is my name?",
    ]);
    assert!(phrases::reply(&named).contains("**Ada**"));
    assert_eq!(asked("my name is علی").name().as_deref(), Some("علی"));
    assert_eq!(
        asked("My name is Ada Lovelace.").name().as_deref(),
        Some("Ada Lovelace")
    );
    assert_eq!(asked("my name is").name(), None);
}

#[test]
fn earlier_messages_are_repeated_and_counted() {
    let told = phrases::reply(&after(&["red apples", "green pears", "what did I say?"]));
    assert!(told.contains("1. red apples\n2. green pears"), "{told}");
    assert!(
        phrases::reply(&after(&["one two", "three", "how many messages?"]))
            .contains("message **3**")
    );
}

#[test]
fn the_first_reply_says_that_no_model_is_configured_whatever_was_asked() {
    for question in [
        "hello",
        "Show me a table",
        "my name is Ada",
        "¿Qué hora es?",
        "",
    ] {
        let reply = phrases::reply(&asked(question));
        for name in [
            "No language model is configured",
            "OPENAI_BASE_URL",
            "OPENAI_API_KEY",
            "OPENAI_MODEL",
        ] {
            assert!(reply.contains(name), "{question}: {reply}");
        }
    }
}

#[test]
fn a_reply_broken_off_at_any_character_is_continued_with_exactly_the_rest() {
    for question in ["hello", "سلام، حال شما چطور است؟", "a table"] {
        let whole = phrases::reply(&asked(question));
        for (end, _) in whole.char_indices() {
            let said = &whole[..end];
            let resumed = conversation(
                &json!([{ "role": "user", "content": question }, { "role": "assistant", "content": said }]),
            );
            assert_eq!(format!("{said}{}", resumed.rest_of_reply()), whole);
        }
    }
}

#[test]
fn a_beginning_by_another_model_is_followed_by_a_paragraph_of_its_own() {
    let messages = json!([{ "role": "user", "content": "thanks" }, { "role": "assistant", "content": "No problem" }]);
    let whole = phrases::reply(&asked("thanks"));
    assert_eq!(
        conversation(&messages).rest_of_reply(),
        format!("\n\n{whole}")
    );
}

#[test]
fn a_message_in_parts_is_read_like_one_text() {
    let parts = json!([{ "type": "text", "text": "my name is Ada" }, { "type": "image_url", "image_url": {} }]);
    assert_eq!(
        conversation(&json!([{ "role": "user", "content": parts }]))
            .name()
            .as_deref(),
        Some("Ada")
    );
}

#[test]
fn a_long_message_does_not_make_a_long_reply() {
    for text in ["word ".repeat(10_000), "字".repeat(10_000)] {
        assert!(phrases::reply(&asked(&text)).len() < 2_000);
        assert!(phrases::reply(&after(&[&text, "what did I say?"])).len() < 1_000);
    }
}

#[test]
fn products_of_the_system_prompt_are_offered() {
    let system = "You sell things.\nProducts:\n- Blue mug, $9\n- Red mug, $12";
    let asked = conversation(
        &json!([{ "role": "system", "content": system }, { "role": "user", "content": "what products are there?" }]),
    );
    assert!(phrases::reply(&asked).contains("- **Blue mug, $9**\n- **Red mug, $12**"));
}

fn client() -> Client {
    // The program installs it at start; a second test finds it installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::new()
}

async fn post(model: &DemoModel, body: Value) -> reqwest::Response {
    let request = client().post(format!("{}/chat/completions", model.base_url()));
    request
        .bearer_auth(model.token().expose_secret())
        .json(&body)
        .send()
        .await
        .unwrap()
}

/// The data of each event, in order.
async fn events(response: reqwest::Response) -> Vec<String> {
    let text = response.text().await.unwrap();
    text.split_terminator("\n\n")
        .map(|event| event.strip_prefix("data: ").unwrap().to_owned())
        .collect()
}

fn text_of(events: &[String]) -> String {
    let chunks = events
        .iter()
        .filter_map(|event| serde_json::from_str::<Value>(event).ok());
    chunks
        .filter_map(|chunk| Some(chunk["choices"][0]["delta"]["content"].as_str()?.to_owned()))
        .collect()
}

#[tokio::test]
async fn a_stream_and_a_whole_answer_have_the_same_text_reason_and_usage() {
    let model = DemoModel::start().await.unwrap();
    let question = json!([{ "role": "user", "content": "thanks" }]);
    let options = json!({ "include_usage": true });
    let body = json!({ "model": DEMO_MODEL, "messages": question, "stream": true, "stream_options": options });
    let streamed = events(post(&model, body).await).await;
    let whole: Value = post(&model, json!({ "messages": question }))
        .await
        .json()
        .await
        .unwrap();

    assert_eq!(streamed.last().unwrap(), "[DONE]");
    assert_eq!(
        text_of(&streamed),
        whole["choices"][0]["message"]["content"].as_str().unwrap()
    );
    let usage: Value = serde_json::from_str(&streamed[streamed.len() - 2]).unwrap();
    assert_eq!(usage["choices"], json!([]));
    assert_eq!(usage["usage"], whole["usage"]);
    let end: Value = serde_json::from_str(&streamed[streamed.len() - 3]).unwrap();
    assert_eq!(end["choices"][0]["finish_reason"], "stop");
    model.shutdown().await;
}

#[tokio::test]
async fn words_of_a_stream_come_one_after_another() {
    let model = DemoModel::start().await.unwrap();
    let started = Instant::now();
    let messages = json!([{ "role": "user", "content": "thanks" }]);
    let mut body = post(
        &model,
        json!({ "messages": messages, "stream": true, "max_tokens": 12 }),
    )
    .await
    .bytes_stream();
    body.next().await.unwrap().unwrap();
    let first = started.elapsed();
    while body.next().await.is_some() {}
    assert!(
        started.elapsed() - first >= WORD_INTERVAL * 10,
        "only {:?}",
        started.elapsed() - first
    );
    model.shutdown().await;
}

#[tokio::test]
async fn a_token_limit_cuts_the_reply_and_says_so() {
    let model = DemoModel::start().await.unwrap();
    let body = json!({ "messages": [{ "role": "user", "content": "hello" }], "max_tokens": 3 });
    let whole: Value = post(&model, body).await.json().await.unwrap();
    assert_eq!(whole["choices"][0]["finish_reason"], "length");
    assert_eq!(whole["usage"]["completion_tokens"], 3);
    model.shutdown().await;
}

#[tokio::test]
async fn the_tool_that_shows_products_is_called_and_its_result_is_put_into_words() {
    let model = DemoModel::start().await.unwrap();
    let parameters = json!({ "type": "object", "properties": {}, "required": [] });
    let tools = json!([{ "type": "function", "function": { "name": "show_products", "parameters": parameters } }]);
    let mut messages = vec![json!({ "role": "user", "content": "Which products do you have?" })];
    let body = json!({ "messages": messages, "tools": tools, "stream": true });
    let called = events(post(&model, body).await).await;
    let call: Value = serde_json::from_str(&called[1]).unwrap();
    let call = &call["choices"][0]["delta"]["tool_calls"][0];
    assert_eq!(
        call["function"],
        json!({ "name": "show_products", "arguments": "{}" })
    );
    assert!(called[2].contains("\"finish_reason\":\"tool_calls\""));

    messages.push(json!({ "role": "assistant", "content": null, "tool_calls": [call] }));
    let found =
        json!([{ "title": "Blue mug", "price": "$9" }]).to_string() + "\n\nThe visitor sees it.";
    messages.push(json!({ "role": "tool", "tool_call_id": call["id"], "content": found }));
    let whole: Value = post(&model, json!({ "messages": messages, "tools": tools }))
        .await
        .json()
        .await
        .unwrap();
    assert!(
        whole["choices"][0]["message"]["content"]
            .as_str()
            .unwrap()
            .contains("- **Blue mug**, $9")
    );
    model.shutdown().await;
}

#[tokio::test]
async fn only_the_token_of_this_start_opens_it_and_refusals_have_the_protocols_shape() {
    let (model, other) = (
        DemoModel::start().await.unwrap(),
        DemoModel::start().await.unwrap(),
    );
    let models = Url::parse(&format!("{}/models", model.base_url())).unwrap();
    let get = |token: &str| client().get(models.clone()).bearer_auth(token).send();
    assert_eq!(
        get(other.token().expose_secret()).await.unwrap().status(),
        StatusCode::UNAUTHORIZED
    );
    let listed: Value = get(model.token().expose_secret())
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(listed["data"][0]["id"], DEMO_MODEL);

    for body in [
        json!([]),
        json!({ "messages": [], "response_format": { "type": "json_object" } }),
    ] {
        let refused = post(&model, body).await;
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
        assert!(refused.json::<Value>().await.unwrap()["error"]["message"].is_string());
    }
    model.shutdown().await;
    other.shutdown().await;
}

#[tokio::test]
async fn a_shutdown_breaks_open_streams_off_without_a_finish_reason() {
    let model = DemoModel::start().await.unwrap();
    let body = json!({ "messages": [{ "role": "user", "content": "help" }], "stream": true });
    let mut stream = post(&model, body).await.bytes_stream();
    stream.next().await.unwrap().unwrap();
    tokio::time::timeout(Duration::from_secs(2), model.shutdown())
        .await
        .unwrap();
    let mut rest = String::new();
    while let Some(Ok(bytes)) = stream.next().await {
        rest.push_str(&String::from_utf8_lossy(&bytes));
    }
    assert!(
        !rest.contains("[DONE]") && !rest.contains("\"stop\""),
        "{rest}"
    );
}
