//! An ingress over fakes, with an organization, an agent and a key for each scope, and requests to it.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use axum::{Router, body::Body};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use secrecy::SecretString;
use serde_json::{Value, json};
use switchboard_backends::{
    Backends,
    catalog::{CatalogEntry, cache::CatalogCache},
    products::embedded::EmbeddedProducts,
    store::{ReplyRecord, embedded::EmbeddedStore},
};
use switchboard_schemas::{
    agent::Agent,
    conversation::{Conversation, ConversationOwner, ReplyStatus},
    conversation_job::ConversationJob,
    ids::{AgentId, ConversationId, MessageId, OrgId},
    reply_event::Frame,
    time::Timestamp,
    topics::Topic,
    versioned,
};
use tower::ServiceExt;

use super::{
    FakeAccounts, FakeBus, FakeCatalog, FakeRelay, FakeStore, agent_id, backends::FakeLimiter,
    end_of, org_id, secret,
};
use crate::{
    Ingress, IngressConfig,
    admin::{
        apply::{Applied, ApplyContext, apply},
        document::Document,
    },
    http::PeerAddress,
    state::AppState,
};

pub(crate) const ADMIN_TOKEN: &str = "administrator";
/// Where requests come from.
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 7));
/// How long a test waits for something that must happen.
const DEADLINE: Duration = Duration::from_secs(10);

/// A running ingress and what surrounds it.
pub(crate) struct World {
    pub(crate) bus: Arc<FakeBus>,
    pub(crate) relay: Arc<FakeRelay>,
    pub(crate) store: Arc<FakeStore>,
    pub(crate) catalog: Arc<FakeCatalog>,
    pub(crate) limiter: Arc<FakeLimiter>,
    pub(crate) products: Arc<EmbeddedProducts>,
    pub(crate) accounts: Arc<FakeAccounts>,
    /// A real store, which what is counted lies in.
    pub(crate) counted: Arc<EmbeddedStore>,
    _directory: Arc<tempfile::TempDir>,
    ingress: Option<Ingress>,
    state: AppState,
    router: Router,
    registry: prometheus::Registry,
    /// Tasks that run as long as the ingress does.
    lasting_tasks: usize,
    /// A key without scopes, which may do everything.
    pub(crate) key: String,
}

/// What surrounds an ingress.
struct Outside {
    bus: Arc<FakeBus>,
    relay: Arc<FakeRelay>,
    store: Arc<FakeStore>,
    catalog: Arc<FakeCatalog>,
    limiter: Arc<FakeLimiter>,
    products: Arc<EmbeddedProducts>,
    accounts: Arc<FakeAccounts>,
    counted: Arc<EmbeddedStore>,
    directory: Arc<tempfile::TempDir>,
}

