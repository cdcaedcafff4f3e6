//! An ingress over embedded backends with an organization, an agent and a key, and requests to it.

pub(super) mod backends;

use std::{
    net::{IpAddr, Ipv4Addr},
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Body};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use secrecy::SecretString;
use serde_json::{Value, json};
use switchboard_backends::{
    Backends,
    accounts::embedded::EmbeddedAccounts,
    bus::{OutgoingRecord, embedded::EmbeddedBus},
    catalog::{cache::CatalogCache, embedded::EmbeddedCatalog},
    files::FileStore,
    limiter::embedded::EmbeddedLimiter,
    organization_eraser::EmbeddedEraser,
    products::embedded::EmbeddedProducts,
    relay::embedded::EmbeddedRelay,
    store::embedded::EmbeddedStore,
    testing::{Faults, Faulty},
};
use switchboard_schemas::{
    conversation_job::ConversationJob, ids::MessageId, reply_event::Frame, topics::Topic, versioned,
};
use tower::ServiceExt;

use super::{agent_id, secret};
use crate::{
    Ingress, IngressConfig,
    admin::{
        apply::{AppliedDocument, ApplyContext, apply},
        document::ApplyDocument,
    },
    http::PeerAddress,
    state::{AppState, upload_bounds::UploadBounds},
};

pub(crate) const ADMIN_TOKEN: &str = "administrator";
/// Address of the client.
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 7));
/// Longest wait for an event that a test expects.
const DEADLINE: Duration = Duration::from_secs(10);

/// A running ingress and its backends.
pub(crate) struct World {
    outside: Outside,
    ingress: Option<Ingress>,
    state: AppState,
    router: Router,
    registry: prometheus::Registry,
    /// Number of background tasks that run as long as the ingress.
    lasting_tasks: usize,
    /// Number of published jobs that the test has waited for.
    jobs_seen: AtomicUsize,
    drops_pushes: AtomicBool,
    /// An API key without scopes, which opens every route.
    pub(crate) key: String,
}

/// The backends of an ingress and the folder of their files.
pub(crate) struct Outside {
    pub(crate) bus: Arc<Faulty<EmbeddedBus>>,
    pub(crate) relay: Arc<Faulty<EmbeddedRelay>>,
    pub(crate) store: Arc<Faulty<EmbeddedStore>>,
    pub(crate) catalog: Arc<Faulty<EmbeddedCatalog>>,
    pub(crate) limiter: Arc<Faulty<EmbeddedLimiter>>,
    pub(crate) products: Arc<EmbeddedProducts>,
    pub(crate) accounts: Arc<Faulty<EmbeddedAccounts>>,
    directory: tempfile::TempDir,
}

impl Deref for World {
    type Target = Outside;

    fn deref(&self) -> &Outside {
        &self.outside
    }
}

