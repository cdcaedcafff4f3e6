//! Agent chat: a message and its streamed reply.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use crate::support::{
    Organization, Reply, Script, TestService, send, shop_saying, shop_with, shop_with_settings,
};

#[tokio::test]
async fn streamed_text_is_stored_byte_for_byte() {
    let texts = [
        "plain",
        "Grüße, naïve café, Ωmega, 日本語のテキスト, עברית, 👩‍👩‍👧‍👦 family, e\u{301} combining",
        "line one\nline two\r\n\ttabbed\n\n\ntrailing spaces   \n",
        "```rust\nfn main() { println!(\"{}\", '\\u{0041}'); }\n```\n| a | b |\n",
        "<script>alert('x')</script> & \"quotes\" \\ backslash \u{200b} zero width \u{feff}",
    ];
    let organization = shop_saying("unused").await;
    let client = organization.client();
    for (number, text) in texts.into_iter().enumerate() {
        organization.script(Script::says(text).chunk_chars(1));
        let session = format!("bytes-{number}");
        let reply = organization.chat(&session, "say it").await;
        assert_eq!(reply.complete(), text);
        let history = organization.history(&session).await;
        assert_eq!(history["messages"][1]["content"], text);
        assert_eq!(
            client.message(&reply.required_header("x-message-id")).await["content"],
            text
        );
    }
}

#[tokio::test]
async fn agent_instructions_come_first_in_the_prompt() {
    let settings = json!({"instructions": "You only speak of teapots.", "temperature": 0.5, "maxOutputTokens": 77});
    let organization = shop_with_settings(settings).await;
    organization.chat("s", "hi").await.complete();
    let request = organization.requests().remove(0);
    assert_eq!(request.messages[0].0, "system");
    assert!(
        request.messages[0].1.contains("You only speak of teapots."),
        "{:?}",
        request.messages[0]
    );
    assert_eq!(request.body["temperature"], 0.5);
    let limit = [
        &request.body["max_tokens"],
        &request.body["max_completion_tokens"],
    ];
    assert!(limit.iter().any(|value| **value == 77), "{}", request.body);
}

#[tokio::test]
async fn sessions_of_one_agent_do_not_see_each_other() {
    let organization = shop_saying("noted").await;
    let first = organization.chat("alice", "my secret is 42").await;
    let second = organization.chat("bob", "what is the secret?").await;
    assert_ne!(
        first.required_header("x-conversation-id"),
        second.required_header("x-conversation-id")
    );
    let requests = organization.requests();
    assert!(
        requests[1]
            .messages
            .iter()
            .all(|(_, text)| !text.contains("42")),
        "{:?}",
        requests[1].messages
    );
}

#[tokio::test]
async fn session_id_is_compared_byte_for_byte() {
    let organization = shop_saying("ok").await;
    let mut conversations = vec![];
    for session in [
        "Sess",
        "sess",
        "sess ",
        "sés",
        "se\u{301}s",
        "a/b",
        "a%2Fb",
        "日本",
    ] {
        let reply = organization.chat(session, "hi").await;
        reply.complete();
        conversations.push(reply.required_header("x-conversation-id"));
    }
    let count = conversations.len();
    conversations.sort();
    conversations.dedup();
    assert_eq!(conversations.len(), count);
}

#[tokio::test]
async fn client_disconnect_does_not_stop_the_reply() {
    let script = Script::counts(20, Duration::from_millis(60));
    let organization = shop_with(script.clone()).await;
    let client = organization.client();
    let (reply, response) = organization.begin_chat("s", "go", 12).await;
    let message = reply.required_header("x-message-id");
    drop(response);
    let stored = crate::support::eventually(
        "the reply is finished",
        crate::support::PATIENCE,
        async || {
            let message = client.message(&message).await;
            (message["status"] == "completed").then_some(message)
        },
    )
    .await;
    assert_eq!(stored["content"], script.text);
}

#[tokio::test]
async fn no_chunk_waits_for_a_delayed_acknowledgement() {
    let organization = shop_with(Script::counts(40, Duration::from_millis(10))).await;
    let reply = organization.chat("s", "count").await;
    reply.complete();
    let mut gaps: Vec<_> = reply
        .chunks
        .windows(2)
        .map(|pair| pair[1].0 - pair[0].0)
        .collect();
    gaps.sort();
    // Nagle's algorithm with delayed acknowledgements makes every gap 40 ms; a busy machine only
    // some.
    let short = gaps[gaps.len() / 4];
    assert!(
        short < Duration::from_millis(35),
        "lower quartile {short:?}"
    );
}

#[tokio::test]
async fn service_sets_the_source_and_a_truncated_ip_address() {
    let service =
        TestService::start_with(&[("SWITCHBOARD__INGRESS__TRUSTED_PROXIES", "127.0.0.1")]).await;
    let organization = Organization::with_agent(&service, Script::says("ok")).await;
    let path = organization.path("/chat");
    for (session, address, kept) in [
        ("v4", "203.0.113.77", "203.0.113.0"),
        ("v6", "2001:db8:1234:5678:9abc::1", "2001:db8:1234::"),
    ] {
        let request = organization
            .client()
            .request(Method::POST, &path)
            .header("x-forwarded-for", address);
        let answer = send(request.json(&json!({"message": "hi", "sessionId": session}))).await;
        answer.assert_status(200);
        let metadata = &organization.history(session).await["metadata"];
        assert_eq!(
            (&metadata["source"], &metadata["ipAddress"]),
            (&json!("api"), &json!(kept))
        );
    }
}

#[tokio::test]
async fn chat_metadata_cannot_override_reserved_keys() {
    let organization = shop_saying("ok").await;
    let forged = json!({
        "visitorId": "forged", "visitorEmail": "forged", "visitorName": "forged", "source": "forged",
        "ipAddress": "forged", "page": "/cart"
    });
    let body = json!({"message": "hi", "sessionId": "s", "visitorName": "Ada", "metadata": forged});
    Reply::read(organization.open_chat(&body).await)
        .await
        .complete();
    let metadata = &organization.history("s").await["metadata"];
    assert!(!metadata.to_string().contains("forged"), "{metadata}");
    assert_eq!(
        (&metadata["visitorName"], &metadata["page"]),
        (&json!("Ada"), &json!("/cart"))
    );
    assert!(
        metadata.get("visitorId").is_none(),
        "absent keys are omitted: {metadata}"
    );
}

#[tokio::test]
async fn model_text_is_delivered_and_stored_byte_for_byte() {
    let organization = shop_saying("unused").await;
    let sayings = [
        "nul \0 and \u{1}\u{7f} controls",
        "\u{1b}[31mred\u{1b}[0m and \u{1b}]0;title\u{7}",
        "line\r\nline\rline\u{2028}line\u{2029}line\n\n\ndata: no event\nevent: done\n\n",
        "👩‍👩‍👧‍👦 e\u{301} \u{202e}txt\u{202c} \u{feff} \u{fffd} \u{10ffff}",
        "<script>alert(1)</script> HTTP/1.1 200 OK\r\n\r\n0\r\n\r\n",
    ];
    for (number, saying) in sayings.into_iter().enumerate() {
        organization.script(Script::says(saying).chunk_chars(1));
        let session = format!("s{number}");
        assert_eq!(organization.chat(&session, "hi").await.complete(), saying);
        assert_eq!(
            organization.history(&session).await["messages"][1]["content"],
            saying
        );
        let events = organization.chat_events(&format!("e{number}"), "hi").await;
        assert_eq!(
            (events.text().as_str(), events.names().last()),
            (saying, Some(&"done"))
        );
    }
}
