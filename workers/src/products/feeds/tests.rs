//! Tests of feed fetches from a scripted server and with scripted host lookups.

mod confirmation;
mod scheduling;

use std::{
    collections::VecDeque,
    io,
    net::IpAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use axum::{
    Router,
    body::Body,
    extract::Request,
    response::{IntoResponse, Response},
};
use futures::stream;
use http::{HeaderMap, StatusCode};
use switchboard_backends::{
    Backends,
    accounts::embedded::EmbeddedAccounts,
    bus::embedded::EmbeddedBus,
    catalog::embedded::EmbeddedCatalog,
    limiter::embedded::EmbeddedLimiter,
    organization_eraser::EmbeddedEraser,
    products::{ProductSource, ProductsStatus, embedded::EmbeddedProducts},
    relay::embedded::EmbeddedRelay,
    store::embedded::EmbeddedStore,
};
use switchboard_schemas::{
    agent::{Agent, AgentSettings, EcommerceSettings, FeedFormat, ProductFeed},
    ids::OrgId,
    organization::Organization,
    secret::InstallationSecret,
};
use tokio::net::TcpListener;

use super::*;

const PATIENCE: Duration = Duration::from_secs(60);
const CSV: &str = "title,price\nTea,5\nCup,7\n";

/// Responses of a feed server, the last one repeated, and the received requests.
#[derive(Clone, Default)]
struct Script {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    asked: Arc<Mutex<Vec<(String, HeaderMap)>>>,
}

type Answer = Arc<dyn Fn() -> Response + Send + Sync>;

impl Script {
    fn request_count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    fn then(&self, answer: impl Fn() -> Response + Send + Sync + 'static) {
        self.answers.lock().unwrap().push_back(Arc::new(answer));
    }

    /// Replaces all remaining responses.
    fn says(&self, answer: impl Fn() -> Response + Send + Sync + 'static) {
        *self.answers.lock().unwrap() = VecDeque::from([Arc::new(answer) as Answer]);
    }

    fn answer(&self, request: &Request) -> Response {
        let asked = (request.uri().path().to_owned(), request.headers().clone());
        self.asked.lock().unwrap().push(asked);
        let mut answers = self.answers.lock().unwrap();
        let answer = if answers.len() > 1 {
            answers.pop_front()
        } else {
            answers.front().cloned()
        };
        answer.map_or_else(|| StatusCode::NOT_FOUND.into_response(), |answer| answer())
    }
}

/// A host lookup with scripted answers, the last one repeated.
struct ScriptedLookup {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    asked: AtomicUsize,
}

#[async_trait]
impl HostLookup for ScriptedLookup {
    async fn addresses(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().unwrap();
        Ok(if answers.len() > 1 {
            answers.pop_front()
        } else {
            answers.front().cloned()
        }
        .unwrap_or_default())
    }
}

struct World {
    backends: Backends,
    script: Script,
    lookup: Arc<ScriptedLookup>,
    port: u16,
    config: ProductsConfig,
    agent: Agent,
    _directory: tempfile::TempDir,
    _server: JoinSet<()>,
}

impl World {
    /// A shop whose operator allows feeds from this machine.
    async fn new() -> Self {
        Self::allowing(&["127.0.0.1"]).await
    }

    async fn allowing(networks: &[&str]) -> Self {
        // Another test may have installed it already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let script = Script::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let answers = script.clone();
        let router = Router::new().fallback(async move |request: Request| answers.answer(&request));
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(listener, router).await.unwrap() });
        let directory = tempfile::tempdir().unwrap();
        let lookup = ScriptedLookup {
            answers: Mutex::default(),
            asked: AtomicUsize::new(0),
        };
        let config = ProductsConfig {
            feed_private_networks: networks
                .iter()
                .map(|network| network.parse().unwrap())
                .collect(),
            feed_timeout_ms: 2_000,
            feed_connect_timeout_ms: 500,
            feed_scan_ms: 10,
            bytes_max: 10_000,
            products_max: 100,
            ..ProductsConfig::default()
        };
        let backends = backends(&directory);
        let agent = agent(&format!("http://127.0.0.1:{port}/feed.csv"));
        let world = Self {
            backends,
            script,
            lookup: Arc::new(lookup),
            port,
            config,
            agent,
            _directory: directory,
            _server: server,
        };
        let organization = Organization {
            id: world.agent.org_id.clone(),
            slug: "acme".into(),
            name: "Acme".into(),
        };
        let entry = CatalogEntry::Organization(organization);
        world.backends.catalog.put(&entry).await.unwrap();
        world.configure(&world.agent).await;
        world
    }

    async fn configure(&self, agent: &Agent) {
        self.backends
            .catalog
            .put(&CatalogEntry::Agent(Box::new(agent.clone())))
            .await
            .unwrap();
    }

    fn feeds(&self) -> FeedScheduler {
        let lookup: Arc<dyn HostLookup> = self.lookup.clone();
        FeedScheduler::with_lookup(self.backends.clone(), self.config.clone(), &lookup).unwrap()
    }

    /// Fetches the feed once.
    async fn refresh(&self) -> ProductsStatus {
        self.feeds().refresher.refresh(&self.agent).await;
        self.status().await
    }

    /// Fetches a feed of this URL and returns the recorded error.
    async fn refusal(&mut self, url: &str) -> String {
        self.agent = agent(url);
        self.configure(&self.agent).await;
        let status = self.refresh().await;
        assert_eq!(status.kept, None, "{url}");
        status.refresh.unwrap().error.unwrap()
    }

    async fn status(&self) -> ProductsStatus {
        self.backends
            .products
            .read_status(&self.agent.org_id, &self.agent.id)
            .await
            .unwrap()
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/feed.csv", self.port)
    }

    fn resolves_to(&self, answers: &[&[&str]]) {
        let answers = answers.iter().map(|answer| {
            answer
                .iter()
                .map(|address| address.parse().unwrap())
                .collect()
        });
        *self.lookup.answers.lock().unwrap() = answers.collect();
    }
}

