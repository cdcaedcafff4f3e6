//! Conformance tests of [`super::ProductStore`], run on both backends.

use std::sync::Arc;

use futures::future::join_all;
use switchboard_schemas::{
    agent::Product,
    catalog_product::CatalogProduct,
    ids::{AgentId, OrgId},
    secret::InstallationSecret,
    time::Timestamp,
};

use super::{
    FeedRefresh, PREVIOUS_VERSIONS_MAX, ProductSource, ProductStore, ProductsStatus,
    ProductsVersion, PublishedProducts, UPLOAD_TIME_MAX,
    embedded::EmbeddedProducts,
    feed::FeedReport,
    reader::{products_of, read_chunks},
    replacement::ReplacementConsent,
    writer::ProductsWriter,
};

struct Subject {
    products: Arc<dyn ProductStore>,
    org: OrgId,
    agent: AgentId,
    _directory: Option<tempfile::TempDir>,
}

conformance_tests! {
    agent_without_products_has_an_empty_status,
    version_is_invisible_until_published_as_a_whole,
    oldest_version_is_gone_after_five_newer_replacements,
    previous_version_is_restored_and_restoring_is_undone,
    older_version_is_restored_by_its_name,
    discarded_version_leaves_the_current_one,
    publish_deletes_abandoned_uploads_but_not_active_ones,
    one_of_concurrent_publishes_wins_as_a_whole,
    removal_deletes_all_products_and_allows_new_ones,
    feed_refresh_is_recorded_beside_the_products,
    products_are_invisible_to_others,
    product_store_check_succeeds,
}

fn embedded_subject() -> Subject {
    let directory = tempfile::tempdir().unwrap();
    let products = Arc::new(EmbeddedProducts::open(&directory.path().join("products.db")).unwrap());
    subject(products, Some(directory))
}

#[cfg(feature = "real-services")]
async fn scylla_subject() -> Subject {
    let link = crate::scylla_link::testing::link().await;
    subject(Arc::new(super::scylla::ScyllaProducts::connect(link)), None)
}

/// Creates a subject with unique ids, so that tests do not share data.
fn subject(products: Arc<dyn ProductStore>, directory: Option<tempfile::TempDir>) -> Subject {
    let secret = InstallationSecret::from_bytes(rand::random());
    let org = OrgId::derive(&secret, "acme");
    let agent = AgentId::derive(&secret, &org, "shop");
    Subject {
        products,
        org,
        agent,
        _directory: directory,
    }
}

fn product(title: &str) -> CatalogProduct {
    let product = Product {
        title: title.into(),
        price: "9.50 EUR".into(),
        image: String::new(),
        url: String::new(),
    };
    CatalogProduct {
        attributes: [("colour".to_owned(), "réd".to_owned())].into(),
        ..product.into()
    }
}

impl Subject {
    async fn writer(&self) -> ProductsWriter {
        ProductsWriter::begin(self.products.clone(), self.org.clone(), self.agent.clone())
            .await
            .unwrap()
    }

    /// Publishes `count` products whose titles begin with `name`.
    async fn publish(&self, name: &str, count: usize) -> PublishedProducts {
        let mut writer = self.writer().await;
        for number in 0..count {
            writer
                .push(&product(&format!("{name} {number}")))
                .await
                .unwrap();
        }
        writer
            .publish(ProductSource::Upload, FeedReport::default())
            .await
            .unwrap()
    }

    async fn status(&self) -> ProductsStatus {
        self.products
            .read_status(&self.org, &self.agent)
            .await
            .unwrap()
    }

    /// Returns the products of a version, or `None` if it is gone.
    async fn read(&self, kept: &PublishedProducts) -> Option<Vec<CatalogProduct>> {
        let chunks = read_chunks(self.products.as_ref(), (&self.org, &self.agent), kept)
            .await
            .unwrap()?;
        Some(
            chunks
                .iter()
                .flat_map(|chunk| products_of(chunk))
                .map(Result::unwrap)
                .collect(),
        )
    }

    async fn titles(&self, kept: &PublishedProducts) -> Option<Vec<String>> {
        Some(
            self.read(kept)
                .await?
                .into_iter()
                .map(|product| product.product.title)
                .collect(),
        )
    }

    async fn chunk(&self, version: &ProductsVersion) -> Option<Vec<u8>> {
        self.products
            .read_chunk(&self.org, &self.agent, version, 0)
            .await
            .unwrap()
    }
}

async fn agent_without_products_has_an_empty_status(subject: Subject) {
    assert_eq!(subject.status().await, ProductsStatus::default());
    assert_eq!(subject.chunk(&ProductsVersion::begin()).await, None);
}

