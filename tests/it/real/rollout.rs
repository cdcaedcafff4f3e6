//! Restarts of every process behind a proxy, as when a new version is rolled out, without a visible
//! effect.

use std::time::{Duration, Instant};

use futures::future::join_all;
use tokio_util::sync::CancellationToken;

use super::start_cluster;
use crate::support::{
    Client, Organization, Program, Script, TestService, free_port, report, start_nginx, unique,
};

/// Conversations with short and with long replies at the same time.
const SHORT_CHATS: usize = 8;
const LONG_CHATS: usize = 2;
/// Time that the listener of a stopping ingress stays open, in milliseconds.
const UNREADY_NOTICE_MS: &str = "1000";
/// Model calls beyond one per message, in percent of the messages.
const REPEATED_CALLS_PERCENT_MAX: usize = 5;
/// Time that a process gets to end after SIGTERM.
const STOP_PATIENCE: Duration = Duration::from_secs(60);

/// Restarts each process once. `SWITCHBOARD_TEST_ROLLOUT_MINUTES` sets a longer time, with replies
/// of 25 s.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarts_behind_a_proxy_fail_no_request() {
    let minutes = std::env::var("SWITCHBOARD_TEST_ROLLOUT_MINUTES");
    let minutes: Option<u64> = minutes.ok().map(|minutes| minutes.parse().unwrap());
    let service =
        start_cluster(&[("SWITCHBOARD__OPS__UNREADY_NOTICE_MS", UNREADY_NOTICE_MS)]).await;
    let organization =
        Organization::with_agent(&service, Script::counts(10, Duration::from_millis(50))).await;
    let long_words = if minutes.is_some() { 250 } else { 60 };
    let long = Script::counts(long_words, Duration::from_millis(100));
    organization.script_for("long", long.clone());
    let (proxy, _nginx) = start_proxy(&service).await;

    let stop = CancellationToken::new();
    let chats = (0..SHORT_CHATS + LONG_CHATS).map(|number| {
        let question = if number < SHORT_CHATS {
            "hi"
        } else {
            "[[long]] please"
        };
        chat_until(
            &stop,
            organization.client_at(&proxy),
            organization.shop(),
            number,
            question,
        )
    });
    let restarts = async {
        let (began, mut restarts) = (Instant::now(), 0);
        let time = Duration::from_secs(minutes.unwrap_or(0) * 60);
        loop {
            restarts += restart_each(&service).await;
            if began.elapsed() >= time {
                break;
            }
        }
        stop.cancel();
        restarts
    };
    let (messages, restarts) = tokio::join!(join_all(chats), restarts);
    let messages: usize = messages.into_iter().sum();
    let calls = organization.requests().len();
    report(&format!(
        "{restarts} restarts behind nginx: {messages} messages, none failed or cut, {calls} model calls"
    ));
    let is_allowed =
        calls >= messages && calls * 100 <= messages * (100 + REPEATED_CALLS_PERCENT_MAX);
    assert!(is_allowed, "{calls} model calls for {messages} messages");
}

/// Chats in one conversation and asserts that each reply is whole. Returns the number of messages.
async fn chat_until(
    stop: &CancellationToken,
    client: Client,
    agent: &str,
    number: usize,
    question: &str,
) -> usize {
    let mut messages = 0;
    while !stop.is_cancelled() {
        // Short conversations, because their whole history is sent to the model.
        let session = format!("s{number}-{}", messages / 10);
        let reply = client.chat(agent, &session, question).await;
        reply.complete();
        messages += 1;
    }
    messages
}

/// Stops and starts one process after the other; returns their number.
async fn restart_each(service: &TestService) -> usize {
    let processes = service.ops_urls();
    for (name, ops_url) in &processes {
        let ops = Client::new(ops_url);
        // Polls `/readyz` once like a load balancer; otherwise the listener closes at once.
        assert_eq!(ops.get("/readyz").await.status, 200);
        service.with_process(name, |process| process.signal("TERM"));
        service.wait_for_end(name, STOP_PATIENCE).await;
        service.restart(name).await;
    }
    processes.len()
}

/// Starts nginx in front of all ingresses.
async fn start_proxy(service: &TestService) -> (String, Program) {
    let address = format!("127.0.0.1:{}", free_port());
    // nginx must keep trying a server that refused connections while it restarted.
    let servers: String = service
        .public_urls()
        .iter()
        .map(|url| format!("server {} max_fails=0;", url.trim_start_matches("http://")))
        .collect();
    let blocks = format!(
        "upstream service {{ {servers} }}
         server {{ listen {address}; location / {{ proxy_pass http://service; proxy_http_version 1.1; }} }}"
    );
    let url = format!("http://{address}");
    let nginx = start_nginx(&blocks, &url).await;
    (url, nginx)
}

#[tokio::test]
async fn process_ends_at_start_without_the_tables_of_its_version() {
    let service = start_cluster(&[]).await;
    let never_migrated = unique("never");
    let variables = [("SWITCHBOARD__NAMESPACE", never_migrated.as_str())];
    let (status, log) = service.command_with(&["serve", "--role", "inference"], &variables);
    assert!(!status.success(), "{log}");
    assert!(log.contains("run `switchboard migrate`"), "{log}");
}