fn backends(directory: &tempfile::TempDir) -> Backends {
    let file = |name: &str| directory.path().join(name);
    let store = Arc::new(EmbeddedStore::open(&file("store.db")).unwrap());
    Backends {
        bus: Arc::new(EmbeddedBus::open(&file("bus.db"), 4).unwrap()),
        relay: Arc::new(EmbeddedRelay::open(None).unwrap()),
        store: store.clone(),
        analytics: store,
        catalog: Arc::new(EmbeddedCatalog::open(&file("catalog.db")).unwrap()),
        products: Arc::new(EmbeddedProducts::open(&file("products.db")).unwrap()),
        limiter: Arc::new(EmbeddedLimiter::new()),
        accounts: Arc::new(EmbeddedAccounts::open(&file("accounts.db")).unwrap()),
        files: Arc::new(switchboard_backends::files::FileStore::in_memory(
            &InstallationSecret::from_bytes([7; 32]),
        )),
        eraser: Arc::new(EmbeddedEraser::default()),
    }
}

fn agent(url: &str) -> Agent {
    agent_named("shop", url)
}

fn agent_named(slug: &str, url: &str) -> Agent {
    let secret = InstallationSecret::from_bytes([7; 32]);
    let org_id = OrgId::derive(&secret, "acme");
    let feed = ProductFeed {
        url: url.into(),
        every_minutes: 60,
        format: FeedFormat::Auto,
    };
    Agent {
        id: AgentId::derive(&secret, &org_id, slug),
        org_id,
        slug: slug.into(),
        name: "Shop".into(),
        provider: None,
        fallback_provider: None,
        settings: AgentSettings {
            ecommerce: EcommerceSettings {
                feed: Some(feed),
                ..EcommerceSettings::default()
            },
            ..AgentSettings::default()
        },
    }
}

#[tokio::test]
async fn fetched_feed_is_stored() {
    let world = World::new().await;
    world.script.then(|| CSV.into_response());
    let status = world.refresh().await;
    let (kept, refresh) = (status.kept.unwrap(), status.refresh.unwrap());
    assert_eq!(
        (kept.count, kept.source),
        (2, ProductSource::Feed { url: world.url() })
    );
    assert_eq!(
        (refresh.error, refresh.succeeded_at),
        (None, Some(refresh.attempted_at))
    );
}

#[tokio::test]
async fn unchanged_feed_is_not_transferred_again() {
    let world = World::new().await;
    world.script.then(|| {
        (
            [
                ("etag", "\"one\""),
                ("last-modified", "Mon, 05 Jan 2026 10:00:00 GMT"),
            ],
            CSV,
        )
            .into_response()
    });
    world
        .script
        .then(|| StatusCode::NOT_MODIFIED.into_response());
    let first = world.refresh().await;
    for _ in 0..2 {
        let next = world.refresh().await;
        assert_eq!(next.kept, first.kept);
        assert_eq!(next.refresh.unwrap().error, None);
    }
    let asked = world.script.asked.lock().unwrap();
    assert!(asked[0].1.get("if-none-match").is_none());
    for (_, headers) in &asked[1..] {
        assert_eq!(headers["if-none-match"], "\"one\"");
        assert_eq!(
            headers["if-modified-since"],
            "Mon, 05 Jan 2026 10:00:00 GMT"
        );
    }
}

