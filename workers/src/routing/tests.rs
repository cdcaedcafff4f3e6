//! Tests of routing a team's message, over the embedded backends.

mod playground;

use prometheus::Registry;
use switchboard_backends::{
    accounts::embedded::EmbeddedAccounts,
    bus::{BusEvent, MessageBus, embedded::EmbeddedBus},
    catalog::{CatalogEntry, CatalogEntryStore, embedded::EmbeddedCatalog},
    files::FileStore,
    limiter::embedded::EmbeddedLimiter,
    organization_eraser::EmbeddedEraser,
    products::embedded::EmbeddedProducts,
    relay::embedded::EmbeddedRelay,
    store::embedded::EmbeddedStore,
    vault::SecretVault,
};
use switchboard_schemas::{
    agent::{ActivationStatus, Agent, AgentSettings},
    file::{Attachment, FileType},
    ids::{AgentId, ConversationId, FileId, IngressId, MessageId, OrgId, RequestId, TeamId},
    playground::{PlaygroundMessage, PlaygroundRouting, TeamPlaygroundJob, TeamPlaygroundRun},
    removal::OrganizationRemoval,
    reply_event::{FrameBody, IngressEnvelope, ReplyFailure, ReplySignal},
    secret::InstallationSecret,
    team::{Team, TeamMember},
    time::Timestamp,
    turn::{MessageSource as TurnSource, Turn, Visitor},
};
use tokio::time::timeout;

use super::*;
use crate::{DefaultProvider, metrics::WorkerMetrics, testing::quick};

const WAIT: Duration = Duration::from_secs(60);

fn secret() -> InstallationSecret {
    InstallationSecret::from_bytes([1; 32])
}

fn org() -> OrgId {
    OrgId::derive(&secret(), "acme")
}

fn agent(slug: &str, settings: AgentSettings) -> Agent {
    Agent {
        id: AgentId::derive(&secret(), &org(), slug),
        org_id: org(),
        slug: slug.into(),
        name: slug.into(),
        provider: None,
        fallback_provider: None,
        settings,
    }
}

fn team(
    slug: &str,
    routing: RoutingStrategy,
    default_agent: Option<&str>,
    members: &[&str],
) -> Team {
    let id = |slug: &str| AgentId::derive(&secret(), &org(), slug);
    let member = |slug: &&str| TeamMember {
        agent: id(slug),
        specialization: String::new(),
    };
    Team {
        id: TeamId::derive(&secret(), &org(), slug),
        org_id: org(),
        slug: slug.into(),
        name: "Front desk".into(),
        description: String::new(),
        routing,
        default_agent: default_agent.map(id),
        members: members.iter().map(member).collect(),
        public: true,
        status: ActivationStatus::Active,
    }
}

/// The installation: agents, of which two can answer, and teams of them.
async fn context(dir: &std::path::Path) -> WorkerContext {
    let catalog = std::sync::Arc::new(EmbeddedCatalog::open(&dir.join("catalog.db")).unwrap());
    let usual = AgentSettings::default;
    let agents = [
        agent("shop", usual()),
        agent("desk", usual()),
        agent(
            "draft",
            AgentSettings {
                status: ActivationStatus::Draft,
                ..usual()
            },
        ),
        agent(
            "hidden",
            AgentSettings {
                public: false,
                ..usual()
            },
        ),
    ];
    let everyone = ["draft", "shop", "hidden", "gone", "desk"];
    let teams = [
        team("front", RoutingStrategy::Intent, Some("shop"), &["shop"]),
        team("turns", RoutingStrategy::RoundRobin, None, &everyone),
        team("chance", RoutingStrategy::Random, None, &everyone),
        team(
            "absent",
            RoutingStrategy::Random,
            Some("draft"),
            &["hidden", "gone"],
        ),
    ];
    for entry in agents
        .map(|agent| CatalogEntry::Agent(Box::new(agent)))
        .into_iter()
        .chain(teams.map(CatalogEntry::Team))
    {
        catalog.put(&entry).await.unwrap();
    }
    let store = std::sync::Arc::new(EmbeddedStore::open(&dir.join("store.db")).unwrap());
    let backends = Backends {
        bus: std::sync::Arc::new(EmbeddedBus::open(&dir.join("bus.db"), 4).unwrap()),
        relay: std::sync::Arc::new(EmbeddedRelay::open(None).unwrap()),
        store: store.clone(),
        analytics: store,
        catalog: catalog.clone(),
        products: std::sync::Arc::new(EmbeddedProducts::open(&dir.join("products.db")).unwrap()),
        limiter: std::sync::Arc::new(EmbeddedLimiter::new()),
        accounts: std::sync::Arc::new(EmbeddedAccounts::open(&dir.join("accounts.db")).unwrap()),
        files: std::sync::Arc::new(FileStore::in_memory(&secret())),
        eraser: std::sync::Arc::new(EmbeddedEraser::default()),
    };
    let default_provider = DefaultProvider {
        model: "m".into(),
        ..DefaultProvider::default()
    };
    WorkerContext {
        backends,
        file_reader: crate::ReaderPlace::Thread,
        catalog: CatalogCache::new(catalog),
        vault: SecretVault::new(&secret()),
        default_provider,
        config: quick(),
        metrics: std::sync::Arc::new(WorkerMetrics::register(&Registry::new()).unwrap()),
    }
}

