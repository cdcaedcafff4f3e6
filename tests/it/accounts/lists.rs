//! Lists of large resources, and what they cost other organizations.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use futures::{StreamExt, future::join_all, stream};
use serde_json::json;

use super::Person;
use crate::support::{Organization, Script, TestService, report};

const AGENTS: usize = 300;
const INSTRUCTIONS_BYTES: usize = 200_000;
const VIEWERS: usize = 8;
const CHATS: usize = 21;
/// Viewers take processor time, whatever they read. Lists that decoded instructions slowed chats
/// 30-fold.
const SLOWDOWN_MAX: u32 = 5;
/// Difference of medians that other load of the machine explains.
const MEDIAN_MARGIN: Duration = Duration::from_millis(100);

/// Adds agents with long instructions to an organization.
async fn add_large_agents(service: &TestService, organization: &Organization) {
    let path = organization.admin_path("/agents");
    let admin = service.admin();
    let agents = (0..AGENTS).map(|number| {
        let instructions = "x".repeat(INSTRUCTIONS_BYTES);
        let slug = format!("large-{number}");
        let agent = json!({"slug": slug, "name": "Large", "instructions": instructions});
        let (admin, path) = (&admin, &path);
        async move { admin.post(path, &agent).await.assert_status(201) }
    });
    stream::iter(agents)
        .buffer_unordered(4)
        .collect::<Vec<()>>()
        .await;
}

/// Sends chats one after the other and returns the median and the longest duration.
async fn chat_times(organization: &Organization, name: &str) -> (Duration, Duration) {
    let client = organization.client();
    let mut times = Vec::new();
    for number in 0..CHATS {
        let began = Instant::now();
        let session = format!("{name}-{number}");
        let reply = client.chat(organization.shop(), &session, "hi").await;
        assert_eq!(reply.complete(), "Quick.");
        times.push(began.elapsed());
    }
    times.sort_unstable();
    (times[CHATS / 2], times[CHATS - 1])
}

/// Returns the durations of chats while each viewer reads the list at `path` again and again.
async fn chat_times_beside(
    viewers: &[Person],
    path: &str,
    other: &Organization,
    name: &str,
) -> (Duration, Duration) {
    let is_over = AtomicBool::new(false);
    let lists = join_all(viewers.iter().map(async |viewer| {
        let mut times = Vec::new();
        while !is_over.load(Ordering::Relaxed) {
            let began = Instant::now();
            let answer = viewer.browser.get(path).await;
            // The limit of a person may be reached on a fast machine.
            assert!(matches!(answer.status, 200 | 429), "{}", answer.text);
            times.push(began.elapsed());
        }
        times
    }));
    let chats = async {
        let times = chat_times(other, name).await;
        is_over.store(true, Ordering::Relaxed);
        times
    };
    let (lists, chats) = tokio::join!(lists, chats);
    let mut lists = lists.concat();
    lists.sort_unstable();
    let median = lists.get(lists.len() / 2).copied().unwrap_or_default();
    let longest = lists.last().copied().unwrap_or_default();
    report(&format!(
        "{name}: chat {:?}, longest {:?}; {} lists, median {median:?}, longest {longest:?}",
        chats.0,
        chats.1,
        lists.len(),
    ));
    chats
}

#[tokio::test]
async fn viewer_of_large_agents_does_not_delay_others() {
    let service = TestService::start_with(&[]).await;
    let busy = Organization::with_agent(&service, Script::says("Busy.")).await;
    let other = Organization::with_agent(&service, Script::says("Quick.")).await;
    let viewers = join_all((0..VIEWERS).map(|_| Person::new(&service, &busy, "viewer"))).await;
    chat_times(&other, "warm").await;
    chat_times_beside(&[], "", &other, "alone").await;
    let path = busy.admin_path("/agents?limit=1");
    let small = chat_times_beside(&viewers, &path, &other, "one-agent").await;
    add_large_agents(&service, &busy).await;
    let large = chat_times_beside(&viewers, &path, &other, "large-agents").await;
    let limit = SLOWDOWN_MAX * small.0 + MEDIAN_MARGIN;
    assert!(
        large.0 < limit,
        "{:?}, and {:?} with one agent",
        large.0,
        small.0
    );
}
