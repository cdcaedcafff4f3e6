//! Processes whose wall clocks differ by hours: order, keys and takeovers do not depend on clocks.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use chrono::{DateTime, Utc};
use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use switchboard_schemas::message_event::EventBody;

use super::{message_events::valid_events, start_cluster, worker_kill::busiest_worker};
use crate::support::{
    Client, Organization, OrganizationDocument, PATIENCE, Process, Reply, Script, TestService,
    eventually, wait_until_ready,
};

/// Shift of the clock of each process in seconds.
const SHIFTS_SECONDS: [(&str, i64); 5] = [
    ("ingress-1", 5),
    ("ingress-2", -7200),
    ("routing-1", 0),
    ("inference-1", 7200),
    ("inference-2", -5),
];
/// Largest error of a clock read from a header, which has whole seconds.
const CLOCK_ERROR_SECONDS: i64 = 2;
/// Enough that both workers have some.
const SESSIONS: usize = 8;
const TURNS: usize = 6;
const KILLS: usize = 2;
const WORDS: usize = 60;
const WORD_INTERVAL: Duration = Duration::from_millis(50);
/// Time for which messages wait behind others.
const WAIT_BEHIND: Duration = Duration::from_secs(3);

/// A cluster whose processes have shifted clocks, with clients of the ingress whose clock is ahead
/// and of the one whose clock is behind.
struct SkewedCluster {
    organization: Organization,
    clients: [Client; 2],
    service: TestService,
}

impl SkewedCluster {
    async fn start(script: Script) -> Self {
        let service = start_cluster(&[]).await;
        let library = build_clock_shift(&service);
        let restarts = SHIFTS_SECONDS.map(|(name, seconds)| {
            let variables = [
                ("LD_PRELOAD", library.to_string_lossy().into_owned()),
                ("CLOCK_SHIFT_SECONDS", seconds.to_string()),
            ];
            let service = &service;
            async move { service.restart_with(name, &variables).await }
        });
        join_all(restarts).await;
        for (name, seconds) in SHIFTS_SECONDS {
            assert_clock_is_shifted(&service, name, seconds).await;
        }
        let organization = OrganizationDocument::new()
            .continuing()
            .shop(json!({}))
            .agent("desk", json!({}))
            .team(
                "front",
                json!({"routing": "round-robin", "members": [{"agent": "shop"}, {"agent": "desk"}]}),
            )
            .apply(&service)
            .await;
        organization.script(script);
        let urls = service.public_urls();
        let clients = [0, 1].map(|ingress| organization.client_at(&urls[ingress]));
        Self {
            organization,
            clients,
            service,
        }
    }

    /// Returns the client of every other request.
    fn client(&self, number: usize) -> &Client {
        &self.clients[number % 2]
    }

    async fn metric(&self, name: &str) -> f64 {
        let values = self.service.metric(name).await;
        values.iter().map(|(_, value)| value).sum()
    }

    /// Asserts that no message was taken from a worker or given up.
    async fn assert_undisturbed(&self) {
        for name in ["reply_takeovers", "dead_letters"] {
            let count = self.metric(&format!("switchboard_{name}_total")).await;
            assert_eq!(count, 0.0, "{name}");
        }
    }
}

/// Builds the library that shifts the clock of a process, in the folder of the service.
fn build_clock_shift(service: &TestService) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/support/clock_shift.c");
    let library = service.data_directory().with_file_name("clock_shift.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]);
    let status = compiler.arg(&library).arg(source).status().unwrap();
    assert!(status.success(), "cc: {status}");
    library
}

async fn assert_clock_is_shifted(service: &TestService, name: &str, seconds: i64) {
    let urls = service.ops_urls();
    let (_, url) = urls.iter().find(|(process, _)| process == name).unwrap();
    wait_until_ready(name, url).await;
    let answer = Client::new(url).get("/metrics").await;
    let date = DateTime::parse_from_rfc2822(answer.header("date").unwrap()).unwrap();
    let shift = (date.to_utc() - Utc::now()).num_seconds();
    let error = (shift - seconds).abs();
    assert!(error <= CLOCK_ERROR_SECONDS, "{name}: {shift} s");
}

