//! Model failures: broken streams, errors and silence give the visitor a clear error or a visible
//! cut, never a clean end with missing text.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{
    End, Organization, OrganizationDocument, PATIENCE, SLACK, Script, ScriptedModel, eventually,
    shop_saying, shop_with,
};

/// Time limit for all attempts of a reply together.
const ALL_ATTEMPTS_MAX: Duration = Duration::from_secs(20);
/// Default of `workers.reply_bytes_max`.
const REPLY_BYTES_MAX: usize = 256 << 10;

/// Returns status and text of the only reply of a session once it is final.
async fn final_reply(organization: &Organization, session: &str) -> (String, String) {
    let history = organization.settled_history(session, 2).await;
    let reply = &history["messages"][1];
    (
        reply["status"].as_str().unwrap().to_owned(),
        reply["content"].as_str().unwrap().to_owned(),
    )
}

#[tokio::test]
async fn break_after_text_is_visible_and_stored_as_incomplete() {
    let organization = shop_saying("unused").await;
    for end in [
        End::Cut,
        End::NoFinishReason,
        End::Nothing,
        End::ErrorEvent,
        End::Garbage,
    ] {
        organization.script(Script::says("half of a rep").ends(end));
        let reply = organization.chat(&format!("{end:?}"), "hi").await;
        assert_eq!(reply.status, 200, "{end:?}: {}", reply.text());
        assert!(!reply.ended_cleanly, "{end:?} ended cleanly");
        let (status, content) = final_reply(&organization, &format!("{end:?}")).await;
        assert_eq!(status, "incomplete", "{end:?}");
        assert!(
            content.starts_with(&reply.text()),
            "what was shown is a prefix of what is stored"
        );
        assert_eq!(content, "half of a rep", "{end:?}");
    }
}

#[tokio::test]
async fn missing_model_response_is_an_http_error() {
    let organization = shop_saying("unused").await;
    for status in [400, 401, 403] {
        organization.script(Script::refuses(status));
        let reply = organization.chat(&format!("s{status}"), "hi").await;
        reply.into_answer().assert_problem(502, Some("MODEL_ERROR"));
    }
    let nonsense = [
        ("cut", Script::says("").ends(End::Cut)),
        (
            "html",
            Script::instead("text/html", "<html><h1>502 Bad Gateway</h1></html>"),
        ),
        ("garbage", Script::says("").ends(End::Garbage)),
    ];
    for (name, script) in nonsense {
        organization.script(script);
        let reply = organization.chat(name, "hi").await.into_answer();
        // The worker decides between a refusal and an outage; either is an error.
        let code = if reply.status == 502 {
            "MODEL_ERROR"
        } else {
            "UNAVAILABLE"
        };
        reply.assert_problem(if reply.status == 502 { 502 } else { 503 }, Some(code));
    }
}

#[tokio::test]
async fn overloaded_model_is_unavailable_with_retry_after() {
    let organization = shop_with(Script::refuses(503)).await;
    let reply = organization.chat("s", "hi").await.into_answer();
    reply.assert_problem(503, Some("UNAVAILABLE"));
    assert!(
        reply
            .header("retry-after")
            .is_some_and(|seconds| seconds.parse::<u32>().is_ok_and(|value| value >= 1))
    );
}

#[tokio::test]
async fn few_refusals_are_retried_unnoticed() {
    let organization = shop_saying("unused").await;
    for (number, status) in [429, 500, 503].into_iter().enumerate() {
        organization.script(Script::says("made it").refuses_times(1, status, Some(1)));
        let reply = organization.chat(&format!("r{number}"), "hi").await;
        assert_eq!(reply.complete(), "made it", "{status}");
    }
}

#[tokio::test]
async fn fallback_provider_answers_when_the_first_cannot() {
    let base_url = ScriptedModel::get().base_url();
    let model = crate::support::unique("fallback-");
    let dead = format!("http://127.0.0.1:{}/v1", crate::support::free_port());
    let organization = OrganizationDocument::new()
        .provider(json!({"slug": "dead", "baseUrl": dead, "apiKey": "sk", "model": "m"}))
        .provider(json!({"slug": "second", "baseUrl": base_url, "apiKey": "sk", "model": model}))
        .shop(json!({"provider": "dead", "fallbackProvider": "second"}))
        .agent("alone", json!({"provider": "dead"}))
        .apply_to_shared()
        .await;
    ScriptedModel::get().register(&model, Script::says("from the fallback"));
    let reply = organization.chat("s", "hi").await;
    assert_eq!(reply.complete(), "from the fallback");
    assert_eq!(reply.required_header("x-model"), model);
    let alone = organization
        .client()
        .chat(organization.agent("alone"), "s", "hi")
        .await
        .into_answer();
    alone.assert_problem(503, Some("UNAVAILABLE"));
}

