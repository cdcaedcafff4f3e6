//! Tests of the tool loop with providers that break off, reject tools or continue a reply.

use serde_json::json;
use switchboard_schemas::{conversation::FinishReason, reply_event::ReplyFailure};

use super::{Act, Piece, calls, complete, delta, finish, part, quick, run, run_on};

#[tokio::test]
async fn call_of_a_cut_stream_is_never_run() {
    for end in [
        vec![],
        vec![Piece::Raw("data: [DONE]\n\n")],
        vec![Piece::Event(json!({"error": {"message": "x"}}))],
        vec![Piece::Hang],
    ] {
        let begun = [
            Piece::Text("Let me look."),
            delta(&part(0, "good", r#"{"q":"Lamp"}"#)),
        ];
        let cut = Act::Stream(begun.into_iter().chain(end).collect());
        let run = run(vec![cut, complete(&["Without."])]).await;
        assert_eq!(
            (run.ran.len(), run.seen.text.as_str()),
            (0, "Without."),
            "buffered text was displayed"
        );
    }
    let begun = delta(&part(0, "good", "{}"));
    let garbage = run(vec![
        Act::Stream(vec![begun, Piece::Raw("data: {\n\n")]),
        complete(&["Without."]),
    ])
    .await;
    assert_eq!(
        (garbage.ran.len(), garbage.generated.end),
        (0, Err(ReplyFailure::ModelError)),
        "no answer at all"
    );
    let limit = Act::Stream(vec![
        delta(&part(0, "good", r#"{"q":"Lamp"}"#)),
        finish("length"),
    ]);
    let run = run(vec![limit, complete(&["Without."])]).await;
    assert_eq!(run.ran.len(), 0);
    assert!(run.results()[0].contains("cut off"), "{:?}", run.results());
}

#[tokio::test]
async fn provider_without_tools_answers_without_them() {
    for status in [400, 422, 500] {
        let refused = Act::Answer(status, &[("content-type", "application/json")], "{}");
        let refusals = if status == 500 { 3 } else { 1 };
        let mut acts = vec![refused; refusals];
        acts.push(complete(&["Words alone."]));
        let run = run(acts).await;
        assert_eq!(
            (run.generated.end, run.seen.text.as_str()),
            (Ok(FinishReason::Stop), "Words alone."),
            "{status}"
        );
        assert!(run.requests.last().unwrap().get("tools").is_none());
    }
    let always = run(vec![Act::Answer(400, &[], "")]).await;
    assert_eq!(
        (always.generated.end, always.requests.len()),
        (Err(ReplyFailure::ModelError), 2)
    );
}

#[tokio::test]
async fn cut_text_of_a_later_round_is_not_restarted() {
    let cut = Act::Stream(vec![Piece::Text("Here are the l")]);
    let run = run(vec![calls(&[("good", "{}")]), cut, complete(&["never"])]).await;
    assert_eq!(
        (run.generated.end, run.seen.text.as_str()),
        (Err(ReplyFailure::ModelError), "Here are the l")
    );
    assert_eq!((run.ran.len(), run.requests.len()), (1, 2));
}

#[tokio::test]
async fn continuation_of_a_cut_text_calls_no_tool() {
    let cut = Act::Stream(vec![Piece::Text("Here are the l")]);
    let more = Act::Stream(vec![
        Piece::Text("amps."),
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
