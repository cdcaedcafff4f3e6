//! Canceling replies, by request and by disconnecting.

use super::*;

#[tokio::test]
async fn cancellation_reaches_the_relay_and_spares_final_messages() {
    let world = World::new().await;
    let reply = world.accepted().await;
    let path = format!("/api/public/messages/{reply}/cancel");
    world.relay.faults.set_down(true);
    assert_eq!(
        world.send("POST", &path, "").await.problem(),
        (503, "UNAVAILABLE".into())
    );
    world.relay.faults.set_down(false);
    let store = async {
        world
            .wait_until("the relay is called", |world| {
                !world.cancelled_replies().is_empty()
            })
            .await;
        world.put_conversation(org_id()).await;
        world.put_final(&reply, ReplyStatus::Cancelled).await;
    };
    let (answer, ()) = tokio::join!(world.send("POST", &path, ""), store);
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["status"]),
        (200, &json!("cancelled"))
    );
    let again = world.send("POST", &path, "").await;
    assert_eq!(
        (again.status.as_u16(), &again.json()["status"]),
        (200, &json!("cancelled"))
    );
    assert_eq!(
        world.cancelled_replies(),
        [reply],
        "a final reply was canceled"
    );
}

#[tokio::test]
async fn waiting_reply_ends_for_its_reader_when_it_is_canceled() {
    let world = World::new().await;
    let reply = world.accepted().await;
    let path = format!("/api/public/messages/{reply}");
    let (stream, cancel) = (format!("{path}/stream"), format!("{path}/cancel"));
    let headers = [("accept", "text/event-stream")];
    let follow = world.ask("GET", &stream, &headers, "");
    let (followed, answer) = tokio::join!(follow, world.send("POST", &cancel, ""));
    for state in [answer.json(), world.message(&reply, "").await.json()] {
        assert_eq!(state["status"], "cancelled");
        assert_eq!(state["finishReason"], "cancelled");
    }
    let events = events(&followed);
    let (name, data) = events.last().unwrap();
    assert_eq!(
        (name.as_str(), &data["status"]),
        ("done", &json!("cancelled"))
    );
}

#[tokio::test]
async fn disconnect_cancels_only_if_the_agent_is_configured_so() {
    for (on_disconnect, cancels) in [
        (OnDisconnect::Cancel, true),
        (OnDisconnect::Continue, false),
    ] {
        let world = World::new().await;
        world
            .edit_agent(|agent| agent.settings.on_disconnect = on_disconnect)
            .await;
        let path = World::agent_path("/chat");
        tokio::select! {
            _ = world.ask("POST", &path, &[], BODY) => panic!("the reply ended"),
            () = world.published() => {}
        }
        world.background_is_done().await;
        assert_eq!(
            !world.cancelled_replies().is_empty(),
            cancels,
            "{on_disconnect:?}"
        );
    }
}

#[tokio::test]
async fn completely_read_reply_is_not_canceled() {
    let world = World::new().await;
    world
        .edit_agent(|agent| agent.settings.on_disconnect = OnDisconnect::Cancel)
        .await;
    for accept in ["text/plain", "application/json", "text/event-stream"] {
        world.forget_published();
        let answer = world
            .chat_in(
                ("accept", accept),
                reply_frames(&["a"], ReplyStatus::Completed),
            )
            .await;
        assert!(answer.status == 200 && answer.whole, "{accept}");
    }
    world.background_is_done().await;
    assert!(world.cancelled_replies().is_empty());
}
