//! Message lookup, reply formats, resumption and cancellation over embedded backends.

use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};
use switchboard_backends::testing::Faults;
use switchboard_schemas::{
    agent::OnDisconnect,
    conversation::{Conversation, ReplyStatus},
    ids::MessageId,
    reply_event::Frame,
    topics::Topic,
};

use crate::testing::{Answer, World, org_id, reply_frames, reply_of};

const BODY: &str = r#"{"message":"hi","sessionId":"s"}"#;
const DEADLINE: Duration = Duration::from_secs(10);

impl World {
    async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &'static str,
    ) -> Answer {
        let authorization = format!("Bearer {}", self.key);
        let mut all = vec![("authorization", authorization.as_str())];
        all.extend(headers);
        self.send_with(method, path, &all, body).await
    }

    /// Sends a chat message with a header that selects the format, answered with these frames.
    async fn chat_in(&self, header: (&str, &str), frames: Vec<Frame>) -> Answer {
        let (path, headers) = (Self::agent_path("/chat"), [header]);
        let work = async {
            self.published().await;
            let reply = reply_of(&self.jobs(Topic::Jobs)[0]);
            self.append_frames(&reply, frames);
        };
        tokio::join!(self.ask("POST", &path, &headers, BODY), work).0
    }

    /// Sends a message that is accepted and not claimed by a worker.
    async fn accepted(&self) -> MessageId {
        let path = Self::agent_path("/chat");
        let answer = self
            .ask("POST", &path, &[("prefer", "respond-async")], BODY)
            .await;
        answer.expect(202)["messageId"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap()
    }

    async fn message(&self, reply: &MessageId, rest: &str) -> Answer {
        self.ask(
            "GET",
            &format!("/api/public/messages/{reply}{rest}"),
            &[],
            "",
        )
        .await
    }

    async fn wait_until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let wait = async {
            while !holds(self) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(DEADLINE, wait)
            .await
            .unwrap_or_else(|_| panic!("{what}"));
    }
}

/// Returns name and data of each event.
fn events(answer: &Answer) -> Vec<(String, Value)> {
    let blocks = answer
        .text
        .split("\n\n")
        .filter(|block| block.starts_with("event: "));
    let parsed = blocks.map(|block| {
        let line = |name: &str| {
            block
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .unwrap_or_default()
        };
        (
            line("event: ").to_owned(),
            serde_json::from_str(line("data: ")).unwrap(),
        )
    });
    parsed.collect()
}

#[tokio::test]
async fn reply_is_known_while_its_final_state_is_stored() {
    let world = World::new().await;
    let conversation = world.put_conversation(org_id()).await;
    let reply = MessageId::new_in(&conversation).reply();
    let stages: [fn(&mut Conversation, MessageId); 2] = [
        |conversation, reply| conversation.active_message_id = Some(reply),
        |conversation, reply| {
            (conversation.active_message_id, conversation.last_reply_id) = (None, Some(reply))
        },
    ];
    assert_eq!(world.message(&reply, "").await.problem().0, 404);
    for stage in stages {
        world
            .edit_conversation(&conversation, |conversation| {
                stage(conversation, reply.clone());
            })
            .await;
        let answer = world.message(&reply, "").await;
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["status"]),
            (200, &json!("in_progress"))
        );
    }
    world.put_final(&reply, ReplyStatus::Cancelled).await;
    assert_eq!(
        world.message(&reply, "").await.json()["status"],
        "cancelled"
    );
}

#[tokio::test]
async fn event_stream_continues_without_the_store() {
    let world = World::new().await;
    world.store.faults.set_down(true);
    let answer = world
        .chat_in(
            ("accept", "text/event-stream"),
            reply_frames(&["a"], ReplyStatus::Completed),
        )
        .await;
    assert_eq!(events(&answer).last().unwrap().0, "done");
}

