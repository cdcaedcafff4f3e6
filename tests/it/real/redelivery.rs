//! Finished jobs that are delivered again: offsets set back to the beginning, and records produced
//! twice.

use std::time::{Duration, Instant};

use futures::{StreamExt as _, stream};
use serde_json::{Value, json};

use super::{kafka::Witness, own_services::OwnRedis, start_cluster};
use crate::support::{Organization, OrganizationDocument, Process, Script, TestService, report};

/// Finished jobs; `SWITCHBOARD_TEST_FINISHED_JOBS` sets another number.
const DEFAULT_JOBS: usize = 300;
const MESSAGES_PER_CONVERSATION: usize = 10;
const CONCURRENT_CHATS: usize = 50;
/// Slowest rate at which finished jobs are skipped, even on a slow machine.
const SKIPPED_PER_SECOND_MIN: u64 = 30;
/// Time until workers have joined their groups again.
const JOIN_TIME: Duration = Duration::from_secs(30);

/// State that a second delivery of finished jobs must not change.
#[derive(Debug, PartialEq)]
struct FinishedWork {
    conversations: Vec<Value>,
    model_calls: usize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn finished_jobs_are_skipped_with_and_without_redis_data() {
    let jobs = std::env::var("SWITCHBOARD_TEST_FINISHED_JOBS");
    let jobs = jobs.map_or(DEFAULT_JOBS, |jobs| jobs.parse().unwrap());
    let redis = OwnRedis::start();
    let service = start_cluster(&[("SWITCHBOARD__REDIS__URL", &redis.url())]).await;
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .team(
            "front",
            json!({"routing": "round-robin", "members": [{"agent": "shop"}]}),
        )
        .apply(&service)
        .await;
    organization.script(Script::says("done"));
    finish_jobs(&organization, &service.public_urls(), jobs).await;
    let limit = JOIN_TIME + Duration::from_secs(jobs as u64 / SKIPPED_PER_SECOND_MIN);
    let witness = Witness::at_shared();
    assert_all_committed(&witness, &service, limit).await;
    let before = finished_work(&service, &organization).await;
    let assert_skipped = async |delivery: &str, began: Instant| {
        assert_all_committed(&witness, &service, limit).await;
        let seconds = began.elapsed().as_secs_f64();
        report(&format!(
            "{jobs} finished jobs {delivery}: skipped in {seconds:.1} s"
        ));
        assert_eq!(finished_work(&service, &organization).await, before);
    };

    let began = Instant::now();
    let repeated = witness.repeat_jobs(&service).await;
    assert!(repeated >= jobs, "only {repeated} records of {jobs} jobs");
    assert_skipped("produced twice", began).await;

    stop_workers(&service);
    witness.reset_offsets(&service, JOIN_TIME).await;
    let began = Instant::now();
    start_workers(&service).await;
    assert_skipped("read again", began).await;

    stop_workers(&service);
    redis.kill();
    redis.restart();
    witness.reset_offsets(&service, JOIN_TIME).await;
    let began = Instant::now();
    start_workers(&service).await;
    assert_skipped("read again without the data of Redis", began).await;
}

/// Sends messages to an agent and to a team, so that every topic has jobs, and reads the replies.
async fn finish_jobs(organization: &Organization, urls: &[String], jobs: usize) {
    let conversations = (0..jobs / MESSAGES_PER_CONVERSATION).map(|number| {
        let client = organization.client_at(&urls[number % urls.len()]);
        let path = if number % 2 == 0 {
            organization.team_path()
        } else {
            organization.path("/chat")
        };
        async move {
            for turn in 0..MESSAGES_PER_CONVERSATION {
                let body =
                    json!({"message": format!("turn {turn}"), "sessionId": format!("s{number}")});
                let answer = client.post(&path, &body).await;
                assert_eq!((answer.status, answer.text.as_str()), (200, "done"));
            }
        }
    });
    let running = stream::iter(conversations).buffer_unordered(CONCURRENT_CHATS);
    running.collect::<Vec<()>>().await;
}

async fn finished_work(service: &TestService, organization: &Organization) -> FinishedWork {
    let conversations = organization.conversations(&service.admin()).await;
    FinishedWork {
        conversations: conversations.unwrap(),
        model_calls: organization.requests().len(),
    }
}

async fn assert_all_committed(witness: &Witness, service: &TestService, limit: Duration) {
    let open = witness.uncommitted_after(service, limit).await;
    assert!(open.is_empty(), "{open:?}");
}

fn workers(service: &TestService) -> Vec<String> {
    [
        service.process_names("routing"),
        service.process_names("inference"),
    ]
    .concat()
}

fn stop_workers(service: &TestService) {
    for name in workers(service) {
        service.with_process(&name, Process::kill);
    }
}

async fn start_workers(service: &TestService) {
    for name in workers(service) {
        service.restart(&name).await;
    }
}
