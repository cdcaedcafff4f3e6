//! A message to an agent and its streamed reply.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Organization, OrganizationDocument, Reply, Script, ScriptedModel, SharedService, unique};

#[tokio::test]
async fn a_reply_is_plain_text_with_the_headers_of_the_specification() {
    let service = SharedService::get().await;
    let organization = Organization::with_agent(&service, Script::says("Hello from the shop.")).await;
    let reply = organization.client().chat(organization.shop(), "s", "hi").await;
    assert_eq!(reply.complete(), "Hello from the shop.");
    assert!(reply.required_header("content-type").starts_with("text/plain"), "{:?}", reply.headers);
    assert!(reply.required_header("x-conversation-id").starts_with("conv_"));
    assert!(reply.required_header("x-message-id").starts_with("msg_"));
    assert!(reply.required_header("x-request-id").starts_with("req_"));
    assert_eq!(reply.required_header("x-model"), organization.model);
    assert_eq!(reply.required_header("x-accel-buffering"), "no");
    assert_eq!(reply.required_header("cache-control"), "no-store, no-transform");
    assert!(!reply.required_header("x-reply-generation").is_empty());
    assert_eq!(reply.header("content-encoding"), None);
    assert_eq!(reply.header("x-ui-spec"), None);
}

#[tokio::test]
async fn text_arrives_while_the_model_still_speaks() {
    let service = SharedService::get().await;
    let organization = Organization::with_agent(&service, Script::counts(20, Duration::from_millis(100))).await;
    let began = Instant::now();
    let reply = organization.client().chat(organization.shop(), "s", "count").await;
    let whole = began.elapsed();
    reply.complete();
    let first = reply.chunks[0].0 - began;
    assert!(reply.chunks.len() >= 10, "{} chunks", reply.chunks.len());
    assert!(first < whole / 2, "first after {first:?} of {whole:?}");
}

#[tokio::test]
async fn what_was_streamed_is_what_is_stored_byte_for_byte() {
    let service = SharedService::get().await;
    let texts = [
        "plain",
        "Grüße, naïve café, Ωmega, 日本語のテキスト, עברית, 👩‍👩‍👧‍👦 family, e\u{301} combining",
        "line one\nline two\r\n\ttabbed\n\n\ntrailing spaces   \n",
        "```rust\nfn main() { println!(\"{}\", '\\u{0041}'); }\n```\n| a | b |\n",
        "<script>alert('x')</script> & \"quotes\" \\ backslash \u{200b} zero width \u{feff}",
    ];
    let organization = Organization::with_agent(&service, Script::says("unused")).await;
    let client = organization.client();
    for (number, text) in texts.into_iter().enumerate() {
        organization.script(Script::says(text).chunk_chars(1));
        let session = format!("bytes-{number}");
        let reply = client.chat(organization.shop(), &session, "say it").await;
        assert_eq!(reply.complete(), text);
        let history = client.history(organization.shop(), &session).await;
        assert_eq!(history["messages"][1]["content"], text);
        assert_eq!(client.message(&reply.required_header("x-message-id")).await["content"], text);
    }
}

#[tokio::test]
async fn each_turn_gives_the_model_the_whole_history_in_order() {
    let service = SharedService::get().await;
    let organization = Organization::with_agent(&service, Script::says("unused")).await;
    let (client, model) = (organization.client(), ScriptedModel::get());
    let mut expected = vec![];
    for turn in 1..=5 {
        organization.script(Script::says(&format!("answer {turn}")));
        client.chat(organization.shop(), "five", &format!("question {turn}")).await.complete();
        let requests = model.requests(&organization.model);
        assert_eq!(requests.len(), turn, "one model call per chat");
        expected.push(("user".to_owned(), format!("question {turn}")));
        let told: Vec<_> = requests[turn - 1].messages.iter().filter(|(role, _)| role != "system").cloned().collect();
        assert_eq!(told, expected);
        expected.push(("assistant".to_owned(), format!("answer {turn}")));
    }
}