#[tokio::test]
async fn failed_fetch_keeps_products_and_records_the_reason() {
    let world = World::new().await;
    world.script.then(|| CSV.into_response());
    let first = world.refresh().await;
    let half = || {
        let pieces = [
            Ok(bytes::Bytes::from_static(b"title\nHalf\n")),
            Err(io::Error::other("gone")),
        ];
        Response::new(Body::from_stream(stream::iter(pieces)))
    };
    world.script.says(half);
    world.refresh().await;
    let failures: [(Answer, &str); 9] = [
        (
            Arc::new(|| StatusCode::INTERNAL_SERVER_ERROR.into_response()),
            "500",
        ),
        (Arc::new(|| "<html>".into_response()), "web page"),
        (Arc::new(|| "".into_response()), "no rows"),
        (
            Arc::new(|| "title\n\"open".into_response()),
            "ends in the middle",
        ),
        (
            Arc::new(|| format!("title\n{}", "A\n".repeat(101)).into_response()),
            "more than 100 products",
        ),
        (
            Arc::new(|| format!("title\n{}", "A".repeat(20_000)).into_response()),
            "more than 10000 bytes",
        ),
        (
            Arc::new(|| ([("content-encoding", "gzip")], "x").into_response()),
            "compressed",
        ),
        (Arc::new(|| b"\x1f\x8b\x08\0\0".into_response()), "gzip"),
        (
            Arc::new(|| {
                Response::new(Body::from_stream(
                    stream::pending::<io::Result<bytes::Bytes>>(),
                ))
            }),
            "in time",
        ),
    ];
    for (answer, expected) in failures {
        world.script.says(move || answer());
        let status = world.refresh().await;
        let refresh = status.refresh.unwrap();
        let error = refresh.error.unwrap();
        assert!(error.contains(expected), "{expected}: {error}");
        assert_eq!(status.kept, first.kept);
        assert_eq!(
            refresh.succeeded_at,
            first.refresh.as_ref().unwrap().succeeded_at
        );
    }
}

#[tokio::test]
async fn redirect_target_is_checked_like_the_first_url() {
    let mut world = World::new().await;
    let (url, moved) = (
        world.url(),
        format!("http://127.0.0.1:{}/moved.csv", world.port),
    );
    world
        .script
        .then(move || (StatusCode::FOUND, [("location", moved.clone())]).into_response());
    world
        .script
        .then(|| (StatusCode::PERMANENT_REDIRECT, [("location", "again.csv")]).into_response());
    world.script.then(|| CSV.into_response());
    assert_eq!(world.refresh().await.kept.unwrap().count, 2);
    assert_eq!(world.script.asked.lock().unwrap()[2].0, "/again.csv");
    world
        .backends
        .products
        .remove_products(&world.agent.org_id, &world.agent.id)
        .await
        .unwrap();
    for (location, expected) in [
        ("http://169.254.169.254/latest/meta-data", "not public"),
        ("https://[::1]/", "not public"),
        ("http://127.0.0.2:80/", "not public"),
        ("file:///etc/passwd", "only https"),
        ("https://user@shop.example/", "user or a password"),
        ("/feed.csv", "from one address to the next"),
    ] {
        world
            .script
            .says(move || (StatusCode::FOUND, [("location", location)]).into_response());
        let error = world.refusal(&url).await;
        assert!(error.contains(expected), "{location}: {error}");
    }
}

#[tokio::test]
async fn internal_host_is_fetched_only_if_allowed() {
    let mut world = World::allowing(&[]).await;
    world.script.then(|| CSV.into_response());
    let port = world.port;
    for address in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "[::ffff:127.0.0.1]",
        "localhost",
    ] {
        world.resolves_to(&[&["127.0.0.1"]]);
        for url in [
            format!("http://{address}:{port}/"),
            format!("https://{address}:{port}/"),
            format!("https://{address}/"),
        ] {
            let error = world.refusal(&url).await;
            assert!(
                error.contains("not public") || error.contains("only https"),
                "{url}: {error}"
            );
        }
    }
    assert_eq!(world.script.request_count(), 0);
}

#[tokio::test]
async fn host_is_resolved_once_and_every_address_must_be_public() {
    let mut world = World::allowing(&[]).await;
    for answers in [
        &["127.0.0.1"][..],
        &["8.8.8.8", "127.0.0.1"],
        &["::1"],
        &["::ffff:127.0.0.1"],
        &["10.0.0.1"],
        &["169.254.169.254"],
        &["64:ff9b::7f00:1"],
        &[],
    ] {
        world.resolves_to(&[answers]);
        let error = world.refusal("https://rebind.example/").await;
        assert!(error.contains("not public"), "{answers:?}: {error}");
    }
    assert_eq!(world.script.request_count(), 0);
}

#[tokio::test]
async fn dns_rebinding_gains_nothing() {
    let mut world = World::new().await;
    world.script.then(|| CSV.into_response());
    // The first answer is checked and connected to; a second lookup would return a forbidden
    // address.
    world.resolves_to(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let port = world.port;
    world.agent = agent(&format!("http://rebind.example:{port}/feed.csv"));
    world.configure(&world.agent).await;
    assert_eq!(world.refresh().await.kept.unwrap().count, 2);
    assert_eq!(world.lookup.asked.load(Ordering::SeqCst), 1);
    world
        .backends
        .products
        .remove_products(&world.agent.org_id, &world.agent.id)
        .await
        .unwrap();
    let error = world
        .refusal(&format!("http://rebind.example:{port}/feed.csv"))
        .await;
    assert!(error.contains("not public"), "{error}");
    assert_eq!(
        (
            world.lookup.asked.load(Ordering::SeqCst),
            world.script.request_count()
        ),
        (2, 1)
    );
}