fn job(team: &str, ingress: Option<IngressId>) -> TeamMessageJob {
    job_in("session", team, ingress)
}

fn job_in(session: &str, team: &str, ingress: Option<IngressId>) -> TeamMessageJob {
    let team_id = TeamId::derive(&secret(), &org(), team);
    let session_id = session.parse().unwrap();
    let conversation_id = ConversationId::of_team(&org(), &team_id, &session_id);
    let turn = Turn {
        org_id: org(),
        message_id: MessageId::new_in(&conversation_id),
        conversation_id,
        request_id: RequestId::random(),
        key_id: None,
        session_id,
        content: "hi".into(),
        attachments: Vec::new(),
        visitor: Visitor::default(),
        metadata: serde_json::Map::new(),
        source: TurnSource::Api,
        ip_address: None,
        accepted_at: Timestamp::now(),
        reply_to: ingress,
        publish_nonce: "n".into(),
    };
    TeamMessageJob { team_id, turn }
}

#[test]
fn message_of_files_alone_is_routed_by_their_names() {
    let mut turn = job("front", None).turn;
    turn.attachments = [
        ("invoice.pdf", FileType::Pdf),
        ("broken.png", FileType::Png),
    ]
    .map(|(name, mime_type)| Attachment {
        file_id: FileId::now(),
        name: name.into(),
        mime_type,
        bytes: 1,
    })
    .into();
    assert_eq!(routed_text(&turn), "hi");
    turn.content = " ".into();
    let names = "invoice.pdf (application/pdf), broken.png (image/png)";
    assert_eq!(routed_text(&turn), names);
}

/// Returns the first job for the inference workers, which is keyed by its conversation.
async fn forwarded(bus: &dyn MessageBus) -> ReplyJob {
    let mut consumer = bus.consume("watch", &[Topic::Jobs]).await.unwrap();
    let record = loop {
        let event = timeout(WAIT, consumer.next()).await.expect("a job");
        if let BusEvent::Record(record) = event.unwrap() {
            break record;
        }
    };
    let ConversationJob::Reply(job) = versioned::decode(&record.payload).unwrap() else {
        panic!("no reply job")
    };
    assert_eq!(record.key, job.turn.conversation_id.as_str());
    *job
}

fn message(job: &TeamMessageJob) -> std::sync::Arc<RoutingJob> {
    RoutingJob::Message(Box::new(job.clone())).into()
}

#[tokio::test]
async fn team_message_becomes_a_job_of_the_default_agent() {
    let dir = tempfile::tempdir().unwrap();
    let context = context(dir.path()).await;
    let (bus, job) = (context.backends.bus.clone(), job("front", None));
    let end = RoutingHandler::new(context)
        .unwrap()
        .run_job(message(&job), &CancellationToken::new())
        .await;
    assert!(matches!(end, JobEnd::Finished));

    let answer = forwarded(&*bus).await;
    assert_eq!(answer.agent_id, AgentId::derive(&secret(), &org(), "shop"));
    assert_eq!(
        (answer.routed.unwrap().reason.as_str(), answer.turn),
        (
            "no member matches (by words): the default agent answers",
            job.turn
        )
    );
}

