//! A worker among embedded twins that can be told to fail.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use prometheus::Registry;
use serde_json::{Map, Value, json};
use switchboard_backends::{
    Backends,
    bus::{Bus, BusEvent, OutgoingRecord, embedded::EmbeddedBus},
    catalog::{Catalog, Entry, cache::CatalogCache, embedded::EmbeddedCatalog},
    limiter::embedded::EmbeddedLimiter,
    relay::{
        Claim, ClaimRequest, ClaimToken, Relay, RelayError, Settlement, Standing, embedded::EmbeddedRelay,
    },
    store::{ReplyRecord, Store, StoreError, TurnEnd, TurnStart, embedded::EmbeddedStore},
    vault::Vault,
};
use switchboard_schemas::{
    agent::{Agent, AgentSettings},
    conversation::{Conversation, Message},
    ids::{AgentId, ConversationId, EventId, IngressId, MessageId, OrgId, RequestId},
    inference_job::{AnswerJob, ConversationJob, PatchJob},
    reply_event::{Envelope, Frame, FrameBody, PatchOutcome},
    secret::InstallationSecret,
    time::Timestamp,
    topics::Topic,
    turn::{Source, Turn, Visitor},
    versioned,
};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use super::is_end;
use crate::{
    DefaultProvider, WorkerContext,
    config::WorkersConfig,
    inference::{Inference, answer, patch, reply_log::LoggedReply},
    job_loop::JobEnd,
    metrics::WorkerMetrics,
    testing::{Act, Provider, eventually, quick},
};

const WAIT: Duration = Duration::from_secs(10);

pub(super) struct World {
    pub(super) inference: Arc<Inference>,
    pub(super) provider: Provider,
    pub(super) relay: Arc<FaultyRelay>,
    pub(super) store: Arc<FaultyStore>,
    pub(super) bus: Arc<EmbeddedBus>,
    context: WorkerContext,
    ingress: IngressId,
    listener: mpsc::Receiver<Envelope>,
    agent: Agent,
    _dir: tempfile::TempDir,
}

impl World {
    pub(super) async fn new(acts: Vec<Act>, continues_prefix: bool) -> Self {
        let provider = Provider::start(acts).await;
        let dir = tempfile::tempdir().unwrap();
        let bus = Arc::new(EmbeddedBus::open(&dir.path().join("bus.db"), 4).unwrap());
        let relay = Arc::new(FaultyRelay::new());
        let store = Arc::new(FaultyStore::new(EmbeddedStore::open(&dir.path().join("store.db")).unwrap()));
        let catalog = Arc::new(EmbeddedCatalog::open(&dir.path().join("catalog.db")).unwrap());
        let agent = shop();
        catalog.put(&Entry::Agent(Box::new(agent.clone()))).await.unwrap();
        let ingress = IngressId::random();
        let listener = relay.listen(&ingress).await.unwrap();
        let context = WorkerContext {
            backends: Backends {
                bus: bus.clone(),
                relay: relay.clone(),
                store: store.clone(),
                catalog: catalog.clone(),
                limiter: Arc::new(EmbeddedLimiter::new()),
            },
            catalog: CatalogCache::new(catalog),
            vault: Vault::new(&secret()),
            default_provider: DefaultProvider {
                base_url: provider.base_url.clone(),
                api_key: None,
                model: "m".into(),
                continues_prefix,
                fallback: None,
            },
            config: quick(),
            metrics: Arc::new(WorkerMetrics::register(&Registry::new()).unwrap()),
        };
        let inference = Arc::new(Inference::new(context.clone()).unwrap());
        Self { inference, provider, relay, store, bus, context, ingress, listener, agent, _dir: dir }
    }

    /// A worker whose patience with a silent provider is a test's.
    pub(super) fn patient_for(&self, idle_ms: u64) -> Inference {
        let config = WorkersConfig { token_idle_timeout_ms: idle_ms, ..quick() };
        Inference::new(WorkerContext { config, ..self.context.clone() }).unwrap()
    }

    pub(super) fn patient(&self) -> Inference {
        self.patient_for(30_000)
    }

