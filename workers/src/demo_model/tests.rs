//! Tests of the demo model: recognized topics, and the protocol that it shares with real providers.

use std::time::{Duration, Instant};

use futures::StreamExt;
use reqwest::{Client, StatusCode, Url};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::{
    DEMO_MODEL, DemoModel, WORD_INTERVAL,
    conversation::{DemoConversation, QuestionTopic},
    phrases,
    protocol::ChatRequest,
};

fn conversation(messages: &Value) -> DemoConversation {
    let request: ChatRequest = serde_json::from_value(json!({ "messages": messages })).unwrap();
    DemoConversation::from_request(&request)
}

fn conversation_with(question: &str) -> DemoConversation {
    conversation(&json!([{ "role": "user", "content": question }]))
}

/// Returns a conversation in which the visitor wrote these texts.
fn after(texts: &[&str]) -> DemoConversation {
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
fn demo_answers_the_question_and_not_the_products() {
    let note = "[Products that the visitor was shown: [{\"title\":\"Table for a list\"}]]";
    let asked = conversation_with(&format!("Thank you\n\n{note}"));
    assert_eq!(asked.last_question(), "Thank you");
    assert_eq!(conversation_with(note).last_question(), "");
}

#[test]
fn help_text_words_find_every_topic() {
    for (question, topic) in [
        ("My name is Ada", QuestionTopic::Introduction),
        ("What's my name?", QuestionTopic::Name),
        ("what did I say?", QuestionTopic::Memory),
        ("How many messages was that?", QuestionTopic::Count),
        ("Which products do you have?", QuestionTopic::Products),
        ("Show me a table", QuestionTopic::Table),
        ("how do I configure a model?", QuestionTopic::Setup),
        ("a list", QuestionTopic::Markdown),
        ("help!", QuestionTopic::Help),
        ("Who are you?", QuestionTopic::Help),
        ("Hello! What can you do?", QuestionTopic::Help),
        ("سلام", QuestionTopic::Greeting),
        ("Hi there", QuestionTopic::Greeting),
        ("Thank you", QuestionTopic::Thanks),
        ("bye", QuestionTopic::Goodbye),
        ("The tide turns at noon", QuestionTopic::Anything),
        ("今天天气怎么样", QuestionTopic::Anything),
        ("", QuestionTopic::Anything),
    ] {
        assert_eq!(
            conversation_with(question).reply_topic(),
            topic,
            "{question}"
        );
    }
}

#[test]
fn latest_name_is_remembered() {
    let named = after(&[
        "Hi, my name is Ada Lovelace. I like tea",
        "call me Ada, please",
        "what is my name?",
    ]);
    assert!(phrases::whole_reply(&named).contains("**Ada**"));
    assert_eq!(
        conversation_with("my name is علی")
            .visitor_name()
            .as_deref(),
        Some("علی")
    );
    assert_eq!(
        conversation_with("My name is Ada Lovelace.")
            .visitor_name()
            .as_deref(),
        Some("Ada Lovelace")
    );
    assert_eq!(conversation_with("my name is").visitor_name(), None);
}

#[test]
fn earlier_messages_are_repeated_and_counted() {
    let told = phrases::whole_reply(&after(&["red apples", "green pears", "what did I say?"]));
    assert!(told.contains("1. red apples\n2. green pears"), "{told}");
    assert!(
        phrases::whole_reply(&after(&["one two", "three", "how many messages?"]))
            .contains("message **3**")
    );
}

#[test]
fn missing_model_is_mentioned_without_settings() {
    for question in [
        "hello",
        "Show me a table",
        "my name is Ada",
        "how do I configure a model?",
        "¿Qué hora es?",
        "",
    ] {
        let reply = phrases::whole_reply(&conversation_with(question));
        let notice = "not connected to a language model yet";
        assert!(reply.contains(notice), "{question}: {reply}");
        // Visitors cannot do anything about variables of the service.
        assert!(!reply.contains("OPENAI_"), "{question}: {reply}");
    }
}

#[test]
fn cut_reply_is_continued_with_exactly_the_rest() {
    for question in ["hello", "سلام، حال شما چطور است؟", "a table"] {
        let whole = phrases::whole_reply(&conversation_with(question));
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
fn foreign_prefix_is_followed_by_a_new_paragraph() {
    let messages = json!([{ "role": "user", "content": "thanks" }, { "role": "assistant", "content": "No problem" }]);
    let whole = phrases::whole_reply(&conversation_with("thanks"));
    assert_eq!(
        conversation(&messages).rest_of_reply(),
        format!("\n\n{whole}")
    );
}

#[test]
fn message_parts_are_joined() {
    let parts = json!([{ "type": "text", "text": "my name is Ada" }, { "type": "image_url", "image_url": {} }]);
    assert_eq!(
        conversation(&json!([{ "role": "user", "content": parts }]))
            .visitor_name()
            .as_deref(),
        Some("Ada")
    );
}

#[test]
fn long_message_gets_a_bounded_reply() {
    for text in ["word ".repeat(10_000), "字".repeat(10_000)] {
        assert!(phrases::whole_reply(&conversation_with(&text)).len() < 2_000);
        assert!(phrases::whole_reply(&after(&[&text, "what did I say?"])).len() < 1_000);
    }
}

#[test]
fn products_of_the_system_prompt_are_offered() {
    let system = "You sell things.\nProducts:\n- Blue mug, $9\n- Red mug, $12";
    let asked = conversation(
        &json!([{ "role": "system", "content": system }, { "role": "user", "content": "what products are there?" }]),
    );
    assert!(phrases::whole_reply(&asked).contains("- **Blue mug, $9**\n- **Red mug, $12**"));
}

fn client() -> Client {
    // The program installs the provider at start; another test may have installed it already.
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

/// Returns the data of each event, in order.
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
async fn stream_and_whole_answer_are_equal() {
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
async fn streamed_words_arrive_one_by_one() {
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
async fn token_limit_truncates_the_reply() {
    let model = DemoModel::start().await.unwrap();
    let body = json!({ "messages": [{ "role": "user", "content": "hello" }], "max_tokens": 3 });
    let whole: Value = post(&model, body).await.json().await.unwrap();
    assert_eq!(whole["choices"][0]["finish_reason"], "length");
    assert_eq!(whole["usage"]["completion_tokens"], 3);
    model.shutdown().await;
}

#[tokio::test]
async fn product_tool_is_called_and_its_result_is_described() {
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
async fn token_of_another_process_is_rejected() {
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
async fn shutdown_breaks_off_open_streams() {
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