async fn version_is_invisible_until_published_as_a_whole(subject: Subject) {
    let mut writer = subject.writer().await;
    // More than one chunk.
    for number in 0..6000 {
        writer
            .push(&product(&format!("Product {number} {}", "x".repeat(40))))
            .await
            .unwrap();
    }
    assert_eq!(subject.status().await, ProductsStatus::default());
    let mut report = FeedReport::default();
    report.rejected.add(7, "no title".into());
    report.warnings.add(8, "its link was left out".into());
    let kept = writer
        .publish(
            ProductSource::Feed {
                url: "https://shop.example".into(),
            },
            report,
        )
        .await
        .unwrap();
    assert_eq!(
        subject.status().await,
        ProductsStatus {
            kept: Some(kept.clone()),
            refresh: None,
            asked_at: None
        }
    );
    assert!(kept.chunks > 1 && kept.count == 6000, "{kept:?}");
    let read = subject.read(&kept).await.unwrap();
    assert_eq!(read.len(), 6000);
    assert_eq!(
        read[5999],
        product(&format!("Product 5999 {}", "x".repeat(40)))
    );
}

async fn oldest_version_is_gone_after_five_newer_replacements(subject: Subject) {
    let mut published = Vec::new();
    for number in 0..=PREVIOUS_VERSIONS_MAX + 1 {
        published.push(subject.publish(&format!("version {number}"), 1).await);
    }
    let oldest = published.remove(0);
    assert_eq!(subject.titles(&oldest).await, None);
    let kept = subject.status().await.kept.unwrap();
    let versions: Vec<_> = kept.versions().map(|kept| &kept.version).collect();
    let newest_first: Vec<_> = published.iter().rev().map(|it| &it.version).collect();
    assert_eq!(versions, newest_first);
    for (number, kept) in published.iter().enumerate() {
        let title = format!("version {} 0", number + 1);
        assert_eq!(subject.titles(kept).await.unwrap(), [title]);
    }
}

async fn older_version_is_restored_by_its_name(subject: Subject) {
    let mut published = Vec::new();
    for number in 0..4 {
        published.push(subject.publish(&format!("version {number}"), 1).await);
    }
    let restore = async |version: &ProductsVersion| {
        let (org, agent) = (&subject.org, &subject.agent);
        let restored = subject.products.restore_version(org, agent, Some(version));
        restored.await.unwrap()
    };
    let restored = restore(&published[1].version).await.unwrap();
    let versions: Vec<_> = restored.versions().map(|kept| &kept.version).collect();
    assert_eq!(
        versions,
        [1, 3, 2, 0].map(|number| &published[number].version)
    );
    for kept in &published {
        assert!(subject.titles(kept).await.is_some());
    }
    assert_eq!(restore(&ProductsVersion::begin()).await, None);
}

async fn previous_version_is_restored_and_restoring_is_undone(subject: Subject) {
    let restore = async || {
        let products = &subject.products;
        products
            .restore_version(&subject.org, &subject.agent, None)
            .await
            .unwrap()
    };
    assert_eq!(restore().await, None);
    let good = subject.publish("good", 2).await;
    assert_eq!(restore().await, None);
    let bad = subject.publish("bad", 1).await;
    for (current, previous) in [(&good, &bad), (&bad, &good)] {
        let restored = restore().await.unwrap();
        assert_eq!(restored.version, current.version);
        assert_eq!(
            restored.previous.as_ref().unwrap().version,
            previous.version
        );
        assert_eq!(subject.status().await.kept, Some(restored));
        for version in [current, previous] {
            assert!(subject.titles(version).await.is_some());
        }
    }
    subject
        .products
        .remove_products(&subject.org, &subject.agent)
        .await
        .unwrap();
    assert_eq!((restore().await, subject.titles(&good).await), (None, None));
}

async fn discarded_version_leaves_the_current_one(subject: Subject) {
    let current = subject.publish("current", 1).await;
    let mut writer = subject.writer().await;
    writer.push(&product("given up")).await.unwrap();
    writer.discard().await;
    assert_eq!(subject.status().await.kept.as_ref(), Some(&current));
    assert_eq!(subject.titles(&current).await.unwrap(), ["current 0"]);
}

