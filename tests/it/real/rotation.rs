//! Round-robin routing with two routing workers, one of which is killed repeatedly.

use std::collections::BTreeMap;

use futures::future::join_all;
use serde_json::json;

use super::start_cluster;
use crate::support::{Organization, OrganizationDocument, Script};

const MEMBERS: [&str; 3] = ["ada", "bob", "cyd"];
const ROUNDS: usize = 3;
/// Messages per round; with the one before the kill no multiple of the members, so that a reset
/// counter shows.
const CHATS_PER_ROUND: usize = 15;

/// Asserts that a message counts once, also when another worker routes it again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn round_robin_stays_even_while_a_routing_worker_is_killed() {
    let mut service = start_cluster(&[]).await;
    service.add("routing-2", "routing").await;
    let members: Vec<_> = MEMBERS
        .iter()
        .map(|agent| json!({"agent": agent}))
        .collect();
    let document = MEMBERS
        .iter()
        .fold(OrganizationDocument::new(), |document, agent| {
            document.agent(agent, json!({}))
        });
    let organization = document
        .team(
            "front",
            json!({"routing": "round-robin", "members": members}),
        )
        .apply(&service)
        .await;
    organization.script(Script::says("ok"));
    let mut turns = BTreeMap::new();
    for round in 0..ROUNDS {
        let victim = ["routing-1", "routing-2"][round % 2];
        let chats =
            join_all((0..CHATS_PER_ROUND).map(|chat| answered_by(&organization, round, chat)));
        let kill = async {
            // Kill while some messages are routed and some are not.
            let first = answered_by(&organization, round, CHATS_PER_ROUND).await;
            service.with_process(victim, |process| process.kill());
            service.restart(victim).await;
            first
        };
        let (answered, first) = tokio::join!(chats, kill);
        for agent in answered.into_iter().chain([first]) {
            *turns.entry(agent).or_insert(0) += 1;
        }
    }
    let (least, most) = (turns.values().min().unwrap(), turns.values().max().unwrap());
    assert!(
        turns.len() == MEMBERS.len() && most - least <= 1,
        "{turns:?}"
    );
}

async fn answered_by(organization: &Organization, round: usize, chat: usize) -> String {
    let session = format!("r{round}c{chat}");
    let reply = organization.team_chat(&session, "hi").await;
    reply.complete();
    reply.required_header("x-agent-id")
}
