//! Tests of searches in stored products, their updates and their isolation.

use super::*;

/// A shop with stored products.
struct World {
    products: Arc<dyn ProductStore>,
    search: ProductSearch,
    agent: Agent,
    _directory: tempfile::TempDir,
}

impl World {
    fn new(index_bytes_max: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let products: Arc<dyn ProductStore> =
            Arc::new(EmbeddedProducts::open(&directory.path().join("products.db")).unwrap());
        let search = ProductSearch::new(products.clone(), index_bytes_max);
        Self {
            products,
            search,
            agent: agent("acme", "shop"),
            _directory: directory,
        }
    }

    async fn keep(&self, titles: &[&str]) {
        let (org, agent) = (self.agent.org_id.clone(), self.agent.id.clone());
        let mut writer = ProductsWriter::begin(self.products.clone(), org, agent)
            .await
            .unwrap();
        for title in titles {
            writer.push(&product(title, "1", "", &[])).await.unwrap();
        }
        writer
            .publish(ProductSource::Upload, FeedReport::default())
            .await
            .unwrap();
    }

    async fn titles(&self, agent: &Agent) -> Vec<String> {
        let found = self.search.search(agent, &query("")).await.unwrap();
        titles(&found).into_iter().map(str::to_owned).collect()
    }

    async fn eventually(&self, expected: &[&str]) {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(2);
        while self.titles(&self.agent).await != expected {
            assert!(std::time::Instant::now() < deadline, "not live within 2 s");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
}

fn agent(org: &str, slug: &str) -> Agent {
    let secret = InstallationSecret::from_bytes([7; 32]);
    let org_id = OrgId::derive(&secret, org);
    Agent {
        id: AgentId::derive(&secret, &org_id, slug),
        org_id,
        slug: slug.into(),
        name: slug.into(),
        provider: None,
        fallback_provider: None,
        settings: AgentSettings::default(),
    }
}

#[tokio::test]
async fn changed_products_are_found_within_two_seconds() {
    let world = World::new(INDEX_BYTES_MAX);
    assert!(world.titles(&world.agent).await.is_empty());
    world.keep(&["Tea", "Cup"]).await;
    world.eventually(&["Tea", "Cup"]).await;
    world.keep(&["Coffee"]).await;
    world.eventually(&["Coffee"]).await;
    world
        .products
        .remove_products(&world.agent.org_id, &world.agent.id)
        .await
        .unwrap();
    world.eventually(&[]).await;
}

#[tokio::test]
async fn products_of_the_agent_document_rank_first() {
    let world = World::new(INDEX_BYTES_MAX);
    world.keep(&["Tea"]).await;
    let mut agent = world.agent.clone();
    for title in ["Cup", "Pot"] {
        let named = product(title, "1", "", &[]).product;
        agent.settings.ecommerce = EcommerceSettings {
            products: vec![named],
            ..EcommerceSettings::default()
        };
        assert_eq!(world.titles(&agent).await, [title, "Tea"]);
    }
}

#[tokio::test]
async fn products_are_invisible_to_other_agents_and_organizations() {
    let world = World::new(INDEX_BYTES_MAX);
    world.keep(&["Tea"]).await;
    assert_eq!(world.titles(&world.agent).await, ["Tea"]);
    for (org, slug) in [("acme", "other"), ("other", "shop")] {
        assert!(world.titles(&agent(org, slug)).await.is_empty());
    }
}

#[tokio::test]
async fn evicted_index_is_rebuilt() {
    let world = World::new(1);
    world.keep(&["Tea"]).await;
    for _ in 0..3 {
        assert_eq!(world.titles(&world.agent).await, ["Tea"]);
    }
}

#[tokio::test]
async fn index_build_continues_after_its_caller_gave_up() {
    let world = World::new(INDEX_BYTES_MAX);
    let many: Vec<String> = (0..2_000)
        .map(|number| format!("Tea number {number}"))
        .collect();
    world
        .keep(&many.iter().map(String::as_str).collect::<Vec<_>>())
        .await;
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let asked = query("tea");
    // Less time than building an index of this size takes, and enough for a search of it.
    let patience = std::time::Duration::from_millis(20);
    while tokio::time::timeout(patience, world.search.search(&world.agent, &asked))
        .await
        .is_err()
    {
        assert!(
            std::time::Instant::now() < deadline,
            "each caller restarts the build"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_searches_share_one_index() {
    let world = World::new(INDEX_BYTES_MAX);
    world.keep(&["Tea", "Tea cup"]).await;
    let asked = query("tea");
    let searches = (0..50).map(|_| world.search.search(&world.agent, &asked));
    for found in futures::future::join_all(searches).await {
        assert_eq!(found.unwrap().total, 2);
    }
}
