//! Conformance tests of round robin.

use std::{collections::BTreeMap, sync::Arc};

use futures::future::join_all;
use switchboard_schemas::{
    ids::{AgentId, MessageId, OrgId, TeamId},
    routing::{RoutingFacts, RoutingStage},
    secret::InstallationSecret,
};

use super::support::World;
use crate::relay::{RecordedDecisions, Relay, RoundRobinOffer, RoutingDecision};

const SLUGS: [&str; 4] = ["ada", "bob", "cyd", "dan"];

/// Returns an offer of the first `members` of [`SLUGS`].
fn offer(members: usize) -> RoundRobinOffer {
    let secret = InstallationSecret::from_bytes(rand::random());
    let org = OrgId::derive(&secret, "acme");
    RoundRobinOffer {
        team: TeamId::derive(&secret, &org, "front"),
        members: SLUGS[..members]
            .iter()
            .map(|slug| AgentId::derive(&secret, &org, slug))
            .collect(),
        reason: "next in turn".into(),
        facts: Some(RoutingFacts {
            stage: RoutingStage::Strategy,
            took_ms: 0,
            scores: Vec::new(),
        }),
    }
}

/// Returns the same offer with only some of its members.
fn only(offer: &RoundRobinOffer, members: &[usize]) -> RoundRobinOffer {
    RoundRobinOffer {
        members: members
            .iter()
            .map(|index| offer.members[*index].clone())
            .collect(),
        ..offer.clone()
    }
}

/// Returns the members that are chosen for `turns` new messages.
async fn take(world: &World, offer: &RoundRobinOffer, turns: usize) -> Vec<AgentId> {
    let mut taken = Vec::new();
    for _ in 0..turns {
        let message = MessageId::new_in(&world.conversation);
        taken.push(
            world
                .worker
                .record_round_robin(&message, offer)
                .await
                .unwrap()
                .unwrap()
                .agent_id,
        );
    }
    taken
}

pub(super) async fn message_counts_once_and_counts_stay_even(world: World) {
    let (team, other) = (offer(3), offer(2));
    let messages: Vec<_> = (0..20)
        .map(|_| MessageId::new_in(&world.conversation))
        .collect();
    let relays: [&Arc<dyn Relay>; 2] = [&world.worker, &world.ingress];
    // Each message is routed twice, by two processes, as after a worker crash.
    let asked = messages.iter().chain(&messages).enumerate();
    let decisions = join_all(
        asked.map(|(index, message)| relays[index % 2].record_round_robin(message, &team)),
    )
    .await;
    let mut decisions: Vec<_> = decisions
        .into_iter()
        .map(|decision| decision.unwrap().unwrap())
        .collect();
    let repeats = decisions.split_off(messages.len());
    assert_eq!(decisions, repeats);
    let mut counts = BTreeMap::new();
    for decision in &decisions {
        *counts.entry(&decision.agent_id).or_insert(0) += 1;
    }
    let mut counts: Vec<_> = counts.into_values().collect();
    counts.sort_unstable();
    assert_eq!(counts, [6, 7, 7]);
    assert_eq!(
        take(&world, &other, 3).await,
        [&other.members[..], &other.members[..1]].concat(),
        "a team of its own"
    );
}

pub(super) async fn present_member_is_never_skipped_twice(world: World) {
    let team = offer(SLUGS.len());
    let mut turns: Vec<(Vec<usize>, usize)> = Vec::new();
    for _ in 0..60 {
        // Any member may be absent, but not all of them.
        let here = rand::random_range(1..1_u8 << SLUGS.len());
        let here: Vec<_> = (0..SLUGS.len())
            .filter(|index| here & (1 << index) != 0)
            .collect();
        let taken = take(&world, &only(&team, &here), 1).await;
        turns.push((
            here,
            team.members
                .iter()
                .position(|member| *member == taken[0])
                .unwrap(),
        ));
    }
    for (began, (_, one)) in turns.iter().enumerate() {
        let Some(again) = turns[began + 1..]
            .iter()
            .position(|(_, taker)| taker == one)
        else {
            continue;
        };
        let span = &turns[began..=began + 1 + again];
        for other in (0..SLUGS.len()).filter(|other| other != one) {
            let was_there = span.iter().all(|(here, _)| here.contains(&other));
            assert!(
                !was_there || span.iter().any(|(_, taker)| *taker == other),
                "{other} waits in {span:?}"
            );
        }
    }
}

pub(super) async fn new_or_returning_member_starts_level_with_the_others(world: World) {
    let team = offer(3);
    let (pair, alone) = (only(&team, &[0, 1]), only(&team, &[2]));
    for others in [&pair, &pair, &alone] {
        take(&world, others, 8).await;
        let mut round = take(&world, &team, 3).await;
        round.sort_unstable();
        let mut members = team.members.clone();
        members.sort_unstable();
        assert_eq!(round, members, "each has one turn, whoever was away before");
    }
}

pub(super) async fn decided_message_keeps_its_decision_and_takes_no_turn(world: World) {
    let team = offer(2);
    let [ada, bob] = [0, 1].map(|index| only(&team, &[index]));
    let [decided, first, later] = [(); 3].map(|()| MessageId::new_in(&world.conversation));
    let before = RoutingDecision {
        agent_id: team.members[1].clone(),
        reason: "by words".into(),
        facts: None,
    };
    world
        .worker
        .record_decision(&decided, &before)
        .await
        .unwrap();
    for offered in [&team, &only(&team, &[])] {
        assert_eq!(
            world
                .worker
                .record_round_robin(&decided, offered)
                .await
                .unwrap()
                .as_ref(),
            Some(&before)
        );
    }
    let made = world
        .worker
        .record_round_robin(&first, &team)
        .await
        .unwrap()
        .unwrap();
    let RoundRobinOffer { reason, facts, .. } = team.clone();
    assert_eq!(
        made,
        RoutingDecision {
            agent_id: ada.members[0].clone(),
            reason,
            facts
        }
    );
    let again = world
        .ingress
        .record_round_robin(&first, &bob)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(again, made, "though its member left meanwhile");
    let known = world.ingress.recorded_decisions(&later).await.unwrap();
    assert_eq!(
        known,
        RecordedDecisions {
            own: None,
            last: Some(made)
        }
    );
    assert_eq!(
        world
            .worker
            .record_round_robin(&later, &only(&team, &[]))
            .await
            .unwrap(),
        None,
        "nobody is offered"
    );
    assert_eq!(take(&world, &team, 1).await, bob.members);
}
