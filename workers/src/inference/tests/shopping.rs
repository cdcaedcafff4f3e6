//! Tests of replies with products: in frames, in stored messages and across attempts.

use serde_json::{Value, json};
use switchboard_schemas::{
    conversation::{MessageAuthor, ReplyStatus},
    reply_event::{Frame, FrameBody},
};

use super::{agents::lamp_shop, finished, world::World};
use crate::{
    job_loop::JobEnd,
    testing::{Raw, Script, quick, says},
};

async fn world(acts: Vec<Script>, continues_prefix: bool) -> World {
    World::with(acts, continues_prefix, lamp_shop(), quick()).await
}

fn titles(spec: &Value) -> Vec<&str> {
    spec["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|card| card["title"].as_str().unwrap())
        .collect()
}

/// Returns the head that a client receives before the first text.
fn shown_before_text(frames: &[Frame]) -> Option<Value> {
    let mut shown = None;
    for frame in frames {
        match &frame.body {
            FrameBody::Head(head) => shown.clone_from(&head.ui_spec),
            FrameBody::Ui(spec) => shown = Some(spec.clone()),
            FrameBody::Text { .. } => break,
            _ => {}
        }
    }
    shown
}

#[tokio::test]
async fn products_precede_the_text_and_are_stored_and_published() {
    let mut world = world(vec![Script::searches("lamps"), says("Two lamps.")], false).await;
    let job = world.job("show me lamps");
    assert!(finished(&world.run(&job).await));
    let shown = shown_before_text(&world.pushed(&job).await).unwrap();
    assert_eq!(
        (&shown["type"], titles(&shown)),
        (&json!("product-grid"), vec!["Desk Lamp", "Floor Lamp"])
    );
    let messages = world.messages(&job).await;
    let MessageAuthor::Assistant(facts) = &messages[1].author else {
        panic!("no answer")
    };
    assert_eq!(facts.ui_spec.as_ref(), Some(&shown));
    assert_eq!(
        world
            .record(&job)
            .await
            .unwrap()
            .head
            .unwrap()
            .ui_spec
            .as_ref(),
        Some(&shown)
    );
    assert_eq!(world.events(2).await[1]["uiSpec"], shown);
    let told = world.provider.bodies()[1]["messages"][3]["content"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        told.contains("Desk Lamp") && told.contains("$89") && !told.contains("Mirror"),
        "{told}"
    );
}

#[tokio::test]
async fn empty_search_displays_nothing() {
    let mut world = world(vec![Script::searches("sofa"), says("No sofas.")], false).await;
    let job = world.job("a sofa?");
    world.run(&job).await;
    assert_eq!(shown_before_text(&world.pushed(&job).await), None);
    assert!(
        world
            .record(&job)
            .await
            .unwrap()
            .head
            .unwrap()
            .ui_spec
            .is_none()
    );
}

#[tokio::test]
async fn continued_reply_keeps_its_products_and_runs_no_tool() {
    let acts = vec![
        Script::searches("lamps"),
        Script::raw(vec![Raw::text("Two"), Raw::Hang]),
        says(" lamps."),
    ];
    let mut world = world(acts, true).await;
    let job = world.job("show me lamps");
    assert!(matches!(
        world.hand_off_after(&job, "Two").await,
        JobEnd::RetryAfter(_)
    ));
    assert!(finished(&world.run(&job).await));
    let requests = world.provider.bodies();
    assert_eq!(requests.len(), 3);
    assert!(requests[2].get("tools").is_none(), "{}", requests[2]);
    let messages = requests[2]["messages"].as_array().unwrap();
    let of_role = |role: &str| messages.iter().rfind(|message| message["role"] == role);
    let question = of_role("user").unwrap()["content"].as_str().unwrap();
    assert!(
        question.starts_with("show me lamps\n\n[Products that") && question.contains("Desk Lamp"),
        "the displayed products are missing: {question}"
    );
    let system = of_role("system").map(ToString::to_string);
    assert!(!system.unwrap_or_default().contains("Desk Lamp"));
    assert_eq!(World::text_of(&world.pushed(&job).await), "Two lamps.");
    let record = world.record(&job).await.unwrap();
    assert_eq!(
        (record.end.status, record.attempt),
        (ReplyStatus::Completed, 2)
    );
    assert_eq!(
        titles(record.head.unwrap().ui_spec.as_ref().unwrap()),
        ["Desk Lamp", "Floor Lamp"]
    );
}

#[tokio::test]
async fn attempt_without_text_searches_again() {
    let acts = vec![
        Script::searches("mirror"),
        Script::silent(),
        Script::searches("sofa"),
        says("Nothing."),
    ];
    let mut world = world(acts, false).await;
    let job = world.job("a mirror?");
    let end = world
        .hand_off_when(&job, async || world.provider.bodies().len() == 2)
        .await;
    assert!(matches!(end, JobEnd::RetryAfter(_)));
    assert!(finished(&world.run(&job).await));
    assert_eq!(
        shown_before_text(&world.pushed(&job).await),
        None,
        "products of another attempt were displayed"
    );
    assert!(
        world
            .record(&job)
            .await
            .unwrap()
            .head
            .unwrap()
            .ui_spec
            .is_none()
    );
}
