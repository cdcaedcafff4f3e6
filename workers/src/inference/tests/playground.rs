//! Tests of playground runs.

use switchboard_schemas::{
    agent::{ActivationStatus, Agent},
    conversation::ReplyStatus,
    playground::{AgentPlaygroundRun, PlaygroundMessage},
    reply_event::{FrameBody, ReplyFailure},
};

use super::{agents::shop, finished, world::World};
use crate::testing::says;

fn draft(instructions: &str) -> Agent {
    let mut agent = shop();
    agent.settings.instructions = instructions.into();
    agent.settings.status = ActivationStatus::Draft;
    agent
}

#[tokio::test]
async fn draft_answers_and_nothing_is_stored() {
    let mut world = World::new(vec![says("As a pirate.").chunk_chars(5)], false).await;
    let job = world.job("Who are you?");
    let past = vec![
        PlaygroundMessage::User {
            content: "Ahoy".into(),
            attachments: Vec::new(),
        },
        PlaygroundMessage::Assistant {
            agent_id: job.agent_id.clone(),
            content: "Ahoy, matey".into(),
            ui_spec: None,
        },
    ];
    world
        .store_playground_run(
            &job,
            &AgentPlaygroundRun {
                agent: draft("be a pirate"),
                past,
            },
        )
        .await;
    assert!(finished(&world.run_playground(&job).await));

    let frames = world.pushed(&job).await;
    assert_eq!(World::text_of(&frames), "As a pirate.");
    let FrameBody::End(end) = &frames.last().unwrap().body else {
        panic!("no end")
    };
    assert_eq!(end.status, ReplyStatus::Completed);
    assert!(end.usage.completion_tokens > 0);
    let asked = world.provider.bodies()[0].clone();
    let told: Vec<_> = asked["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|said| said["content"].clone())
        .collect();
    assert_eq!(told, ["be a pirate", "Ahoy", "Ahoy, matey", "Who are you?"]);

    assert!(world.messages(&job).await.is_empty() && world.record(&job).await.is_none());
    // The first event of the topic belongs to the message after the run.
    let next = world.job("for the saved agent");
    assert!(finished(&world.run(&next).await));
    assert_eq!(
        world.events(1).await[0]["messageId"],
        next.turn.message_id.as_str()
    );
}

#[tokio::test]
async fn expired_or_foreign_run_fails_without_a_model_call() {
    for foreign in [false, true] {
        let mut world = World::new(Vec::new(), false).await;
        let job = world.job("Hello");
        if foreign {
            let agent = Agent {
                org_id: World::another_organization(),
                ..shop()
            };
            world
                .store_playground_run(
                    &job,
                    &AgentPlaygroundRun {
                        agent,
                        past: Vec::new(),
                    },
                )
                .await;
        }
        assert!(finished(&world.run_playground(&job).await));
        let frames = world.pushed(&job).await;
        let FrameBody::End(end) = &frames.last().unwrap().body else {
            panic!("no end")
        };
        assert_eq!(end.failure, Some(ReplyFailure::AgentUnavailable));
        assert!(world.provider.bodies().is_empty());
    }
}
