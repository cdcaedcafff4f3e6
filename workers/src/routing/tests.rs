//! A team's message against the embedded twins.

use prometheus::Registry;
use switchboard_backends::{
    bus::{BusEvent, embedded::EmbeddedBus},
    catalog::{Catalog, Entry, embedded::EmbeddedCatalog},
    limiter::embedded::EmbeddedLimiter,
    relay::embedded::EmbeddedRelay,
    store::embedded::EmbeddedStore,
    vault::Vault,
};
use switchboard_schemas::{
    agent::{AgentSettings, Status},
    ids::{AgentId, ConversationId, IngressId, MessageId, OrgId, RequestId, TeamId},
    reply_event::{Envelope, FrameBody, ReplyFailure},
    secret::InstallationSecret,
    team::{Member, RoutingStrategy},
    time::Timestamp,
    turn::{Source as TurnSource, Turn, Visitor},
};
use tokio::time::timeout;

use super::*;
use crate::{DefaultProvider, metrics::WorkerMetrics, testing::quick};

const WAIT: Duration = Duration::from_secs(10);

fn secret() -> InstallationSecret {
    InstallationSecret::from_bytes([1; 32])
}

fn org() -> OrgId {
    OrgId::derive(&secret(), "acme")
}

/// The installation, with a team whose one member is `shop`.
async fn context(dir: &std::path::Path) -> WorkerContext {
    let catalog = std::sync::Arc::new(EmbeddedCatalog::open(&dir.join("catalog.db")).unwrap());
    let shop = AgentId::derive(&secret(), &org(), "shop");
    let agent = Agent {
        id: shop.clone(),
        org_id: org(),
        slug: "shop".into(),
        name: "Shop".into(),
        provider: None,
        fallback_provider: None,
        settings: AgentSettings::default(),
    };
    let team = Team {
        id: TeamId::derive(&secret(), &org(), "front"),
        org_id: org(),
        slug: "front".into(),
        name: "Front desk".into(),
        description: String::new(),
        routing: RoutingStrategy::Intent,
        default_agent: Some(shop.clone()),
        members: vec![Member { agent: shop, specialization: String::new() }],
        public: true,
        status: Status::Active,
    };
    catalog.put(&Entry::Agent(Box::new(agent))).await.unwrap();
    catalog.put(&Entry::Team(team)).await.unwrap();
    let backends = Backends {
        bus: std::sync::Arc::new(EmbeddedBus::open(&dir.join("bus.db"), 4).unwrap()),
        relay: std::sync::Arc::new(EmbeddedRelay::open(None).unwrap()),
        store: std::sync::Arc::new(EmbeddedStore::open(&dir.join("store.db")).unwrap()),
        catalog: catalog.clone(),
        limiter: std::sync::Arc::new(EmbeddedLimiter::new()),
    };
    let default_provider = DefaultProvider {
        base_url: String::new(),
        api_key: None,
        model: "m".into(),
        continues_prefix: false,
        fallback: None,
    };
    WorkerContext {
        backends,
        catalog: CatalogCache::new(catalog),
        vault: Vault::new(&secret()),
        default_provider,
        config: quick(),
        metrics: std::sync::Arc::new(WorkerMetrics::register(&Registry::new()).unwrap()),
    }
}

fn job(team: &str, ingress: Option<IngressId>) -> ChatJob {
    let team_id = TeamId::derive(&secret(), &org(), team);
    let session_id = "session".parse().unwrap();
    let conversation_id = ConversationId::of_team(&org(), &team_id, &session_id);
    let turn = Turn {
        org_id: org(),
        message_id: MessageId::new_in(&conversation_id),
        conversation_id,
        request_id: RequestId::random(),
        key_id: None,
        session_id,
        content: "hi".into(),
        visitor: Visitor::default(),
        metadata: serde_json::Map::new(),
        source: TurnSource::Api,
        ip_address: None,
        accepted_at: Timestamp::now(),
        reply_to: ingress,
        publish_nonce: "n".into(),
    };
    ChatJob { team_id, turn }
}

#[tokio::test]
async fn a_teams_message_becomes_work_of_its_default_agent_before_it_is_settled() {
    let dir = tempfile::tempdir().unwrap();
    let context = context(dir.path()).await;
    let (bus, job) = (context.backends.bus.clone(), job("front", None));
    let end = Routing::new(context).run(job.clone().into(), &CancellationToken::new()).await;
    assert!(matches!(end, JobEnd::Finished));

    let mut consumer = bus.consume("watch", &[Topic::Jobs]).await.unwrap();
    let record = loop {
        if let BusEvent::Record(record) = timeout(WAIT, consumer.next()).await.expect("a job").unwrap() {
            break record;
        }
    };
    assert_eq!(record.key, job.turn.conversation_id.as_str());
    let ConversationJob::Answer(answer) = versioned::decode(&record.payload).unwrap() else { panic!("no answer job") };
    assert_eq!(answer.agent_id, AgentId::derive(&secret(), &org(), "shop"));
    assert_eq!((answer.routed.unwrap().reason.as_str(), answer.turn), ("default agent", job.turn));
}

#[tokio::test]
async fn a_message_to_a_team_of_nobody_fails_visibly_and_is_buried() {
    let dir = tempfile::tempdir().unwrap();
    let context = context(dir.path()).await;
    let (relay, store) = (context.backends.relay.clone(), context.backends.store.clone());
    let ingress = IngressId::random();
    let mut listener = relay.listen(&ingress).await.unwrap();
    let job = job("gone", Some(ingress));
    let routing = Routing::new(context);
    let end = routing.run(job.clone().into(), &CancellationToken::new()).await;
    assert!(matches!(end, JobEnd::Dead(Cause { class: "no-route", .. })));

    let Envelope::Reply(_, frame) = timeout(WAIT, listener.recv()).await.expect("an end").unwrap() else { panic!() };
    let FrameBody::End(end) = frame.body else { panic!("no end") };
    assert_eq!(end.failure, Some(ReplyFailure::NoRoute));
    let record = store.reply(&org(), &job.turn.reply_id()).await.unwrap().unwrap();
    assert_eq!(record.end, *end);
    assert!(matches!(routing.run(job.into(), &CancellationToken::new()).await, JobEnd::Finished), "once and for all");
}
