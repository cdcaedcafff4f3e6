//! Tests of conversations and configuration through the routes, over embedded backends.

use serde_json::{Value, json};
use switchboard_schemas::{
    agent::ActivationStatus,
    conversation::{Conversation, Message, MessageAuthor},
    conversation_job::ConversationJob,
    ids::{MessageId, OrgId},
    reply_event::{IngressEnvelope, PatchOutcome},
    time::Timestamp,
    topics::Topic,
};

use crate::testing::{Answer, World, org_id, secret};

const PATH: &str = "/conversations/s";

async fn put_messages(world: &World, count: u64) {
    let id = world.put_conversation(org_id()).await;
    let message = |position| Message {
        id: MessageId::new_in(&id),
        position,
        content: format!("message {position}"),
        created_at: Timestamp::from_micros(1_700_000_000_000_000),
        author: MessageAuthor::User,
    };
    for position in 0..count {
        world.store_message(&id, &message(position)).await;
    }
    world
        .edit_conversation(&id, |conversation| conversation.message_count = count)
        .await;
}

/// Sends a change that the owning worker answers with `outcome`.
async fn patch(world: &World, body: Value, outcome: PatchOutcome) -> Answer {
    let path = World::agent_path(PATH);
    let request = world.send("PATCH", &path, body.to_string());
    let worker = async {
        world.published().await;
        let ConversationJob::Patch(job) = world.jobs(Topic::Jobs).remove(0) else {
            panic!("a patch job is expected")
        };
        world.push(IngressEnvelope::Patch(job.event_id.clone(), outcome));
    };
    tokio::join!(request, worker).0
}

