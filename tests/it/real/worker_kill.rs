//! Workers killed during replies.

use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::json;

use super::start_cluster;
use crate::support::{Organization, OrganizationDocument, Reply, Script, TestService, report};

const KILLS: usize = 10;
const CHATS_PER_KILL: usize = 8;
const WORDS: usize = 80;
const WORD_INTERVAL: Duration = Duration::from_millis(50);
/// Time after which the replies and partitions of a killed worker belong to others.
const MOVED_AFTER: Duration = Duration::from_secs(15);
const NEW_CHAT_BEGINS_WITHIN: Duration = Duration::from_secs(5);
/// Pause that only occurs in replies of a killed worker.
const PAUSE_OF_A_TAKEOVER: Duration = Duration::from_secs(1);

/// One reply during a kill, as the client saw it.
struct Survivor {
    session: String,
    reply: Reply,
    /// Time from the kill to the next byte or the cut, if this reply's worker died.
    waited: Option<Duration>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transfer_continues_after_each_of_ten_worker_kills() {
    let service = start_cluster(&[]).await;
    let script = Script::counts_by_call(WORDS, WORD_INTERVAL).continues_prefix();
    let organization = OrganizationDocument::new()
        .continuing()
        .shop(json!({}))
        .apply(&service)
        .await;
    organization.script(script.clone());
    let mut waits = vec![];
    for round in 0..KILLS {
        let survivors = kill_in_mid_reply(&service, &organization, round).await;
        assert!(
            survivors.iter().any(|survivor| survivor.waited.is_some()),
            "the killed worker was speaking"
        );
        for survivor in survivors {
            let text = survivor.reply.complete();
            assert_eq!(
                text,
                script.text_that_begins(&text),
                "{} is one call's text",
                survivor.session
            );
            assert_stored_once(&organization, &survivor, "completed").await;
            waits.extend(survivor.waited);
        }
    }
    report_waits("from the kill to the next byte", waits);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_cut_visibly_when_the_model_cannot_continue() {
    let service = start_cluster(&[]).await;
    let script = Script::counts_by_call(WORDS, WORD_INTERVAL);
    let organization = Organization::with_agent(&service, script.clone()).await;
    let mut waits = vec![];
    for round in 0..KILLS {
        let survivors = kill_in_mid_reply(&service, &organization, round).await;
        assert!(
            survivors
                .iter()
                .any(|survivor| !survivor.reply.ended_cleanly),
            "the killed worker was speaking"
        );
        for survivor in survivors {
            let text = survivor.reply.text();
            let whole = script.text_that_begins(&text);
            if survivor.reply.ended_cleanly {
                assert_eq!(
                    text, whole,
                    "{}: a clean end means complete",
                    survivor.session
                );
                assert_stored_once(&organization, &survivor, "completed").await;
            } else {
                assert!(whole.starts_with(&text), "{} mixes texts", survivor.session);
                assert_stored_once(&organization, &survivor, "incomplete").await;
                waits.extend(survivor.waited);
            }
        }
    }
    report_waits("from the kill to the visible cut", waits);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_replies_of_a_killed_worker_stop_no_intake() {
    /// About 15 for each of the two workers.
    const CHATS: usize = 30;
    let service = start_cluster(&[("SWITCHBOARD__WORKERS__QUEUED_JOBS_MAX", "20")]).await;
    let script = Script::counts_by_call(600, WORD_INTERVAL).continues_prefix();
    let organization = OrganizationDocument::new()
        .continuing()
        .shop(json!({}))
        .apply(&service)
        .await;
    organization.script(script);
    let client = organization.client();
    let open = (0..CHATS).map(|number| {
        let body = json!({"message": "go", "sessionId": format!("s{number}")});
        let client = client.clone();
        let agent = organization.shop();
        async move { client.open_chat(agent, &body).await }
    });
    let open = join_all(open).await;
    let victim = busiest_worker(&service).await;
    service.with_process(&victim, |process| process.kill());
    // The replies are taken over, and the partitions of the dead worker move.
    tokio::time::sleep(MOVED_AFTER).await;
    let begun = Instant::now();
    let body = json!({"message": "go", "sessionId": "new"});
    let response = client.open_chat(organization.shop(), &body).await;
    assert_eq!(response.status(), 200);
    assert!(
        begun.elapsed() < NEW_CHAT_BEGINS_WITHIN,
        "{:?}",
        begun.elapsed()
    );
    drop(open);
}

/// Opens chats, waits for text in each, kills and restarts the busiest worker, and reads the rest.
async fn kill_in_mid_reply(
    service: &TestService,
    organization: &Organization,
    round: usize,
) -> Vec<Survivor> {
    let urls = service.public_urls();
    let open = (0..CHATS_PER_KILL).map(|number| {
        let client = organization.client_at(&urls[number % urls.len()]);
        let session = format!("r{round}s{number}");
        async move {
            let body = json!({"message": "go", "sessionId": session});
            let mut response = client.open_chat(organization.shop(), &body).await;
            let mut reply = Reply::begin(&response);
            assert_eq!(reply.status, 200, "{session}");
            reply.read_at_least(&mut response, 45).await;
            (session, reply, response)
        }
    });
    let open = join_all(open).await;
    let victim = busiest_worker(service).await;
    service.with_process(&victim, |process| process.kill());
    let killed = Instant::now();
    let reading = join_all(
        open.into_iter()
            .map(|(session, reply, response)| async move {
                let reply = reply.continue_reading(response).await;
                Survivor {
                    waited: waited(&reply, killed, Instant::now()),
                    session,
                    reply,
                }
            }),
    );
    // A supervisor would restart this process at once.
    let (survivors, ()) = tokio::join!(reading, service.restart(&victim));
    survivors
}

/// Returns the time from the kill to the first byte after the pause, or to the end.
fn waited(reply: &Reply, killed: Instant, ended: Instant) -> Option<Duration> {
    let mut before = killed;
    let times = reply
        .chunks
        .iter()
        .map(|(at, _)| *at)
        .filter(|at| *at > killed);
    for at in times.chain([ended]) {
        // Data in flight when the worker died still arrives.
        if at - before > PAUSE_OF_A_TAKEOVER {
            return Some(at - killed);
        }
        before = at;
    }
    None
}

/// Returns the name of the worker with the most running jobs.
pub(super) async fn busiest_worker(service: &TestService) -> String {
    let workers = service
        .metric("switchboard_jobs_in_flight")
        .await
        .into_iter();
    let workers = workers.filter(|(name, _)| name.starts_with("inference"));
    let (busiest, jobs) = workers
        .max_by(|(_, one), (_, other)| one.total_cmp(other))
        .unwrap();
    assert!(jobs > 0.0, "a worker is speaking");
    busiest
}

async fn assert_stored_once(organization: &Organization, survivor: &Survivor, status: &str) {
    let history = organization.settled_history(&survivor.session, 2).await;
    assert_eq!(
        history["totalMessages"], 2,
        "one question, one answer: {history}"
    );
    assert_eq!(
        history["messages"].as_array().unwrap().len(),
        2,
        "{history}"
    );
    let stored = &history["messages"][1];
    assert_eq!(
        (&stored["id"], &stored["status"]),
        (
            &json!(survivor.reply.required_header("x-message-id")),
            &json!(status)
        )
    );
    let content = stored["content"].as_str().unwrap();
    if survivor.reply.ended_cleanly {
        assert_eq!(content, survivor.reply.text(), "a clean end means stored");
    } else {
        assert!(
            content.starts_with(&survivor.reply.text()),
            "what was shown is a prefix of what is stored"
        );
    }
}

fn report_waits(what: &str, mut waits: Vec<Duration>) {
    waits.sort_unstable();
    let (p50, max) = (
        waits[waits.len() / 2].as_secs_f64(),
        waits[waits.len() - 1].as_secs_f64(),
    );
    report(&format!(
        "{KILLS} kills hit {} replies; {what}: p50 {p50:.2} s, max {max:.2} s",
        waits.len()
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_message_is_answered_once_while_workers_die() {
    const MESSAGES: usize = 60;
    const SESSIONS: usize = 20;
    let service = start_cluster(&[]).await;
    let script = Script::counts_by_call(10, Duration::from_millis(30)).continues_prefix();
    let organization = OrganizationDocument::new()
        .continuing()
        .shop(json!({}))
        .apply(&service)
        .await;
    organization.script(script.clone());
    let (client, agent) = (organization.client(), organization.shop());
    let chats = (0..MESSAGES).map(|number| {
        let (client, session) = (client.clone(), format!("s{}", number % SESSIONS));
        async move {
            client
                .chat(agent, &session, &format!("message {number}"))
                .await
        }
    });
    let deaths = async {
        for victim in ["inference-1", "inference-2", "inference-1"] {
            service.restart(victim).await;
        }
    };
    let (replies, ()) = tokio::join!(join_all(chats), deaths);
    for reply in &replies {
        let text = reply.complete();
        assert_eq!(text, script.text_that_begins(&text));
    }
    for session in 0..SESSIONS {
        let history = client
            .settled_history(agent, &format!("s{session}"), 2 * MESSAGES / SESSIONS)
            .await;
        assert_eq!(
            history["totalMessages"],
            2 * MESSAGES / SESSIONS,
            "{history}"
        );
    }
    let calls = organization.requests().len();
    report(&format!(
        "{MESSAGES} messages, 3 kills: all answered once, {calls} model calls"
    ));
}
