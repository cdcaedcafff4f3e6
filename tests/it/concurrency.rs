//! Concurrent chats: ordered within a session, parallel across sessions.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use futures::future::join_all;
use serde_json::json;
use tokio::task::JoinSet;

use crate::support::{
    Answer, Organization, PATIENCE, Reply, Script, TestService, eventually, report, shop_saying,
    shop_with,
};

const SESSIONS: usize = 10;
const CHATS_PER_SESSION: usize = 4;

#[tokio::test]
async fn concurrent_chats_keep_session_order_and_call_the_model_once() {
    let organization = shop_with(Script::counts(8, Duration::from_millis(15))).await;
    let service = organization.service();
    let urls = service.public_urls();
    let chats = (0..SESSIONS * CHATS_PER_SESSION).map(|number| {
        let client = organization.client_at(&urls[number % urls.len()]);
        let agent = organization.shop().to_owned();
        async move {
            client
                .chat(
                    &agent,
                    &format!("session-{}", number % SESSIONS),
                    &format!("message {number}"),
                )
                .await
        }
    });
    for reply in join_all(chats).await {
        reply.complete();
    }
    let requests = organization.requests();
    assert_eq!(
        requests.len(),
        SESSIONS * CHATS_PER_SESSION,
        "one model call per chat"
    );
    for session in 0..SESSIONS {
        assert_conversation_is_whole(&organization, &format!("session-{session}")).await;
    }
    assert_each_prompt_extends_the_one_before(requests.iter().map(|request| &request.messages[..]));
}

async fn assert_conversation_is_whole(organization: &Organization, session: &str) {
    let history = organization.history(session).await;
    let messages = history["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 2 * CHATS_PER_SESSION, "two rows per chat");
    assert_eq!(history["totalMessages"], 2 * CHATS_PER_SESSION);
    let mut questions = vec![];
    for pair in messages.chunks(2) {
        assert_eq!(
            (&pair[0]["role"], &pair[1]["role"]),
            (&json!("user"), &json!("assistant")),
            "pairs stay together"
        );
        assert_eq!(
            pair[1]["content"]
                .as_str()
                .unwrap()
                .split_whitespace()
                .count(),
            8
        );
        questions.push(pair[0]["content"].as_str().unwrap());
    }
    questions.sort_unstable();
    questions.dedup();
    assert_eq!(questions.len(), CHATS_PER_SESSION, "no message twice");
}

/// Asserts that the turns of a session are answered in order: its n-th prompt has n user messages.
fn assert_each_prompt_extends_the_one_before<'a>(
    prompts: impl Iterator<Item = &'a [(String, String)]>,
) {
    let mut last_of: HashMap<String, Vec<(String, String)>> = HashMap::new();
    for prompt in prompts {
        let messages: Vec<_> = prompt
            .iter()
            .filter(|(role, _)| role != "system")
            .cloned()
            .collect();
        let first_question = messages[0].1.clone();
        let before = last_of.entry(first_question).or_default();
        assert!(
            messages.starts_with(before),
            "{messages:?} does not go on from {before:?}"
        );
        assert_eq!(
            messages.iter().filter(|(role, _)| role == "user").count(),
            messages.len() / 2 + 1
        );
        *before = messages;
    }
    assert_eq!(last_of.len(), SESSIONS);
}

#[tokio::test]
async fn slow_conversation_does_not_block_the_others() {
    let organization = shop_saying("quick").await;
    let (script, gate) = Script::counts(40, Duration::ZERO).gated();
    organization.script_for("slow", script);
    let client = organization.client();
    let body = json!({"message": "[[slow]] please", "sessionId": "slow"});
    gate.open(1);
    let slow = organization.open_chat(&body).await;
    let quick = (0..20).map(|number| {
        let (client, agent) = (client.clone(), organization.shop().to_owned());
        async move { client.chat(&agent, &format!("quick-{number}"), "hi").await }
    });
    for reply in join_all(quick).await {
        assert_eq!(reply.complete(), "quick");
    }
    gate.open(39);
    Reply::read(slow).await.complete();
}

