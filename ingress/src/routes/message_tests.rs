//! Message lookup, reply formats, resumption and cancellation over embedded backends.

mod cancellation;

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_backends::testing::Faults;
use switchboard_schemas::{
    agent::OnDisconnect,
    conversation::{Conversation, ReplyStatus},
    conversation_job::ConversationJob,
    ids::MessageId,
    reply_event::{
        Frame, FrameBody, IngressEnvelope, ReplyEnd, ReplyFailure, ReplySignal, ToolProgress,
        ToolStatus,
    },
    topics::Topic,
};

use crate::testing::{Answer, World, end_of, org_id, reply_frames, reply_of};

const BODY: &str = r#"{"message":"hi","sessionId":"s"}"#;
const DEADLINE: Duration = Duration::from_secs(10);

fn frame(seq: u64, body: FrameBody) -> Frame {
    Frame {
        attempt: 1,
        generation: 1,
        seq,
        body,
    }
}

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
async fn accepted_message_is_known_before_a_worker_claims_it() {
    let world = World::new().await;
    let reply = world.accepted().await;
    let answer = world.message(&reply, "").await;
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["status"]),
        (200, &json!("queued"))
    );
    assert_eq!(answer.json()["agentName"], "Shop");
    let ConversationJob::Reply(job) = world.jobs(Topic::Jobs).remove(0) else {
        panic!("a reply job is expected")
    };
    assert_eq!(job.turn.reply_to, None, "no ingress waits");
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
async fn unrecorded_acceptance_has_no_202_and_no_job() {
    let world = World::new().await;
    world.store.faults.set_down(true);
    let answer = world
        .ask(
            "POST",
            &World::agent_path("/chat"),
            &[("prefer", "respond-async")],
            BODY,
        )
        .await;
    assert_eq!(answer.problem(), (503, "UNAVAILABLE".into()));
    assert!(world.jobs(Topic::Jobs).is_empty());
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
async fn json_success_is_completed_or_canceled() {
    for (status, failure, expected) in [
        (ReplyStatus::Completed, None, 200),
        (ReplyStatus::Cancelled, None, 200),
        (ReplyStatus::Incomplete, Some(ReplyFailure::ModelError), 502),
        (
            ReplyStatus::Incomplete,
            Some(ReplyFailure::ModelUnavailable),
            502,
        ),
        (
            ReplyStatus::Incomplete,
            Some(ReplyFailure::ModelTimeout),
            504,
        ),
        (ReplyStatus::Failed, Some(ReplyFailure::ModelTimeout), 504),
    ] {
        let world = World::new().await;
        let mut frames = reply_frames(&["half"], status);
        frames[2].body = FrameBody::End(Box::new(ReplyEnd {
            failure,
            ..end_of("half", status)
        }));
        let answer = world.chat_in(("accept", "application/json"), frames).await;
        assert_eq!(answer.status.as_u16(), expected, "{status:?} {failure:?}");
        let (body, reply) = (answer.json(), reply_of(&world.jobs(Topic::Jobs)[0]));
        let (id, told) = if expected == 200 {
            assert_eq!(
                (&body["content"], &body["agentName"]),
                (&json!("half"), &json!("Shop"))
            );
            (&body["messageId"], &body["status"])
        } else {
            (&body["details"]["messageId"], &body["details"]["status"])
        };
        assert_eq!((id, told), (&json!(reply), &json!(status)));
    }
}

#[tokio::test]
async fn event_stream_has_structured_data_and_tool_events() {
    let world = World::new().await;
    let mut frames = reply_frames(&["a"], ReplyStatus::Cancelled);
    let spec = json!({ "type": "product-grid", "data": [] });
    let tool = ToolProgress {
        name: "search".into(),
        status: ToolStatus::Started,
    };
    frames.insert(1, frame(2, FrameBody::Tool(tool)));
    frames.insert(2, frame(3, FrameBody::Ui(spec.clone())));
    for later in &mut frames[3..] {
        later.seq += 2;
    }
    let answer = world.chat_in(("accept", "text/event-stream"), frames).await;
    assert_eq!((answer.status.as_u16(), answer.whole), (200, true));
    let events = events(&answer);
    let names: Vec<_> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["start", "tool", "ui", "delta", "done"]);
    assert_eq!(
        events[1].1,
        json!({ "name": "search", "status": "started" })
    );
    assert_eq!(events[2].1, spec);
    assert_eq!(
        (&events[3].1["offset"], &events[4].1["status"]),
        (&json!(0), &json!("cancelled"))
    );
    assert!(answer.text.contains("\nid: 1.1\n"), "{}", answer.text);
}