#[tokio::test]
async fn message_without_a_route_fails_and_goes_to_the_dlq() {
    let dir = tempfile::tempdir().unwrap();
    let context = context(dir.path()).await;
    let (relay, store) = (
        context.backends.relay.clone(),
        context.backends.store.clone(),
    );
    let ingress = IngressId::random();
    let mut listener = relay.subscribe(&ingress).await.unwrap();
    let job = job("gone", Some(ingress));
    let routing = RoutingHandler::new(context).unwrap();
    let end = routing
        .run_job(message(&job), &CancellationToken::new())
        .await;
    assert!(matches!(
        end,
        JobEnd::DeadLetter(DeadLetterCause {
            class: "no-route",
            ..
        })
    ));

    let IngressEnvelope::Reply(_, ReplySignal::Frame(frame)) = timeout(WAIT, listener.recv())
        .await
        .expect("an end")
        .unwrap()
    else {
        panic!()
    };
    let FrameBody::End(end) = frame.body else {
        panic!("no end")
    };
    assert_eq!(end.failure, Some(ReplyFailure::NoRoute));
    let record = store
        .final_record(&org(), &job.turn.reply_id())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(record.end, *end);
    assert!(
        matches!(
            routing
                .run_job(message(&job), &CancellationToken::new())
                .await,
            JobEnd::Finished
        ),
        "once and for all"
    );
}

/// Routes one message and tells what stands in the relay for it.
async fn decided(routing: &RoutingHandler, job: &TeamMessageJob) -> RoutingDecision {
    let end = routing
        .run_job(message(job), &CancellationToken::new())
        .await;
    assert!(matches!(end, JobEnd::Finished), "{end:?}");
    routing
        .backends
        .relay
        .recorded_decisions(&job.turn.message_id)
        .await
        .unwrap()
        .own
        .unwrap()
}

#[tokio::test]
async fn round_robin_is_even_on_several_workers_with_repeats() {
    let dir = tempfile::tempdir().unwrap();
    let context = context(dir.path()).await;
    let workers = [
        RoutingHandler::new(context.clone()).unwrap(),
        RoutingHandler::new(context).unwrap(),
    ];
    let mut counts = std::collections::HashMap::new();
    for number in 0..9 {
        let job = job_in(&format!("session {number}"), "turns", None);
        let decision = decided(&workers[number % 2], &job).await;
        assert_eq!(
            decided(&workers[(number + 1) % 2], &job).await,
            decision,
            "a repeat reads it back"
        );
        *counts.entry(decision.agent_id).or_insert(0_i32) += 1;
        let of = |slug| {
            counts
                .get(&AgentId::derive(&secret(), &org(), slug))
                .copied()
                .unwrap_or_default()
        };
        assert!(
            (of("shop") - of("desk")).abs() <= 1
                && of("shop") + of("desk") == counts.values().sum::<i32>()
        );
    }
}

#[tokio::test]
async fn round_robin_is_even_although_members_change() {
    let dir = tempfile::tempdir().unwrap();
    let context = context(dir.path()).await;
    let catalog = context.backends.catalog.clone();
    let able = |slug: &str| CatalogEntry::Agent(Box::new(agent(slug, AgentSettings::default())));
    let comes_and_goes = |status| {
        CatalogEntry::Agent(Box::new(agent(
            "draft",
            AgentSettings {
                status,
                ..AgentSettings::default()
            },
        )))
    };
    catalog.put(&able("hidden")).await.unwrap();
    let mut counts = std::collections::BTreeMap::new();
    for number in 0..18 {
        let status = if number % 2 == 0 {
            ActivationStatus::Active
        } else {
            ActivationStatus::Inactive
        };
        catalog.put(&comes_and_goes(status)).await.unwrap();
        // What a worker knows of the catalog is a while old; this one has just started.
        let routing = RoutingHandler::new(WorkerContext {
            catalog: CatalogCache::new(catalog.clone()),
            ..context.clone()
        });
        let decision = decided(
            &routing.unwrap(),
            &job_in(&format!("session {number}"), "turns", None),
        )
        .await;
        *counts.entry(decision.agent_id).or_insert(0) += 1;
    }
    let (least, most) = (
        counts.values().min().unwrap(),
        counts.values().max().unwrap(),
    );
    assert!(counts.len() == 4 && most - least <= 1, "{counts:?}");
}