#[tokio::test]
async fn busy_organization_does_not_delay_another() {
    const WAITING: usize = 20;
    const REPLIES_BEFORE_MAX: usize = 12;
    let service = TestService::start_with(&[("SWITCHBOARD__WORKERS__IN_FLIGHT_MAX", "1")]).await;
    let (script, gate) = Script::says("busy").gated();
    let busy = Organization::with_agent(&service, script).await;
    let other = Organization::with_agent(&service, Script::says("other")).await;
    let finished = AtomicUsize::new(0);
    let chats = join_all((0..WAITING).map(|number| {
        let (client, agent, finished) = (busy.client(), busy.shop(), &finished);
        async move {
            let reply = client.chat(agent, &format!("s{number}"), "hi").await;
            finished.fetch_add(1, Ordering::Relaxed);
            reply
        }
    }));
    let others = async {
        // All but those in the slots of the workers.
        eventually("the busy organization waits", PATIENCE, async || {
            let queued = service.metric("switchboard_jobs_queued").await;
            let queued: f64 = queued.iter().map(|(_, jobs)| jobs).sum();
            (queued >= (WAITING - 4) as f64).then_some(())
        })
        .await;
        let (client, agent) = (other.client(), other.shop());
        let mut chat = std::pin::pin!(client.chat(agent, "s", "hi"));
        let reply = loop {
            let tick = Duration::from_millis(100);
            match tokio::time::timeout(tick, &mut chat).await {
                Ok(reply) => break reply,
                Err(_) => gate.open(1),
            }
        };
        let before = finished.load(Ordering::Relaxed);
        assert_eq!(reply.complete(), "other");
        report(&format!(
            "waited for {before} of {WAITING} replies of another"
        ));
        assert!(
            before <= REPLIES_BEFORE_MAX,
            "it waited for {before} others"
        );
        gate.open(WAITING);
    };
    let (replies, ()) = tokio::join!(chats, others);
    for reply in replies {
        assert_eq!(reply.complete(), "busy");
    }
}

#[tokio::test]
async fn long_queued_message_is_answered_on_its_own_request() {
    let organization = shop_saying("at last").await;
    // Longer than the time limit for the start of a reply.
    organization.script_for("slow", Script::counts(100, Duration::from_millis(230)));
    let (client, agent) = (organization.client(), organization.shop());
    let slow = client
        .open_chat(
            agent,
            &json!({"message": "[[slow]] please", "sessionId": "s"}),
        )
        .await;
    assert_eq!(
        client.chat(agent, "s", "me next").await.complete(),
        "at last"
    );
    Reply::read(slow).await.complete();
}

#[tokio::test]
async fn ninth_of_nine_simultaneous_messages_is_refused() {
    let organization = shop_saying("next").await;
    let service = organization.service();
    organization.script_for("slow", Script::counts(100, Duration::from_millis(100)));
    let urls = service.public_urls();
    let body = json!({"message": "[[slow]] first", "sessionId": "s"});
    let running = organization.open_chat(&body).await;
    let others = (0..9).map(|number| {
        let (client, agent) = (
            organization.client_at(&urls[number % urls.len()]),
            organization.shop().to_owned(),
        );
        async move { client.chat(&agent, "s", &format!("waiting {number}")).await }
    });
    let (refused, answered): (Vec<_>, Vec<_>) = join_all(others)
        .await
        .into_iter()
        .partition(|reply| reply.status == 429);
    assert_eq!(refused.len(), 1);
    for refused in refused {
        let answer = refused.into_answer();
        answer.assert_problem(429, Some("RATE_LIMITED"));
        assert!(answer.header("retry-after").is_some());
    }
    for reply in &answered {
        assert_eq!(reply.complete(), "next");
    }
    Reply::read(running).await.complete();
    assert_eq!(organization.chat("s", "later").await.complete(), "next");
}