/// A response with its whole body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// The received part of the body.
    pub(crate) text: String,
    /// True if the body ended cleanly.
    pub(crate) whole: bool,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    /// Returns the body of a response that must have this status.
    pub(crate) fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        self.json()
    }

    /// Returns the status and the problem code, which is empty for a success.
    pub(crate) fn problem(&self) -> (u16, String) {
        let body: Value = serde_json::from_str(&self.text).unwrap_or_default();
        (
            self.status.as_u16(),
            body["code"].as_str().unwrap_or_default().to_owned(),
        )
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(IngressConfig::default()).await
    }

    pub(crate) async fn with(config: IngressConfig) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let outside = Outside {
            bus: faulty(EmbeddedBus::open(&path("bus.db"), 4).unwrap()),
            relay: faulty(EmbeddedRelay::open(None).unwrap()),
            store: faulty(EmbeddedStore::open(&path("store.db")).unwrap()),
            catalog: faulty(EmbeddedCatalog::open(&path("catalog.db")).unwrap()),
            limiter: faulty(EmbeddedLimiter::new()),
            products: Arc::new(EmbeddedProducts::open(&path("products.db")).unwrap()),
            accounts: faulty(EmbeddedAccounts::open(&path("accounts.db")).unwrap()),
            directory,
        };
        let mut world = Self::around(outside, config).await;
        world.apply(json!({ "slug": "acme", "name": "Acme", "agents": [{ "slug": "shop", "name": "Shop" }] })).await;
        world.key = world.new_key("acme", json!({ "name": "all" })).await;
        world.forget_published();
        world
    }

    async fn around(outside: Outside, config: IngressConfig) -> Self {
        let backends = Backends {
            bus: Arc::clone(&outside.bus) as _,
            relay: Arc::clone(&outside.relay) as _,
            store: Arc::clone(&outside.store) as _,
            analytics: outside.store.inner() as _,
            catalog: Arc::clone(&outside.catalog) as _,
            products: Arc::clone(&outside.products) as _,
            limiter: Arc::clone(&outside.limiter) as _,
            accounts: Arc::clone(&outside.accounts) as _,
            files: Arc::new(FileStore::in_memory(&secret())),
            eraser: Arc::new(EmbeddedEraser::default()),
        };
        let cache = CatalogCache::new(Arc::clone(&outside.catalog) as _);
        let (token, registry) = (
            Some(SecretString::from(ADMIN_TOKEN)),
            prometheus::Registry::new(),
        );
        let ingress = Ingress::new(backends, cache, secret(), token, config, &registry)
            .await
            .unwrap();
        let (router, state) = (ingress.router(), ingress.state().clone());
        let lasting_tasks = state.background.len();
        Self {
            outside,
            ingress: Some(ingress),
            state,
            router,
            registry,
            lasting_tasks,
            jobs_seen: AtomicUsize::new(0),
            drops_pushes: AtomicBool::new(false),
            key: String::new(),
        }
    }

    /// Takes the ingress out to serve it; requests of the world keep working.
    pub(crate) fn take_ingress(&mut self) -> Ingress {
        self.ingress.take().expect("taken once")
    }

    /// Creates an API key of an organization.
    pub(crate) async fn new_key(&self, org: &str, key: Value) -> String {
        let applied = self
            .apply(json!({ "slug": org, "name": org, "keys": [key] }))
            .await;
        applied.organizations[0].keys[0].value.clone().unwrap()
    }

    async fn apply(&self, organization: Value) -> AppliedDocument {
        let context = ApplyContext::new(&self.state.backends, secret());
        let document =
            ApplyDocument::from_json(json!({ "organizations": [organization] })).unwrap();
        apply(&context, document).await.unwrap()
    }

    /// Returns true if a request waits for frames of a reply.
    pub(crate) fn replies_awaited(&self, reply: &MessageId) -> bool {
        self.state.pending_replies.is_awaited(reply)
    }

    /// Returns the bounds of uploads.
    pub(crate) fn upload_bounds(&self) -> &UploadBounds {
        &self.state.uploads
    }

    /// Waits until only the lasting background tasks run.
    pub(crate) async fn background_is_done(&self) {
        let wait = async {
            while self.state.background.len() > self.lasting_tasks {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(DEADLINE, wait)
            .await
            .expect("the background tasks end");
    }

    /// Returns the public path of the agent with a suffix.
    pub(crate) fn agent_path(rest: &str) -> String {
        format!("/api/public/agents/{}{rest}", agent_id())
    }

    /// Sends a request with the key of the world.
    pub(crate) async fn send(&self, method: &str, path: &str, body: impl Into<Body>) -> Answer {
        self.send_with(
            method,
            path,
            &[("authorization", &format!("Bearer {}", self.key))],
            body,
        )
        .await
    }

    /// Sends a request with the admin token; `null` stands for no body.
    pub(crate) async fn admin(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Value,
    ) -> Answer {
        let bearer = format!("Bearer {ADMIN_TOKEN}");
        let headers = [&[("authorization", bearer.as_str())], headers].concat();
        self.send_json(method, path, &headers, &body).await
    }

    /// Sends a JSON body; `null` stands for no body.
    pub(crate) async fn send_json(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Answer {
        let text = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        self.send_with(method, path, headers, text).await
    }

    pub(crate) async fn send_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Answer {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .extension(PeerAddress(PEER));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self
            .router
            .clone()
            .oneshot(request.body(body.into()).unwrap())
            .await
            .unwrap();
        let (parts, mut body) = response.into_parts();
        let (mut bytes, mut whole) = (Vec::new(), true);
        while let Some(frame) = body.frame().await {
            match frame {
                Ok(frame) => bytes.extend_from_slice(&frame.into_data().unwrap_or_default()),
                Err(_) => whole = false,
            }
        }
        Answer {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8(bytes).unwrap(),
            whole,
        }
    }

    /// Sends a chat message and lets `worker` process its job.
    pub(crate) async fn chat(&self, worker: impl AsyncFnOnce(ConversationJob)) -> Answer {
        self.chat_as(&[], worker).await
    }

    /// Sends a chat message that is answered with frames, appended one by one.
    pub(crate) async fn chat_answered(&self, frames: Vec<Frame>) -> Answer {
        self.chat_with(&[], frames).await
    }

    /// Sends a chat message with further headers that is answered with frames.
    pub(crate) async fn chat_with(&self, headers: &[(&str, &str)], frames: Vec<Frame>) -> Answer {
        self.chat_as(headers, async |job| {
            for frame in frames {
                self.append_frame(&reply_of(&job), frame);
            }
        })
        .await
    }

    async fn chat_as(
        &self,
        headers: &[(&str, &str)],
        worker: impl AsyncFnOnce(ConversationJob),
    ) -> Answer {
        let path = Self::agent_path("/chat");
        let headers = [&[("x-api-key", self.key.as_str())], headers].concat();
        let chat = self.send_with(
            "POST",
            &path,
            &headers,
            r#"{"message":"hi","sessionId":"s"}"#,
        );
        let work = async {
            self.published().await;
            worker(self.jobs(Topic::Jobs).remove(0)).await;
        };
        tokio::join!(chat, work).0
    }

    /// Waits for a published job that no earlier call has waited for.
    pub(crate) async fn published(&self) {
        let jobs = |faults: &Faults| -> usize {
            let topics = [Topic::Route, Topic::Jobs, Topic::JobsRetry];
            let records: Vec<OutgoingRecord> = faults.arguments("publish");
            let jobs = records
                .iter()
                .filter(|record| topics.contains(&record.topic));
            jobs.count()
        };
        let seen = self.jobs_seen.load(Ordering::SeqCst);
        let wait = self.bus.faults.wait_until(|faults| jobs(faults) > seen);
        tokio::time::timeout(DEADLINE, wait)
            .await
            .expect("a job is published");
        self.jobs_seen
            .store(jobs(&self.bus.faults), Ordering::SeqCst);
    }

    /// Returns the jobs that were published on a topic, oldest first.
    pub(crate) fn jobs(&self, topic: Topic) -> Vec<ConversationJob> {
        let records = self.published_records();
        let records = records.iter().filter(|record| record.topic == topic);
        records
            .map(|record| versioned::decode(&record.payload).unwrap())
            .collect()
    }

    /// Returns the value of a counter, summed over its labels.
    pub(crate) fn counter(&self, name: &str) -> u64 {
        let families = self.registry.gather();
        let family = families
            .iter()
            .find(|family| family.name() == name)
            .expect("the metric is registered");
        family
            .get_metric()
            .iter()
            .map(|metric| metric.get_counter().get_value() as u64)
            .sum()
    }
}

pub(crate) fn reply_of(job: &ConversationJob) -> switchboard_schemas::ids::MessageId {
    match job {
        ConversationJob::Reply(job) | ConversationJob::Playground(job) => job.turn.reply_id(),
        ConversationJob::Patch(_) | ConversationJob::Delete(_) => panic!("a change has no reply"),
    }
}

fn faulty<B>(backend: B) -> Arc<Faulty<B>> {
    Arc::new(Faulty::new(backend))
}
