//! Tests of the scheduler with several processes, changes and hanging feeds.

use super::*;

#[tokio::test]
async fn due_and_requested_feeds_are_fetched_by_one_process() {
    let world = World::new().await;
    world.script.then(|| CSV.into_response());
    let shutdown = CancellationToken::new();
    let mut processes = JoinSet::new();
    for _ in 0..4 {
        let (feeds, shutdown) = (world.feeds(), shutdown.clone());
        processes.spawn(feeds.run(shutdown));
    }
    for round in 1..=3 {
        let deadline = Instant::now() + PATIENCE;
        let mut last = None;
        while last.is_none() || world.script.request_count() < round {
            assert!(Instant::now() < deadline, "round {round} was not fetched");
            tokio::time::sleep(Duration::from_millis(5)).await;
            last = world.status().await.refresh;
        }
        // Long enough for several scans of every process.
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(world.script.request_count(), round);
        let (org, agent) = (&world.agent.org_id, &world.agent.id);
        world
            .backends
            .products
            .request_refresh(org, agent, Timestamp::now())
            .await
            .unwrap();
    }
    shutdown.cancel();
    while let Some(ended) = processes.join_next().await {
        ended.unwrap();
    }
}

#[tokio::test]
async fn feed_removed_during_its_fetch_replaces_nothing() {
    let world = World::new().await;
    world.script.then(|| CSV.into_response());
    let changed = agent("https://elsewhere.example/");
    world.configure(&changed).await;
    let status = world.refresh().await;
    assert_eq!((status.kept, status.refresh), (None, None));
    assert!(
        status.asked_at.is_some(),
        "the current feed is fetched next"
    );
    assert_eq!(world.script.request_count(), 1);
    let without = Agent {
        settings: AgentSettings::default(),
        ..changed
    };
    let world = World::new().await;
    world.script.then(|| CSV.into_response());
    world.configure(&without).await;
    assert_eq!(world.refresh().await, ProductsStatus::default());
}

/// Runs the scheduler until `is_done`.
async fn schedule_until(world: &World, what: &str, is_done: impl AsyncFn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    let feeds = world.feeds();
    let waiting = async {
        while !is_done().await {
            assert!(Instant::now() < deadline, "{what}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        () = feeds.run(CancellationToken::new()) => {}
        () = waiting => {}
    }
}

#[tokio::test]
async fn hanging_feeds_do_not_starve_other_feeds() {
    let mut world = World::new().await;
    (world.config.feed_timeout_ms, world.config.feeds_at_once_max) = (100, 2);
    world.script.then(|| CSV.into_response());
    // The server accepts connections and never responds.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hanging = format!("http://{}/", silent.local_addr().unwrap());
    let mut agents: Vec<Agent> = ["shop", "a", "b", "c", "d"]
        .iter()
        .map(|slug| agent_named(slug, &hanging))
        .collect();
    agents.sort_by(|left, right| left.id.as_str().cmp(right.id.as_str()));
    let last = agents.pop().unwrap();
    world.agent = agent_named(&last.slug, &world.url());
    for agent in agents.iter().chain([&world.agent]) {
        world.configure(agent).await;
    }
    schedule_until(&world, "the good feed is never fetched", async || {
        for agent in &agents {
            world
                .backends
                .products
                .request_refresh(&agent.org_id, &agent.id, Timestamp::now())
                .await
                .unwrap();
        }
        world.status().await.kept.is_some()
    })
    .await;
}

#[tokio::test]
async fn changed_feed_url_is_fetched_each_time() {
    let world = World::new().await;
    world.script.then(|| CSV.into_response());
    let other = world.url().replace("feed.csv", "other.csv");
    for url in [world.url(), other.clone(), world.url(), other] {
        world.configure(&agent(&url)).await;
        schedule_until(&world, &format!("{url} is not fetched"), async || {
            world
                .status()
                .await
                .refresh
                .is_some_and(|refresh| refresh.url == url)
        })
        .await;
    }
}

#[tokio::test]
async fn requested_fetch_does_not_wait_for_the_next_scan() {
    let mut world = World::new().await;
    world.config.feed_scan_ms = 3_600_000;
    world.script.then(|| CSV.into_response());
    let asked_again = std::sync::atomic::AtomicBool::new(false);
    schedule_until(&world, "the feed is not fetched", async || {
        let fetched = world.status().await.refresh.is_some();
        if fetched && !asked_again.swap(true, Ordering::SeqCst) {
            let (org, agent) = (&world.agent.org_id, &world.agent.id);
            world
                .backends
                .products
                .request_refresh(org, agent, Timestamp::now())
                .await
                .unwrap();
        }
        world.script.request_count() == 2
    })
    .await;
}