#[tokio::test]
async fn silent_model_times_out_within_the_budget() {
    let organization = shop_with(Script::silent()).await;
    let began = Instant::now();
    let reply = organization.chat("s", "hi").await.into_answer();
    reply.assert_problem(504, Some("MODEL_TIMEOUT"));
    assert!(
        began.elapsed() < ALL_ATTEMPTS_MAX + SLACK,
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn model_that_stalls_mid_reply_is_cut_visibly() {
    let organization = shop_with(Script::says("and then ").ends(End::Silence)).await;
    let began = Instant::now();
    let reply = organization.chat("s", "hi").await;
    assert!(!reply.ended_cleanly);
    assert!(
        began.elapsed() < ALL_ATTEMPTS_MAX + SLACK,
        "{:?}",
        began.elapsed()
    );
    let (status, content) = final_reply(&organization, "s").await;
    assert_eq!(
        (status.as_str(), content.as_str()),
        ("incomplete", "and then ")
    );
}

#[tokio::test]
async fn continuing_provider_repairs_a_break_unnoticed() {
    let organization = OrganizationDocument::new()
        .continuing()
        .shop(json!({}))
        .apply_to_shared()
        .await;
    let text = "Grüße aus 東京, in one piece";
    organization.script(
        Script::says(text)
            .chunk_chars(2)
            .continues_prefix()
            .breaks_off_once(9),
    );
    let reply = organization.chat("s", "hi").await;
    assert_eq!(reply.complete(), text);
    let requests = organization.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(
        requests[1].assistant_prefix(),
        &text[..text.char_indices().nth(9).unwrap().0]
    );
    let history = organization.history("s").await;
    assert_eq!(history["messages"][1]["content"], text);
}

#[tokio::test]
async fn length_limit_and_content_filter_are_finish_reasons() {
    let organization = shop_saying("unused").await;
    for reason in ["length", "content_filter"] {
        organization.script(Script::says("so far").ends(End::Finish(reason)));
        let answer = organization.chat_json(reason, "hi").await;
        answer.assert_status(200);
        assert_eq!(
            (&answer.json()["status"], &answer.json()["finishReason"]),
            (&json!("completed"), &json!(reason))
        );
    }
}

#[tokio::test]
async fn endless_reply_is_bounded() {
    let flood = "flood of words ".repeat(20_000);
    let organization = shop_with(Script::says(&flood).chunk_chars(1_500)).await;
    let answer = organization.chat_json("s", "hi").await;
    assert_eq!(
        answer.status,
        200,
        "{}",
        &answer.text[..answer.text.len().min(300)]
    );
    let body = answer.json();
    let content = body["content"].as_str().unwrap();
    assert!(
        content.len() <= REPLY_BYTES_MAX && content.len() > REPLY_BYTES_MAX - 4 * 1024,
        "{} bytes",
        content.len()
    );
    assert!(flood.starts_with(content));
    assert_eq!(body["finishReason"], "length");
}

#[tokio::test]
async fn prompt_includes_incomplete_turns_and_omits_failed_ones() {
    let organization = shop_with(Script::refuses(400)).await;
    assert_eq!(organization.chat("s", "first").await.status, 502);
    organization.script(Script::says("half").ends(End::Cut));
    assert!(!organization.chat("s", "second").await.ended_cleanly);
    organization.script(Script::says("whole"));
    eventually("the third turn is answered", PATIENCE, async || {
        (organization.chat("s", "third").await.ended_cleanly).then_some(())
    })
    .await;
    let request = organization.requests().pop().unwrap();
    assert_eq!(request.texts()[1..], ["second", "half", "third"]);
}

#[tokio::test]
async fn content_filter_before_any_text_is_a_model_error() {
    let script = Script::says("").ends(End::Finish("content_filter"));
    let organization = shop_with(script).await;
    let reply = organization.chat("s", "hi").await;
    reply.into_answer().assert_problem(502, Some("MODEL_ERROR"));
}

#[tokio::test]
async fn incomplete_reply_in_json_is_an_error_with_its_message_id() {
    let organization = shop_saying("unused").await;
    let client = organization.client();
    for (end, status, code) in [
        (End::Cut, 502, "MODEL_ERROR"),
        (End::Silence, 504, "MODEL_TIMEOUT"),
    ] {
        organization.script(Script::says("half a rep").ends(end));
        let answer = organization.chat_json(code, "hi").await;
        let problem = answer.assert_problem(status, Some(code));
        assert_eq!(problem["details"]["status"], "incomplete", "{problem}");
        let message = client
            .message(problem["details"]["messageId"].as_str().unwrap())
            .await;
        assert_eq!(
            (&message["status"], &message["content"]),
            (&json!("incomplete"), &json!("half a rep"))
        );
    }
}

#[tokio::test]
async fn huge_text_chunk_is_bounded_like_many_small_ones() {
    let script = Script::says(&"é".repeat(500_000))
        .chunk_chars(500_000)
        .ends(End::Finish("stop"));
    let organization = shop_with(script).await;
    let answer = organization.chat_json("s", "hi").await;
    assert_eq!(
        (answer.status, &answer.json()["finishReason"]),
        (200, &json!("length"))
    );
    assert!(answer.json()["content"].as_str().unwrap().len() <= REPLY_BYTES_MAX);
}