#[tokio::test]
async fn failure_is_an_error_event_with_a_clean_end() {
    let world = World::new().await;
    let end = ReplyEnd {
        failure: Some(ReplyFailure::ModelUnavailable),
        ..end_of("", ReplyStatus::Failed)
    };
    let frames = vec![frame(1, FrameBody::End(Box::new(end)))];
    let answer = world.chat_in(("accept", "text/event-stream"), frames).await;
    assert!(answer.whole);
    let (name, problem) = events(&answer).remove(0);
    assert_eq!(
        (name.as_str(), &problem["code"], &problem["status"]),
        ("error", &json!("UNAVAILABLE"), &json!(503))
    );
    assert_eq!(
        problem["requestId"],
        answer.headers["x-request-id"].to_str().unwrap()
    );
}

#[tokio::test(start_paused = true)]
async fn comments_keep_a_waiting_event_stream_alive() {
    let world = World::new().await;
    let path = World::agent_path("/chat");
    let work = async {
        world.published().await;
        let reply = reply_of(&world.jobs(Topic::Jobs)[0]);
        for _ in 0..34 {
            world.push(IngressEnvelope::Reply(
                reply.clone(),
                ReplySignal::Heartbeat { attempt: 1 },
            ));
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let frames = reply_frames(&["late"], ReplyStatus::Completed);
        world.append_frames(&reply, frames);
    };
    let asked = world.ask("POST", &path, &[("accept", "text/event-stream")], BODY);
    let (answer, ()) = tokio::join!(asked, work);
    let comments = answer
        .text
        .split("\n\n")
        .filter(|block| block.starts_with(':'))
        .count();
    assert_eq!(
        comments,
        1 + 3,
        "one comment at once and one every ten seconds"
    );
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
async fn page_of_another_origin_can_neither_follow_nor_cancel() {
    let world = World::new().await;
    world
        .edit_agent(|agent| agent.settings.allowed_domains = vec!["shop.example".into()])
        .await;
    let reply = world.accepted().await;
    let foreign = [("origin", "https://evil.example")];
    let path = format!("/api/public/messages/{reply}");
    for (method, rest) in [("GET", "/stream"), ("POST", "/cancel")] {
        let answer = world
            .ask(method, &format!("{path}{rest}"), &foreign, "")
            .await;
        assert_eq!(
            answer.problem(),
            (403, "DOMAIN_NOT_ALLOWED".into()),
            "{rest}"
        );
    }
    assert!(world.cancelled_replies().is_empty());
    assert_eq!(world.ask("GET", &path, &foreign, "").await.status, 200);
}

#[tokio::test]
async fn foreign_and_unknown_messages_are_not_found() {
    let world = World::new().await;
    let reply = world.accepted().await;
    let foreign = world.new_key("umbrella", json!({ "name": "all" })).await;
    let header = format!("Bearer {foreign}");
    for (method, rest) in [("GET", ""), ("GET", "/stream"), ("POST", "/cancel")] {
        for id in [
            reply.as_str(),
            &format!("msg_{}", "0".repeat(52)),
            "msg_x",
            "%20",
        ] {
            let path = format!("/api/public/messages/{id}{rest}");
            let answer = world
                .send_with(method, &path, &[("authorization", &header)], "")
                .await;
            assert_eq!(
                answer.problem(),
                (404, "MESSAGE_NOT_FOUND".into()),
                "{method} {path}"
            );
        }
    }
    assert!(world.cancelled_replies().is_empty());
}
