//! Tests of the displayed products that are reported to the model, over several rounds and calls,
//! and of replies without text.

use switchboard_schemas::{conversation::FinishReason, reply_event::ReplyFailure};

use super::{
    Raw, Run, Script, WorkersConfig, calls, delta, finish, part, quick, run, run_with, says,
};

/// A failing call, which displays nothing, like a search without results.
const NOTHING: (&str, &str) = ("bad", "{}");

async fn answer_after(rounds: &[&[(&str, &str)]]) -> Run {
    let rounds = rounds.iter().map(|round| calls(round));
    run(rounds.chain([says("Here.")]).collect()).await
}

/// Returns the products that are displayed at the end.
fn displayed_products(run: &Run) -> Vec<String> {
    let last = run
        .seen
        .steps
        .iter()
        .rev()
        .find_map(|step| step.strip_prefix("shown "));
    last.map(|titles| titles.split('+').map(str::to_owned).collect())
        .unwrap_or_default()
}

fn tool_result(result: &str, shown: &[&str]) -> (String, Vec<String>) {
    (
        result.to_owned(),
        shown.iter().map(|title| (*title).to_owned()).collect(),
    )
}

#[tokio::test]
async fn later_round_replaces_the_displayed_products() {
    let run = answer_after(&[
        &[("good", r#"{"q":"Lamp"}"#)],
        &[("good", r#"{"q":"Mug"}"#)],
    ])
    .await;
    assert_eq!(displayed_products(&run), ["Mug"]);
    assert_eq!(
        run.tool_results(),
        [
            tool_result("found Lamp", &[]),
            tool_result("found Mug", &["Mug"])
        ]
    );
    let between = run.requests[1]["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()["content"]
        .as_str()
        .unwrap();
    assert!(
        between.contains(r#"[{"price":"$9","title":"Lamp"}]"#),
        "{between}"
    );
}

#[tokio::test]
async fn empty_round_keeps_the_displayed_products() {
    let run = answer_after(&[&[("good", r#"{"q":"Lamp"}"#)], &[NOTHING]]).await;
    assert_eq!(displayed_products(&run), ["Lamp"]);
    assert_eq!(
        (&run.tool_results()[0], run.tool_results()[1].1.clone()),
        (&tool_result("found Lamp", &[]), displayed_products(&run))
    );
    let nothing = answer_after(&[&[NOTHING]]).await;
    assert!(
        !nothing.contents()[0].contains("The visitor sees"),
        "{:?}",
        nothing.contents()
    );
}

#[tokio::test]
async fn model_is_told_exactly_the_displayed_products() {
    let run = answer_after(&[&[
        ("good", r#"{"q":"Lamp"}"#),
        NOTHING,
        ("good", r#"{"q":"Mug"}"#),
    ]])
    .await;
    assert_eq!(
        (displayed_products(&run), run.tool_results()[2].1.clone()),
        (vec!["Lamp".into(), "Mug".into()], displayed_products(&run))
    );
    assert!(
        run.tool_results()[..2]
            .iter()
            .all(|(_, shown)| shown.is_empty()),
        "{:?}",
        run.tool_results()
    );
    let twenty = ["Lamp", "Mug"].map(|title| format!(r#"{{"q":"{title}","count":20}}"#));
    let run = answer_after(&[&[("good", &twenty[0]), ("good", &twenty[1])]]).await;
    assert_eq!(
        (
            displayed_products(&run).len(),
            run.tool_results()[1].1.clone()
        ),
        (24, displayed_products(&run))
    );
}

#[tokio::test]
async fn truncated_result_hides_no_displayed_product() {
    let long = [("long", r#"{"q":"Lamp","count":20}"#)];
    let run = answer_after(&[&long]).await;
    assert!(run.results()[0].ends_with("[shortened]"));
    assert_eq!(
        (
            displayed_products(&run).len(),
            run.tool_results()[0].1.clone()
        ),
        (20, displayed_products(&run))
    );
    let config = WorkersConfig {
        tool_results_bytes_max: 10,
        ..quick()
    };
    let run = run_with(vec![calls(&long), says("Here.")], config).await;
    assert!(run.results()[0].contains("no more calls"));
    assert_eq!(run.tool_results()[0].1, displayed_products(&run));
    let title = "é".repeat(200);
    let run = answer_after(&[&[("good", &format!(r#"{{"q":"{title}"}}"#))]]).await;
    assert_eq!(run.tool_results()[0].1, [format!("{}…", "é".repeat(100))]);
}

#[tokio::test]
async fn reply_without_text_lists_the_displayed_products() {
    let found = calls(&[("good", r#"{"q":"Lamp","count":2}"#)]);
    for silence in [
        vec![finish("stop")],
        vec![Raw::text(" \n"), finish("stop")],
        vec![finish("length")],
    ] {
        let run = run(vec![found.clone(), Script::raw(silence)]).await;
        assert!(
            run.generated.end.is_ok() && run.generated.first_text.is_some(),
            "{:?}",
            run.generated
        );
        assert_eq!(run.seen.text, "- Lamp 0, $9\n- Lamp 1, $9");
    }
    let begun = Script::raw(vec![
        Raw::text("One moment."),
        delta(&part(0, "good", "{}")),
        finish("tool_calls"),
    ]);
    let spoken = run(vec![begun, Script::raw(vec![finish("stop")])]).await;
    assert_eq!(
        (spoken.generated.end, spoken.seen.text.as_str()),
        (Ok(FinishReason::Stop), "One moment.")
    );
}

#[tokio::test]
async fn reply_without_text_and_products_is_an_error() {
    for acts in [
        vec![calls(&[NOTHING])],
        vec![calls(&[NOTHING]), Script::raw(vec![finish("stop")])],
        vec![
            calls(&[NOTHING]),
            Script::raw(vec![Raw::text(" \n"), finish("stop")]),
        ],
        vec![
            calls(&[("good", "{}")]),
            Script::raw(vec![finish("content_filter")]),
        ],
    ] {
        let run = run(acts).await;
        assert_eq!(
            (run.generated.end, run.seen.text.as_str()),
            (Err(ReplyFailure::ModelError), "")
        );
    }
}