/// A response, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// What arrived of the body.
    pub(crate) text: String,
    /// Whether the body ended cleanly.
    pub(crate) whole: bool,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    /// The status with the code of the problem, if it is one.
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
        let products = EmbeddedProducts::open(&directory.path().join("products.db")).unwrap();
        let counted = EmbeddedStore::open(&directory.path().join("store.db")).unwrap();
        let outside = Outside {
            products: Arc::new(products),
            counted: Arc::new(counted),
            directory: Arc::new(directory),
            bus: Arc::new(FakeBus::default()),
            relay: Arc::new(FakeRelay::default()),
            store: Arc::new(FakeStore::default()),
            catalog: Arc::new(FakeCatalog::default()),
            limiter: Arc::new(FakeLimiter::default()),
            accounts: Arc::new(FakeAccounts::default()),
        };
        let mut world = Self::around(outside, config).await;
        world.apply(json!({ "slug": "acme", "name": "Acme", "agents": [{ "slug": "shop", "name": "Shop" }] })).await;
        world.key = world.new_key("acme", json!({ "name": "all" })).await;
        world.bus.records.lock().unwrap().clear();
        world
    }

    /// Another process over the same backends.
    pub(crate) async fn second_ingress(&self) -> Self {
        let outside = Outside {
            bus: Arc::clone(&self.bus),
            relay: Arc::clone(&self.relay),
            store: Arc::clone(&self.store),
            catalog: Arc::clone(&self.catalog),
            limiter: Arc::clone(&self.limiter),
            products: Arc::clone(&self.products),
            accounts: Arc::clone(&self.accounts),
            counted: Arc::clone(&self.counted),
            directory: Arc::clone(&self._directory),
        };
        Self {
            key: self.key.clone(),
            ..Self::around(outside, IngressConfig::default()).await
        }
    }

    async fn around(outside: Outside, config: IngressConfig) -> Self {
        let Outside {
            bus,
            relay,
            store,
            catalog,
            limiter,
            products,
            accounts,
            counted,
            directory,
        } = outside;
        let backends = Backends {
            bus: Arc::clone(&bus) as _,
            relay: Arc::clone(&relay) as _,
            store: Arc::clone(&store) as _,
            analytics: Arc::clone(&counted) as _,
            catalog: Arc::clone(&catalog) as _,
            products: Arc::clone(&products) as _,
            limiter: Arc::clone(&limiter) as _,
            accounts: Arc::clone(&accounts) as _,
        };
        let cache = CatalogCache::new(Arc::clone(&catalog) as _);
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
            bus,
            relay,
            store,
            catalog,
            limiter,
            products,
            accounts,
            counted,
            _directory: directory,
            ingress: Some(ingress),
            state,
            router,
            registry,
            lasting_tasks,
            key: String::new(),
        }
    }

    /// The ingress itself, to be served; the world's own requests go on.
    pub(crate) fn take_ingress(&mut self) -> Ingress {
        self.ingress.take().expect("taken once")
    }

    /// Makes a key of an organization.
    pub(crate) async fn new_key(&self, org: &str, key: Value) -> String {
        let applied = self
            .apply(json!({ "slug": org, "name": org, "keys": [key] }))
            .await;
        applied.organizations[0].keys[0].value.clone().unwrap()
    }

    async fn apply(&self, organization: Value) -> Applied {
        let context = ApplyContext::new(&self.state.backends, secret());
        let document = Document::from_json(json!({ "organizations": [organization] })).unwrap();
        apply(&context, document).await.unwrap()
    }

    /// Changes the agent in the catalogue.
    pub(crate) fn edit_agent(&self, edit: impl FnOnce(&mut Agent)) {
        let mut entries = self.catalog.entries.lock().unwrap();
        let id = ("agent", agent_id().as_str().to_owned());
        let Some(CatalogEntry::Agent(agent)) = entries.get_mut(&id) else {
            panic!("the agent is missing")
        };
        edit(agent);
    }

    /// Puts an empty conversation of session `s` into the store.
    pub(crate) fn put_conversation(&self, org: OrgId) -> ConversationId {
        let session = "s".parse().unwrap();
        let id = ConversationId::of_agent(&org_id(), &agent_id(), &session);
        let conversation = Conversation {
            id: id.clone(),
            org_id: org,
            session_id: session,
            owner: ConversationOwner::Agent(agent_id()),
            message_count: 0,
            active_message_id: None,
            last_reply_id: None,
            created_at: Timestamp::from_micros(1),
            updated_at: Timestamp::from_micros(2),
            metadata: serde_json::Map::new(),
        };
        self.store
            .conversations
            .lock()
            .unwrap()
            .insert(id.clone(), conversation);
        id
    }

    /// Puts a final reply without text into the store.
    pub(crate) fn put_final(&self, reply: &MessageId, status: ReplyStatus) {
        let record = ReplyRecord {
            user_message_id: reply.clone(),
            user_position: 0,
            position: None,
            head: None,
            end: end_of("", status),
            generation: 1,
            attempt: 1,
            finished_at: Timestamp::from_micros(3),
            first_text_ms: None,
        };
        self.store
            .replies
            .lock()
            .unwrap()
            .insert(reply.clone(), record);
    }

    /// Whether a request waits for frames of this reply.
    pub(crate) fn replies_awaited(&self, reply: &MessageId) -> bool {
        self.state.pending_replies.is_awaited(reply)
    }

    /// Waits until nothing runs beside the requests but what always runs.
    pub(crate) async fn background_is_done(&self) {
        let wait = async {
            while self.state.background.len() > self.lasting_tasks {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(DEADLINE, wait)
            .await
            .expect("small work ends");
    }

    /// The path of the agent, with something behind it.
    pub(crate) fn agent_path(rest: &str) -> String {
        format!("/api/public/agents/{}{rest}", agent_id())
    }

    /// A request with the world's key.
    pub(crate) async fn send(&self, method: &str, path: &str, body: impl Into<Body>) -> Answer {
        self.send_with(
            method,
            path,
            &[("authorization", &format!("Bearer {}", self.key))],
            body,
        )
        .await
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

    /// A chat message, whose reply is what `worker` does with the job.
    pub(crate) async fn chat(&self, worker: impl AsyncFnOnce(ConversationJob)) -> Answer {
        self.chat_as(&[], worker).await
    }

    /// A chat message, answered with these frames by an append of each.
    pub(crate) async fn chat_answered(&self, frames: Vec<Frame>) -> Answer {
        self.chat_with(&[], frames).await
    }

    /// The same with further headers.
    pub(crate) async fn chat_with(&self, headers: &[(&str, &str)], frames: Vec<Frame>) -> Answer {
        self.chat_as(headers, async |job| {
            for frame in frames {
                self.relay.append_frame(&reply_of(&job), frame);
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

    /// Waits for the next publish.
    pub(crate) async fn published(&self) {
        tokio::time::timeout(DEADLINE, self.bus.published.notified())
            .await
            .expect("something is published");
    }

    /// What was published on a topic of jobs.
    pub(crate) fn jobs(&self, topic: Topic) -> Vec<ConversationJob> {
        let records = self.bus.records.lock().unwrap();
        let records = records.iter().filter(|record| record.topic == topic);
        records
            .map(|record| versioned::decode(&record.payload).unwrap())
            .collect()
    }

    /// The value of a counter, summed over its labels.
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

    pub(crate) fn set_bus_away(&self, away: bool) {
        self.bus.away.store(away, Ordering::SeqCst);
    }
}

/// The reply that a job asks for.
pub(crate) fn reply_of(job: &ConversationJob) -> switchboard_schemas::ids::MessageId {
    match job {
        ConversationJob::Reply(job) | ConversationJob::Playground(job) => job.turn.reply_id(),
        ConversationJob::Patch(_) | ConversationJob::Delete(_) => panic!("a change has no reply"),
    }
}

/// A conversation that began at that microsecond.
pub(crate) fn put_conversation(
    world: &World,
    org: &OrgId,
    agent: &AgentId,
    micros: i64,
    metadata: Value,
) -> ConversationId {
    let session = format!("session {micros}").parse().unwrap();
    let id = ConversationId::of_agent(org, agent, &session);
    let conversation = Conversation {
        id: id.clone(),
        org_id: org.clone(),
        session_id: session,
        owner: ConversationOwner::Agent(agent.clone()),
        message_count: 0,
        active_message_id: None,
        last_reply_id: None,
        created_at: Timestamp::from_micros(micros),
        updated_at: Timestamp::from_micros(micros),
        metadata: metadata.as_object().unwrap().clone(),
    };
    world
        .store
        .conversations
        .lock()
        .unwrap()
        .insert(id.clone(), conversation);
    id
}