#[tokio::test]
async fn running_reply_is_read_from_any_byte_without_pushes() {
    let world = World::new().await;
    world.drop_pushes(true);
    let reply = world.accepted().await;
    let mut frames = reply_frames(&["Grü", "ße"], ReplyStatus::Completed);
    let later = frames.split_off(2);
    world.append_frames(&reply, frames);
    assert_eq!(world.message(&reply, "").await.json()["content"], "Grü");
    assert_eq!(
        world.message(&reply, "/stream?after=5").await.problem(),
        (416, "RANGE_NOT_SATISFIABLE".into())
    );
    let restarted = world.message(&reply, "/stream?after=1&generation=2").await;
    assert_eq!(restarted.problem(), (409, "REPLY_RESTARTED".into()));
    let reads = world.relay.faults.call_count("read_frames");
    let append = async {
        let both_read = |faults: &Faults| faults.call_count("read_frames") >= reads + 2;
        world.relay.faults.wait_until(both_read).await;
        world.append_frames(&reply, later);
    };
    let path = format!("/api/public/messages/{reply}/stream");
    let resumed = [("accept", "text/event-stream"), ("last-event-id", "1.3")];
    let (text, events_answer, ()) = tokio::join!(
        world.message(&reply, "/stream?after=4"),
        world.ask("GET", &path, &resumed, ""),
        append
    );
    assert_eq!((text.text.as_str(), text.whole), ("ße", true));
    let told: Vec<_> = events(&events_answer)
        .into_iter()
        .filter(|(name, _)| name == "delta")
        .collect();
    assert_eq!(
        told[0].1,
        json!({ "text": "ü", "offset": 2 }),
        "the character at or before the offset"
    );
    assert_eq!(told[1].1, json!({ "text": "ße", "offset": 4 }));
}

#[tokio::test]
async fn new_generation_breaks_a_reader_and_is_never_appended() {
    let world = World::new().await;
    let reply = world.accepted().await;
    let frames = reply_frames(&["old text"], ReplyStatus::Completed);
    world.append_frames(&reply, frames.into_iter().take(2));
    let restart = async {
        world
            .wait_until("the reader waits", |world| world.replies_awaited(&reply))
            .await;
        for frame in reply_frames(&["new text"], ReplyStatus::Completed) {
            world.append_frame(
                &reply,
                Frame {
                    generation: 2,
                    attempt: 2,
                    ..frame
                },
            );
        }
    };
    let (answer, ()) = tokio::join!(world.message(&reply, "/stream?after=3"), restart);
    assert_eq!((answer.text.as_str(), answer.whole), (" text", false));
}

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
async fn reply_that_the_store_has_settled_is_not_canceled() {
    let world = World::new().await;
    let reply = world.accepted().await;
    let faults = &world.store.faults;
    faults.alter("settle_cancellation", |_: bool| false);
    let path = format!("/api/public/messages/{reply}/cancel");
    let answer = world.send("POST", &path, "").await;
    assert_eq!(answer.expect(200)["status"], "queued");
    assert!(world.cancelled_replies().is_empty());
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

/// Opens readers of a reply at different times. They end before `then` if they fail.
async fn read_along(
    world: &World,
    reply: &MessageId,
    readers: u32,
    then: impl Future<Output = ()>,
) -> Vec<Answer> {
    let read = |number| async move {
        tokio::time::sleep(Duration::from_millis(7) * number).await;
        world.message(reply, "/stream").await
    };
    tokio::join!(join_all((0..readers).map(read)), then).0
}

#[tokio::test(start_paused = true)]
async fn ten_readers_read_about_as_often_as_one() {
    let mut reads = Vec::new();
    for readers in [1, 10] {
        let world = World::new().await;
        world.drop_pushes(true);
        let reply = world.accepted().await;
        let mut frames = reply_frames(&["a", "b"], ReplyStatus::Completed);
        let later = frames.split_off(2);
        world.append_frames(&reply, frames);
        world.relay.faults.forget_calls();
        world.store.faults.forget_calls();
        let answers = read_along(&world, &reply, readers, async {
            tokio::time::sleep(Duration::from_secs(20)).await;
            world.append_frames(&reply, later);
        })
        .await;
        for answer in answers {
            assert_eq!((answer.text.as_str(), answer.whole), ("ab", true));
        }
        reads.push((
            world.relay.faults.call_count("read_frames"),
            world.store.faults.call_count("known_reply"),
        ));
    }
    let [(log, store), (log_of_ten, store_of_ten)] = reads[..] else {
        panic!("{reads:?}")
    };
    assert!(
        log > 150 && log_of_ten < log * 5 / 4,
        "{log_of_ten} reads of the log, one reader {log}"
    );
    assert!(
        store_of_ten < store * 2,
        "{store_of_ten} reads of the store, one reader {store}"
    );
}

#[tokio::test(start_paused = true)]
async fn relay_outage_reaches_all_readers() {
    let world = World::new().await;
    let reply = world.accepted().await;
    let opened = tokio::time::Instant::now();
    let answers = read_along(&world, &reply, 3, async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.relay.faults.set_down(true);
        tokio::time::sleep(Duration::from_secs(60)).await;
        world.put_final(&reply, ReplyStatus::Completed).await;
    })
    .await;
    for answer in answers {
        assert_eq!((answer.status.as_u16(), answer.whole), (200, true));
    }
    assert!(
        opened.elapsed() < Duration::from_secs(63),
        "{:?}",
        opened.elapsed()
    );
}