#[tokio::test]
async fn random_choice_covers_members_and_conversations_stay() {
    let dir = tempfile::tempdir().unwrap();
    let routing = RoutingHandler::new(context(dir.path()).await).unwrap();
    let mut seen = std::collections::HashSet::new();
    for number in 0..40 {
        let session = format!("session {number}");
        let first = decided(&routing, &job_in(&session, "chance", None)).await;
        assert_eq!(
            decided(&routing, &job_in(&session, "chance", None))
                .await
                .agent_id,
            first.agent_id
        );
        seen.insert(first.agent_id);
    }
    let able = ["shop", "desk"].map(|slug| AgentId::derive(&secret(), &org(), slug));
    assert_eq!(seen, able.into());
}

#[tokio::test]
async fn recorded_decision_is_forwarded_again() {
    let dir = tempfile::tempdir().unwrap();
    let context = context(dir.path()).await;
    let job = job("front", None);
    let recorded = RoutingDecision {
        agent_id: AgentId::derive(&secret(), &org(), "desk"),
        reason: "decided before the worker died".into(),
        facts: None,
    };
    let (relay, bus) = (context.backends.relay.clone(), context.backends.bus.clone());
    relay
        .record_decision(&job.turn.message_id, &recorded)
        .await
        .unwrap();
    let routing = RoutingHandler::new(context).unwrap();
    assert_eq!(decided(&routing, &job).await, recorded);
    let answer = forwarded(&*bus).await;
    assert_eq!(
        (&answer.agent_id, answer.routed.unwrap().reason.as_str()),
        (&recorded.agent_id, "decided before the worker died")
    );
}

#[tokio::test]
async fn organizations_do_not_route_to_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let context = context(dir.path()).await;
    let other = OrgId::derive(&secret(), "other");
    // The id of a missing member belongs to another organization.
    let foreign = Agent {
        org_id: other.clone(),
        ..agent("gone", AgentSettings::default())
    };
    let entry = CatalogEntry::Agent(Box::new(foreign));
    context.backends.catalog.put(&entry).await.unwrap();
    let store = context.backends.store.clone();
    let routing = RoutingHandler::new(context).unwrap();
    let mut of_another = job("front", None);
    of_another.turn.org_id = other;
    for job in [job("absent", None), of_another] {
        let end = routing
            .run_job(message(&job), &CancellationToken::new())
            .await;
        let (org, reply) = (&job.turn.org_id, job.turn.reply_id());
        let record = store.final_record(org, &reply).await.unwrap();
        let failure = record.and_then(|record| record.end.failure);
        assert_eq!(failure, Some(ReplyFailure::NoRoute), "{end:?}");
    }
}

#[tokio::test]
async fn team_of_inactive_agents_fails_without_a_dead_letter() {
    let dir = tempfile::tempdir().unwrap();
    let context = context(dir.path()).await;
    let (store, metrics) = (context.backends.store.clone(), context.metrics.clone());
    let routing = RoutingHandler::new(context).unwrap();
    let job = job("absent", None);
    let end = routing
        .run_job(message(&job), &CancellationToken::new())
        .await;
    assert!(matches!(end, JobEnd::Finished), "{end:?}");
    let record = store.final_record(&org(), &job.turn.reply_id()).await;
    let failure = record.unwrap().unwrap().end.failure;
    assert_eq!(failure, Some(ReplyFailure::NoRoute));
    assert_eq!(metrics.routed.with_label_values(&["none"]).get(), 1);
}

#[tokio::test]
async fn message_to_a_removed_organization_is_no_dead_letter() {
    let dir = tempfile::tempdir().unwrap();
    let context = context(dir.path()).await;
    let backends = context.backends.clone();
    let removal = OrganizationRemoval::begin(org(), None);
    let entry = CatalogEntry::Removal(removal);
    backends.catalog.put(&entry).await.unwrap();
    let job = job("gone", None);
    let routing = RoutingHandler::new(context).unwrap();
    let end = routing
        .run_job(message(&job), &CancellationToken::new())
        .await;
    assert!(matches!(end, JobEnd::Finished));
    let (store, turn) = (&backends.store, &job.turn);
    let reply = turn.reply_id();
    let known = store.known_reply(&turn.org_id, &reply).await;
    assert_eq!(known.unwrap(), None);
    let (org, id) = (&turn.org_id, &turn.conversation_id);
    assert_eq!(store.conversation(org, id).await.unwrap(), None);
}
