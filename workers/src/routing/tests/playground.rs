//! Tests of playground runs of teams.

use super::*;

/// Asks who of `team` would answer, as an ingress does.
async fn run_playground(
    routing: &RoutingHandler,
    team: Option<Team>,
    message: &str,
    past: Vec<PlaygroundMessage>,
) -> PlaygroundRouting {
    let relay = &routing.backends.relay;
    let (reply_to, conversation) = (IngressId::random(), job("front", None).turn.conversation_id);
    let mut listener = relay.subscribe(&reply_to).await.unwrap();
    let run_id = MessageId::new_in(&conversation);
    if let Some(team) = team {
        let run = TeamPlaygroundRun {
            team,
            message: message.into(),
            past,
        };
        relay
            .put_playground_run(&run_id, &serde_json::to_string(&run).unwrap())
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
        .run_job(
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

fn routed_agent(verdict: PlaygroundRouting) -> switchboard_schemas::playground::RoutedAgent {
    let PlaygroundRouting::Agent(chosen) = verdict else {
        panic!("{verdict:?}")
    };
    *chosen
}

#[tokio::test]
async fn playground_run_uses_the_draft_and_scores_each_member() {
    let dir = tempfile::tempdir().unwrap();
    let routing = RoutingHandler::new(context(dir.path()).await).unwrap();
    let mut draft = team("front", RoutingStrategy::Intent, None, &["shop", "desk"]);
    draft.members[0].specialization = "orders, delivery, refunds".into();
    draft.members[1].specialization = "passwords, logins, broken screens".into();
    let verdict = routed_agent(
        run_playground(
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
                attachments: Vec::new(),
            },
            assistant,
        ]
    };
    let follow_up = routed_agent(
        run_playground(&routing, Some(draft.clone()), "the second one", said(&desk)).await,
    );
    assert_eq!(follow_up.agent_id, desk, "{}", follow_up.reason);
}

#[tokio::test]
async fn playground_run_stores_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let context = context(dir.path()).await;
    let (routing, bus) = (
        RoutingHandler::new(context.clone()).unwrap(),
        context.backends.bus.clone(),
    );
    let turns = team(
        "turns",
        RoutingStrategy::RoundRobin,
        None,
        &["shop", "desk"],
    );
    for _ in 0..3 {
        let verdict =
            routed_agent(run_playground(&routing, Some(turns.clone()), "hello", Vec::new()).await);
        assert!(
            verdict.reason.contains("playground runs do not count"),
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
async fn playground_run_without_a_member_or_draft_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let routing = RoutingHandler::new(context(dir.path()).await).unwrap();
    let nobody = team(
        "absent",
        RoutingStrategy::Intent,
        Some("draft"),
        &["hidden", "gone"],
    );
    assert_eq!(
        run_playground(&routing, Some(nobody.clone()), "hello", Vec::new()).await,
        PlaygroundRouting::NoAgent
    );
    assert_eq!(
        run_playground(&routing, None, "hello", Vec::new()).await,
        PlaygroundRouting::Expired
    );
    let other = OrgId::derive(&secret(), "other");
    let foreign = Team {
        org_id: other,
        ..nobody
    };
    assert_eq!(
        run_playground(&routing, Some(foreign), "hello", Vec::new()).await,
        PlaygroundRouting::Expired
    );
}