#[tokio::test]
async fn eight_messages_may_queue_and_the_ninth_is_refused() {
    let organization = shop_saying("next").await;
    organization.script_for("slow", Script::counts(30, Duration::from_millis(100)));
    let client = organization.client();
    let body = json!({"message": "[[slow]] first", "sessionId": "s"});
    let running = organization.open_chat(&body).await;
    let path = organization.path("/chat");
    let mut waiting = vec![];
    for number in 0..8 {
        let body = json!({"message": format!("waiting {number}"), "sessionId": "s"});
        let request = client
            .request(reqwest::Method::POST, &path)
            .header("prefer", "respond-async")
            .json(&body);
        let answer = Answer::read(request.send().await.unwrap()).await.unwrap();
        assert_eq!(answer.status, 202, "{number}: {}", answer.text);
        waiting.push(answer.json()["messageId"].as_str().unwrap().to_owned());
    }
    let refused = organization.chat("s", "one too many").await.into_answer();
    assert_eq!(
        (refused.status, refused.headers.contains_key("retry-after")),
        (429, true)
    );
    assert!(refused.header("retry-after").is_some());
    Reply::read(running).await.complete();
    for message in waiting {
        crate::support::eventually(
            "the queue is answered",
            crate::support::PATIENCE,
            async || (client.message(&message).await["status"] == "completed").then_some(()),
        )
        .await;
    }
    let history = organization.history("s").await;
    let questions: Vec<_> = history["messages"]
        .as_array()
        .unwrap()
        .iter()
        .step_by(2)
        .map(|m| m["content"].clone())
        .collect();
    let expected: Vec<_> = std::iter::once(json!("[[slow]] first"))
        .chain((0..8).map(|number| json!(format!("waiting {number}"))))
        .collect();
    assert_eq!(questions, expected);
}

#[tokio::test]
async fn slow_replies_of_one_organization_leave_slots_to_another() {
    const SLOW: usize = 40;
    let service = TestService::start_with(&[("SWITCHBOARD__WORKERS__IN_FLIGHT_MAX", "4")]).await;
    let (script, gate) = Script::says("slow").gated();
    let slow = Organization::with_agent(&service, script).await;
    let other = Organization::with_agent(&service, Script::says("other")).await;
    let chats = join_all((0..SLOW).map(|number| {
        let (client, agent) = (slow.client(), slow.shop());
        async move { client.chat(agent, &format!("s{number}"), "hi").await }
    }));
    let others = async {
        eventually("the slow organization waits", PATIENCE, async || {
            let queued = service.metric("switchboard_jobs_queued").await;
            let queued: f64 = queued.iter().map(|(_, jobs)| jobs).sum();
            (queued >= (SLOW - 4 * 3) as f64).then_some(())
        })
        .await;
        // None of the slow ones ends meanwhile.
        for number in 0..10 {
            let session = format!("s{number}");
            let reply = other.chat(&session, "hi").await;
            assert_eq!(reply.complete(), "other");
        }
        gate.open(SLOW);
    };
    let (replies, ()) = tokio::join!(chats, others);
    for reply in replies {
        assert_eq!(reply.complete(), "slow");
    }
}

/// The queue of a worker has a bound; messages of others would wait behind it in their partitions.
#[tokio::test]
async fn organization_that_crowds_the_queue_is_refused() {
    const AT_ONCE: usize = 25;
    let service = TestService::start_with(&[
        ("SWITCHBOARD__WORKERS__IN_FLIGHT_MAX", "2"),
        ("SWITCHBOARD__WORKERS__QUEUED_JOBS_MAX", "40"),
    ])
    .await;
    let (script, _gate) = Script::says("slow").gated();
    let slow = Organization::with_agent(&service, script).await;
    let other = Organization::with_agent(&service, Script::says("other")).await;
    let url = service.public_urls()[0].clone();
    let chat = |number: usize| {
        let (client, agent) = (slow.client_at(&url), slow.shop().to_owned());
        async move { client.chat(&agent, &format!("s{number}"), "hi").await }
    };
    let mut crowd: JoinSet<_> = (0..AT_ONCE).map(chat).collect();
    let mut number = AT_ONCE;
    let refused = loop {
        number += 1;
        let mut next = Box::pin(chat(number));
        match tokio::time::timeout(Duration::from_millis(500), &mut next).await {
            Ok(reply) => break reply,
            Err(_) => crowd.spawn(next),
        };
        assert!(number < 100, "all are accepted");
    };
    let may_retry = refused.headers.contains_key("retry-after");
    assert_eq!((refused.status, may_retry), (429, true));
    assert_eq!(other.chat("s", "hi").await.complete(), "other");
}
