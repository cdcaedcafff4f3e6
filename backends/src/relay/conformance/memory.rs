//! Sentences about the queue of a conversation, and about what is remembered beside replies.

use std::sync::Arc;

use futures::future::join_all;
use switchboard_schemas::{
    ids::{AgentId, MessageId, OrgId, TeamId},
    routing::{MemberScore, RoutingFacts, RoutingStage},
    secret::InstallationSecret,
};

use super::support::{World, any_conversation, completed, text};
use crate::relay::{RecordedDecisions, Relay, RoutingDecision};

const PLACES: u32 = 3;

fn org() -> (InstallationSecret, OrgId) {
    let secret = InstallationSecret::from_bytes(rand::random());
    let org = OrgId::derive(&secret, "acme");
    (secret, org)
}

fn any_team() -> TeamId {
    let (secret, org) = org();
    TeamId::derive(&secret, &org, "front")
}

fn decision(slug: &str) -> RoutingDecision {
    let (secret, org) = org();
    let agent_id = AgentId::derive(&secret, &org, slug);
    let scores = vec![MemberScore {
        agent_id: agent_id.clone(),
        permille: 731,
    }];
    let facts = RoutingFacts {
        stage: RoutingStage::Words,
        took_ms: 2,
        scores,
    };
    RoutingDecision {
        agent_id,
        reason: format!("asks about “{slug}”"),
        facts: Some(facts),
    }
}

async fn enqueue(world: &World, reply: &MessageId) -> bool {
    world.ingress.enqueue(reply, PLACES).await.unwrap()
}

async fn fill(world: &World) -> Vec<MessageId> {
    let replies: Vec<_> = (0..PLACES).map(|_| world.reply()).collect();
    for reply in &replies {
        assert!(enqueue(world, reply).await);
    }
    replies
}

pub(super) async fn a_full_queue_takes_no_other_reply_and_keeps_those_that_it_has(world: World) {
    let replies = fill(&world).await;
    assert!(!enqueue(&world, &world.reply()).await);
    assert!(
        enqueue(&world, &replies[0]).await,
        "a repeat has its place already"
    );
    assert!(
        world
            .ingress
            .enqueue(&MessageId::new_in(&any_conversation()).reply(), PLACES)
            .await
            .unwrap()
    );
}

pub(super) async fn of_many_that_enqueue_at_once_no_more_than_fit_are_taken(world: World) {
    let replies: Vec<_> = (0..4 * PLACES).map(|_| world.reply()).collect();
    let taken = join_all(replies.iter().map(|reply| enqueue(&world, reply))).await;
    assert_eq!(
        taken.into_iter().filter(|taken| *taken).count(),
        PLACES as usize
    );
}

pub(super) async fn a_settled_reply_gives_its_place_back_and_needs_none_again(world: World) {
    let replies = fill(&world).await;
    let token = world.token(&replies[1]).await;
    world.worker.append(&token, None, &[text(1)]).await.unwrap();
    world.worker.seal(&token, &completed(2)).await.unwrap();
    assert!(
        !enqueue(&world, &world.reply()).await,
        "a sealed reply is not stored yet"
    );
    world
        .worker
        .settle(&token, &world.settlement(completed(2), true))
        .await
        .unwrap();
    assert!(
        enqueue(&world, &replies[1]).await,
        "a repeat of a final reply is served"
    );
    assert!(enqueue(&world, &world.reply()).await);
    assert!(!enqueue(&world, &world.reply()).await);
}

pub(super) async fn a_voided_publish_gives_its_place_back(world: World) {
    let replies = fill(&world).await;
    world.ingress.void(&replies[2], "publish").await.unwrap();
    assert!(enqueue(&world, &world.reply()).await);
}

pub(super) async fn of_many_that_remember_one_name_all_hear_the_same_value(world: World) {
    let (name, other) = (any_team().to_string(), any_team().to_string());
    let values: Vec<_> = (0..8).map(|number| number.to_string()).collect();
    let relays: [&Arc<dyn Relay>; 2] = [&world.worker, &world.ingress];
    let kept = join_all(
        values
            .iter()
            .enumerate()
            .map(|(index, value)| relays[index % 2].remember(&name, value)),
    )
    .await;
    let kept: Vec<_> = kept.into_iter().map(Result::unwrap).collect();
    assert!(
        values.contains(&kept[0]) && kept.iter().all(|value| *value == kept[0]),
        "{kept:?}"
    );
    assert_eq!(world.ingress.remember(&other, "own").await.unwrap(), "own");
}

pub(super) async fn the_first_decision_stands_and_the_last_of_a_conversation_is_known(
    world: World,
) {
    let [first, second, third] = [(); 3].map(|()| MessageId::new_in(&world.conversation));
    let (one, two) = (decision("one"), decision("two"));
    assert_eq!(
        world.worker.decisions(&first).await.unwrap(),
        RecordedDecisions::default()
    );
    assert_eq!(world.worker.decide(&first, &one).await.unwrap(), one);
    assert_eq!(world.worker.decide(&first, &two).await.unwrap(), one);
    world.worker.decide(&second, &two).await.unwrap();
    assert_eq!(
        world.worker.decide(&first, &two).await.unwrap(),
        one,
        "an older message is no news"
    );
    let known = world.ingress.decisions(&third).await.unwrap();
    assert_eq!(
        known,
        RecordedDecisions {
            own: None,
            last: Some(two.clone())
        }
    );
    assert_eq!(
        world.ingress.decisions(&first).await.unwrap(),
        RecordedDecisions {
            own: Some(one),
            last: Some(two)
        }
    );
}

pub(super) async fn what_a_trial_runs_on_is_read_by_another_process_under_its_name_alone(
    world: World,
) {
    let [trial, other] = [(); 2].map(|()| MessageId::new_in(&any_conversation()));
    assert_eq!(world.worker.trial(&trial).await.unwrap(), None);
    for text in ["draft", "a later draft é"] {
        world.ingress.keep_trial(&trial, text).await.unwrap();
        assert_eq!(
            world.worker.trial(&trial).await.unwrap().as_deref(),
            Some(text)
        );
    }
    assert_eq!(world.worker.trial(&other).await.unwrap(), None);
}