    pub(super) fn job(&self, content: &str) -> AnswerJob {
        self.job_for(self.agent.id.clone(), content)
    }

    pub(super) fn other_agent(&self) -> AgentId {
        AgentId::derive(&secret(), &self.agent.org_id, "gone")
    }

    pub(super) fn job_for(&self, agent_id: AgentId, content: &str) -> AnswerJob {
        let session = "session".parse().unwrap();
        let conversation_id = ConversationId::of_agent(&self.agent.org_id, &agent_id, &session);
        let turn = Turn {
            org_id: self.agent.org_id.clone(),
            message_id: MessageId::new_in(&conversation_id),
            conversation_id,
            request_id: RequestId::random(),
            key_id: None,
            session_id: session,
            content: content.into(),
            visitor: Visitor::default(),
            metadata: Map::new(),
            source: Source::Api,
            ip_address: None,
            accepted_at: Timestamp::now(),
            reply_to: Some(self.ingress.clone()),
            publish_nonce: RequestId::random().to_string(),
        };
        AnswerJob { agent_id, routed: None, turn, attempt_min: 1 }
    }

    pub(super) fn patch(&self, job: &AnswerJob) -> PatchJob {
        PatchJob {
            event_id: EventId::of("patch", "1"),
            org_id: job.turn.org_id.clone(),
            conversation_id: job.turn.conversation_id.clone(),
            agent_id: job.agent_id.clone(),
            request_id: RequestId::random(),
            actor: "api".into(),
            changes: [("rating".to_owned(), json!(5))].into_iter().collect(),
            accepted_at: Timestamp::now(),
            reply_to: self.ingress.clone(),
        }
    }

    pub(super) async fn run(&self, job: &AnswerJob) -> JobEnd {
        Self::run_on(&self.inference, job).await
    }

    pub(super) async fn run_on(inference: &Inference, job: &AnswerJob) -> JobEnd {
        let handover = CancellationToken::new();
        let run = Box::pin(answer::run(inference, job, &handover));
        timeout(WAIT, run).await.expect("the job ends")
    }

    pub(super) async fn run_patch(&self, job: &PatchJob) -> JobEnd {
        patch::run(&self.inference, job, &CancellationToken::new()).await
    }

    /// Runs until this text is logged, then asks the worker to hand over.
    pub(super) async fn hand_over_after(&self, job: &AnswerJob, text: &str) -> JobEnd {
        let (inference, handover) = (self.patient(), CancellationToken::new());
        let ask = async {
            eventually("text is in the log", async || self.logged_text(job).await == text).await;
            handover.cancel();
        };
        tokio::join!(Box::pin(answer::run(&inference, job, &handover)), ask).0
    }

    pub(super) fn relay(&self) -> Arc<EmbeddedRelay> {
        self.relay.inner()
    }

    pub(super) async fn logged_text(&self, job: &AnswerJob) -> String {
        LoggedReply::read(self.relay().read_log(&job.turn.reply_id(), 0).await.unwrap()).text
    }

    /// Waits until the log of the relay that runs now holds the end.
    pub(super) async fn settled_end(&mut self, job: &AnswerJob) {
        let frames = self.relay().read_log(&job.turn.reply_id(), 0).await.unwrap();
        assert!(frames.iter().any(|frame| matches!(frame.body, FrameBody::End(_))), "{frames:?}");
    }

    /// The frames that the ingress was sent, up to the end, without beats.
    pub(super) async fn pushed(&mut self, job: &AnswerJob) -> Vec<Frame> {
        let mut frames = Vec::new();
        loop {
            let envelope = timeout(WAIT, self.listener.recv()).await.expect("an end").unwrap();
            let ended = is_end(&envelope);
            if let Envelope::Reply(id, frame) = envelope
                && id == job.turn.reply_id()
                && frame.body != FrameBody::Beat
            {
                frames.push(frame);
            }
            if ended {
                return frames;
            }
        }
    }

    pub(super) fn text_of(frames: &[Frame]) -> String {
        LoggedReply::read(frames.to_vec()).text
    }

