//! A worker on embedded backends with injected faults.

use std::{sync::Arc, time::Duration};

use prometheus::Registry;
use serde_json::{Map, Value, json};
use switchboard_backends::{
    Backends,
    accounts::embedded::EmbeddedAccounts,
    bus::{BusEvent, MessageBus, OutgoingRecord, embedded::EmbeddedBus},
    catalog::{CatalogEntry, CatalogEntryStore, cache::CatalogCache, embedded::EmbeddedCatalog},
    limiter::embedded::EmbeddedLimiter,
    organization_eraser::EmbeddedEraser,
    products::embedded::EmbeddedProducts,
    relay::{ClaimStatus, PlaygroundRuns, ReplyLog, embedded::EmbeddedRelay},
    store::{ConversationReader, ReplyRecord, ReplyStateStore, embedded::EmbeddedStore},
    testing::{Fault, Faulty},
    vault::SecretVault,
};
use switchboard_schemas::{
    agent::Agent,
    conversation::Message,
    conversation_job::{ConversationJob, DeleteJob, PatchJob, ReplyJob},
    ids::{AgentId, ConversationId, EventId, IngressId, MessageId, OrgId, RequestId},
    playground::AgentPlaygroundRun,
    reply_event::{Frame, FrameBody, IngressEnvelope, PatchOutcome, ReplySignal},
    time::Timestamp,
    topics::Topic,
    turn::{MessageSource, Turn, Visitor},
    versioned,
};
use tokio::{sync::mpsc, task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{
    agents::{secret, shop},
    is_end,
};
use crate::{
    DefaultProvider, WorkerContext,
    config::WorkersConfig,
    inference::{
        InferenceHandler, claim::ClaimAttempts, conversation_deletion, metadata_patch,
        playground_turn, reply_log::LoggedReply, turn_runner,
    },
    job_loop::JobEnd,
    metrics::WorkerMetrics,
    testing::{Script, ScriptedModel, eventually, quick, start_model},
};

const WAIT: Duration = Duration::from_secs(10);

pub(super) struct World {
    pub(super) inference: Arc<InferenceHandler>,
    pub(super) provider: &'static ScriptedModel,
    pub(super) relay: Arc<Faulty<EmbeddedRelay>>,
    pub(super) store: Arc<Faulty<EmbeddedStore>>,
    pub(super) bus: Arc<Faulty<EmbeddedBus>>,
    context: WorkerContext,
    ingress: IngressId,
    listener: mpsc::Receiver<IngressEnvelope>,
    agent: Agent,
    _dir: tempfile::TempDir,
}

impl World {
    pub(super) async fn new(acts: Vec<Script>, continues_prefix: bool) -> Self {
        Self::with(acts, continues_prefix, shop(), quick()).await
    }

    /// Like [`Self::new`], with another agent and other bounds.
    pub(super) async fn with(
        acts: Vec<Script>,
        continues_prefix: bool,
        agent: Agent,
        config: WorkersConfig,
    ) -> Self {
        let provider = start_model(acts);
        let dir = tempfile::tempdir().unwrap();
        let bus = Arc::new(Faulty::new(
            EmbeddedBus::open(&dir.path().join("bus.db"), 4).unwrap(),
        ));
        let relay = Arc::new(Faulty::new(EmbeddedRelay::open(None).unwrap()));
        let analytics = EmbeddedStore::open(&dir.path().join("store.db")).unwrap();
        let store = Arc::new(Faulty::new(analytics.clone()));
        let catalog = Arc::new(EmbeddedCatalog::open(&dir.path().join("catalog.db")).unwrap());
        catalog
            .put(&CatalogEntry::Agent(Box::new(agent.clone())))
            .await
            .unwrap();
        let ingress = IngressId::random();
        let listener = relay.subscribe(&ingress).await.unwrap();
        let context = WorkerContext {
            backends: Backends {
                bus: bus.clone(),
                relay: relay.clone(),
                store: store.clone(),
                analytics: Arc::new(analytics),
                catalog: catalog.clone(),
                products: Arc::new(
                    EmbeddedProducts::open(&dir.path().join("products.db")).unwrap(),
                ),
                limiter: Arc::new(EmbeddedLimiter::new()),
                accounts: Arc::new(
                    EmbeddedAccounts::open(&dir.path().join("accounts.db")).unwrap(),
                ),
                files: Arc::new(switchboard_backends::files::FileStore::in_memory(&secret())),
                eraser: Arc::new(EmbeddedEraser::default()),
            },
            file_reader: crate::ReaderPlace::Thread,
            catalog: CatalogCache::new(catalog),
            vault: SecretVault::new(&secret()),
            default_provider: DefaultProvider {
                base_url: provider.base_url().into(),
                model: "m".into(),
                continues_prefix,
                ..DefaultProvider::default()
            },
            config,
            metrics: Arc::new(WorkerMetrics::register(&Registry::new()).unwrap()),
        };
        let inference = Arc::new(InferenceHandler::new(context.clone()).unwrap());
        Self {
            inference,
            provider,
            relay,
            store,
            bus,
            context,
            ingress,
            listener,
            agent,
            _dir: dir,
        }
    }

    /// Returns a worker with a given idle timeout for a silent provider.
    pub(super) fn patient_for(&self, idle_ms: u64) -> InferenceHandler {
        let config = WorkersConfig {
            token_idle_timeout_ms: idle_ms,
            ..quick()
        };
        InferenceHandler::new(WorkerContext {
            config,
            ..self.context.clone()
        })
        .unwrap()
    }

    pub(super) const fn backends(&self) -> &Backends {
        &self.context.backends
    }

    pub(super) fn patient(&self) -> InferenceHandler {
        self.patient_for(30_000)
    }

    pub(super) fn job(&self, content: &str) -> ReplyJob {
        self.job_for(self.agent.id.clone(), content)
    }

    /// Adds an agent to the catalog.
    pub(super) async fn put_agent(&self, agent: &Agent) {
        let entry = CatalogEntry::Agent(Box::new(agent.clone()));
        self.context.backends.catalog.put(&entry).await.unwrap();
    }

    pub(super) fn other_agent(&self) -> AgentId {
        AgentId::derive(&secret(), &self.agent.org_id, "gone")
    }

    pub(super) fn job_for(&self, agent_id: AgentId, content: &str) -> ReplyJob {
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
            attachments: Vec::new(),
            visitor: Visitor::default(),
            metadata: Map::new(),
            source: MessageSource::Api,
            ip_address: None,
            accepted_at: Timestamp::now(),
            reply_to: Some(self.ingress.clone()),
            publish_nonce: RequestId::random().to_string(),
        };
        ReplyJob {
            agent_id,
            routed: None,
            turn,
            attempt_min: 1,
        }
    }

    pub(super) fn patch(&self, job: &ReplyJob) -> PatchJob {
        PatchJob {
            event_id: EventId::derive("patch", "1"),
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

    /// Returns a deletion of the job's conversation.
    pub(super) fn deletion(&self, job: &ReplyJob) -> DeleteJob {
        DeleteJob {
            event_id: EventId::derive("delete", "1"),
            org_id: job.turn.org_id.clone(),
            conversation_id: job.turn.conversation_id.clone(),
            agent_id: Some(job.agent_id.clone()),
            team_id: None,
            request_id: RequestId::random(),
            accepted_at: Timestamp::now(),
            reply_to: self.ingress.clone(),
        }
    }

    pub(super) async fn run(&self, job: &ReplyJob) -> JobEnd {
        Self::run_on(&self.inference, job).await
    }

    pub(super) async fn run_on(inference: &InferenceHandler, job: &ReplyJob) -> JobEnd {
        let (handoff, attempts) = (
            CancellationToken::new(),
            ClaimAttempts::new(false, false, false),
        );
        let run = Box::pin(turn_runner::run_turn(
            inference,
            job,
            Timestamp::now(),
            &attempts,
            &handoff,
        ));
        timeout(WAIT, run).await.expect("the job ends")
    }

    /// Runs a job that another worker may be working on.
    pub(super) async fn run_inherited(&self, job: &ReplyJob) -> JobEnd {
        let handoff = CancellationToken::new();
        let attempts = ClaimAttempts::new(false, true, false);
        let run = Box::pin(turn_runner::run_turn(
            &self.inference,
            job,
            Timestamp::now(),
            &attempts,
            &handoff,
        ));
        timeout(WAIT, run).await.expect("the job ends")
    }

    /// Stores the input of a playground run, as an ingress does.
    pub(super) async fn store_playground_run(&self, job: &ReplyJob, run: &AgentPlaygroundRun) {
        let text = serde_json::to_string(run).unwrap();
        self.relay
            .put_playground_run(&job.turn.message_id, &text)
            .await
            .unwrap();
    }

    pub(super) async fn run_playground(&self, job: &ReplyJob) -> JobEnd {
        let handoff = CancellationToken::new();
        let attempts = ClaimAttempts::new(false, false, false);
        let run = Box::pin(playground_turn::run_playground_turn(
            &self.inference,
            job,
            &attempts,
            &handoff,
        ));
        timeout(WAIT, run).await.expect("the playground run ends")
    }

    pub(super) fn another_organization() -> OrgId {
        OrgId::derive(&secret(), "other")
    }

    pub(super) async fn run_patch(&self, job: &PatchJob) -> JobEnd {
        metadata_patch::apply_patch(&self.inference, job, false).await
    }

    pub(super) async fn run_deletion(&self, job: &DeleteJob) -> JobEnd {
        conversation_deletion::delete_conversation(&self.inference, job).await
    }

    /// Runs until this text is logged, then requests a handoff.
    pub(super) async fn hand_off_after(&self, job: &ReplyJob, text: &str) -> JobEnd {
        self.hand_off_when(job, async || self.logged_text(job).await == text)
            .await
    }

    /// Runs until `ready`, then requests a handoff.
    pub(super) async fn hand_off_when(
        &self,
        job: &ReplyJob,
        ready: impl AsyncFnMut() -> bool,
    ) -> JobEnd {
        let (inference, handoff, attempts) = (
            self.patient(),
            CancellationToken::new(),
            ClaimAttempts::new(false, false, false),
        );
        let ask = async {
            eventually("the worker is ready for the handoff", ready).await;
            handoff.cancel();
        };
        tokio::join!(
            Box::pin(turn_runner::run_turn(
                &inference,
                job,
                Timestamp::now(),
                &attempts,
                &handoff
            )),
            ask
        )
        .0
    }

    /// Returns true if the log of the current relay contains the end.
    pub(super) async fn has_settled_end(&self, job: &ReplyJob) -> bool {
        let frames = self
            .relay()
            .read_frames(&job.turn.reply_id(), 0)
            .await
            .unwrap();
        frames
            .iter()
            .any(|frame| matches!(frame.body, FrameBody::End(_)))
    }

    /// Makes publishes to the topic for analytics fail.
    pub(super) fn refuse_events(&self) {
        self.bus
            .faults
            .inject(Topic::Messages.name(), Fault::Refuse);
    }

    pub(super) fn accept_events(&self) {
        self.bus.faults.clear(Topic::Messages.name());
    }

    /// Replaces the relay by an empty one.
    pub(super) fn lose_relay_data(&self) {
        self.relay.replace(EmbeddedRelay::open(None).unwrap());
    }

    /// Makes every write of a claim holder fail as if another worker had claimed the reply.
    pub(super) fn fence_worker(&self) {
        for operation in [
            "append_frames",
            "renew_claim",
            "restore_claim",
            "finalize_reply",
            "complete_claim",
        ] {
            self.relay
                .faults
                .alter(operation, |_: ClaimStatus| ClaimStatus::Fenced);
        }
    }

    pub(super) fn relay(&self) -> Arc<EmbeddedRelay> {
        self.relay.inner()
    }

    pub(super) async fn logged_text(&self, job: &ReplyJob) -> String {
        LoggedReply::from_frames(
            self.relay()
                .read_frames(&job.turn.reply_id(), 0)
                .await
                .unwrap(),
        )
        .text
    }

    /// Returns the frames pushed to the ingress, up to the end, without heartbeats.
    pub(super) async fn pushed(&mut self, job: &ReplyJob) -> Vec<Frame> {
        let mut frames = Vec::new();
        loop {
            let envelope = timeout(WAIT, self.listener.recv())
                .await
                .expect("an end")
                .unwrap();
            let ended = is_end(&envelope);
            if let IngressEnvelope::Reply(id, ReplySignal::Frame(frame)) = envelope
                && id == job.turn.reply_id()
            {
                frames.push(frame);
            }
            if ended {
                return frames;
            }
        }
    }

    pub(super) fn text_of(frames: &[Frame]) -> String {
        LoggedReply::from_frames(frames.to_vec()).text
    }

    pub(super) async fn patch_answer(&mut self) -> PatchOutcome {
        loop {
            if let IngressEnvelope::Patch(_, outcome) = timeout(WAIT, self.listener.recv())
                .await
                .expect("an answer")
                .unwrap()
            {
                return outcome;
            }
        }
    }

    pub(super) async fn messages(&self, job: &ReplyJob) -> Vec<Message> {
        self.store
            .inner()
            .messages(&job.turn.org_id, &job.turn.conversation_id, 0, 100)
            .await
            .unwrap()
    }

    pub(super) async fn record(&self, job: &ReplyJob) -> Option<ReplyRecord> {
        self.store
            .inner()
            .final_record(&job.turn.org_id, &job.turn.reply_id())
            .await
            .unwrap()
    }

    /// Returns the first `count` events of the topic for analytics, in order.
    pub(super) async fn events(&self, count: usize) -> Vec<Value> {
        let mut consumer = self
            .bus
            .consume("analytics", &[Topic::Messages])
            .await
            .unwrap();
        let mut events = Vec::new();
        while events.len() < count {
            if let BusEvent::Record(record) = timeout(WAIT, consumer.next())
                .await
                .expect("an event")
                .unwrap()
            {
                events.push(serde_json::from_slice(&record.payload).unwrap());
            }
        }
        events
    }

    /// Returns the texts of the replies in `events`.
    pub(super) fn replies(events: &[Value]) -> Vec<&str> {
        let replies = events
            .iter()
            .filter(|event| event["type"] == "message.assistant");
        replies
            .map(|event| event["content"].as_str().unwrap())
            .collect()
    }

    pub(super) async fn publish(&self, job: &ReplyJob) {
        let key = job.turn.conversation_id.to_string();
        let payload = versioned::encode(&ConversationJob::Reply(Box::new(job.clone())))
            .unwrap()
            .into();
        let record = OutgoingRecord {
            topic: Topic::Jobs,
            key,
            payload,
            headers: Vec::new(),
        };
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
        let drained = timeout(WAIT, self.tasks.join_next()).await;
        let ended = drained.expect("the worker drains").unwrap();
        ended.unwrap().unwrap();
    }
}
