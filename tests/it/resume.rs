//! Resuming the stream of a reply from any position, during and after it.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use crate::support::{Events, Reply, Script, shop_saying, shop_with};

#[tokio::test]
async fn stored_reply_resumes_at_any_byte_on_any_ingress() {
    let text = "Grüße aus 東京 und zurück";
    let organization = shop_saying(text).await;
    let client = organization.client();
    let reply = client.chat(organization.shop(), "s", "hi").await;
    reply.complete();
    let path = format!(
        "/api/public/messages/{}/stream",
        reply.required_header("x-message-id")
    );
    for url in organization.service().public_urls() {
        let client = organization.client_at(&url);
        for after in 0..=text.len() {
            let response = client
                .request(Method::GET, &format!("{path}?after={after}"))
                .send()
                .await
                .unwrap();
            let rest = Reply::read(response).await;
            assert_eq!(rest.status, 200, "{after} at {url}");
            assert!(rest.ended_cleanly);
            assert_eq!(rest.bytes(), &text.as_bytes()[after..], "{after} at {url}");
        }
    }
    let too_far = client
        .get(&format!("{path}?after={}", text.len() + 1))
        .await;
    too_far.assert_problem(416, Some("RANGE_NOT_SATISFIABLE"));
}

#[tokio::test]
async fn second_reader_on_another_ingress_follows_a_running_reply() {
    let script = Script::counts(40, Duration::from_millis(50));
    let organization = shop_with(script.clone()).await;
    let urls = organization.service().public_urls();
    let client = organization.client_at(&urls[0]);
    let (reply, response) = client.begin_chat(organization.shop(), "s", "go", 30).await;
    let path = format!(
        "/api/public/messages/{}/stream?after=12",
        reply.required_header("x-message-id")
    );
    let second = organization
        .client_at(urls.last().unwrap())
        .request(Method::GET, &path)
        .send()
        .await
        .unwrap();
    let (first, second) = tokio::join!(reply.continue_reading(response), Reply::read(second));
    assert_eq!(first.complete(), script.text);
    assert_eq!(second.status, 200);
    assert!(second.ended_cleanly);
    assert_eq!(second.bytes(), &script.text.as_bytes()[12..]);
    assert!(
        second.chunks.len() > 3,
        "it was followed live: {} chunks",
        second.chunks.len()
    );
}

#[tokio::test]
async fn events_resume_after_the_last_event_id() {
    let text = "one two three four five";
    let organization = shop_with(Script::says(text).chunk_chars(4)).await;
    let client = organization.client();
    let whole = organization.chat_events("s", "hi").await;
    let generation = &whole.only("start")["generation"];
    let path = format!(
        "/api/public/messages/{}/stream",
        whole.headers["x-message-id"].to_str().unwrap()
    );
    let request = client
        .request(Method::GET, &path)
        .header("accept", "text/event-stream");
    let rest = Events::read(
        request
            .header("last-event-id", format!("{generation}.8"))
            .send()
            .await
            .unwrap(),
    )
    .await;
    assert_eq!(rest.status, 200);
    let joined: String = rest
        .events
        .iter()
        .filter(|(name, ..)| name == "delta")
        .map(|(.., data)| data["text"].as_str().unwrap())
        .collect();
    assert_eq!(joined, text[8..]);
    assert_eq!(rest.only("done")["status"], "completed");
}

#[tokio::test]
async fn generations_are_never_concatenated() {
    let organization = shop_saying("some text").await;
    let client = organization.client();
    let reply = organization.chat("s", "hi").await;
    reply.complete();
    let generation: u64 = reply.required_header("x-reply-generation").parse().unwrap();
    let path = format!(
        "/api/public/messages/{}/stream?after=2",
        reply.required_header("x-message-id")
    );
    let same = client.get(&format!("{path}&generation={generation}")).await;
    assert_eq!((same.status, same.text.as_str()), (200, "me text"));
    let other = client
        .get(&format!("{path}&generation={}", generation + 1))
        .await;
    other.assert_problem(409, Some("REPLY_RESTARTED"));
}

#[tokio::test]
async fn events_start_at_the_character_at_or_before_the_offset() {
    let text = "aé東";
    let organization = shop_saying(text).await;
    let client = organization.client();
    let reply = organization.chat("s", "hi").await;
    reply.complete();
    let path = format!(
        "/api/public/messages/{}/stream",
        reply.required_header("x-message-id")
    );
    for (after, begins) in [(0, 0), (1, 1), (2, 1), (3, 3), (4, 3), (5, 3)] {
        let request = client.request(Method::GET, &format!("{path}?after={after}"));
        let events = Events::read(
            request
                .header("accept", "text/event-stream")
                .send()
                .await
                .unwrap(),
        )
        .await;
        let delta = events
            .events
            .iter()
            .find(|(name, ..)| name == "delta")
            .map(|(.., data)| data.clone())
            .unwrap();
        assert_eq!(
            (&delta["offset"], &delta["text"]),
            (&json!(begins), &json!(text[begins..])),
            "{after}"
        );
    }
}