    pub(super) async fn patch_answer(&mut self) -> PatchOutcome {
        loop {
            if let Envelope::Patch(_, outcome) = timeout(WAIT, self.listener.recv()).await.expect("an answer").unwrap() {
                return outcome;
            }
        }
    }

    pub(super) async fn messages(&self, job: &AnswerJob) -> Vec<Message> {
        self.store.inner.messages(&job.turn.org_id, &job.turn.conversation_id, 0, 100).await.unwrap()
    }

    pub(super) async fn record(&self, job: &AnswerJob) -> Option<ReplyRecord> {
        self.store.inner.reply(&job.turn.org_id, &job.turn.reply_id()).await.unwrap()
    }

    /// So many events of the topic for analytics, in order.
    pub(super) async fn events(&self, count: usize) -> Vec<Value> {
        let mut consumer = self.bus.consume("analytics", &[Topic::Messages]).await.unwrap();
        let mut events = Vec::new();
        while events.len() < count {
            if let BusEvent::Record(record) = timeout(WAIT, consumer.next()).await.expect("an event").unwrap() {
                events.push(serde_json::from_slice(&record.payload).unwrap());
            }
        }
        events
    }

    pub(super) async fn publish(&self, job: &AnswerJob) {
        let key = job.turn.conversation_id.to_string();
        let payload = versioned::encode(&ConversationJob::Answer(Box::new(job.clone()))).unwrap().into();
        let record = OutgoingRecord { topic: Topic::Jobs, key, payload, headers: Vec::new() };
        self.bus.publish(record, WAIT).await.unwrap();
    }

    pub(super) fn start_worker(&self) -> RunningWorker {
        let (shutdown, mut tasks) = (CancellationToken::new(), JoinSet::new());
        tasks.spawn(crate::run_inference(self.context.clone(), shutdown.clone()));
        RunningWorker { shutdown, tasks }
    }
}

pub(super) struct RunningWorker {
    shutdown: CancellationToken,
    tasks: JoinSet<anyhow::Result<()>>,
}

impl RunningWorker {
    pub(super) async fn stop(mut self) {
        self.shutdown.cancel();
        timeout(WAIT, self.tasks.join_next()).await.expect("the worker drains").unwrap().unwrap().unwrap();
    }
}

fn secret() -> InstallationSecret {
    InstallationSecret::from_bytes([1; 32])
}

fn shop() -> Agent {
    let org_id = OrgId::derive(&secret(), "acme");
    Agent {
        id: AgentId::derive(&secret(), &org_id, "shop"),
        org_id,
        slug: "shop".into(),
        name: "Shop".into(),
        provider: None,
        fallback_provider: None,
        settings: AgentSettings { instructions: "be kind".into(), ..AgentSettings::default() },
    }
}

/// The embedded relay, which can go away, forget, or fence everyone.
pub(super) struct FaultyRelay {
    inner: Mutex<Arc<EmbeddedRelay>>,
    away: AtomicBool,
    fenced: AtomicBool,
}

impl FaultyRelay {
    fn new() -> Self {
        let inner = Mutex::new(Arc::new(EmbeddedRelay::open(None).unwrap()));
        Self { inner, away: AtomicBool::new(false), fenced: AtomicBool::new(false) }
    }

    pub(super) fn set_away(&self, away: bool) {
        self.away.store(away, Ordering::SeqCst);
    }

    pub(super) fn set_fenced(&self, fenced: bool) {
        self.fenced.store(fenced, Ordering::SeqCst);
    }

    /// An empty relay takes the place of the one that knew.
    pub(super) fn forget(&self) {
        *self.inner.lock().unwrap() = Arc::new(EmbeddedRelay::open(None).unwrap());
    }

    pub(super) fn inner(&self) -> Arc<EmbeddedRelay> {
        self.inner.lock().unwrap().clone()
    }

    fn up(&self) -> Result<Arc<EmbeddedRelay>, RelayError> {
        if self.away.load(Ordering::SeqCst) { Err(RelayError::Unavailable("as asked".into())) } else { Ok(self.inner()) }
    }