#[tokio::test]
async fn page_read_while_a_reply_ends_lists_it_or_names_it() {
    let world = World::new().await;
    put_messages(&world, 2).await;
    // The turn ends after its conversation was read and before its messages are.
    let is_running = |conversation: Option<Conversation>| {
        conversation.map(|conversation| Conversation {
            message_count: 1,
            active_message_id: Some(MessageId::new_in(&conversation.id).reply()),
            ..conversation
        })
    };
    world.store.faults.alter("conversation", is_running);
    let page = world.send("GET", &World::agent_path(PATH), "").await.json();
    assert!(page["activeMessageId"].is_string());
    assert_eq!(
        (&page["messageCount"], &page["totalMessages"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(page["messages"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn history_page_reports_its_position() {
    let world = World::new().await;
    put_messages(&world, 3).await;
    let page = world
        .send(
            "GET",
            &World::agent_path("/conversations/s?limit=2&offset=1"),
            "",
        )
        .await
        .json();
    assert_eq!(page["messages"][0]["content"], "message 1");
    assert_eq!(
        (&page["messages"][0]["role"], &page["messages"][0]["tokens"]),
        (&json!("user"), &Value::Null)
    );
    assert_eq!(
        (&page["messageCount"], &page["totalMessages"]),
        (&json!(2), &json!(3))
    );
    assert_eq!(
        (&page["limit"], &page["offset"], &page["hasMore"]),
        (&json!(2), &json!(1), &json!(false))
    );
    assert_eq!(
        (&page["sessionId"], &page["agentName"]),
        (&json!("s"), &json!("Shop"))
    );
    let past = world
        .send("GET", &World::agent_path("/conversations/s?offset=99"), "")
        .await
        .json();
    assert_eq!(
        (&past["messageCount"], &past["hasMore"]),
        (&json!(0), &json!(false))
    );
}

#[tokio::test]
async fn conversation_of_another_organization_is_not_found() {
    let world = World::new().await;
    world
        .put_conversation(OrgId::derive(&secret(), "other"))
        .await;
    assert_eq!(
        world
            .send("GET", &World::agent_path(PATH), "")
            .await
            .problem()
            .1,
        "CONVERSATION_NOT_FOUND"
    );
    let answer = world.send("PATCH", &World::agent_path(PATH), "{}").await;
    assert_eq!(answer.problem().1, "CONVERSATION_NOT_FOUND");
}

#[tokio::test]
async fn impossible_session_id_has_no_conversation() {
    let world = World::new().await;
    for session in ["%07", &"x".repeat(257)] {
        let answer = world
            .send(
                "GET",
                &World::agent_path(&format!("/conversations/{session}")),
                "",
            )
            .await;
        assert_eq!(answer.problem(), (404, "CONVERSATION_NOT_FOUND".to_owned()));
    }
}

#[tokio::test]
async fn conversation_of_an_inactive_agent_is_readable_and_writable() {
    let world = World::new().await;
    world.put_conversation(org_id()).await;
    world
        .edit_agent(|agent| agent.settings.status = ActivationStatus::Inactive)
        .await;
    assert_eq!(
        world.send("GET", &World::agent_path(PATH), "").await.status,
        200
    );
    assert_eq!(
        patch(&world, json!({ "rating": 4 }), PatchOutcome::Applied)
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn change_is_published_and_confirmed_once_applied() {
    let world = World::new().await;
    let id = world.put_conversation(org_id()).await;
    let body = json!({ "rating": 4.5, "visitorName": null, "metadata": { "plan": "pro", "source": "forged" } });
    let answer = patch(&world, body, PatchOutcome::Applied).await;
    let updated = json!({ "rating": 4.5, "visitorName": null, "metadata": { "plan": "pro" } });
    assert_eq!(
        answer.json(),
        json!({ "success": true, "updated": updated })
    );
    let ConversationJob::Patch(job) = world.jobs(Topic::Jobs).remove(0) else {
        panic!("a patch job is expected")
    };
    assert_eq!(
        Value::Object(job.changes),
        json!({ "rating": 4.5, "visitorName": null, "plan": "pro" })
    );
    assert_eq!(world.published_records()[0].key, id.as_str());
}

#[tokio::test]
async fn empty_change_succeeds_without_a_publish() {
    let world = World::new().await;
    world.put_conversation(org_id()).await;
    for body in ["{}", r#"{"status":"x"}"#] {
        let answer = world.send("PATCH", &World::agent_path(PATH), body).await;
        assert_eq!(answer.json(), json!({ "success": true, "updated": {} }));
    }
    assert!(world.published_records().is_empty());
}

#[tokio::test]
async fn concurrently_deleted_conversation_is_not_found() {
    let world = World::new().await;
    world.put_conversation(org_id()).await;
    let answer = patch(&world, json!({ "rating": 4 }), PatchOutcome::NotFound).await;
    assert_eq!(answer.problem().1, "CONVERSATION_NOT_FOUND");
}

#[tokio::test(start_paused = true)]
async fn applied_change_is_found_in_the_store_without_the_relay() {
    let world = World::new().await;
    let id = world.put_conversation(org_id()).await;
    world.relay.faults.set_down(true);
    let path = World::agent_path(PATH);
    let request = world.send("PATCH", &path, r#"{"rating":4}"#);
    let worker = async {
        world.published().await;
        world
            .edit_conversation(&id, |conversation| {
                conversation.metadata.insert("rating".into(), json!(4));
            })
            .await;
    };
    assert_eq!(tokio::join!(request, worker).0.status, 200);
    let answer = world.send("PATCH", &path, r#"{"rating":1}"#).await;
    assert_eq!(answer.problem(), (503, "UNAVAILABLE".to_owned()));
}

#[tokio::test]
async fn public_agent_view_has_exactly_the_specified_fields() {
    let world = World::new().await;
    world
        .edit_agent(|agent| agent.settings.instructions = "canary".into())
        .await;
    let agent = world.send("GET", &World::agent_path(""), "").await;
    let widget = world.send("GET", &World::agent_path("/widget"), "").await;
    assert!(!agent.text.contains("canary") && !widget.text.contains("canary"));
    let keys = |value: &Value| {
        value
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        keys(&agent.json()),
        "description features id limits name placeholderText theme welcomeMessage"
    );
    assert_eq!(agent.json()["theme"].as_object().unwrap().len(), 10);
    assert_eq!(
        keys(&widget.json()),
        "description id name placeholderText theme welcomeMessage widget"
    );
    assert_eq!(
        keys(&widget.json()["theme"]),
        "backgroundColor primaryColor textColor"
    );
    assert_eq!(widget.json()["widget"].as_object().unwrap().len(), 15);
}