async fn publish_deletes_abandoned_uploads_but_not_active_ones(subject: Subject) {
    let long_ago = Timestamp::from_micros(
        Timestamp::now().micros() - UPLOAD_TIME_MAX.as_micros() as i64 - 1_000_000,
    );
    let (dead, living) = (
        ProductsVersion::begun_at(long_ago),
        ProductsVersion::begin(),
    );
    for version in [&dead, &living] {
        subject
            .products
            .begin_version(&subject.org, &subject.agent, version)
            .await
            .unwrap();
        subject
            .products
            .put_chunk(&subject.org, &subject.agent, version, 0, "{}".into())
            .await
            .unwrap();
    }
    let kept = subject.publish("new", 1).await;
    assert_eq!(subject.chunk(&dead).await, None);
    assert!(subject.chunk(&living).await.is_some());
    subject
        .products
        .discard_version(&subject.org, &subject.agent, &living)
        .await
        .unwrap();
    assert_eq!(subject.chunk(&living).await, None);
    assert_eq!(subject.titles(&kept).await.unwrap(), ["new 0"]);
}

async fn one_of_concurrent_publishes_wins_as_a_whole(subject: Subject) {
    for round in 0..5 {
        let names: Vec<String> = (0..4)
            .map(|writer| format!("{round} by {writer}"))
            .collect();
        join_all(names.iter().map(|name| subject.publish(name, 3))).await;
        let kept = subject.status().await.kept.unwrap();
        let titles = subject.titles(&kept).await.unwrap();
        let name = titles[0].strip_suffix(" 0").unwrap();
        assert!(names.contains(&name.to_owned()));
        assert_eq!(
            titles,
            [
                format!("{name} 0"),
                format!("{name} 1"),
                format!("{name} 2")
            ]
        );
    }
}

async fn removal_deletes_all_products_and_allows_new_ones(subject: Subject) {
    for round in 0..3 {
        let kept = subject.publish(&format!("round {round}"), 1).await;
        subject
            .products
            .record_refresh(&subject.org, &subject.agent, &refresh("away"))
            .await
            .unwrap();
        subject
            .products
            .request_refresh(&subject.org, &subject.agent, Timestamp::now())
            .await
            .unwrap();
        assert!(subject.status().await.kept.is_some());
        subject
            .products
            .remove_products(&subject.org, &subject.agent)
            .await
            .unwrap();
        assert_eq!(subject.status().await, ProductsStatus::default());
        assert_eq!(subject.titles(&kept).await, None);
        subject
            .products
            .remove_products(&subject.org, &subject.agent)
            .await
            .unwrap();
    }
}

async fn feed_refresh_is_recorded_beside_the_products(subject: Subject) {
    let kept = subject.publish("feed", 1).await;
    let asked_at = Timestamp::from_micros(1_700_000_000_000_000);
    for error in ["away", "still away"] {
        subject
            .products
            .record_refresh(&subject.org, &subject.agent, &refresh(error))
            .await
            .unwrap();
        subject
            .products
            .request_refresh(&subject.org, &subject.agent, asked_at)
            .await
            .unwrap();
        let expected = ProductsStatus {
            kept: Some(kept.clone()),
            refresh: Some(refresh(error)),
            asked_at: Some(asked_at),
        };
        assert_eq!(subject.status().await, expected);
    }
    assert_eq!(subject.titles(&kept).await.unwrap(), ["feed 0"]);
}

async fn products_are_invisible_to_others(subject: Subject) {
    let kept = subject.publish("ours", 1).await;
    let secret = InstallationSecret::from_bytes(rand::random());
    let other_org = OrgId::derive(&secret, "other");
    let other_agent = AgentId::derive(&secret, &subject.org, "other");
    for (org, agent) in [(&other_org, &subject.agent), (&subject.org, &other_agent)] {
        assert_eq!(
            subject.products.read_status(org, agent).await.unwrap(),
            ProductsStatus::default()
        );
        assert_eq!(
            subject
                .products
                .read_chunk(org, agent, &kept.version, 0)
                .await
                .unwrap(),
            None
        );
        subject.products.remove_products(org, agent).await.unwrap();
        subject
            .products
            .discard_version(org, agent, &kept.version)
            .await
            .unwrap();
    }
    assert_eq!(subject.titles(&kept).await.unwrap(), ["ours 0"]);
}

async fn product_store_check_succeeds(subject: Subject) {
    subject.products.check().await.unwrap();
}

fn refresh(error: &str) -> FeedRefresh {
    FeedRefresh {
        url: "https://shop.example/feed.csv".into(),
        attempted_at: Timestamp::from_micros(5),
        ended_at: Some(Timestamp::from_micros(6)),
        succeeded_at: Some(Timestamp::from_micros(4)),
        error: Some(error.into()),
        etag: Some("\"a\"".into()),
        last_modified: None,
        consent: ReplacementConsent::Needed,
    }
}