    fn judge(&self, standing: Standing) -> Standing {
        if self.fenced.load(Ordering::SeqCst) { Standing::Fenced } else { standing }
    }
}

#[async_trait]
impl Relay for FaultyRelay {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, RelayError> {
        self.up()?.claim(request).await
    }

    async fn append(&self, token: &ClaimToken, to: Option<&IngressId>, frames: &[Frame]) -> Result<Standing, RelayError> {
        Ok(self.judge(self.up()?.append(token, to, frames).await?))
    }

    async fn restore(&self, token: &ClaimToken, to: Option<&IngressId>, frames: &[Frame]) -> Result<Standing, RelayError> {
        Ok(self.judge(self.up()?.restore(token, to, frames).await?))
    }

    async fn seal(&self, token: &ClaimToken, end: &Frame) -> Result<Standing, RelayError> {
        Ok(self.judge(self.up()?.seal(token, end).await?))
    }

    async fn settle(&self, token: &ClaimToken, settlement: &Settlement) -> Result<Standing, RelayError> {
        Ok(self.judge(self.up()?.settle(token, settlement).await?))
    }

    async fn release(&self, token: &ClaimToken) -> Result<(), RelayError> {
        self.up()?.release(token).await
    }

    async fn answer_patch(&self, to: &IngressId, patch: &EventId, outcome: PatchOutcome) -> Result<(), RelayError> {
        self.up()?.answer_patch(to, patch, outcome).await
    }

    async fn listen(&self, ingress: &IngressId) -> Result<mpsc::Receiver<Envelope>, RelayError> {
        self.up()?.listen(ingress).await
    }

    async fn read_log(&self, reply: &MessageId, after_seq: u64) -> Result<Vec<Frame>, RelayError> {
        self.up()?.read_log(reply, after_seq).await
    }

    async fn void(&self, conversation: &ConversationId, nonce: &str) -> Result<(), RelayError> {
        self.up()?.void(conversation, nonce).await
    }

    async fn cancel(&self, reply: &MessageId) -> Result<bool, RelayError> {
        self.up()?.cancel(reply).await
    }

    async fn check(&self) -> Result<(), RelayError> {
        self.up()?.check().await
    }
}

/// The embedded store, which can go away for a while.
pub(super) struct FaultyStore {
    pub(super) inner: EmbeddedStore,
    away_until: Mutex<Option<Instant>>,
}

impl FaultyStore {
    const fn new(inner: EmbeddedStore) -> Self {
        Self { inner, away_until: Mutex::new(None) }
    }

    pub(super) fn set_away_for(&self, time: Duration) {
        *self.away_until.lock().unwrap() = Some(Instant::now() + time);
    }

    fn up(&self) -> Result<&EmbeddedStore, StoreError> {
        let away = self.away_until.lock().unwrap().is_some_and(|until| Instant::now() < until);
        if away { Err(StoreError::Unavailable("as asked".into())) } else { Ok(&self.inner) }
    }
}

#[async_trait]
impl Store for FaultyStore {
    async fn begin_turn(&self, start: &TurnStart) -> Result<(), StoreError> {
        self.up()?.begin_turn(start).await
    }

    async fn finish_turn(&self, end: &TurnEnd) -> Result<(), StoreError> {
        self.up()?.finish_turn(end).await
    }

    async fn reply(&self, org: &OrgId, reply: &MessageId) -> Result<Option<ReplyRecord>, StoreError> {
        self.up()?.reply(org, reply).await
    }

    async fn conversation(&self, org: &OrgId, id: &ConversationId) -> Result<Option<Conversation>, StoreError> {
        self.up()?.conversation(org, id).await
    }

    async fn messages(&self, org: &OrgId, id: &ConversationId, from: u64, limit: u32) -> Result<Vec<Message>, StoreError> {
        self.up()?.messages(org, id, from, limit).await
    }

    async fn update_metadata(
        &self,
        org: &OrgId,
        id: &ConversationId,
        changes: &Map<String, Value>,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        self.up()?.update_metadata(org, id, changes, at).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.up()?.check().await
    }
}