async fn send(client: &Client, path: &str, key: &str, body: &Value) -> Reply {
    let request = client.request(Method::POST, path);
    let request = request.header("idempotency-key", key).json(body);
    Reply::read(request.send().await.unwrap()).await
}

/// Returns the stored texts of a conversation in order.
fn contents(history: &Value) -> Vec<&str> {
    let messages = history["messages"].as_array().unwrap();
    let contents = messages.iter().map(|it| it["content"].as_str().unwrap());
    contents.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_are_answered_once_and_in_order() {
    let script = Script::counts_by_call(5, Duration::from_millis(20));
    let cluster = SkewedCluster::start(script.clone()).await;
    let (organization, agent) = (&cluster.organization, cluster.organization.shop());
    let talks = (0..SESSIONS).map(|number| {
        let (cluster, session) = (&cluster, format!("s{number}"));
        async move {
            let mut said = vec![];
            for turn in 0..TURNS {
                let question = format!("question {turn} of {session}");
                let client = cluster.client(number + turn);
                let text = client.chat(agent, &session, &question).await.complete();
                said.extend([question, text]);
            }
            (session, said)
        }
    });
    for (session, said) in join_all(talks).await {
        for text in said.iter().skip(1).step_by(2) {
            assert_eq!(*text, script.text_that_begins(text));
        }
        for client in &cluster.clients {
            let history = client.settled_history(agent, &session, 2 * TURNS).await;
            assert_eq!(contents(&history), said);
        }
    }
    let mut agents = vec![];
    for number in 0..4 {
        let (session, team) = (format!("t{number}"), organization.team("front"));
        let reply = cluster.client(number).team_chat(team, &session, "hi").await;
        reply.complete();
        agents.push(reply.required_header("x-agent-id"));
    }
    assert_eq!((&agents[0], &agents[1]), (&agents[2], &agents[3]));
    assert_ne!(agents[0], agents[1], "members take turns");
    let messages = SESSIONS * TURNS + agents.len();
    assert_eq!(organization.requests().len(), messages, "model calls");
    cluster.assert_undisturbed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn later_change_wins_in_store_and_topic() {
    let cluster = SkewedCluster::start(Script::says("ok")).await;
    let agent = cluster.organization.shop();
    for number in 0..SESSIONS {
        let session = format!("s{number}");
        let reply = cluster.clients[0].chat(agent, &session, "hi").await;
        reply.complete();
        let path = cluster
            .organization
            .path(&format!("/conversations/{session}"));
        for step in 0..6 {
            let client = cluster.client(step);
            let change = json!({"plan": step});
            if step % 4 < 2 {
                let answer = client.patch(&path, &json!({"metadata": change})).await;
                answer.assert_status(200);
            } else {
                let body = json!({"message": "hi", "sessionId": session, "metadata": change});
                let reply = Reply::read(client.open_chat(agent, &body).await).await;
                reply.complete();
            }
            for client in &cluster.clients {
                let history = client.history(agent, &session).await;
                assert_eq!(history["metadata"]["plan"], step, "{session}");
            }
        }
        // Six messages and six changes.
        let events = valid_events(&cluster.service, &reply, 12).await;
        let plans = events.iter().filter_map(|event| match &event.body {
            EventBody::ConversationUpdated(update) => update.changes.get("plan").cloned(),
            _ => None,
        });
        let plans: Vec<Value> = plans.collect();
        assert_eq!(json!(plans), json!([0, 1, 2, 3, 4, 5]), "{session}");
    }
    cluster.assert_undisturbed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeated_request_joins_its_reply() {
    let script = Script::counts_by_call(WORDS, WORD_INTERVAL);
    let cluster = SkewedCluster::start(script.clone()).await;
    let (path, clients) = (cluster.organization.path("/chat"), &cluster.clients);
    for number in 0..4 {
        let key = format!("key-{number}");
        let body = json!({"message": "hi", "sessionId": format!("s{number}")});
        let (one, two) = (cluster.client(number), cluster.client(number + 1));
        let (first, joined) = tokio::join!(send(one, &path, &key, &body), async {
            tokio::time::sleep(WORD_INTERVAL * 10).await;
            send(two, &path, &key, &body).await
        });
        let text = first.complete();
        assert_eq!(text, script.text_that_begins(&text));
        for repeat in [joined, send(two, &path, &key, &body).await] {
            assert_eq!(repeat.complete(), text);
            let id = |reply: &Reply| reply.required_header("x-message-id");
            assert_eq!(id(&repeat), id(&first));
        }
        let session = format!("s{number}");
        let history = clients[0].settled_history(cluster.organization.shop(), &session, 2);
        assert_eq!(contents(&history.await), ["hi", &text]);
    }
    assert_eq!(cluster.organization.requests().len(), 4, "model calls");
    cluster.assert_undisturbed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_messages_are_not_overdue() {
    let (script, gate) = Script::says("held").gated();
    let cluster = SkewedCluster::start(script).await;
    let agent = cluster.organization.shop();
    let chat = |number: usize, turn: usize| {
        let (client, session) = (cluster.client(number + turn), format!("s{number}"));
        async move {
            client
                .chat(agent, &session, &format!("question {turn}"))
                .await
        }
    };
    let first = join_all((0..SESSIONS).map(|number| chat(number, 0)));
    let calls = async |count: usize| {
        eventually("the model is called", PATIENCE, async || {
            (cluster.organization.requests().len() >= count).then_some(())
        })
        .await;
    };
    let second = async {
        calls(SESSIONS).await;
        join_all((0..SESSIONS).map(|number| chat(number, 1))).await
    };
    let opening = async {
        calls(SESSIONS).await;
        tokio::time::sleep(WAIT_BEHIND).await;
        assert_eq!(cluster.organization.requests().len(), SESSIONS);
        gate.open(2 * SESSIONS);
    };
    let (first, second, ()) = tokio::join!(first, second, opening);
    for reply in first.iter().chain(&second) {
        assert_eq!(reply.complete(), "held");
    }
    for number in 0..SESSIONS {
        let client = cluster.client(number);
        let history = client
            .settled_history(agent, &format!("s{number}"), 4)
            .await;
        assert_eq!(
            contents(&history),
            ["question 0", "held", "question 1", "held"]
        );
    }
    cluster.assert_undisturbed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_of_killed_workers_have_one_text() {
    let script = Script::counts_by_call(WORDS, WORD_INTERVAL).continues_prefix();
    let cluster = SkewedCluster::start(script.clone()).await;
    let agent = cluster.organization.shop();
    for round in 1..=KILLS {
        let open = (0..SESSIONS).map(|number| {
            let (client, session) = (cluster.client(number), format!("r{round}s{number}"));
            async move {
                let (reply, response) = client.begin_chat(agent, &session, "go", 20).await;
                (session, reply, response)
            }
        });
        let open = join_all(open).await;
        let victim = busiest_worker(&cluster.service).await;
        cluster.service.with_process(&victim, Process::kill);
        let reading = open
            .into_iter()
            .map(|(session, reply, response)| async move {
                (session, reply.continue_reading(response).await)
            });
        let restart = cluster.service.restart(&victim);
        let (replies, ()) = tokio::join!(join_all(reading), restart);
        for (session, reply) in replies {
            let text = reply.complete();
            assert_eq!(text, script.text_that_begins(&text), "{session}");
            let history = cluster.clients[0].settled_history(agent, &session, 2).await;
            assert_eq!(contents(&history), ["go", &text], "{session}");
        }
        let calls = cluster.organization.requests().len();
        assert!(calls > round * SESSIONS, "{victim}: {calls} calls");
    }
    let dead_letters = cluster.metric("switchboard_dead_letters_total").await;
    assert_eq!(dead_letters, 0.0);
}
