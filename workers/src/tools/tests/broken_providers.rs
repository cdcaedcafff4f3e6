//! Tests of the tool loop with providers that break off, reject tools or continue a reply.

use serde_json::json;
use switchboard_schemas::{conversation::FinishReason, reply_event::ReplyFailure};

use super::{Raw, Script, calls, delta, finish, part, quick, run, run_on, says};

#[tokio::test]
async fn call_of_a_cut_stream_is_never_run() {
    for end in [
        vec![],
        vec![Raw::bytes("data: [DONE]\n\n")],
        vec![Raw::Event(json!({"error": {"message": "x"}}))],
    ] {
        let begun = [
            Raw::text("Let me look."),
            delta(&part(0, "good", r#"{"q":"Lamp"}"#)),
        ];
        let cut = Script::raw(begun.into_iter().chain(end).collect());
        let run = run(vec![cut, says("Without.")]).await;
        assert_eq!(
            (run.ran.len(), run.seen.text.as_str()),
            (0, "Without."),
            "buffered text was displayed"
        );
    }
    let begun = delta(&part(0, "good", "{}"));
    let garbage = run(vec![
        Script::raw(vec![begun, Raw::bytes("data: {\n\n")]),
        says("Without."),
    ])
    .await;
    assert_eq!(
        (garbage.ran.len(), garbage.generated.end),
        (0, Err(ReplyFailure::ModelError)),
        "no answer at all"
    );
    let begun = delta(&part(0, "good", "{}"));
    let silent = run(vec![Script::raw(vec![begun, Raw::Hang]), says("Without.")]).await;
    assert_eq!(
        (silent.ran.len(), silent.generated.end),
        (0, Err(ReplyFailure::ModelTimeout)),
        "a slow provider is not called again"
    );
    let limit = Script::raw(vec![
        delta(&part(0, "good", r#"{"q":"Lamp"}"#)),
        finish("length"),
    ]);
    let run = run(vec![limit, says("Without.")]).await;
    assert_eq!(run.ran.len(), 0);
    assert!(run.results()[0].contains("cut off"), "{:?}", run.results());
}

#[tokio::test]
async fn provider_without_tools_answers_without_them() {
    for status in [400, 422, 500] {
        let refused = Script::answer(status, &[("content-type", "application/json")], "{}");
        let refusals = if status == 500 { 3 } else { 1 };
        let mut acts = vec![refused; refusals];
        acts.push(says("Words alone."));
        let run = run(acts).await;
        assert_eq!(
            (run.generated.end, run.seen.text.as_str()),
            (Ok(FinishReason::Stop), "Words alone."),
            "{status}"
        );
        assert!(run.requests.last().unwrap().get("tools").is_none());
    }
    let always = run(vec![Script::refuses(400)]).await;
    assert_eq!(
        (always.generated.end, always.requests.len()),
        (Err(ReplyFailure::ModelError), 2)
    );
}

#[tokio::test]
async fn cut_text_of_a_later_round_is_not_restarted() {
    let cut = Script::raw(vec![Raw::text("Here are the l")]);
    let run = run(vec![calls(&[("good", "{}")]), cut, says("never")]).await;
    assert_eq!(
        (run.generated.end, run.seen.text.as_str()),
        (Err(ReplyFailure::ModelError), "Here are the l")
    );
    assert_eq!((run.ran.len(), run.requests.len()), (1, 2));
}

#[tokio::test]
async fn continuation_of_a_cut_text_calls_no_tool() {
    let cut = Script::raw(vec![Raw::text("Here are the l")]);
    let more = Script::raw(vec![
        Raw::text("amps."),
        delta(&part(0, "good", "{}")),
        finish("tool_calls"),
    ]);
    let run = run_on(vec![calls(&[("good", "{}")]), cut, more], quick(), true).await;
    assert_eq!(
        (run.generated.end, run.seen.text.as_str()),
        (Ok(FinishReason::Stop), "Here are the lamps.")
    );
    assert_eq!((run.ran.len(), run.requests.len()), (1, 3));
    let asked = (
        &run.requests[2]["tool_choice"],
        &run.requests[2]["continue_final_message"],
    );
    assert_eq!(asked, (&json!("none"), &json!(true)));
}
