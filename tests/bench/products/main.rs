//! The benchmark of `make bench-products`: the time of product searches in the largest catalog of
//! an agent, with the index of the workers. It asserts nothing, because results of a shared machine
//! vary.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement stops where it fails and prints its figures"
)]

mod shop;

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;
use switchboard_backends::products::{
    ProductSource, ProductStore, embedded::EmbeddedProducts, feed::FeedReport,
    writer::ProductsWriter,
};
use switchboard_schemas::{
    agent::{Agent, AgentSettings},
    ids::{AgentId, OrgId},
    secret::InstallationSecret,
};
use switchboard_workers::products::{FoundProduct, PriceLimits, ProductQuery, ProductSearch};

use crate::shop::Shop;

/// Number of products of the agent.
const PRODUCTS: usize = 50_000;
/// Number of queries of each kind.
const QUERIES: usize = 2_000;
/// Number of products that each query requests.
const LIMIT: usize = 10;
/// Longest measured time.
const LONGEST_MICROS: u64 = 60_000_000;
/// Memory for indexes, more than one index takes.
const INDEX_BYTES_MAX: u64 = 1 << 30;

fn main() {
    // `cargo test --all-targets` runs benches too, with this argument missing.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(measure());
}

async fn measure() {
    let directory = tempfile::tempdir().unwrap();
    let products: Arc<dyn ProductStore> =
        Arc::new(EmbeddedProducts::open(&directory.path().join("products.db")).unwrap());
    let (mut shop, agent) = (Shop::new(), agent());
    let begun = Instant::now();
    let mut writer =
        ProductsWriter::begin(products.clone(), agent.org_id.clone(), agent.id.clone())
            .await
            .unwrap();
    for _ in 0..PRODUCTS {
        writer.push(&shop.product()).await.unwrap();
    }
    let kept = writer
        .publish(ProductSource::Upload, FeedReport::default())
        .await
        .unwrap();
    println!(
        "{PRODUCTS} products, {:.1} MB, kept in {:.2} s",
        megabytes(kept.bytes),
        begun.elapsed().as_secs_f64()
    );
    let search = ProductSearch::new(products, INDEX_BYTES_MAX);
    let begun = Instant::now();
    search
        .search(&agent, &ProductQuery::default())
        .await
        .unwrap();
    println!(
        "index made in {:.2} s, {:.1} MB",
        begun.elapsed().as_secs_f64(),
        megabytes(search.index_bytes().await)
    );
    println!(
        "{:<38}{:>9}{:>9}{:>9}{:>9}{:>9}",
        "queries", "p50 ms", "p95 ms", "p99 ms", "max ms", "right"
    );
    for (name, make) in kinds() {
        let queries: Vec<_> = (0..QUERIES).map(|_| make(&mut shop)).collect();
        report(name, &search, &agent, &queries).await;
    }
}

/// Creates a query and the words of the title that it should find first.
type MakeQuery = fn(&mut Shop) -> (ProductQuery, Vec<String>);

fn kinds() -> [(&'static str, MakeQuery); 11] {
    [
        ("one word", |shop| plain(shop.words(1))),
        ("two words", |shop| plain(shop.words(2))),
        ("three words", |shop| plain(shop.words(3))),
        ("three words, one misspelt", |shop| misspelt(shop, 1)),
        ("three words, all misspelt", |shop| misspelt(shop, 3)),
        ("one word, price and attribute", |shop| {
            let words = shop.words(2);
            (filtered(words[0].clone(), words[1].clone()), words)
        }),
        ("a word that every product has, price", |_| {
            (
                ProductQuery {
                    prices: PriceLimits::up_to(150.0),
                    ..query("quality".into())
                },
                Vec::new(),
            )
        }),
        ("a sentence around three words", |shop| {
            let words = shop.words(3);
            (
                query(format!(
                    "please show me {} under my budget",
                    words.join(" ")
                )),
                words,
            )
        }),
        ("seven words, price and attribute", |shop| {
            let words = shop.words(4);
            let text = format!(
                "{} {} good quality",
                words.join(" "),
                shop.description_word()
            );
            (filtered(text, words[1].clone()), words)
        }),
        ("seven words of two products", |shop| {
            let text = [shop.words(4), shop.words(3)].concat().join(" ");
            (query(text), Vec::new())
        }),
        ("the same, price and attribute", |shop| {
            let text = [shop.words(4), shop.words(3)].concat().join(" ");
            (filtered(text, shop.color()), Vec::new())
        }),
    ]
}

fn plain(words: Vec<String>) -> (ProductQuery, Vec<String>) {
    (query(words.join(" ")), words)
}

fn misspelt(shop: &mut Shop, wrong: usize) -> (ProductQuery, Vec<String>) {
    let words = shop.words(3);
    (query(shop.misspelt(&words, wrong)), words)
}

fn filtered(text: String, color: String) -> ProductQuery {
    let attributes = BTreeMap::from([("color".to_owned(), color)]);
    ProductQuery {
        prices: PriceLimits::up_to(250.0),
        attributes,
        ..query(text)
    }
}

fn query(text: String) -> ProductQuery {
    ProductQuery {
        text,
        limit: LIMIT,
        ..ProductQuery::default()
    }
}

async fn report(
    name: &str,
    search: &ProductSearch,
    agent: &Agent,
    queries: &[(ProductQuery, Vec<String>)],
) {
    let mut times: Histogram<u64> = Histogram::new_with_bounds(1, LONGEST_MICROS, 3).unwrap();
    let mut right = 0;
    for (query, meant) in queries {
        let begun = Instant::now();
        let found = search.search(agent, query).await.unwrap();
        times.saturating_record(micros(begun.elapsed()));
        let is_right =
            |found: &FoundProduct| meant.iter().all(|word| found.product.title.contains(word));
        right += usize::from(found.products.first().is_some_and(is_right));
    }
    let at = |quantile: f64| times.value_at_quantile(quantile) as f64 / 1e3;
    let share = right as f64 * 100.0 / queries.len() as f64;
    let (median, p95, p99, max) = (at(0.5), at(0.95), at(0.99), at(1.0));
    println!("{name:<38}{median:>9.2}{p95:>9.2}{p99:>9.2}{max:>9.2}{share:>8.1}%");
}

fn agent() -> Agent {
    let secret = InstallationSecret::from_bytes([7; 32]);
    let org_id = OrgId::derive(&secret, "acme");
    Agent {
        id: AgentId::derive(&secret, &org_id, "shop"),
        org_id,
        slug: "shop".into(),
        name: "Shop".into(),
        provider: None,
        fallback_provider: None,
        settings: AgentSettings::default(),
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
