//! Playground runs over embedded backends: what is published, what is kept where, and what is
//! refused.

use http::StatusCode;
use serde_json::{Value, json};
use switchboard_schemas::{
    agent::Product,
    conversation::ReplyStatus,
    conversation_job::{ConversationJob, ReplyJob},
    ids::AgentId,
    playground::{AgentPlaygroundRun, PlaygroundMessage, PlaygroundRouting, RoutedAgent},
    reply_event::IngressEnvelope,
    routing_job::RoutingJob,
    topics::Topic,
    versioned,
};

use crate::testing::{Answer, World, agent_id, org_id, org_path, reply_frames, secret};

async fn admin(world: &World, path: &str, body: &Value) -> Answer {
    world
        .admin("POST", &org_path(path), &[], body.clone())
        .await
}

fn shop() -> String {
    format!("/agents/{}/try", agent_id())
}

/// Sends a playground run of the shop's agent; `worker` processes its job.
async fn run_playground(
    world: &World,
    body: &Value,
    worker: impl AsyncFnOnce(&ReplyJob),
) -> Answer {
    let work = async {
        world.published().await;
        let job = world.jobs(Topic::Jobs).pop().unwrap();
        let ConversationJob::Playground(job) = job else {
            panic!("{job:?}")
        };
        worker(&job).await;
    };
    let path = shop();
    tokio::join!(admin(world, &path, body), work).0
}

async fn stored_draft<T: serde::de::DeserializeOwned>(world: &World, job: &ReplyJob) -> T {
    serde_json::from_str(&world.playground_run(&job.turn.message_id).await).unwrap()
}

#[tokio::test]
async fn playground_run_keeps_its_draft_out_of_the_bus_and_the_store() {
    let world = World::new().await;
    let history =
        json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ahoy"}]);
    let body = json!({"message": "Who?", "draft": {"instructions": "canary instructions"}, "history": history});
    let answer = run_playground(&world, &body, async |job| {
        let run: AgentPlaygroundRun = stored_draft(&world, job).await;
        assert_eq!(run.agent.settings.instructions, "canary instructions");
        assert_eq!(
            (&run.agent.id, run.agent.name.as_str()),
            (&agent_id(), "Shop")
        );
        let said = PlaygroundMessage::Assistant {
            agent_id: agent_id(),
            content: "Ahoy".into(),
            ui_spec: None,
        };
        assert_eq!(
            run.past,
            [
                PlaygroundMessage::User {
                    content: "Hi".into(),
                    attachments: Vec::new(),
                },
                said
            ]
        );
        for frame in reply_frames(&["A pirate."], ReplyStatus::Completed) {
            world.append_frame(&job.turn.reply_id(), frame);
        }
    })
    .await;
    assert_eq!(answer.status, StatusCode::OK);
    assert!(
        answer.text.contains("A pirate.") && answer.text.contains("event: done"),
        "{}",
        answer.text
    );
    let records = world.published_records();
    assert!(
        records
            .iter()
            .all(|record| !String::from_utf8_lossy(&record.payload).contains("canary"))
    );
    assert_eq!(world.store.faults.call_count("record_acceptance"), 0);
}

#[tokio::test]
async fn unavailable_relay_or_bus_is_503_and_publishes_no_job() {
    let world = World::new().await;
    world.relay.faults.set_down(true);
    assert_eq!(
        admin(&world, &shop(), &json!({"message": "m"}))
            .await
            .problem(),
        (503, "UNAVAILABLE".into())
    );
    world.relay.faults.set_down(false);
    world.bus.faults.set_down(true);
    assert_eq!(
        admin(&world, &shop(), &json!({"message": "m"}))
            .await
            .problem(),
        (503, "UNAVAILABLE".into())
    );
    assert!(world.jobs(Topic::Jobs).is_empty());
}

#[tokio::test]
async fn oversized_draft_is_rejected() {
    let world = World::new().await;
    let address = format!("https://shop.example/{}", "x".repeat(2_000));
    let product = Product {
        title: "Tea".into(),
        image: address.clone(),
        url: address,
        ..Product::default()
    };
    world
        .edit_agent(|agent| agent.settings.ecommerce.products = vec![product; 900])
        .await;
    let draft = json!({"name": "Other"});
    let refused = admin(&world, &shop(), &json!({"message": "m", "draft": draft})).await;
    assert_eq!(
        refused.problem(),
        (413, "PAYLOAD_TOO_LARGE".into()),
        "{}",
        refused.text
    );
}

#[tokio::test]
async fn team_run_reports_no_agent_and_a_deleted_agent() {
    let world = World::new().await;
    let body = json!({"message": "tea?", "draft": {"slug": "desk", "name": "Desk"}});
    let gone = AgentId::derive(&secret(), &org_id(), "gone");
    let chosen = RoutedAgent {
        agent_id: gone.clone(),
        reason: "was there".into(),
        facts: None,
    };
    for (routing, agent) in [
        (PlaygroundRouting::NoAgent, Value::Null),
        (
            PlaygroundRouting::Agent(Box::new(chosen)),
            json!({"id": gone, "slug": null, "name": null}),
        ),
    ] {
        let work = async {
            world.published().await;
            let payload = world.published_records().last().unwrap().payload.clone();
            let RoutingJob::Playground(job) = versioned::decode(&payload).unwrap() else {
                panic!("no playground run")
            };
            world.push(IngressEnvelope::Playground(job.run_id, routing));
        };
        let answer = tokio::join!(admin(&world, "/teams/new/try", &body), work).0;
        assert_eq!(
            (answer.status, &answer.json()["agent"]),
            (StatusCode::OK, &agent),
            "{}",
            answer.text
        );
    }
}