#[tokio::test]
async fn the_instructions_of_the_agent_come_first_in_the_prompt() {
    let service = SharedService::get().await;
    let settings = json!({"instructions": "You only speak of teapots.", "temperature": 0.5, "maxOutputTokens": 77});
    let organization = OrganizationDocument::new().agent("shop", settings).apply(&service).await;
    organization.client().chat(organization.shop(), "s", "hi").await.complete();
    let request = ScriptedModel::get().requests(&organization.model).remove(0);
    assert_eq!(request.messages[0].0, "system");
    assert!(request.messages[0].1.contains("You only speak of teapots."), "{:?}", request.messages[0]);
    assert_eq!(request.body["temperature"], 0.5);
    let limit = [&request.body["max_tokens"], &request.body["max_completion_tokens"]];
    assert!(limit.iter().any(|value| **value == 77), "{}", request.body);
}

#[tokio::test]
async fn sessions_of_one_agent_do_not_see_each_other() {
    let service = SharedService::get().await;
    let organization = Organization::with_agent(&service, Script::says("noted")).await;
    let client = organization.client();
    let first = client.chat(organization.shop(), "alice", "my secret is 42").await;
    let second = client.chat(organization.shop(), "bob", "what is the secret?").await;
    assert_ne!(first.required_header("x-conversation-id"), second.required_header("x-conversation-id"));
    let requests = ScriptedModel::get().requests(&organization.model);
    assert!(requests[1].messages.iter().all(|(_, text)| !text.contains("42")), "{:?}", requests[1].messages);
}

#[tokio::test]
async fn a_session_id_is_compared_byte_for_byte() {
    let service = SharedService::get().await;
    let organization = Organization::with_agent(&service, Script::says("ok")).await;
    let client = organization.client();
    let mut conversations = vec![];
    for session in ["Sess", "sess", "sess ", "sés", "se\u{301}s", "a/b", "a%2Fb", "日本"] {
        let reply = client.chat(organization.shop(), session, "hi").await;
        reply.complete();
        conversations.push(reply.required_header("x-conversation-id"));
    }
    let count = conversations.len();
    conversations.sort();
    conversations.dedup();
    assert_eq!(conversations.len(), count);
}

#[tokio::test]
async fn a_client_that_hangs_up_does_not_stop_the_reply() {
    let service = SharedService::get().await;
    let script = Script::counts(20, Duration::from_millis(60));
    let organization = Organization::with_agent(&service, script.clone()).await;
    let client = organization.client();
    let mut response = client.open_chat(organization.shop(), &json!({"message": "go", "sessionId": "s"})).await;
    let mut reply = Reply::begin(&response);
    reply.read_at_least(&mut response, 12).await;
    let message = reply.required_header("x-message-id");
    drop(response);
    let stored = crate::support::eventually("the reply is finished", crate::support::PATIENCE, async || {
        let message = client.message(&message).await;
        (message["status"] == "completed").then_some(message)
    })
    .await;
    assert_eq!(stored["content"], script.text);
}

#[tokio::test]
async fn no_chunk_waits_for_a_delayed_acknowledgement() {
    let service = SharedService::get().await;
    let organization = Organization::with_agent(&service, Script::counts(40, Duration::from_millis(10))).await;
    let reply = organization.client().chat(organization.shop(), "s", "count").await;
    reply.complete();
    let mut gaps: Vec<_> = reply.chunks.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    gaps.sort();
    // Nagle's algorithm against delayed acknowledgements makes every gap 40 ms; a busy machine only makes some so.
    let median = gaps[gaps.len() / 2];
    assert!(median < Duration::from_millis(35), "median gap {median:?}");
}

#[tokio::test]
async fn visitor_details_and_metadata_are_kept_with_the_conversation() {
    let service = SharedService::get().await;
    let organization = Organization::with_agent(&service, Script::says("ok")).await;
    let client = organization.client();
    let session = unique("s");
    let body = json!({
        "message": "hi", "sessionId": session, "visitorId": "v-1", "visitorEmail": "ada@example.org",
        "visitorName": "Ada", "metadata": {"page": "/cart", "items": [1, 2], "visitorId": "forged", "source": "forged"}
    });
    Reply::read(client.open_chat(organization.shop(), &body).await).await.complete();
    let metadata = &client.history(organization.shop(), &session).await["metadata"];
    assert_eq!(metadata["visitorId"], "v-1");
    assert_eq!(metadata["visitorEmail"], "ada@example.org");
    assert_eq!(metadata["visitorName"], "Ada");
    assert_eq!(metadata["source"], "api");
    assert_eq!(metadata["page"], "/cart");
    assert_eq!(metadata["items"], json!([1, 2]));
    assert!(metadata["ipAddress"].is_string(), "{metadata}");
}
