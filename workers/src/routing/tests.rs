//! A team's message against the embedded twins.

use prometheus::Registry;
use switchboard_backends::{
    accounts::embedded::EmbeddedAccounts,
    bus::{BusEvent, embedded::EmbeddedBus},
    catalog::{CatalogEntry, CatalogStore, embedded::EmbeddedCatalog},
    limiter::embedded::EmbeddedLimiter,
    products::embedded::EmbeddedProducts,
    relay::embedded::EmbeddedRelay,
    store::embedded::EmbeddedStore,
    vault::SecretVault,
};
use switchboard_schemas::{
    agent::{ActivationStatus, Agent, AgentSettings},
    ids::{AgentId, ConversationId, IngressId, MessageId, OrgId, RequestId, TeamId},
    playground::{PlaygroundMessage, PlaygroundRouting, TeamPlaygroundJob, TeamPlaygroundRun},
    reply_event::{FrameBody, IngressEnvelope, ReplyFailure},
    secret::InstallationSecret,
    team::{Team, TeamMember},
    time::Timestamp,
    turn::{MessageSource as TurnSource, Turn, Visitor},
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

fn message(job: &TeamMessageJob) -> std::sync::Arc<RoutingJob> {
    RoutingJob::Message(Box::new(job.clone())).into()
}

#[tokio::test]
async fn a_teams_message_becomes_work_of_its_default_agent_before_it_is_settled() {
    let dir = tempfile::tempdir().unwrap();
    let context = context(dir.path()).await;
    let (bus, job) = (context.backends.bus.clone(), job("front", None));
    let end = Routing::new(context)
        .unwrap()
        .run(message(&job), &CancellationToken::new())
        .await;
    assert!(matches!(end, JobEnd::Finished));

    let mut consumer = bus.consume("watch", &[Topic::Jobs]).await.unwrap();
    let record = loop {
        if let BusEvent::Record(record) = timeout(WAIT, consumer.next())
            .await
            .expect("a job")
            .unwrap()
        {
            break record;
        }
    };
    assert_eq!(record.key, job.turn.conversation_id.as_str());
    let ConversationJob::Reply(answer) = versioned::decode(&record.payload).unwrap() else {
        panic!("no answer job")
    };
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
async fn a_message_to_a_team_of_nobody_fails_visibly_and_is_buried() {
    let dir = tempfile::tempdir().unwrap();
    let context = context(dir.path()).await;
    let (relay, store) = (
        context.backends.relay.clone(),
        context.backends.store.clone(),
    );
    let ingress = IngressId::random();
    let mut listener = relay.listen(&ingress).await.unwrap();
    let job = job("gone", Some(ingress));
    let routing = Routing::new(context).unwrap();
    let end = routing.run(message(&job), &CancellationToken::new()).await;
    assert!(matches!(
        end,
        JobEnd::Dead(Cause {
            class: "no-route",
            ..
        })
    ));

    let IngressEnvelope::Reply(_, frame) = timeout(WAIT, listener.recv())
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
        .reply(&org(), &job.turn.reply_id())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(record.end, *end);
    assert!(
        matches!(
            routing.run(message(&job), &CancellationToken::new()).await,
            JobEnd::Finished
        ),
        "once and for all"
    );
}

/// Routes one message and tells what stands in the relay for it.
async fn decided(routing: &Routing, job: &TeamMessageJob) -> RoutingDecision {
    let end = routing.run(message(job), &CancellationToken::new()).await;
    assert!(matches!(end, JobEnd::Finished), "{end:?}");
    routing
        .backends
        .relay
        .decisions(&job.turn.message_id)
        .await
        .unwrap()
        .own
        .unwrap()
}

#[tokio::test]
async fn in_turn_means_that_counts_differ_by_at_most_one_on_several_workers_and_with_repeats() {
    let dir = tempfile::tempdir().unwrap();
    let context = context(dir.path()).await;
    let workers = [
        Routing::new(context.clone()).unwrap(),
        Routing::new(context).unwrap(),
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
async fn in_turn_counts_differ_by_at_most_one_although_a_member_comes_and_goes() {
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
        let routing = Routing::new(WorkerContext {
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
async fn chance_takes_each_member_that_can_answer_and_a_conversation_stays_with_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let routing = Routing::new(context(dir.path()).await).unwrap();
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
async fn a_team_whose_agents_cannot_answer_has_no_route() {
    let dir = tempfile::tempdir().unwrap();
    let routing = Routing::new(context(dir.path()).await).unwrap();
    let end = routing
        .run(message(&job("absent", None)), &CancellationToken::new())
        .await;
    assert!(matches!(
        end,
        JobEnd::Dead(Cause {
            class: "no-route",
            ..
        })
    ));
}

/// Asks who of `team` would answer, as an ingress does.
async fn tried(
    routing: &Routing,
    team: Option<Team>,
    message: &str,
    past: Vec<PlaygroundMessage>,
) -> PlaygroundRouting {
    let relay = &routing.backends.relay;
    let (reply_to, conversation) = (IngressId::random(), job("front", None).turn.conversation_id);
    let mut listener = relay.listen(&reply_to).await.unwrap();
    let run_id = MessageId::new_in(&conversation);
    if let Some(team) = team {
        let trial = TeamPlaygroundRun {
            team,
            message: message.into(),
            past,
        };
        relay
            .keep_trial(&run_id, &serde_json::to_string(&trial).unwrap())
            .await
            .unwrap();
    }
    let job = TeamPlaygroundJob {
        run_id: run_id.clone(),
        org_id: org(),
        request_id: RequestId::random(),
        reply_to,
    };
    let end = routing
        .run(
            RoutingJob::Playground(job).into(),
            &CancellationToken::new(),
        )
        .await;
    assert!(matches!(end, JobEnd::Finished), "{end:?}");
    let IngressEnvelope::Playground(id, verdict) = timeout(WAIT, listener.recv())
        .await
        .expect("a verdict")
        .unwrap()
    else {
        panic!("no verdict")
    };
    assert_eq!(id, run_id);
    verdict
}

fn chosen(verdict: PlaygroundRouting) -> switchboard_schemas::playground::RoutedAgent {
    let PlaygroundRouting::Agent(chosen) = verdict else {
        panic!("{verdict:?}")
    };
    *chosen
}

#[tokio::test]
async fn a_trial_is_decided_by_the_draft_and_its_past_with_a_score_for_each_member() {
    let dir = tempfile::tempdir().unwrap();
    let routing = Routing::new(context(dir.path()).await).unwrap();
    let mut draft = team("front", RoutingStrategy::Intent, None, &["shop", "desk"]);
    draft.members[0].specialization = "orders, delivery, refunds".into();
    draft.members[1].specialization = "passwords, logins, broken screens".into();
    let verdict = chosen(
        tried(
            &routing,
            Some(draft.clone()),
            "where is my refund?",
            Vec::new(),
        )
        .await,
    );
    let [shop, desk] = ["shop", "desk"].map(|slug| AgentId::derive(&secret(), &org(), slug));
    assert_eq!(verdict.agent_id, shop);
    let scores = verdict.facts.unwrap().scores;
    assert_eq!(
        scores
            .iter()
            .map(|score| &score.agent_id)
            .collect::<Vec<_>>(),
        [&shop, &desk]
    );
    assert!(scores[0].permille > scores[1].permille, "{scores:?}");

    let said = |agent: &AgentId| {
        let assistant = PlaygroundMessage::Assistant {
            agent_id: agent.clone(),
            content: "Which one?".into(),
            ui_spec: None,
        };
        vec![
            PlaygroundMessage::User {
                content: "my login".into(),
            },
            assistant,
        ]
    };
    let follow_up =
        chosen(tried(&routing, Some(draft.clone()), "the second one", said(&desk)).await);
    assert_eq!(follow_up.agent_id, desk, "{}", follow_up.reason);
}

#[tokio::test]
async fn a_trial_leaves_no_decision_and_takes_nobodys_turn() {
    let dir = tempfile::tempdir().unwrap();
    let context = context(dir.path()).await;
    let (routing, bus) = (
        Routing::new(context.clone()).unwrap(),
        context.backends.bus.clone(),
    );
    let turns = team(
        "turns",
        RoutingStrategy::RoundRobin,
        None,
        &["shop", "desk"],
    );
    for _ in 0..3 {
        let verdict = chosen(tried(&routing, Some(turns.clone()), "hello", Vec::new()).await);
        assert!(
            verdict.reason.contains("takes no turn"),
            "{}",
            verdict.reason
        );
    }
    assert_eq!(
        decided(&routing, &job_in("first", "turns", None))
            .await
            .agent_id,
        turns.members[0].agent
    );
    let mut consumer = bus.consume("watch", &[Topic::Jobs]).await.unwrap();
    let first = loop {
        if let BusEvent::Record(record) = timeout(WAIT, consumer.next())
            .await
            .expect("a job")
            .unwrap()
        {
            break versioned::decode::<ConversationJob>(&record.payload).unwrap();
        }
    };
    assert!(
        matches!(first, ConversationJob::Reply(_)),
        "only the message went on: {first:?}"
    );
}

#[tokio::test]
async fn a_trial_that_nobody_can_answer_or_that_is_not_kept_is_told_so() {
    let dir = tempfile::tempdir().unwrap();
    let routing = Routing::new(context(dir.path()).await).unwrap();
    let nobody = team(
        "absent",
        RoutingStrategy::Intent,
        Some("draft"),
        &["hidden", "gone"],
    );
    assert_eq!(
        tried(&routing, Some(nobody.clone()), "hello", Vec::new()).await,
        PlaygroundRouting::NoAgent
    );
    assert_eq!(
        tried(&routing, None, "hello", Vec::new()).await,
        PlaygroundRouting::Expired
    );
    let other = OrgId::derive(&secret(), "other");
    let foreign = Team {
        org_id: other,
        ..nobody
    };
    assert_eq!(
        tried(&routing, Some(foreign), "hello", Vec::new()).await,
        PlaygroundRouting::Expired
    );
}
