//! Tests of the bounds of the tool loop: rounds, calls, time and size of the results.

use std::time::Duration;

use switchboard_backends::testing::SLACK;
use tokio::time::Instant;

use super::{WorkersConfig, calls, quick, run, run_with, says};

#[tokio::test]
async fn huge_result_is_truncated_and_displays_nothing() {
    let run = run(vec![calls(&[("huge", "{}")]), says("ok")]).await;
    assert!(run.results()[0].len() <= 16_384 && run.results()[0].ends_with("[shortened]"));
    assert_eq!(run.seen.steps, ["huge started", "huge finished", "text"]);
}

#[tokio::test]
async fn calls_beyond_the_bounds_are_answered_and_not_run() {
    let six = calls(&[("good", "{}"); 6]);
    let run = run(vec![six.clone(), six.clone(), six, says("ok")]).await;
    assert_eq!(run.ran.len(), 10, "four, four, and two: ten in one reply");
    let results = run.results();
    assert_eq!(
        (
            results.len(),
            results
                .iter()
                .filter(|result| result.contains("no more calls"))
                .count()
        ),
        (18, 8)
    );
}

#[tokio::test]
async fn tool_calls_share_a_time_limit() {
    let config = WorkersConfig {
        tool_timeout_ms: 10_000,
        tools_before_text_timeout_ms: 200,
        ..quick()
    };
    let begun = Instant::now();
    let slow = calls(&[("slow", "{}"), ("slow", "{}")]);
    let run = run_with(vec![slow.clone(), slow, says("ok")], config).await;
    assert_eq!(run.seen.text, "ok");
    assert!(
        begun.elapsed() < Duration::from_secs(2) + SLACK,
        "{:?}",
        begun.elapsed()
    );
}
